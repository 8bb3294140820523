"""Simulated servers that the harness runs itself, as a static fleet: it cuts their consoles and restarts them.

The service reaches each server through a proxy of the harness, which records the commands.
"""

from __future__ import annotations

import asyncio
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

import msgspec

from cs2_protocol.rcon import MAX_REQUEST_SIZE
from cs2_protocol.rcon_frames import EXEC_COMMAND, FrameReader
from tests.contract.simulator_process import PASSWORD, SIMULATE
from tests.e2e.service.game_server import execute_at
from tests.e2e.service.running_service import free_port_range

START_S = 120.0
NEVER_S = 3000
"""Simulated seconds after which players come unless the match says otherwise."""
GARBAGE = b"HTTP/1.1 400 Bad Request\r\n\r\n"
_FAILURES = (OSError, asyncio.IncompleteReadError)


class SentCommand(msgspec.Struct, frozen=True):
    """A command that a service sent to the console."""

    at_s: float
    pid: int | None
    """The process that sent it, if that was looked up."""
    text: str


class StaticServer:
    """One simulated server and the proxy in front of it."""

    def __init__(self, *args: str) -> None:
        """`args` are further arguments of the simulator."""
        self._args = args
        self.port = free_port_range(1)[0]
        self.delay_s = 0.0
        """How long each command is on its way."""
        self.commands: list[SentCommand] = []
        """What has reached the server through the proxy."""
        self.find_pid: Callable[[int], int | None] = lambda _port: None
        """Looks up the process that connects from a port."""
        self.on_command: Callable[[str], None] = lambda _text: None
        """Called with each command before it is passed on."""
        self._is_broken = False
        self._connections: set[asyncio.StreamWriter] = set()
        self._may_pass = asyncio.Event()
        self._may_pass.set()
        self._is_refusing = False
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        self._proxy = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.address = f"127.0.0.1:{self._proxy.sockets[0].getsockname()[1]}"
        await self._spawn()

    async def _spawn(self) -> None:
        self._process = await _simulate([self.port], *self._args)

    async def close(self) -> None:
        self._proxy.close()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.kill()

    async def restart(self) -> None:
        await self.kill()
        await self._spawn()

    async def kill(self) -> None:
        """Kill the server for good; connections to its console are closed."""
        await _end(self._process)

    async def refuse(self, lasts_s: float) -> None:
        """Close all connections to its console and listen no longer for a while, so that new ones are refused."""
        port = int(self.address.rpartition(":")[2])
        self._proxy.close()
        for writer in tuple(self._connections):
            writer.transport.abort()
        await asyncio.sleep(lasts_s)
        self._proxy = await asyncio.start_server(self._serve, "127.0.0.1", port)

    async def cut(self, lasts_s: float) -> None:
        """Close all connections to its console, and refuse new ones for a while."""
        self._is_refusing = True
        for writer in tuple(self._connections):
            writer.transport.abort()
        await asyncio.sleep(lasts_s)
        self._is_refusing = False

    async def hold(self, lasts_s: float) -> None:
        """Keep connections to its console open, but pass nothing on for a while."""
        self.pause()
        await asyncio.sleep(lasts_s)
        self._may_pass.set()

    def pause(self) -> None:
        self._may_pass.clear()

    def break_console(self) -> None:
        """Answer everything from now on with bytes that are no packet."""
        self._is_broken = True
        self._may_pass.set()

    async def leftovers(self) -> list[str]:
        """Return what a match left on the server."""
        found = await asyncio.to_thread(execute_at, self.port, PASSWORD, "logaddress_list_http", "status_json")
        listeners, status = found
        left = [f"log listener {listeners}"] if "http://" in listeners else []
        is_empty = '"clients_human":0' in status.replace(" ", "")
        return [f"{self.address}: {one}" for one in (*left, *([] if is_empty else [f"players {status}"]))]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._connections.add(writer)
        try:
            # Cancelled at the end only: nothing waits for this task.
            with suppress(*_FAILURES, asyncio.CancelledError):
                if not self._is_refusing:
                    await self._connect(reader, writer)
        finally:
            self._tasks.discard(task)
            self._connections.discard(writer)
            writer.close()

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        pid = self.find_pid(writer.get_extra_info("peername")[1])
        server_reader, server_writer = await asyncio.open_connection("127.0.0.1", self.port)
        ways = [
            asyncio.create_task(self._pass_commands(reader, server_writer, pid)),
            asyncio.create_task(self._pass_on(server_reader, writer)),
        ]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            server_writer.close()

    async def _pass_commands(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, pid: int | None) -> None:
        frames = FrameReader(MAX_REQUEST_SIZE)
        while data := await reader.read(65_536):
            await asyncio.sleep(self.delay_s)
            await self._may_pass.wait()
            found = [frame.body for frame in frames.feed(data) if frame.type == EXEC_COMMAND]
            sent = [SentCommand(time.monotonic(), pid, body.decode(errors="replace")) for body in found]
            self.commands += sent
            for command in sent:
                self.on_command(command.text)
            writer.write(data)
            await writer.drain()

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65_536):
            await self._may_pass.wait()
            writer.write(GARBAGE if self._is_broken else data)
            await writer.drain()


class StaticServers:
    """All static servers of a round."""

    def __init__(self, count: int, *args: str) -> None:
        self.servers = [StaticServer(*args) for _ in range(count)]

    async def __aenter__(self) -> StaticServers:
        await asyncio.gather(*(server.start() for server in self.servers))
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.gather(*(server.close() for server in self.servers))

    async def leftovers(self) -> tuple[str, ...]:
        """Return what matches left on the servers."""
        found = [await server.leftovers() for server in self.servers]
        return tuple(left for one in found for left in one)


class Farm:
    """One process with many static servers."""

    def __init__(self, servers: int) -> None:
        self.ports = free_port_range(servers)
        self.addresses = [f"127.0.0.1:{port}" for port in self.ports]

    async def __aenter__(self) -> Farm:
        self._process = await _simulate(self.ports, "--farm", str(len(self.ports)))
        return self

    async def __aexit__(self, *_: object) -> None:
        await _end(self._process)

    async def stall(self, lasts_s: float) -> None:
        """Let the whole host stand still for a while."""
        self._process.send_signal(signal.SIGSTOP)
        try:
            await asyncio.sleep(lasts_s)
        finally:
            self._process.send_signal(signal.SIGCONT)


async def _simulate(ports: Sequence[int], *args: str) -> asyncio.subprocess.Process:
    """Start a process of simulated servers; return it when all of them listen."""
    usual = f"-port {ports[0]} +rcon_password {PASSWORD} --speed 1 --quiet +sim_roster_delay {NEVER_S}".split()
    process = await asyncio.create_subprocess_exec(*SIMULATE, *usual, *args, stdout=subprocess.DEVNULL)
    try:
        async with asyncio.timeout(START_S):
            for port in ports:
                while not await _is_open(port):
                    await asyncio.sleep(0.1)
    except BaseException:
        await _end(process)
        raise
    return process


async def _is_open(port: int) -> bool:
    with suppress(OSError):
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.close()
        return True
    return False


async def _end(process: asyncio.subprocess.Process) -> None:
    with suppress(ProcessLookupError):
        process.kill()
    await process.wait()
