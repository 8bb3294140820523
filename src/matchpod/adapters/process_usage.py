"""Read from /proc which resources this process uses."""

from __future__ import annotations

import os
import resource
import time
from pathlib import Path
from typing import Final

import msgspec

_PROC: Final = Path("/proc")
_SELF: Final = _PROC / "self"
_START_TIME: Final = 19
"""Index of the start time in the fields of /proc/self/stat that follow the program name."""


class ProcessUsage(msgspec.Struct, frozen=True, kw_only=True):
    """CPU time, memory and open files of this process. A number is None if the system does not report it."""

    cpu_s: float
    resident_bytes: int | None
    virtual_bytes: int | None
    open_files: int | None
    max_files: int


def read_usage() -> ProcessUsage:
    """Return what this process uses now. All of its threads are included, but not its child processes."""
    virtual, resident = _memory()
    return ProcessUsage(
        cpu_s=time.process_time(),
        resident_bytes=resident,
        virtual_bytes=virtual,
        open_files=_open_files(),
        max_files=resource.getrlimit(resource.RLIMIT_NOFILE)[0],
    )


def start_time_s() -> float:
    """Return the start time of this process in seconds since the epoch; the current time if that is unknown."""
    try:
        fields = (_SELF / "stat").read_text().rpartition(")")[2].split()
        boot_s = next(
            int(line.split()[1]) for line in (_PROC / "stat").read_text().splitlines() if line.startswith("btime ")
        )
        return boot_s + int(fields[_START_TIME]) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError, StopIteration):
        return time.time()


def _memory() -> tuple[int | None, int | None]:
    try:
        virtual, resident = (_SELF / "statm").read_text().split()[:2]
    except (OSError, ValueError):
        return None, None
    page = os.sysconf("SC_PAGE_SIZE")
    return int(virtual) * page, int(resident) * page


def _open_files() -> int | None:
    try:
        return len(os.listdir(_SELF / "fd")) - 1  # without the descriptor that listing the folder needs
    except OSError:
        return None
