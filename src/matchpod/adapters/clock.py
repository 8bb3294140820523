"""What time is it? Wall time when the process began plus what the monotonic clock has counted since.

A wall clock that is set while matches run would otherwise end all of them at once, or none of them ever.
"""

from __future__ import annotations

import time
from collections.abc import Callable

_NS_PER_MS = 1_000_000


class SystemClock:
    """The clock of one process; it never jumps and never goes back."""

    def __init__(
        self, *, wall_ns: Callable[[], int] = time.time_ns, monotonic_ns: Callable[[], int] = time.monotonic_ns
    ) -> None:
        self._monotonic_ns = monotonic_ns
        self._offset_ns = wall_ns() - monotonic_ns()

    def now_ms(self) -> int:
        """Milliseconds since the epoch."""
        return (self._offset_ns + self._monotonic_ns()) // _NS_PER_MS
