"""Which process is the server of a match? One small file a server, and what the system says about processes (/proc).

A number alone is no identity, as the system uses it again: a process is known by number, start time and boot.
A server whose number was never written down is found by a mark in its environment, which its children carry too.
No secrets are kept here.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

MARK_NAME = "MATCHPOD_FLEET_SERVER"
"""The variable in a server's environment that says whose it is."""

MAX_LOG_BYTES = 1_000_000
"""What is kept of a server's output before its beginning is dropped; output is for failures to start."""

KEPT_LOG_BYTES = 100_000
"""What stays of output that became too long."""

GONE = (FileNotFoundError, ProcessLookupError)
"""What the system answers about a process that is no more; any other failure says nothing about it."""

_SERVER_ID = re.compile(r"[A-Za-z0-9_-]{1,100}")
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_ENDED = ("Z", "X")
_START_TIME_FIELD = 19
"""Counted from the state on, which is the first field behind the name: field 22 of proc(5)."""


class ProcessId(msgspec.Struct, frozen=True):
    """One process, never mistaken for a later one with the same number."""

    pid: int
    start_ticks: int
    boot_id: str


class ProcessRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A server that was to be started; `process` is None until it was."""

    server_id: str
    slot: str
    process: ProcessId | None = None


def identify(pid: int) -> ProcessId | None:
    """The process that has this number now, also when it has ended and nobody reaped it; None when there is none.

    OSError when the system does not tell.
    """
    found = _state_of(pid)
    return found[1] if found else None


def is_running(process: ProcessId) -> bool:
    """True while exactly this process runs; one of ours that has ended is reaped. OSError: the system does not tell."""
    found = _state_of(process.pid)
    if found is None or found[1] != process:
        return False
    if found[0] not in _ENDED:
        return True
    with suppress(ChildProcessError):  # somebody else's child, or reaped by now
        os.waitpid(process.pid, os.WNOHANG)
    return False


def _state_of(pid: int) -> tuple[str, ProcessId] | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except GONE:
        return None
    boot_id = _BOOT_ID.read_text(encoding="ascii").strip()
    # The name of a program may hold blanks and brackets.
    fields = stat.rpartition(")")[2].split()
    return fields[0], ProcessId(pid, int(fields[_START_TIME_FIELD]), boot_id)


class RecordFolder:
    """The files of one fleet: `<server id>.json` and `<server id>.log`."""

    def __init__(self, path: Path) -> None:
        self._path = path.resolve()

    def mark(self, server_id: str) -> str:
        """What MARK_NAME is set to for this server."""
        return f"{self._path}:{server_id}"

    def log_path(self, server_id: str) -> Path:
        """Where the output of this server goes."""
        return self._file(server_id, "log")

    def read(self, server_id: str) -> ProcessRecord | None:
        """The record of a server; None when there is none, or none that can be read."""
        try:
            return msgspec.json.decode(self._file(server_id, "json").read_bytes(), type=ProcessRecord)
        except (FileNotFoundError, msgspec.DecodeError):
            return None

    def write(self, record: ProcessRecord) -> None:
        """Keep a record, whole or not at all, also when the machine stops."""
        self._path.mkdir(parents=True, exist_ok=True)
        target = self._file(record.server_id, "json")
        draft = target.with_suffix(".tmp")
        with draft.open("wb") as file:
            file.write(msgspec.json.encode(record))
            file.flush()
            os.fsync(file.fileno())
        draft.replace(target)
        folder = os.open(self._path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def remove(self, server_id: str) -> None:
        """Forget a server and its output."""
        for kind in ("json", "tmp", "log"):
            self._file(server_id, kind).unlink(missing_ok=True)

    def records(self) -> list[ProcessRecord]:
        """All records, in the order of their ids."""
        try:
            names = sorted(os.listdir(self._path))  # a glob may pass over a folder that cannot be read
        except FileNotFoundError:
            return []
        ids = [Path(name).stem for name in names if name.endswith(".json")]
        return [record for server_id in ids if (record := self.read(server_id)) is not None]

    def processes(self, server_id: str) -> list[ProcessId]:
        """Every running process that belongs to a server: the recorded one first, then those that carry its mark."""
        record = self.read(server_id)
        found: list[ProcessId] = []
        if record is not None and record.process is not None and is_running(record.process):
            found.append(record.process)
        found += [process for process in _marked(self.mark(server_id)) if process not in found]
        return found

    def shorten_log(self, server_id: str) -> None:
        """Drop the beginning of output that became too long; the server appends, so it goes on behind what is kept."""
        path = self.log_path(server_id)
        with suppress(FileNotFoundError):
            if path.stat().st_size > MAX_LOG_BYTES:
                kept = self.log_end(server_id, KEPT_LOG_BYTES)
                os.truncate(path, 0)
                with path.open("ab") as file:
                    file.write(kept)

    def log_end(self, server_id: str, most_bytes: int) -> bytes:
        """The last bytes of a server's output."""
        try:
            with self.log_path(server_id).open("rb") as file:
                size = file.seek(0, os.SEEK_END)
                file.seek(max(0, size - most_bytes))
                return file.read(most_bytes)
        except FileNotFoundError:
            return b""

    def _file(self, server_id: str, kind: str) -> Path:
        if not _SERVER_ID.fullmatch(server_id):
            raise ValueError("a server id has letters, digits, dashes and underscores only")
        return self._path / f"{server_id}.{kind}"


def _marked(mark: str) -> Iterator[ProcessId]:
    wanted = f"{MARK_NAME}={mark}".encode()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            words = (entry / "environ").read_bytes().split(b"\0")
        except (*GONE, PermissionError):  # it has ended, or belongs to somebody else
            continue
        process = identify(int(entry.name)) if wanted in words else None
        if process is not None and is_running(process):
            yield process
