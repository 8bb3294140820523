"""Whose turn is it? The wake-ups of all servers of a process, the oldest first, a slice of time for them at once.

The event loop runs everything that is due before it looks at its sockets again. With hundreds of servers due at a time
that takes seconds; in slices a console command waits for one slice only.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from heapq import heappop, heappush

SLICE_S = 0.01
"""How long servers are moved along before sockets have their turn."""


class Wake:
    """A wake-up that is planned. It can be called off."""

    __slots__ = ("act", "at_s")

    def __init__(self, at_s: float, act: Callable[[], None]) -> None:
        self.at_s = at_s
        self.act: Callable[[], None] | None = act

    def cancel(self) -> None:
        """Call it off."""
        self.act = None


class Pacer:
    """The wake-ups of one process, in the running event loop."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._wakes: list[tuple[float, int, Wake]] = []
        self._order = 0
        self._timer: asyncio.TimerHandle | None = None

    def wake_at(self, at_s: float, act: Callable[[], None]) -> Wake:
        """Call `act` at a time of the event loop, or as soon as it is its turn."""
        wake = Wake(at_s, act)
        self._order += 1
        heappush(self._wakes, (at_s, self._order, wake))
        self._set_timer()
        return wake

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
                act = heappop(wakes)[2].act
                if act is not None:
                    act()
        finally:
            if wakes:
                self._set_timer()
