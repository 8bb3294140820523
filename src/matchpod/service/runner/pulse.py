"""Detect whether this process has just stood still: stopped, starved of CPU time, blocked by its own code, or suspended
with its machine.

What arrived meanwhile has not been read yet, so nothing may be decided by the clock.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from typing import Final

BEAT_S: Final = 0.25
"""How often this process notes that it runs."""
LATE_S: Final = 1.0
"""It stood still if it noted that later than planned by more than this."""
SETTLE_S: Final = 2.0
"""How long afterwards requests may still wait to be read and stored."""


def since_boot_s() -> float:
    """Seconds since boot, including time in suspend if the system supports it: other machines go on meanwhile."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


class Pulse:
    """When this process last ran."""

    def __init__(self, monotonic: Callable[[], float] = since_boot_s) -> None:
        self._monotonic = monotonic
        self._beat_s = math.inf
        self._late_s = -math.inf

    def beat(self) -> None:
        """Note that this process runs."""
        now_s = self._monotonic()
        if self._is_late(now_s):
            self._late_s = now_s
        self._beat_s = now_s

    def was_late(self) -> bool:
        """True if this process stands still until now, or did until a moment ago."""
        now_s = self._monotonic()
        return self._is_late(now_s) or now_s - self._late_s < SETTLE_S

    async def run(self) -> None:
        """Beat until cancelled."""
        while True:
            self.beat()
            await asyncio.sleep(BEAT_S)

    def _is_late(self, now_s: float) -> bool:
        return now_s - self._beat_s > BEAT_S + LATE_S
