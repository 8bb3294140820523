"""What goes on at the same time in a round? Several scripts played as one, so that they begin and end with the round.

A fire burns while others fight; when the round is decided both are over. One script to whoever waits for it: calling
the round off calls everything in it off.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush

from matchpod.simulator.agenda import TICKS_PER_S, Agenda, Script


class Timeline:
    """Scripts side by side, in the order of their ticks, and within one in the order they were started."""

    __slots__ = ("_agenda", "_order", "_waiting")

    def __init__(self, agenda: Agenda) -> None:
        self._agenda = agenda
        self._order = 0
        self._waiting: list[tuple[int, int, Script[None]]] = []

    def start(self, script: Script[None], in_ms: int = 0) -> None:
        """Play a script, its first step after so many milliseconds."""
        self._order += 1
        heappush(self._waiting, (self._agenda.tick - (-in_ms * TICKS_PER_S // 1000), self._order, script))

    def play(self, is_over: Callable[[], bool]) -> Script[None]:
        """Everything that was started, until nothing is left or it is over; asked after every step and every wait."""
        waiting, agenda = self._waiting, self._agenda
        while waiting and not is_over():
            wait = waiting[0][0] - agenda.tick
            if wait > 0:
                yield wait * 1000 // TICKS_PER_S  # which is rounded up to just these ticks
                continue
            script = heappop(waiting)[2]
            try:
                step_ms = next(script)
            except StopIteration:
                continue
            self.start(script, step_ms)
