"""Run several scripts concurrently as one script, so that they end together.

For example, a fire burns while other players fight, and both end when the round is decided. Cancelling the combined
script cancels all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush

from cs2_simulator.agenda import TICKS_PER_S, Agenda, Script


class ScriptRunner:
    """Runs several scripts: their steps are ordered by tick, then in the order in which they were scheduled."""

    __slots__ = ("_agenda", "_order", "_waiting")

    def __init__(self, agenda: Agenda) -> None:
        self._agenda = agenda
        self._order = 0
        self._waiting: list[tuple[int, int, Script[None]]] = []

    def start(self, script: Script[None], in_ms: int = 0) -> None:
        """Add a script. Its first step runs after `in_ms` milliseconds."""
        self._order += 1
        heappush(self._waiting, (self._agenda.tick - (-in_ms * TICKS_PER_S // 1000), self._order, script))

    def play(self, is_over: Callable[[], bool]) -> Script[None]:
        """Run the scripts until all have ended or `is_over` returns True.

        `is_over` is called after every step and every wait.
        """
        waiting, agenda = self._waiting, self._agenda
        while waiting and not is_over():
            wait = waiting[0][0] - agenda.tick
            if wait > 0:
                yield wait * 1000 // TICKS_PER_S  # the agenda rounds this up to exactly `wait` ticks
                continue
            script = heappop(waiting)[2]
            try:
                step_ms = next(script)
            except StopIteration:
                continue
            self.start(script, step_ms)
