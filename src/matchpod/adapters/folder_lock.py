"""How does one process keep a data folder to itself? By a lock on a file in it, which the system drops when it dies.

The file stays: only the lock on it counts, so nothing is left to clean up after a crash.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import Final

LOCK_FILE: Final = "matchpod.lock"
_MODE: Final = 0o600
_PID_BYTES: Final = 20
"""Longer than any process number."""


class FolderTakenError(Exception):
    """Another process has the folder; `pid` is its number, None while it is still writing it down."""

    def __init__(self, folder: Path, pid: int | None) -> None:
        holder = "another process" if pid is None else f"process {pid}"
        super().__init__(f"{holder} is already using the data folder {folder}")
        self.pid = pid


class FolderLock:
    """A folder that is ours until `release`, or until this process ends."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor: int | None = descriptor

    @classmethod
    def take(cls, folder: Path) -> FolderLock:
        """Take the folder; FolderTakenError when somebody has it, OSError when its lock file cannot be opened."""
        # Python's descriptors are not inherited, so a game server we start does not hold the lock after us.
        descriptor = os.open(folder / LOCK_FILE, os.O_RDWR | os.O_CREAT, _MODE)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        except BlockingIOError:
            pid = _read_pid(descriptor)
            os.close(descriptor)
            raise FolderTakenError(folder, pid) from None
        except OSError:
            os.close(descriptor)
            raise
        return cls(descriptor)

    def release(self) -> None:
        """Give the folder back; doing so twice changes nothing."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def _read_pid(descriptor: int) -> int | None:
    text = os.pread(descriptor, _PID_BYTES, 0).strip()
    return int(text) if text.isdigit() else None
