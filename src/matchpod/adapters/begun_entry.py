"""Record the log entry that a process is applying in a small memory-mapped file, which outlives the process.

Writing to mapped memory takes well under a microsecond, and needs no system call. Each process locks its own file. If a
file is not locked, its process is dead, and the file names the entry that the process was applying when it died.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import re
import secrets
from contextlib import suppress
from pathlib import Path
from typing import Final

SUFFIX: Final = ".begun"
_SIZE: Final = 256
"""File size in bytes, more than the longest server id and entry number need."""
_MODE: Final = 0o600
_RECORD: Final = re.compile(rb"([0-9A-Za-z_-]{1,128}) ([0-9]{1,18})\n")


class BegunEntryFile:
    """The file in which this process records the entry that it is applying."""

    def __init__(self, folder: Path) -> None:
        draft = folder / f"{os.getpid()}-{secrets.token_hex(4)}"
        self._path = draft.with_suffix(SUFFIX)
        self._descriptor = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL, _MODE)
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)
        os.ftruncate(self._descriptor, _SIZE)
        draft.rename(self._path)  # locked first, because an unlocked file counts as the file of a dead process
        self._memory = mmap.mmap(self._descriptor, _SIZE)

    def mark(self, server_id: str, seq: int) -> None:
        record = b"%s %d\n" % (server_id.encode(), seq)
        self._memory[: len(record)] = record

    def clear(self) -> None:
        self._memory[0] = 0

    def close(self) -> None:
        """Close and remove the file, because this process ends normally."""
        self._memory.close()
        self._path.unlink(missing_ok=True)
        os.close(self._descriptor)


def records_of_dead_processes(folder: Path) -> dict[Path, tuple[str, int] | None]:
    """Return, per file of a dead process, server id and number of the entry that was being applied, or None."""
    records = {}
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        with suppress(FileNotFoundError, BlockingIOError):  # the file was just removed, or its process is alive
            records[path] = _read(path)
    return records


def _read(path: Path) -> tuple[str, int] | None:
    """Return the record in a file. Raise BlockingIOError if the process that wrote it is alive."""
    with path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        found = _RECORD.match(file.read())
    return (found[1].decode(), int(found[2])) if found else None
