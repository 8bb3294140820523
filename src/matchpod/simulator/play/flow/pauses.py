"""Who holds the game? Pauses and timeouts: a freeze time does not end while there is one.

Each pause is known by the word the log gives for it. A command is announced when it comes, whatever is being played;
the time of a timeout runs in freeze time only.
"""

from __future__ import annotations

from collections.abc import Callable

from matchpod.cs2.log_lines.world_lines import PauseChanged
from matchpod.simulator.play.arena import Arena
from matchpod.simulator.play.flow.slot import Slot

PAUSE, UNPAUSE = "mp_pause_match", "mp_unpause_match"
TIMEOUTS = ("TimeOutTs", "TimeOutCTs")

DEFAULT_TIMEOUT_S = 60.0
"""A real timeout was over after a minute."""


class Pauses:
    """What holds the game now."""

    def __init__(self, arena: Arena, changed: Callable[[], None]) -> None:
        self._arena = arena
        self._changed = changed
        self._causes: list[str] = []
        self._timeout_end = Slot(arena.agenda)

    @property
    def is_on(self) -> bool:
        """True while anything holds the game."""
        return bool(self._causes)

    def pause(self, by: str) -> None:
        """Hold the game; the same cause twice changes nothing."""
        if by not in self._causes:
            self._causes.append(by)
            self._arena.log.write(PauseChanged(is_enabled=True, by=by))
            self._changed()

    def unpause(self, by: str) -> None:
        """Let go of a cause. Nothing is said where it does not hold, as a real server says nothing."""
        cause = PAUSE if by == UNPAUSE else by
        if cause in self._causes:
            self._causes.remove(cause)
            self._arena.log.write(PauseChanged(is_enabled=False, by=by))
            self._changed()

    def run_timeouts(self) -> None:
        """It is freeze time: a timeout's clock runs from now, unless it runs already."""
        timeout = next((cause for cause in self._causes if cause in TIMEOUTS), None)
        if timeout is not None and not self._timeout_end.is_taken:
            seconds = self._arena.variables.number("mp_team_timeout_time") or DEFAULT_TIMEOUT_S
            self._timeout_end.call_in(int(seconds * 1000), lambda: self.unpause(timeout))

    def clear(self) -> None:
        """Forget every pause without a word."""
        self._causes.clear()
        self._timeout_end.cancel()
