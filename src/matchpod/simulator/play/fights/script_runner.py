"""Run several scripts concurrently as one, so that they begin and end with the round.

A fire burns while others fight; when the round is decided, both end. To its caller the runner is one script:
cancelling the round cancels everything in it.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush

from matchpod.simulator.agenda import TICKS_PER_S, Agenda, Script


class ScriptRunner:
    """Runs scripts concurrently, ordered by tick, and within a tick by the order of their start."""

    __slots__ = ("_agenda", "_order", "_waiting")

    def __init__(self, agenda: Agenda) -> None:
        self._agenda = agenda
        self._order = 0
        self._waiting: list[tuple[int, int, Script[None]]] = []

    def start(self, script: Script[None], in_ms: int = 0) -> None:
        """Add a script; its first step comes after `in_ms` milliseconds."""
        self._order += 1
        heappush(self._waiting, (self._agenda.tick - (-in_ms * TICKS_PER_S // 1000), self._order, script))

    def play(self, is_over: Callable[[], bool]) -> Script[None]:
        """Run the scripts until none is left or `is_over`, which is checked after every step and every wait."""
        waiting, agenda = self._waiting, self._agenda
        while waiting and not is_over():
            wait = waiting[0][0] - agenda.tick
            if wait > 0:
                yield wait * 1000 // TICKS_PER_S  # the agenda rounds this up to exactly these ticks
                continue
            script = heappop(waiting)[2]
            try:
                step_ms = next(script)
            except StopIteration:
                continue
            self.start(script, step_ms)
