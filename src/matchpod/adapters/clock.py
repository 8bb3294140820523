"""What time is it? Wall time when the process began plus what the clock since boot has counted from then on.

A wall clock that is set while matches run would otherwise end all of them at once, or none of them ever.
"""

from __future__ import annotations

import time
from collections.abc import Callable

_NS_PER_MS = 1_000_000


def since_boot_ns() -> int:
    """What a clock that nobody sets has counted; where the system has such a one, also while the machine slept."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    return time.monotonic_ns()


class SystemClock:
    """The clock of one process; it never jumps and never goes back."""

    def __init__(
        self, *, wall_ns: Callable[[], int] = time.time_ns, monotonic_ns: Callable[[], int] = since_boot_ns
    ) -> None:
        self._monotonic_ns = monotonic_ns
        self._offset_ns = wall_ns() - monotonic_ns()

    def now_ms(self) -> int:
        """Milliseconds since the epoch."""
        return (self._offset_ns + self._monotonic_ns()) // _NS_PER_MS
