"""Track pauses and timeouts. A freeze time does not end while a pause or timeout is active.

Each pause is identified by its cause, as named in the log. A pause is logged immediately, in any phase. The clock of a
timeout runs in freeze time only.
"""

from __future__ import annotations

from collections.abc import Callable

from cs2_protocol.log_lines.world_lines import PauseChanged
from cs2_simulator.play.arena import Arena
from cs2_simulator.play.flow.slot import TaskSlot

PAUSE, UNPAUSE = "mp_pause_match", "mp_unpause_match"
TIMEOUTS = ("TimeOutTs", "TimeOutCTs")

DEFAULT_TIMEOUT_S = 60.0
"""Duration of a timeout in seconds if `mp_team_timeout_time` is 0. In a real log, a timeout ended after a minute."""


class Pauses:
    def __init__(self, arena: Arena, on_change: Callable[[], None]) -> None:
        self._arena = arena
        self._on_change = on_change
        self._causes: list[str] = []
        self._timeout_end = TaskSlot(arena.agenda)

    @property
    def is_on(self) -> bool:
        return bool(self._causes)

    @property
    def is_timeout_running(self) -> bool:
        """True while the clock of a timeout runs, which is only in freeze time."""
        return self._timeout_end.is_active

    def pause(self, by: str) -> None:
        """Add a pause. If a pause with this cause is already active, nothing changes."""
        if by not in self._causes:
            self._causes.append(by)
            self._arena.log.write(PauseChanged(is_enabled=True, by=by))
            self._on_change()

    def unpause(self, by: str) -> None:
        """Remove a pause. As on a real server, nothing is logged if the pause is not active."""
        cause = PAUSE if by == UNPAUSE else by
        if cause in self._causes:
            self._causes.remove(cause)
            if cause in TIMEOUTS:
                self._timeout_end.cancel()
            self._arena.log.write(PauseChanged(is_enabled=False, by=by))
            self._on_change()

    def run_timeouts(self) -> None:
        """Start the clock of an active timeout, unless it is already running. Called in freeze time."""
        timeout = next((cause for cause in self._causes if cause in TIMEOUTS), None)
        if timeout is not None and not self._timeout_end.is_active:
            seconds = self._arena.variables.number("mp_team_timeout_time") or DEFAULT_TIMEOUT_S
            self._timeout_end.call_in(int(seconds * 1000), lambda: self.unpause(timeout))

    def end_timeouts(self) -> None:
        """End active timeouts without logging their end. The plugin does this when it restores a backup."""
        self._causes = [cause for cause in self._causes if cause not in TIMEOUTS]
        self._timeout_end.cancel()

    def clear(self) -> None:
        self._causes.clear()
        self._timeout_end.cancel()
