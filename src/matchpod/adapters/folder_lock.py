"""Lock a data folder so that only one process uses it. The system releases the lock when the process dies.

The lock file itself is never deleted. Only the lock on it matters, so no cleanup is needed after a crash.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import Final

LOCK_FILE: Final = "matchpod.lock"
_MODE: Final = 0o600
_PID_BYTES: Final = 20
"""Maximum number of bytes to read from the lock file, more than any process id has."""


class FolderInUseError(Exception):
    """Another process has locked the folder. `pid` is None if that process has not written its process id yet."""

    def __init__(self, folder: Path, pid: int | None) -> None:
        holder = "another process" if pid is None else f"process {pid}"
        super().__init__(f"{holder} is already using the data folder {folder}")
        self.pid = pid


class FolderLock:
    """The lock on a folder, held until `release` is called or this process ends."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor: int | None = descriptor

    @classmethod
    def acquire(cls, folder: Path) -> FolderLock:
        """Lock the folder. Raise FolderInUseError if another process has locked it, OSError after other failures."""
        # Child processes do not inherit this descriptor, so game servers do not keep the lock after this process ends.
        descriptor = os.open(folder / LOCK_FILE, os.O_RDWR | os.O_CREAT, _MODE)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        except BlockingIOError:
            pid = _read_pid(descriptor)
            os.close(descriptor)
            raise FolderInUseError(folder, pid) from None
        except OSError:
            os.close(descriptor)
            raise
        return cls(descriptor)

    def release(self) -> None:
        """Release the lock. Calling it twice is fine."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def _read_pid(descriptor: int) -> int | None:
    text = os.pread(descriptor, _PID_BYTES, 0).strip()
    return int(text) if text.isdigit() else None
