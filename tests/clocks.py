"""The clock of tests."""

from __future__ import annotations

import time

NOW_MS = 1_790_000_000_123


class ManualClock:
    """A clock that a test sets. It stands still meanwhile; if it `runs`, time passes on it as on any other."""

    def __init__(self, at_ms: int = NOW_MS, *, runs: bool = False) -> None:
        self._runs = runs
        self.at_ms = at_ms

    @classmethod
    def of_now(cls) -> ManualClock:
        """Return a clock that runs, and shows the time of this machine until it is set."""
        return cls(time.time_ns() // 1_000_000, runs=True)

    @property
    def at_ms(self) -> int:
        return self._began_ms + self._passed_ms()

    @at_ms.setter
    def at_ms(self, at_ms: int) -> None:
        self._began_ms = at_ms - self._passed_ms()

    def _passed_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000 if self._runs else 0

    def now_ms(self) -> int:
        return self.at_ms

    def monotonic(self) -> float:
        return self.at_ms / 1000

    __call__ = monotonic
