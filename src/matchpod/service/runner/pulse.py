"""Detect whether this process was recently suspended.

It may have been stopped, left without CPU time, blocked by its own code, or suspended together with its machine.
Requests that arrived during the suspension are not read yet, so no deadline may fire.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from typing import Final

BEAT_S: Final = 0.25
"""Interval in seconds at which this process records that it runs (a beat)."""
LATE_S: Final = 1.0
"""Delay of a beat in seconds above which the process counts as suspended."""
SETTLE_S: Final = 2.0
"""Time in seconds after a suspension during which earlier requests may still wait to be read and stored."""


def since_boot_s() -> float:
    """Return the time since boot in seconds.

    If the system supports it, the time includes the suspension of this machine, because other machines keep running.
    """
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


class Pulse:
    """Tracks when this process last ran."""

    def __init__(self, monotonic: Callable[[], float] = since_boot_s) -> None:
        self._monotonic = monotonic
        self._beat_s = math.inf
        self._late_s = -math.inf

    def beat(self) -> None:
        """Record that this process runs."""
        now_s = self._monotonic()
        if self._is_late(now_s):
            self._late_s = now_s
        self._beat_s = now_s

    def was_late(self) -> bool:
        """True if this process was suspended until now, or until at most SETTLE_S ago."""
        now_s = self._monotonic()
        return self._is_late(now_s) or now_s - self._late_s < SETTLE_S

    async def run(self) -> None:
        """Record regularly that this process runs, until cancelled."""
        while True:
            self.beat()
            await asyncio.sleep(BEAT_S)

    def _is_late(self, now_s: float) -> bool:
        return now_s - self._beat_s > BEAT_S + LATE_S
