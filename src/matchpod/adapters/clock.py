"""Provide a clock that never jumps: the wall clock time at process start plus the time elapsed since then.

With the wall clock itself, setting the time of the machine could end all running matches at once, or keep them from
ever ending.
"""

from __future__ import annotations

import time
from collections.abc import Callable


def since_boot_ns() -> int:
    """Return nanoseconds since boot, including the time while the machine was suspended, if the system counts it."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    return time.monotonic_ns()


class SystemClock:
    """A process's clock, which never jumps or goes backwards. `wall_ns` is called only when the clock is created."""

    def __init__(
        self, *, wall_ns: Callable[[], int] = time.time_ns, monotonic_ns: Callable[[], int] = since_boot_ns
    ) -> None:
        self._monotonic_ns = monotonic_ns
        self._offset_ns = wall_ns() - monotonic_ns()

    def now_ms(self) -> int:
        return (self._offset_ns + self._monotonic_ns()) // 1_000_000
