"""Record which process is the server of a match, in a small file per server that is checked against /proc.

The system reuses process ids, so a process is identified by process id, start time and boot id. If a crash kept the
process id from being recorded, the process is found by a mark in its environment, which its child processes inherit.
The files contain no secrets.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from matchpod.adapters.private_files import create_folder, open_private, sync_folder

MARK_NAME = "MATCHPOD_FLEET_SERVER"
"""The environment variable that marks the processes of a server."""

MAX_LOG_BYTES = 1_000_000
"""Size in bytes at which the output of a server is truncated. The output is only needed if a server fails to start."""

KEPT_LOG_BYTES = 100_000
"""Number of bytes at the end of the output that are kept when it is truncated."""

CHECK_S = 1.0
"""Interval in seconds at which a process is checked if the system does not report its end."""

GONE = (FileNotFoundError, ProcessLookupError)
"""Errors that mean that a process is gone. After any other error, the state of the process is unknown."""

_SERVER_ID = re.compile(r"[A-Za-z0-9_-]{1,100}")
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_ENDED = ("Z", "X")
_START_TIME_FIELD = 19
"""Index of the start time in the fields after the program name: field 22 of proc(5), where index 0 is field 3."""


class ProcessId(msgspec.Struct, frozen=True):
    """Identifies a process, even if another process gets its process id later."""

    pid: int
    start_ticks: int
    boot_id: str


class ProcessRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The record of a server; `process` is None until the process has been started."""

    server_id: str
    slot: str
    process: ProcessId | None = None
    owner: str = ""
    """The id of the installation that started the server; empty in records of early versions, which did not store it.
    """
    folder: str = ""
    """The folder in which the record was written. A record in another folder is a copy. Empty in records of early
    versions."""


# Created at import: fleets read records in threads, and msgspec crashes if two threads prepare the same type at once.
_RECORD: Final = msgspec.json.Decoder(ProcessRecord)


def identify(pid: int) -> ProcessId | None:
    """Return the identity of the process that now has this id, even if it is a zombie; None if there is none.

    Raise OSError if the state of the process cannot be read.
    """
    found = _state_of(pid)
    return found[1] if found else None


def is_running(process: ProcessId) -> bool:
    """True while this process is running; OSError if that is unknown. If it is a zombie and our child, reap it."""
    found = _state_of(process.pid)
    if found is None or found[1] != process:
        return False
    if found[0] not in _ENDED:
        return True
    with suppress(ChildProcessError):  # not a child of this process, or already reaped
        os.waitpid(process.pid, os.WNOHANG)
    return False


def age_s(process: ProcessId) -> float:
    """Return the seconds since a process was started; raise OSError if they cannot be read."""
    uptime_s = float(Path("/proc/uptime").read_text(encoding="ascii").split()[0])
    return uptime_s - process.start_ticks / os.sysconf("SC_CLK_TCK")


async def wait_for_end(process: ProcessId) -> None:
    """Wait until a process has ended, even if it is not our child.

    The system reports its end (pidfd). If the pidfd cannot be opened, the process is checked every CHECK_S seconds.
    """
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    try:
        watched = os.pidfd_open(process.pid)
    except OSError:  # process ended, too many open files, or no such system call
        watched = -1
    try:
        if watched >= 0:
            loop.add_reader(watched, ended.set)
        # Check the process after opening the pidfd: before that, another process might have got the same id.
        while not ended.is_set() and may_run(process):
            with suppress(TimeoutError):
                async with asyncio.timeout(None if watched >= 0 else CHECK_S):
                    await ended.wait()
    finally:
        if watched >= 0:
            loop.remove_reader(watched)
            os.close(watched)


def may_run(process: ProcessId) -> bool:
    """True unless the process is known to have ended."""
    try:
        return is_running(process)
    except OSError:  # for example, too many open files
        return True


def _state_of(pid: int) -> tuple[str, ProcessId] | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except GONE:
        return None
    boot_id = _BOOT_ID.read_text(encoding="ascii").strip()
    # The program name in parentheses may itself contain spaces and parentheses.
    fields = stat.rpartition(")")[2].split()
    return fields[0], ProcessId(pid, int(fields[_START_TIME_FIELD]), boot_id)


