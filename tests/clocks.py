"""The clock of tests: it changes only when a test sets it."""

from __future__ import annotations

NOW_MS = 1_790_000_000_123


class ManualClock:
    """A clock that changes only when it is set."""

    def __init__(self, at_ms: int = NOW_MS) -> None:
        self.at_ms = at_ms

    def now_ms(self) -> int:
        return self.at_ms

    def monotonic(self) -> float:
        return self.at_ms / 1000

    __call__ = monotonic
