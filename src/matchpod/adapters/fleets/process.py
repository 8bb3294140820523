"""Run game servers as local processes, one per match, which outlive the service.

The files of `process_record` identify the processes, so a restarted service finds the servers that are still running.
Each server has its own session, so signals to the service do not reach it. This works on Linux only, because it reads
/proc.
"""

from __future__ import annotations

import asyncio
import os
import re
import resource
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import msgspec

from cs2_protocol.rcon import PASSWORD_VARIABLE
from matchpod.adapters.fleets.fixed_slots import FixedSlots
from matchpod.adapters.fleets.instance_folders import GAME_FOLDER, InstanceFolders, InstanceOptions
from matchpod.adapters.fleets.process_record import (
    MARK_NAME,
    ProcessId,
    ProcessRecord,
    RecordFolder,
    age_s,
    identify,
    is_running,
    may_run,
    wait_for_end,
)
from matchpod.adapters.fleets.secret_cfg import cfg_name, cfg_text, remove_cfg, write_cfg
from matchpod.adapters.fleets.server_user import ServerUser, find_user
from matchpod.adapters.rcon_client import probe_port
from matchpod.core.servers.server_loss import FleetReport
from matchpod.ports import FleetError, GameServer, ListedServer, ServerLease, ServerOrder

START_S = 60.0
"""Timeout in seconds from the start of a process until its port accepts connections. A real server on a cold disk takes
30 s."""

TERM_S = 5.0
"""Time in seconds for a server to exit after SIGTERM, before SIGKILL is sent."""

KILL_S = 5.0
"""Timeout in seconds for a server to exit after SIGKILL."""

POLL_S = 0.05
"""Interval in seconds at which a starting or stopping process is checked."""

UNRECORDED_S = 1.0
"""Interval in seconds at which a missing or unreadable record is read again."""

CONNECT_S = 1.0
"""Timeout in seconds for a connection attempt to a server that is starting."""

STARTING_THREADS = 4
"""Maximum number of servers of a fleet that are started or removed concurrently, because all of them use the same disk.
"""

SHOWN_LINES = 10
"""Number of output lines to quote in the error message for a server that did not start."""

SHOWN_BYTES = 2000
"""Maximum number of output bytes from which SHOWN_LINES are taken."""

INHERITED = ("PATH", "HOME", "USER", "LANG", "LC_ALL", "TZ", "TMPDIR", "LD_LIBRARY_PATH", "PYTHONPATH")
"""Names of the environment variables that servers inherit. Other variables may contain secrets of the service."""

PASSWORD_PLACEHOLDER = "{rcon_password}"
"""The placeholder for the RCON password. In a command line, all users of the machine can read the password."""

_PLACEHOLDERS = frozenset(
    {
        *("port", "tv_port", "map", "game_type", "game_mode", "rcon_password", "cfg", "game", "players", "speed", "ip"),
        "server_id",
    }
)
_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")


def expand_command(template: Sequence[str], values: Mapping[str, str]) -> list[str]:
    """Return the arguments of a command with all placeholders replaced.

    An argument that becomes empty is dropped, together with the option (`-name`, `+name`) before it.
    """
    arguments: list[str] = []
    for pattern in template:
        argument = _PLACEHOLDER.sub(lambda found: values[found[1]], pattern)
        if argument:
            arguments.append(argument)
        elif arguments and arguments[-1][0] in "-+":
            arguments.pop()
    return arguments


class ProcessOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How the servers of a fleet are started. `command` is a list of arguments with placeholders."""

    command: tuple[str, ...]
    ports: tuple[int, ...]
    host: str = "127.0.0.1"
    """The address that servers, and their consoles, listen on."""
    public_ip: str | None = None
    """The address that players connect to, if it is not `host`."""
    speed: float = 1.0
    environment: Mapping[str, str] = {}
    working_directory: Path | None = None
    memory_bytes: int | None = None
    user: str | None = None
    """The name or uid of the user that servers run as; None if they run as the user of the service."""
    cfg_folder: Path | None = None
    """The folder from which the game reads `.cfg` files. Each server gets a file with its secrets there."""
    instances: InstanceOptions | None = None
    """How to create a folder for each server; None if all servers run in the same folder."""
    tv_ports: tuple[int, ...] = ()
    """The GOTV ports of the servers, in the order of their `ports`."""
    steam_tokens: tuple[str, ...] = ()
    """The Steam login tokens of the servers, in the order of their `ports`."""
    start_s: float = START_S
    term_s: float = TERM_S
    owner: str = ""
    """The id of this installation."""


class ProcessFleet(FixedSlots):
    """Runs servers on this machine, one per port. `folder` is where their records are stored."""

    def __init__(self, folder: Path, options: ProcessOptions) -> None:
        unknown = {name for argument in options.command for name in _PLACEHOLDER.findall(argument)} - _PLACEHOLDERS
        if not options.command or unknown:
            raise ValueError(f"the command of a fleet is empty, or has unknown placeholders: {sorted(unknown)}")
        self._records = RecordFolder(folder)
        self._options = options
        self._slots = tuple(str(port) for port in options.ports)
        self._shows_password = any(PASSWORD_PLACEHOLDER in argument for argument in options.command)
        self._instances = (
            InstanceFolders(options.instances, owner=options.owner or "matchpod", user=options.user)
            if options.instances
            else None
        )
        self._locks: WeakValueDictionary[str, threading.Lock] = WeakValueDictionary()
        self._new_lock = threading.Lock()
        # A separate thread pool: with a slow disk, these calls would occupy all threads of the default pool.
        self._threads = ThreadPoolExecutor(STARTING_THREADS, thread_name_prefix="game-servers")
        self._children: set[int] = set()

    @property
    def slots(self) -> Sequence[str]:
        """The ports as strings."""
        return self._slots

    async def follow(self, on_change: Callable[[], None]) -> None:
        """Remove folders that a crash has left, then wait until cancelled: no event from outside frees a slot."""
        if self._instances is not None:
            await self._in_thread(self._instances.remove_unused)
        await super().follow(on_change)

    async def allocate(self, order: ServerOrder) -> GameServer:
        """Start (or find) the server of this match, and wait until its port accepts connections.

        If the port does not accept connections in time, the server is stopped. If the call is cancelled, the server may
        keep running, and the next call finds it.
        """
        if order.slot not in self._slots:
            raise FleetError(f"this fleet has no port {order.slot}")
        if self._shows_password and order.rcon_password[:1] in ("-", "+"):
            raise FleetError("the RCON password begins like an option, so it cannot be passed on a command line")
        port = int(order.slot)
        process = await asyncio.to_thread(self._find, order)
        if process is None:
            await self._stop(order.server_id)
            if await probe_port(self._options.host, port, timeout_s=CONNECT_S):
                raise FleetError(f"port {port} is in use by another program")
            try:
                process = await self._in_thread(self._find_or_start, order)
            except FleetError:
                await self._stop(order.server_id)
                raise
        fault = await self._wait_for_port(process, port)
        if fault is not None:
            try:
                output = await asyncio.to_thread(self._last_lines, order)
            except OSError as exc:
                await self._stop(order.server_id)
                raise FleetError(f"the server {fault}; its output cannot be read: {exc}") from exc
            await self._stop(order.server_id)
            raise FleetError(f"the server {fault}; its last output: {output or 'none'}")
        return GameServer(
            ip=self._options.public_ip or self._options.host,
            port=port,
            rcon_host=self._options.host,
            rcon_port=port,
            rcon_password=order.rcon_password,
        )

    async def observe(self, server_id: str, slot: str) -> FleetReport:
        """Report whether the process of this server is running; UNKNOWN if the folder has no record of the server."""
        return await asyncio.to_thread(self._check, server_id)

    async def wait_gone(self, server_id: str, slot: str) -> str:
        while (process := await asyncio.to_thread(self._process_of, server_id)) is None:
            await asyncio.sleep(UNRECORDED_S)
        await wait_for_end(process)
        return "its process has ended"

    async def release(self, server_id: str, slot: str, lease: ServerLease | None = None) -> None:
        """Stop the server and its child processes, and wait until they have exited. The server may be unknown."""
        await self._stop(server_id, lease)

    async def servers(self) -> Sequence[ListedServer]:
        """Return all running servers that have a record; raise FleetError if they cannot be listed."""
        try:
            return await asyncio.to_thread(self._running_servers)
        except OSError as exc:
            raise FleetError(f"the servers cannot be listed: {exc}") from exc

    async def close(self) -> None:
        """Do nothing: the servers keep running."""

    async def _in_thread(self, function: Callable[..., Any], *arguments: object) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._threads, function, *arguments)

    def _changing(self, server_id: str) -> threading.Lock:
        """Return the lock for changes of a server's record and process.

        A cancelled call does not stop its thread. The next call waits for the lock, and then finds the server that this
        thread has started.
        """
        with self._new_lock:
            return self._locks.setdefault(server_id, threading.Lock())

    def _find(self, order: ServerOrder) -> ProcessId | None:
        """Return the process of this match's running server, if the server has the ordered slot."""
        with self._changing(order.server_id):
            return self._recorded(order)

    def _find_or_start(self, order: ServerOrder) -> ProcessId:
        with self._changing(order.server_id):
            return self._recorded(order) or self._start(order)

    def _recorded(self, order: ServerOrder) -> ProcessId | None:
        try:
            record = self._records.read(order.server_id)
            if record is None or record.process is None or record.slot != order.slot or not is_running(record.process):
                return None
        except (OSError, ValueError) as exc:
            raise FleetError(f"the record of the server cannot be read: {exc}") from exc
        return record.process

    def _start(self, order: ServerOrder) -> ProcessId:
        record = ProcessRecord(server_id=order.server_id, slot=order.slot, owner=self._options.owner)
        try:
            # Written before the process is started: a record without a process means that the process may be running.
            self._records.write(record)
            process = self._spawn(order)
            self._records.write(msgspec.structs.replace(record, process=process))
        # OverflowError is raised if the memory limit is too large.
        except (OSError, ValueError, OverflowError, subprocess.SubprocessError) as exc:
            # The message may quote the program name, which contains the password if the placeholder is in it.
            reason = _without_secret(str(exc), order.rcon_password)
            whose = f" as user {self._options.user}" if self._options.user else ""
            raise FleetError(f"the server cannot be started{whose}: {reason}") from exc
        return process

    def _spawn(self, order: ServerOrder) -> ProcessId:
        user = find_user(self._options.user) if self._options.user else None
        command = expand_command(self._options.command, self._values(order))
        log = self._records.open_log(order.server_id)
        environment = self._environment(order, user)

        def spawn(words: Sequence[str], **more: Any) -> subprocess.Popen[bytes]:
            return subprocess.Popen(
                words,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self._options.working_directory,
                env=environment,
                start_new_session=True,
                user=user.uid if user else None,
                group=user.gid if user else None,
                extra_groups=user.groups if user else None,
                **more,
            )

        try:
            if self._instances is not None:
                cfg = (cfg_name(order.server_id), cfg_text(self._secrets(order)))
                child = self._instances.start(spawn, order.server_id, command, cfg)
            else:
                if self._options.cfg_folder is not None:
                    write_cfg(self._options.cfg_folder, order.server_id, cfg_text(self._secrets(order)), user)
                child = spawn(command, stdin=subprocess.DEVNULL)
        finally:
            os.close(log)
        # Servers are reaped by process id (`_reap`). With a return code, Popen does not warn about a running child.
        child.returncode = 0
        self._limit_memory(child.pid)
        process = identify(child.pid)
        if process is None:  # possible only if the system reaps children by itself
            raise OSError("the process exited immediately")
        self._children.add(child.pid)
        return process

    def _limit_memory(self, pid: int) -> None:
        if self._options.memory_bytes is not None:
            # A preexec_fn would be unsafe: in a process with threads, Python code between fork and exec may deadlock.
            with suppress(ProcessLookupError):
                resource.prlimit(pid, resource.RLIMIT_AS, (self._options.memory_bytes, self._options.memory_bytes))

    def _secrets(self, order: ServerOrder) -> dict[str, str]:
        commands = {"rcon_password": order.rcon_password}
        if self._options.steam_tokens:
            commands["sv_setsteamaccount"] = self._options.steam_tokens[self._slots.index(order.slot)]
        return commands

    def _environment(self, order: ServerOrder, user: ServerUser | None) -> dict[str, str]:
        inherited = {name: os.environ[name] for name in INHERITED if name in os.environ}
        own = {PASSWORD_VARIABLE: order.rcon_password, MARK_NAME: self._records.mark(order.server_id)}
        return {
            **inherited,
            **(user.environment if user else {}),
            **self._options.environment,
            **order.environment,
            **own,
        }

    def _values(self, order: ServerOrder) -> dict[str, str]:
        return {
            "port": order.slot,
            "tv_port": str(self._options.tv_ports[self._slots.index(order.slot)]) if self._options.tv_ports else "",
            "map": order.map_name,
            "game_type": str(order.game_type),
            "game_mode": str(order.game_mode),
            "rcon_password": order.rcon_password,
            "cfg": cfg_name(order.server_id),
            "game": GAME_FOLDER,
            "players": ",".join(order.players),
            "speed": f"{self._options.speed:g}",
            "ip": self._options.host,
            "server_id": order.server_id,
        }

    async def _wait_for_port(self, process: ProcessId, port: int) -> str | None:
        """Wait until the server's port accepts connections; return what went wrong, or None."""
        try:
            async with asyncio.timeout(self._options.start_s):
                while may_run(process):
                    # Another program may have answered on the port, so check that the server itself is still running.
                    if await probe_port(self._options.host, port, timeout_s=CONNECT_S) and may_run(process):
                        return None
                    await asyncio.sleep(POLL_S)
        except TimeoutError:
            return f"did not open port {port} within {self._options.start_s:g} s"
        return "exited while it was starting"

    def _last_lines(self, order: ServerOrder) -> str:
        output = self._records.log_tail(order.server_id, SHOWN_BYTES).decode("utf-8", errors="replace")
        return _without_secret(" | ".join(output.split("\n")[-SHOWN_LINES - 1 :]).strip(" |"), order.rcon_password)

    def _check(self, server_id: str) -> FleetReport:
        """Report whether a server is running, and truncate its log if needed."""
        try:
            record = self._records.read(server_id)
            self._records.shorten_log(server_id)
            if record is None or record.process is None:
                return FleetReport.UNKNOWN  # the server may be on another machine, or the folder was lost
            return FleetReport.ALIVE if is_running(record.process) else FleetReport.GONE
        except ValueError:
            return FleetReport.GONE
        except OSError:  # the folder cannot be read, or too many files are open
            return FleetReport.UNKNOWN

    def _process_of(self, server_id: str) -> ProcessId | None:
        try:
            record = self._records.read(server_id)
        except (OSError, ValueError):
            return None
        return record.process if record else None

    def _reap(self) -> None:
        """Reap exited servers that this process has started. Servers of an earlier process are not its children."""
        for pid in tuple(self._children):
            try:
                is_reaped = os.waitpid(pid, os.WNOHANG)[0] == pid
            except ChildProcessError:
                is_reaped = True
            if is_reaped:
                self._children.discard(pid)

    def _running_servers(self) -> list[ListedServer]:
        self._reap()
        found = ((record, self._running(record)) for record in self._records.records())
        return [
            ListedServer(
                server_id=record.server_id,
                is_own=self._is_own(record),
                owner=record.owner,
                age_s=min(map(age_s, processes)),
            )
            for record, processes in found
            if processes
        ]

    def _running(self, record: ProcessRecord) -> list[ProcessId]:
        if record.process is not None:
            return [record.process] if is_running(record.process) else []
        # Without a recorded process, the server may still be running: search all processes for the server's mark.
        return self._records.processes(record.server_id)

    def _is_own(self, record: ProcessRecord) -> bool | None:
        if self._records.is_copy(record):
            return False
        return True if record.owner == self._options.owner else False if record.owner else None

    async def _stop(self, server_id: str, lease: ServerLease | None = None) -> None:
        try:
            for number, timeout_s in ((signal.SIGTERM, self._options.term_s), (signal.SIGKILL, KILL_S)):
                if lease is not None:
                    lease.check()
                await self._signal_and_wait(number, server_id, timeout_s)
                if await self._in_thread(self._remove_record, server_id):
                    return
        except ValueError:
            return  # the id is invalid, so there is no such server
        except OSError as exc:
            raise FleetError(f"the server cannot be stopped: {exc}") from exc
        raise FleetError("the server is still running after SIGKILL")

    async def _signal_and_wait(self, number: signal.Signals, server_id: str, timeout_s: float) -> None:
        """Send a signal to all processes of a server. Wait until they have exited, or until the timeout expires."""
        left = await asyncio.to_thread(self._signal, number, server_id)
        deadline_s = asyncio.get_running_loop().time() + timeout_s
        while left and asyncio.get_running_loop().time() < deadline_s:
            await asyncio.sleep(POLL_S)
            left = [process for process in left if is_running(process)]

    def _signal(self, number: signal.Signals, server_id: str) -> list[ProcessId]:
        with self._changing(server_id):
            processes = self._records.processes(server_id)
            for process in processes:
                # A server leads a process group. A marked process that does not lead a group gets the signal alone.
                with suppress(ProcessLookupError):
                    if os.getpgid(process.pid) == process.pid:
                        os.killpg(process.pid, number)
                    else:
                        os.kill(process.pid, number)
            return processes

    def _remove_record(self, server_id: str) -> bool:
        """Remove the record and files of a server; False if one of its processes is running, perhaps just started."""
        with self._changing(server_id):
            if self._records.processes(server_id):
                return False
            if self._options.cfg_folder is not None:
                remove_cfg(self._options.cfg_folder, server_id)
            if self._instances is not None:
                self._instances.remove(server_id)
            self._records.remove(server_id)
            return True


def _without_secret(text: str, secret: str) -> str:
    return text.replace(secret, "***") if secret else text
