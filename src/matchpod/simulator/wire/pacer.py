"""Whose turn is it? The wake-ups of all servers of a process, the oldest first, a slice of time for them at once.

The event loop runs everything that is due before it looks at its sockets again. With hundreds of servers due at a time
that takes seconds; in slices a console command waits for one slice only.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from heapq import heapify, heappop, heappush

SLICE_S = 0.01
"""How long servers are moved along before sockets have their turn."""


MAX_CANCELLED = 64
"""Wake-ups that were called off may lie among the others, up to so many or as many as those, whichever is more."""


class Wake:
    """A wake-up that is planned. It can be called off."""

    __slots__ = ("_pacer", "act", "at_s")

    def __init__(self, pacer: Pacer, at_s: float, act: Callable[[], None]) -> None:
        self._pacer = pacer
        self.at_s = at_s
        self.act: Callable[[], None] | None = act

    def cancel(self) -> None:
        """Call it off. Calling off what has happened changes nothing."""
        if self.act is not None:
            self.act = None
            self._pacer.note_cancelled()


class Pacer:
    """The wake-ups of one process, in the running event loop."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._wakes: list[tuple[float, int, Wake]] = []
        self._order = 0
        self._cancelled = 0
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._wakes)

    def wake_at(self, at_s: float, act: Callable[[], None]) -> Wake:
        """Call `act` at a time of the event loop, or as soon as it is its turn."""
        wake = Wake(self, at_s, act)
        self._order += 1
        heappush(self._wakes, (at_s, self._order, wake))
        self._set_timer()
        return wake

    def note_cancelled(self) -> None:
        """A wake-up was called off: it is passed over at its time, unless there are too many of its kind by then."""
        self._cancelled += 1
        if self._cancelled > MAX_CANCELLED and self._cancelled * 2 > len(self._wakes):
            self._wakes[:] = [entry for entry in self._wakes if entry[2].act is not None]
            heapify(self._wakes)
            self._cancelled = 0

    def _set_timer(self) -> None:
        at_s = self._wakes[0][0]
        if self._timer is not None:
            if self._timer.when() <= at_s:
                return
            self._timer.cancel()
        self._timer = self._loop.call_at(at_s, self._take_turns)

    def _take_turns(self) -> None:
        self._timer = None
        until_s = self._loop.time() + SLICE_S
        wakes = self._wakes
        try:
            while wakes and wakes[0][0] <= self._loop.time() < until_s:
                wake = heappop(wakes)[2]
                act, wake.act = wake.act, None
                if act is None:
                    self._cancelled -= 1
                else:
                    act()
        finally:
            if wakes:
                self._set_timer()
