"""Detect whether this process was recently suspended: stopped, without CPU time, blocked by its own code, or suspended
with its machine.

Requests that arrived meanwhile have not been read yet, so no deadline may fire.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from typing import Final

BEAT_S: Final = 0.25
"""Seconds between two beats of this process."""
LATE_S: Final = 1.0
"""The process was suspended if a beat was later than planned by more than this."""
SETTLE_S: Final = 2.0
"""How long after a suspension requests may still wait to be read and stored."""


def since_boot_s() -> float:
    """Return the seconds since boot. They include time in suspend if the system supports that, because other machines
    keep running meanwhile.
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
        """Beat until cancelled."""
        while True:
            self.beat()
            await asyncio.sleep(BEAT_S)

    def _is_late(self, now_s: float) -> bool:
        return now_s - self._beat_s > BEAT_S + LATE_S
