"""Clock and task scheduler of a simulated server, in ticks of simulated time.

A script is a generator that yields the number of milliseconds to wait before its next step. Tasks that are due in the
same tick run in the order in which they were scheduled. The agenda does not depend on real time: its owner advances the
clock.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from heapq import heappop, heappush
from typing import TypeVar

TICKS_PER_S = 64

_Result = TypeVar("_Result")

Script = Generator[int, None, _Result]
"""A generator that yields milliseconds to wait. It can run another script with `yield from`."""


class ScheduledTask:
    """A scheduled callback, or a script with its next step. It can be cancelled."""

    __slots__ = ("_callback", "_is_running", "_script", "order")

    def __init__(self, callback: Callable[[], None] | None, script: Script[None] | None) -> None:
        self._callback = callback
        self._script = script
        self._is_running = False
        self.order = 0
        """Number of the task's valid entry in the agenda. `wake` adds a new entry and invalidates the old one."""

    @property
    def is_over(self) -> bool:
        return self._callback is None and self._script is None

    def cancel(self) -> None:
        """Cancel the task and close its script. Does nothing if the task has ended."""
        script, self._callback, self._script = self._script, None, None
        if script is not None and not self._is_running:  # a script that cancels itself is closed by `step`
            script.close()

    def step(self) -> int | None:
        """Run the next step.

        Return the milliseconds to wait before the step after it, or None if the task has ended.
        """
        if self._callback is not None:
            callback, self._callback = self._callback, None
            callback()
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
        if self._script is None:  # the script has cancelled its own task
            script.close()
            return None
        return wait_ms


class Agenda:
    """Simulated clock and scheduled tasks of one server."""

    __slots__ = ("_is_held", "_order", "_start_ms", "_tasks", "tick")

    def __init__(self, start_ms: int) -> None:
        self._start_ms = start_ms
        self.tick = 0
        """Ticks since the start, read-only for other code. Not a property, for speed: it is read for every log line."""
        self._order = 0
        self._tasks: list[tuple[int, int, ScheduledTask]] = []
        self._is_held = False

    @property
    def now_ms(self) -> int:
        """The simulated time in milliseconds since the epoch."""
        return self._start_ms + self.tick * 1000 // TICKS_PER_S

    def call_in(self, wait_ms: int, callback: Callable[[], None]) -> ScheduledTask:
        task = ScheduledTask(callback, None)
        self._schedule(wait_ms, task)
        return task

    def start(self, script: Script[None]) -> ScheduledTask:
        """Start a script: run its first step now, and schedule its further steps."""
        task = ScheduledTask(None, script)
        wait_ms = task.step()
        if wait_ms is not None:
            self._schedule(wait_ms, task)
        return task

    def wake(self, task: ScheduledTask) -> None:
        """End the current wait of a task early, so that its next step runs later in this tick."""
        if not task.is_over:
            self._schedule(0, task)

    def next_due_ms(self) -> int | None:
        """The time at which the next task is due, or None if no task is scheduled."""
        while self._tasks and (self._tasks[0][2].is_over or self._tasks[0][1] != self._tasks[0][2].order):
            heappop(self._tasks)
        return None if not self._tasks else self._start_ms + self._tasks[0][0] * 1000 // TICKS_PER_S

    def run_next(self) -> bool:
        """Run the next tick that has a task. Return False if no task is scheduled."""
        due_ms = self.next_due_ms()
        if due_ms is None:
            return False
        self.run_until(due_ms + 1)  # `next_due_ms` is rounded down
        return True

    def run_until(self, until_ms: int) -> None:
        """Advance the clock to `until_ms` and run all due tasks, but stop when `hold` is called.

        Time never goes back.
        """
        last_tick = (until_ms - self._start_ms) * TICKS_PER_S // 1000
        tasks = self._tasks
        self._is_held = False
        while tasks:
            tick, order, task = tasks[0]
            if order != task.order:
                heappop(tasks)  # an outdated wait: the task was woken before it ended
                continue
            if tick > last_tick:
                break
            if tick > self.tick:
                if self._is_held:
                    return
                self.tick = tick
            heappop(tasks)
            wait_ms = task.step()
            if wait_ms is not None:
                self._schedule(wait_ms, task)
        if last_tick > self.tick and not self._is_held:
            self.tick = last_tick

    def hold(self) -> None:
        """Stop the clock after the current tick, until `run_until` is called again. Must be called by a task."""
        self._is_held = True

    def clear(self) -> None:
        for _, _, task in self._tasks:
            task.cancel()
        self._tasks.clear()

    def _schedule(self, wait_ms: int, task: ScheduledTask) -> None:
        # The wait is rounded up to whole ticks; 0 means later in the current tick.
        self._order += 1
        task.order = self._order
        heappush(self._tasks, (self.tick - (-wait_ms * TICKS_PER_S // 1000), self._order, task))
