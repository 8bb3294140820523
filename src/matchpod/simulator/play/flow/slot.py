"""What is under way here? A place for one plan at a time: a new one calls the old one off."""

from __future__ import annotations

from collections.abc import Callable

from matchpod.simulator.agenda import Agenda, Planned, Script


class Slot:
    """At most one plan."""

    def __init__(self, agenda: Agenda) -> None:
        self._agenda = agenda
        self._planned: Planned | None = None

    @property
    def is_taken(self) -> bool:
        """True while something is planned or runs here."""
        return self._planned is not None and not self._planned.is_over

    def call_in(self, wait_ms: int, act: Callable[[], None]) -> None:
        """Plan an act."""
        self.cancel()
        self._planned = self._agenda.call_in(wait_ms, act)

    def run(self, script: Script[None]) -> None:
        """Run a script, from later in this tick on.

        Not at once: its first step may lead back here, and the plan it makes then would be lost behind its own.
        """
        self.cancel()
        self._planned = self._agenda.start(_soon(script))

    def start(self, script: Script[None]) -> None:
        """Run a script, its first step at once; only for one that cannot lead back here."""
        self.cancel()
        self._planned = self._agenda.start(script)

    def cancel(self) -> None:
        """Call off what is planned, if anything is."""
        if self._planned is not None:
            self._planned.cancel()


def _soon(script: Script[None]) -> Script[None]:
    yield 0
    yield from script
