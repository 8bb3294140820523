"""Define the state machine of a match as a transition table."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class MatchPhase(StrEnum):
    """The phase of a match."""

    WARMUP = "warmup"
    """The match is waiting for its players."""
    STARTING = "starting"
    """The start of play was requested; the map is not live yet."""
    LIVE = "live"
    """The current map is live: events count toward score and statistics."""
    BETWEEN_MAPS = "between_maps"
    """A map has ended and the series continues; the next map is loading or waiting for its players."""
    OVER = "over"
    """The match has its outcome. Final."""


class Trigger(StrEnum):
    """The trigger of a phase change."""

    ROSTER_READY = "roster_ready"
    """All listed players are in the game and, in modes with a series, on a side or past the time to choose one."""
    START_ORDERED = "start_ordered"
    """A person lets play begin without the players who are missing, or the players began the knife round themselves."""
    ROSTER_BROKEN = "roster_broken"
    """A listed player left before the map was live."""
    MAP_LIVE = "map_live"
    """A map went live, or was restarted."""
    MAP_ENDED = "map_ended"
    """A map has its final score and another map follows."""
    MAP_REOPENED = "map_reopened"
    """A backup was restored, of a map that had just ended or had been interrupted by a crash."""
    SUSPENDED = "suspended"
    """The server returned to warmup before the map had ended."""
    DECIDED = "decided"
    """The last map has ended, the plugin reported the end of a series with unknown map winners, or a team forfeited."""
    CANCELED = "canceled"
    """The match was canceled without a result."""


_WARMUP, _STARTING, _LIVE, _BETWEEN, _OVER = MatchPhase

_STEPS: Final[dict[Trigger, tuple[tuple[MatchPhase, ...], MatchPhase]]] = {
    Trigger.ROSTER_READY: ((_WARMUP, _BETWEEN), _STARTING),
    Trigger.START_ORDERED: ((_WARMUP, _BETWEEN), _STARTING),
    Trigger.ROSTER_BROKEN: ((_STARTING,), _WARMUP),
    Trigger.MAP_LIVE: ((_WARMUP, _STARTING, _LIVE, _BETWEEN), _LIVE),
    Trigger.MAP_REOPENED: ((_WARMUP, _STARTING, _BETWEEN), _LIVE),
    Trigger.MAP_ENDED: ((_WARMUP, _STARTING, _LIVE), _BETWEEN),
    Trigger.DECIDED: ((_WARMUP, _STARTING, _LIVE, _BETWEEN), _OVER),
    Trigger.SUSPENDED: ((_LIVE,), _WARMUP),
    Trigger.CANCELED: ((_WARMUP, _STARTING, _LIVE, _BETWEEN), _OVER),
}
"""The phases in which each trigger has an effect, and the phase it leads to."""

TRANSITIONS: Final = {
    (phase, trigger): target for phase in MatchPhase for trigger, (phases, target) in _STEPS.items() if phase in phases
}
