"""In which phases can a match be, and what moves it from one to another? The state machine, as a table."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class Phase(StrEnum):
    """Where a match stands."""

    WARMUP = "warmup"
    """A map waits for its players."""
    STARTING = "starting"
    """Play was asked for; the map does not count yet."""
    LIVE = "live"
    """The current map counts."""
    BETWEEN_MAPS = "between_maps"
    """A map is over, the series goes on; the next map is loading or waits for its players."""
    OVER = "over"
    """The match has its outcome; final."""


class Trigger(StrEnum):
    """What can move a match to another phase."""

    ROSTER_READY = "roster_ready"
    """All listed players are in the game and on their sides."""
    ROSTER_BROKEN = "roster_broken"
    """A listed player left before the map was live."""
    MAP_LIVE = "map_live"
    """The server began a map that counts, or began it anew."""
    MAP_ENDED = "map_ended"
    """A map has its final score and another one follows."""
    MAP_REOPENED = "map_reopened"
    """A backup of the map that had just ended, or that a crash had cut off, was restored."""
    SUSPENDED = "suspended"
    """The server is back in warmup although the map had not ended."""
    DECIDED = "decided"
    """The last map is over, or the plugin called a series over of which maps are unknown."""
    CANCELED = "canceled"
    """The match ends without a result."""


TRANSITIONS: Final[dict[tuple[Phase, Trigger], Phase]] = {
    (Phase.WARMUP, Trigger.ROSTER_READY): Phase.STARTING,
    (Phase.WARMUP, Trigger.MAP_LIVE): Phase.LIVE,
    (Phase.WARMUP, Trigger.MAP_REOPENED): Phase.LIVE,
    (Phase.WARMUP, Trigger.MAP_ENDED): Phase.BETWEEN_MAPS,
    (Phase.WARMUP, Trigger.DECIDED): Phase.OVER,
    (Phase.WARMUP, Trigger.CANCELED): Phase.OVER,
    (Phase.STARTING, Trigger.ROSTER_BROKEN): Phase.WARMUP,
    (Phase.STARTING, Trigger.MAP_LIVE): Phase.LIVE,
    (Phase.STARTING, Trigger.MAP_REOPENED): Phase.LIVE,
    (Phase.STARTING, Trigger.MAP_ENDED): Phase.BETWEEN_MAPS,
    (Phase.STARTING, Trigger.DECIDED): Phase.OVER,
    (Phase.STARTING, Trigger.CANCELED): Phase.OVER,
    (Phase.LIVE, Trigger.MAP_LIVE): Phase.LIVE,
    (Phase.LIVE, Trigger.MAP_ENDED): Phase.BETWEEN_MAPS,
    (Phase.LIVE, Trigger.DECIDED): Phase.OVER,
    (Phase.LIVE, Trigger.SUSPENDED): Phase.WARMUP,
    (Phase.LIVE, Trigger.CANCELED): Phase.OVER,
    (Phase.BETWEEN_MAPS, Trigger.ROSTER_READY): Phase.STARTING,
    (Phase.BETWEEN_MAPS, Trigger.MAP_LIVE): Phase.LIVE,
    (Phase.BETWEEN_MAPS, Trigger.MAP_REOPENED): Phase.LIVE,
    (Phase.BETWEEN_MAPS, Trigger.DECIDED): Phase.OVER,
    (Phase.BETWEEN_MAPS, Trigger.CANCELED): Phase.OVER,
}
