"""Hold at most one scheduled task: a new task cancels the previous one."""

from __future__ import annotations

from collections.abc import Callable

from cs2_simulator.agenda import Agenda, ScheduledTask, Script


class TaskSlot:
    """Holds at most one task."""

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
        """Run a script, starting later in this tick.

        Not at once: its first step may use this slot again, and that new task would be overwritten.
        """
        self.cancel()
        self._task = self._agenda.start(_delayed(script))

    def start(self, script: Script[None]) -> None:
        """Run a script, its first step at once; only for a script that does not use this slot."""
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
