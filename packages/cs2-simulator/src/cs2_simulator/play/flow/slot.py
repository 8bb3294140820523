"""Hold at most one scheduled task: a new task cancels the previous one."""

from __future__ import annotations

from collections.abc import Callable

from cs2_simulator.agenda import Agenda, ScheduledTask, Script


class TaskSlot:
    """Holds at most one scheduled task."""

    def __init__(self, agenda: Agenda) -> None:
        self._agenda = agenda
        self._task: ScheduledTask | None = None

    @property
    def is_active(self) -> bool:
        return self._task is not None and not self._task.is_over

    def call_in(self, wait_ms: int, callback: Callable[[], None]) -> None:
        self.cancel()
        self._task = self._agenda.call_in(wait_ms, callback)

    def run(self, script: Script[None]) -> None:
        """Schedule a script, whose first step runs later in this tick.

        The first step may schedule a task in this same slot. If it ran now, that task would be overwritten.
        """
        self.cancel()
        self._task = self._agenda.start(_delayed(script))

    def start(self, script: Script[None]) -> None:
        """Schedule a script and run its first step now. Only for scripts that do not use this slot."""
        self.cancel()
        self._task = self._agenda.start(script)

    def wake(self) -> None:
        if self._task is not None:
            self._agenda.wake(self._task)

    def cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()


def _delayed(script: Script[None]) -> Script[None]:
    yield 0
    yield from script
