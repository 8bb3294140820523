"""Schedule the wake-ups of all servers of a process in short time slices, earliest first.

The event loop runs all due timers before it polls its sockets again. If hundreds of servers are due at the same time,
this takes seconds. With time slices, a console command waits for one slice only.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from heapq import heapify, heappop, heappush

SLICE_S = 0.01
"""Length in seconds of a time slice, after which sockets are polled."""

MAX_CANCELLED = 64
"""Number of cancelled wake-ups up to which they stay in the heap. Above it, they are removed as soon as they are more
than half of all entries."""


class Wakeup:
    """A scheduled wake-up. It can be cancelled."""

    __slots__ = ("_pacer", "at_s", "callback")

    def __init__(self, pacer: Pacer, at_s: float, callback: Callable[[], None]) -> None:
        self._pacer = pacer
        self.at_s = at_s
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        """Cancel the wake-up. Has no effect if it has already happened."""
        if self.callback is not None:
            self.callback = None
            self._pacer.note_cancelled()


class Pacer:
    """Schedules the wake-ups of one process in the running event loop."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._wakes: list[tuple[float, int, Wakeup]] = []
        self._order = 0
        self._cancelled = 0
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._wakes)

    def wake_at(self, at_s: float, callback: Callable[[], None]) -> Wakeup:
        """Call `callback` at the event loop's time `at_s`, or as soon as possible afterwards."""
        wake = Wakeup(self, at_s, callback)
        self._order += 1
        heappush(self._wakes, (at_s, self._order, wake))
        self._set_timer()
        return wake

    def note_cancelled(self) -> None:
        """Count a cancelled wake-up. If too many are in the heap, remove all cancelled wake-ups."""
        self._cancelled += 1
        if self._cancelled > MAX_CANCELLED and self._cancelled * 2 > len(self._wakes):
            self._wakes[:] = [entry for entry in self._wakes if entry[2].callback is not None]
            heapify(self._wakes)
            self._cancelled = 0

    def _set_timer(self) -> None:
        at_s = self._wakes[0][0]
        if self._timer is not None:
            if self._timer.when() <= at_s:
                return
            self._timer.cancel()
        self._timer = self._loop.call_at(at_s, self._run_slice)

    def _run_slice(self) -> None:
        self._timer = None
        until_s = self._loop.time() + SLICE_S
        wakes = self._wakes
        try:
            while wakes and wakes[0][0] <= self._loop.time() < until_s:
                wake = heappop(wakes)[2]
                callback, wake.callback = wake.callback, None
                if callback is None:
                    self._cancelled -= 1
                else:
                    callback()
        finally:
            if wakes:
                self._set_timer()
