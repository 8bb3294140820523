"""How does a machine run game servers as its own processes? One process a match, which outlives the service.

Everything is found again from the files of `process_record`: a service that starts anew adopts what runs. Each server
has a session of its own, so a signal to the service does not reach it. Linux only, as it reads /proc.
"""

from __future__ import annotations

import asyncio
import os
import re
import resource
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from matchpod.adapters.fleets.process_record import (
    MARK_NAME,
    ProcessId,
    ProcessRecord,
    RecordFolder,
    identify,
    is_running,
)
from matchpod.adapters.rcon_client import accepts
from matchpod.ports import FleetError, GameServer, ServerOrder

START_S = 60.0
"""From the start of a process until its port accepts connections; a real server with a cold disk takes half of it."""

TERM_S = 5.0
"""Between asking a server to end and killing it."""

KILL_S = 5.0
"""How long the system may take to clear away a killed process."""

POLL_S = 0.05
"""How often a process that starts or ends is looked at."""

CONNECT_S = 1.0
"""For one try at the port of a server that is starting."""

SHOWN_LINES = 10
"""Lines of output in the message about a server that did not start."""

SHOWN_BYTES = 2000
"""What is read for them."""

INHERITED = ("PATH", "HOME", "USER", "LANG", "LC_ALL", "TZ", "TMPDIR", "LD_LIBRARY_PATH", "PYTHONPATH")
"""What a server's environment takes from ours: the rest may hold secrets of the service."""

_PLACEHOLDERS = frozenset({"port", "map", "game_type", "game_mode", "rcon_password", "players", "speed", "ip"})
_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")


def fill_words(template: Sequence[str], values: Mapping[str, str]) -> list[str]:
    """The words of a command with their placeholders replaced.

    A word that is empty then is dropped, together with the option (`-name`, `+name`) it was the value of.
    """
    words: list[str] = []
    for form in template:
        word = _PLACEHOLDER.sub(lambda found: values[found[1]], form)
        if word:
            words.append(word)
        elif words and words[-1][0] in "-+":
            words.pop()
    return words


class ProcessOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How the servers of a fleet are started: `command` is a list of words with placeholders."""

    command: tuple[str, ...]
    ports: tuple[int, ...]
    host: str = "127.0.0.1"
    """Where servers listen, and where we reach their consoles."""
    public_ip: str | None = None
    """Where players reach them, if that is another address."""
    speed: float = 1.0
    environment: Mapping[str, str] = {}
    working_directory: Path | None = None
    memory_bytes: int | None = None
    start_s: float = START_S


class ProcessFleet:
    """Runs servers on this machine, one on each port; what it knows of them lies in the folder."""

    def __init__(self, folder: Path, options: ProcessOptions) -> None:
        unknown = {name for word in options.command for name in _PLACEHOLDER.findall(word)} - _PLACEHOLDERS
        if not options.command or unknown:
            raise ValueError(f"the command of a fleet is empty, or has unknown placeholders: {sorted(unknown)}")
        self._records = RecordFolder(folder)
        self._options = options
        self._slots = tuple(str(port) for port in options.ports)
        # Held while a record and its process change together. A caller that is cancelled does not stop its thread,
        # so the next one waits here and then finds the server the first one started.
        self._changing = threading.Lock()
        self._children: set[int] = set()

    @property
    def slots(self) -> Sequence[str]:
        """The ports, as text."""
        return self._slots

    async def allocate(self, order: ServerOrder) -> GameServer:
        """Start (or find) the server of this match, and wait until its port accepts connections.

        A server that does not get there is ended. A cancelled call leaves the server: a repeated one finds it.
        """
        if order.slot not in self._slots:
            raise FleetError(f"this fleet has no port {order.slot}")
        if order.rcon_password[:1] in ("-", "+"):
            raise FleetError("an RCON password that begins like an option cannot stand on a command line")
        port = int(order.slot)
        process = await asyncio.to_thread(self._find, order)
        if process is None:
            await self._end(order.server_id)
            if await accepts(self._options.host, port, timeout_s=CONNECT_S):
                raise FleetError(f"port {port} is in use by something else")
            try:
                process = await asyncio.to_thread(self._find_or_start, order)
            except FleetError:
                await self._end(order.server_id)
                raise
        fault = await self._wait_for_port(process, port)
        if fault is not None:
            output = await asyncio.to_thread(self._last_lines, order)
            await self._end(order.server_id)
            raise FleetError(f"the server {fault}; its last output: {output or 'none'}")
        return GameServer(
            ip=self._options.public_ip or self._options.host,
            port=port,
            rcon_host=self._options.host,
            rcon_port=port,
            rcon_password=order.rcon_password,
        )

    async def is_alive(self, server_id: str, slot: str) -> bool:
        """True while the process of this server runs."""
        return await asyncio.to_thread(self._look_at, server_id)

    async def release(self, server_id: str, slot: str) -> None:
        """End the server and all it started; returns when they are gone. Releasing an unknown server succeeds."""
        await self._end(server_id)

    async def servers(self) -> Sequence[str]:
        """The ids of all matches whose server runs; FleetError when the system does not tell."""
        try:
            return await asyncio.to_thread(self._running_ids)
        except OSError as exc:
            raise FleetError(f"the servers cannot be listed: {exc}") from exc

    async def close(self) -> None:
        """Nothing is held: servers go on without us."""

    def _find(self, order: ServerOrder) -> ProcessId | None:
        """The running server of this match, if it is the one ordered."""
        with self._changing:
            return self._recorded(order)

    def _find_or_start(self, order: ServerOrder) -> ProcessId:
        with self._changing:
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
        record = ProcessRecord(server_id=order.server_id, slot=order.slot)
        try:
            # Before the start: whoever finds a record without a process knows that one may run.
            self._records.write(record)
            process = self._spawn(order)
            self._records.write(ProcessRecord(server_id=order.server_id, slot=order.slot, process=process))
        except (OSError, ValueError, OverflowError) as exc:  # the last: a memory limit past what the system counts
            # The message may quote the name of the program, which is a word of the template like any other.
            reason = _without_secret(str(exc), order.rcon_password)
            raise FleetError(f"the server cannot be started: {reason}") from exc
        return process

    def _spawn(self, order: ServerOrder) -> ProcessId:
        inherited = {name: os.environ[name] for name in INHERITED if name in os.environ}
        mark = {MARK_NAME: self._records.mark(order.server_id)}
        # Appending, so that the file can be shortened under the server's hands.
        log = os.open(self._records.log_path(order.server_id), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            child = subprocess.Popen(
                fill_words(self._options.command, self._values(order)),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self._options.working_directory,
                env={**inherited, **self._options.environment, **order.environment, **mark},
                start_new_session=True,
            )
        finally:
            os.close(log)
        # Servers are followed, and reaped, by their number: this object must not complain that they outlive it.
        child.returncode = 0
        if self._options.memory_bytes is not None:
            # From here and not between fork and exec, where Python in a process with threads may hang.
            with suppress(ProcessLookupError):
                resource.prlimit(
                    child.pid, resource.RLIMIT_AS, (self._options.memory_bytes, self._options.memory_bytes)
                )
        process = identify(child.pid)
        if process is None:  # only where the system reaps for us, and it has ended
            raise OSError("it ended at once")
        self._children.add(child.pid)
        return process

    def _values(self, order: ServerOrder) -> dict[str, str]:
        return {
            "port": order.slot,
            "map": order.map_name,
            "game_type": str(order.game_type),
            "game_mode": str(order.game_mode),
            "rcon_password": order.rcon_password,
            "players": ",".join(order.players),
            "speed": f"{self._options.speed:g}",
            "ip": self._options.host,
        }

    async def _wait_for_port(self, process: ProcessId, port: int) -> str | None:
        """Wait until the server can be reached; answers what went wrong, None: nothing."""
        try:
            async with asyncio.timeout(self._options.start_s):
                while _may_run(process):
                    # Asked once more afterwards: the port of somebody else may have answered.
                    if await accepts(self._options.host, port, timeout_s=CONNECT_S) and _may_run(process):
                        return None
                    await asyncio.sleep(POLL_S)
        except TimeoutError:
            return f"did not open port {port} within {self._options.start_s:g} s"
        return "ended while it was starting"

    def _last_lines(self, order: ServerOrder) -> str:
        output = self._records.log_end(order.server_id, SHOWN_BYTES).decode("utf-8", errors="replace")
        return _without_secret(" | ".join(output.split("\n")[-SHOWN_LINES - 1 :]).strip(" |"), order.rcon_password)

    def _look_at(self, server_id: str) -> bool:
        try:
            record = self._records.read(server_id)
            self._records.shorten_log(server_id)
        except ValueError:
            return False
        except OSError:
            return True  # the folder cannot be read: we cannot tell
        return record is not None and record.process is not None and _may_run(record.process)

    def _reap(self) -> None:
        """Clear away servers of ours that have ended: whoever else released them cannot."""
        for pid in tuple(self._children):
            try:
                has_ended = os.waitpid(pid, os.WNOHANG)[0] == pid
            except ChildProcessError:
                has_ended = True  # reaped by now
            if has_ended:
                self._children.discard(pid)

    def _running_ids(self) -> list[str]:
        self._reap()
        return [
            record.server_id
            for record in self._records.records()
            # Without a number it may run all the same, and only the look at all processes tells.
            if (is_running(record.process) if record.process else self._records.processes(record.server_id))
        ]

    async def _end(self, server_id: str) -> None:
        try:
            for number, patience_s in ((signal.SIGTERM, TERM_S), (signal.SIGKILL, KILL_S)):
                await self._end_by(number, server_id, patience_s)
                if await asyncio.to_thread(self._forget, server_id):
                    return
        except ValueError:
            return  # no server ever had such an id
        except OSError as exc:
            raise FleetError(f"the server cannot be ended: {exc}") from exc
        raise FleetError("the server does not end, even though it was killed")

    async def _end_by(self, number: signal.Signals, server_id: str, patience_s: float) -> None:
        """Send a signal to all processes of a server, and wait until they are gone or have had their time."""
        left = await asyncio.to_thread(self._signal, number, server_id)
        deadline_s = asyncio.get_running_loop().time() + patience_s
        while left and asyncio.get_running_loop().time() < deadline_s:
            await asyncio.sleep(POLL_S)
            left = [process for process in left if is_running(process)]

    def _signal(self, number: signal.Signals, server_id: str) -> list[ProcessId]:
        with self._changing:
            processes = self._records.processes(server_id)
            for process in processes:
                # A server leads its own group; what carries the mark without leading one is signalled alone.
                with suppress(ProcessLookupError):
                    if os.getpgid(process.pid) == process.pid:
                        os.killpg(process.pid, number)
                    else:
                        os.kill(process.pid, number)
            return processes

    def _forget(self, server_id: str) -> bool:
        """Remove the record of a server that is gone; False when a process is left, or was started meanwhile."""
        with self._changing:
            if self._records.processes(server_id):
                return False
            self._records.remove(server_id)
            return True


def _may_run(process: ProcessId) -> bool:
    """False when it is known to be gone."""
    try:
        return is_running(process)
    except OSError:  # no file handle left, for example
        return True


def _without_secret(text: str, secret: str) -> str:
    return text.replace(secret, "***") if secret else text
