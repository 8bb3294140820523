"""What happens when? The one clock of a simulated server, in ticks, and everything that waits for it.

A script is a generator that yields how many milliseconds it wants to wait. All that is due in one tick happens at one
time, in the order it was planned. Nothing here knows real time: whoever owns the agenda moves it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from heapq import heappop, heappush
from typing import TypeVar

TICKS_PER_S = 64

_Result = TypeVar("_Result")

Script = Generator[int, None, _Result]
"""Yields milliseconds to wait; scripts are composed with `yield from`."""


class Planned:
    """Something planned: an act, or the next step of a script. It can be called off."""

    __slots__ = ("_act", "_is_running", "_script")

    def __init__(self, act: Callable[[], None] | None, script: Script[None] | None) -> None:
        self._act = act
        self._script = script
        self._is_running = False

    @property
    def is_over(self) -> bool:
        """True when it has happened to its end, or was called off."""
        return self._act is None and self._script is None

    def cancel(self) -> None:
        """Call it off; a script is closed where it waits. Calling off what is over changes nothing."""
        script, self._act, self._script = self._script, None, None
        if script is not None and not self._is_running:  # a running one ends itself in `step`
            script.close()

    def step(self) -> int | None:
        """Let it happen; answers how many milliseconds a script wants to wait, None when there is nothing more."""
        if self._act is not None:
            act, self._act = self._act, None
            act()
            return None
        script = self._script
        if script is None:
            return None
        self._is_running = True
        try:
            wait_ms = next(script)
        except StopIteration:
            self._script = None
            return None
        finally:
            self._is_running = False
        if self._script is None:  # called off by its own doing
            script.close()
            return None
        return wait_ms


class Agenda:
    """Time and plans of one server."""

    __slots__ = ("_is_held", "_order", "_plans", "_start_ms", "tick")

    def __init__(self, start_ms: int) -> None:
        self._start_ms = start_ms
        self.tick = 0
        """Ticks since the start; only the agenda itself moves it. No property, as every line of the log asks."""
        self._order = 0
        self._plans: list[tuple[int, int, Planned]] = []
        self._is_held = False

    @property
    def now_ms(self) -> int:
        """The simulated time, milliseconds since the epoch."""
        return self._start_ms + self.tick * 1000 // TICKS_PER_S

    def call_in(self, wait_ms: int, act: Callable[[], None]) -> Planned:
        """Plan an act."""
        planned = Planned(act, None)
        self._plan(wait_ms, planned)
        return planned

    def start(self, script: Script[None]) -> Planned:
        """Run a script: its first step at once, the others when their time has come."""
        planned = Planned(None, script)
        wait_ms = planned.step()
        if wait_ms is not None:
            self._plan(wait_ms, planned)
        return planned

    def next_due_ms(self) -> int | None:
        """When the next plan is due."""
        while self._plans and self._plans[0][2].is_over:
            heappop(self._plans)
        return None if not self._plans else self._start_ms + self._plans[0][0] * 1000 // TICKS_PER_S

    def run_until(self, until_ms: int) -> None:
        """Let everything happen that is due up to this time, or up to a hold; time never goes back."""
        last_tick = (until_ms - self._start_ms) * TICKS_PER_S // 1000
        plans = self._plans
        self._is_held = False
        while plans:
            tick, _, planned = plans[0]
            if tick > last_tick:
                break
            if tick > self.tick:
                if self._is_held:
                    return
                self.tick = tick
            heappop(plans)
            wait_ms = planned.step()
            if wait_ms is not None:
                self._plan(wait_ms, planned)
        if last_tick > self.tick and not self._is_held:
            self.tick = last_tick

    def hold(self) -> None:
        """Let time stand still after this tick, until it is moved again. For what happens in it."""
        self._is_held = True

    def run_next(self) -> bool:
        """Let the next tick with a plan happen, whenever it is; False when nothing is planned."""
        due_ms = self.next_due_ms()
        if due_ms is None:
            return False
        # The tick that begins in this millisecond may lie a fraction after it.
        self.run_until(due_ms + 1)
        return True

    def clear(self) -> None:
        """Call everything off."""
        for _, _, planned in self._plans:
            planned.cancel()
        self._plans.clear()

    def _plan(self, wait_ms: int, planned: Planned) -> None:
        # Rounded up to a whole tick; 0 is later in this very tick.
        self._order += 1
        heappush(self._plans, (self.tick - (-wait_ms * TICKS_PER_S // 1000), self._order, planned))
