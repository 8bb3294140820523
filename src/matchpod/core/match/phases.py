"""Define the state machine of a match as a transition table."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class MatchPhase(StrEnum):
    """The phases of a match, from waiting for its players to its end."""

    WARMUP = "warmup"
    """The match is waiting for its players."""
    STARTING = "starting"
    """The start of play was requested; the map is not live yet."""
    LIVE = "live"
    """The current map is live: events count toward score and statistics."""
    BETWEEN_MAPS = "between_maps"
    """A map has ended and the series continues; the next map is loading or waiting for its players."""
    OVER = "over"
    """The match has ended and has its outcome. No other phase follows."""


class Trigger(StrEnum):
    """The events and conditions that trigger a phase change."""

    ROSTER_READY = "roster_ready"
    """All listed players have entered. In modes with a series, each has also joined a side, or the time to choose one
    is over."""
    START_ORDERED = "start_ordered"
    """A person ordered the start of play without the missing players, or the players began the knife round
    themselves."""
    ROSTER_BROKEN = "roster_broken"
    """A listed player left after the start of play was requested and before the map was live."""
    MAP_LIVE = "map_live"
    """A map went live, or was restarted."""
    MAP_ENDED = "map_ended"
    """A map has its final score and another map follows."""
    MAP_REOPENED = "map_reopened"
    """A round was restored from a backup, on a map that had just ended or that a crash or warmup had interrupted."""
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
"""For each trigger, the phases in which it has an effect, and the phase that follows."""

TRANSITIONS: Final = {
    (phase, trigger): target for phase in MatchPhase for trigger, (phases, target) in _STEPS.items() if phase in phases
}