class RecordFolder:
    """The files of a fleet's servers: `<server id>.json` (record) and `<server id>.log` (output)."""

    def __init__(self, path: Path) -> None:
        self._path = path.resolve()

    def mark(self, server_id: str) -> str:
        """Return the value of MARK_NAME for this server."""
        return f"{self._path}:{server_id}"

    def open_log(self, server_id: str) -> int:
        """Open the file for a server's output, and return its descriptor."""
        # O_APPEND keeps the server's next writes at the end of the file after the file was truncated.
        return open_private(self._file(server_id, "log"), os.O_WRONLY | os.O_APPEND)

    def read(self, server_id: str) -> ProcessRecord | None:
        """Return the record of a server; None if it is missing, cannot be decoded, or is a copy."""
        record = self._decode(server_id)
        return None if record is None or self.is_copy(record) else record

    def is_copy(self, record: ProcessRecord) -> bool:
        """True if the record was copied with its folder, and the original still exists. The server is then not ours.

        If the folder was moved, there is no original, and the servers remain ours.
        """
        if record.folder in ("", str(self._path)):
            return False
        return (Path(record.folder) / f"{record.server_id}.json").exists()

    def write(self, record: ProcessRecord) -> None:
        """Write a record atomically and durably."""
        create_folder(self._path)
        target = self._file(record.server_id, "json")
        draft = target.with_suffix(".tmp")
        with os.fdopen(open_private(draft, os.O_WRONLY | os.O_TRUNC), "wb") as file:
            file.write(msgspec.json.encode(msgspec.structs.replace(record, folder=str(self._path))))
            file.flush()
            os.fsync(file.fileno())
        draft.replace(target)
        sync_folder(self._path)

    def remove(self, server_id: str) -> None:
        """Delete the record and the output of a server."""
        for kind in ("json", "tmp", "log"):
            self._file(server_id, kind).unlink(missing_ok=True)

    def records(self) -> list[ProcessRecord]:
        """Return all records, including copies, ordered by server id."""
        try:
            names = sorted(os.listdir(self._path))  # unlike a glob, it fails if the folder cannot be read
        except FileNotFoundError:
            return []
        ids = [Path(name).stem for name in names if name.endswith(".json")]
        return [record for server_id in ids if (record := self._decode(server_id)) is not None]

    def processes(self, server_id: str) -> list[ProcessId]:
        """Return all running processes of a server: the recorded process first, then other processes with its mark."""
        record = self.read(server_id)
        found: list[ProcessId] = []
        if record is not None and record.process is not None and is_running(record.process):
            found.append(record.process)
        found += [process for process in _marked(self.mark(server_id)) if process not in found]
        return found

    def shorten_log(self, server_id: str) -> None:
        """Keep only the end of an output file that is too long. The server keeps appending to the file."""
        path = self._file(server_id, "log")
        with suppress(FileNotFoundError):
            if path.stat().st_size > MAX_LOG_BYTES:
                kept = self.log_tail(server_id, KEPT_LOG_BYTES)
                os.truncate(path, 0)
                with path.open("ab") as file:
                    file.write(kept)

    def log_tail(self, server_id: str, max_bytes: int) -> bytes:
        """Return at most the last `max_bytes` of a server's output."""
        try:
            with self._file(server_id, "log").open("rb") as file:
                size = file.seek(0, os.SEEK_END)
                file.seek(max(0, size - max_bytes))
                return file.read(max_bytes)
        except FileNotFoundError:
            return b""

    def _decode(self, server_id: str) -> ProcessRecord | None:
        try:
            return _RECORD.decode(self._file(server_id, "json").read_bytes())
        except (FileNotFoundError, msgspec.DecodeError):
            return None

    def _file(self, server_id: str, kind: str) -> Path:
        if not _SERVER_ID.fullmatch(server_id):
            raise ValueError("a server id may contain only letters, digits, dashes and underscores")
        return self._path / f"{server_id}.{kind}"


def _marked(mark: str) -> Iterator[ProcessId]:
    variable = f"{MARK_NAME}={mark}".encode()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            environment = (entry / "environ").read_bytes().split(b"\0")
        except (*GONE, PermissionError):  # the process has ended, or belongs to another user
            continue
        process = identify(int(entry.name)) if variable in environment else None
        if process is not None and is_running(process):
            yield process
