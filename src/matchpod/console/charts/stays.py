"""Compute from a timeline when each listed player was on the server, and when the game was paused."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

import msgspec

from matchpod.console.charts.people import Subject, player_subject
from matchpod.core.views.progress import PlayerState, RosterPlayer
from matchpod.core.views.timeline_items import (
    PausedItem,
    PlayerConnectedItem,
    PlayerDisconnectedItem,
    TimelineItem,
    UnpausedItem,
)

MAX_LANES: Final = 64
"""Maximum number of players in the chart, equal to the number of player slots of a server. In a match without a roster,
more players may have joined over time."""

TimeRange = tuple[float, float]
"""Start and end of a time range, in seconds since 1970."""


class Lane(msgspec.Struct, frozen=True):
    """A player, with the time ranges in which they were on the server."""

    subject: Subject
    spans: tuple[TimeRange, ...]
    was_here: bool
    """True if the player ever joined, even if not within the time range of the chart."""


def find_lanes(items: Sequence[TimelineItem], roster: Sequence[RosterPlayer], window: TimeRange) -> list[Lane]:
    """Return a lane per listed player. If the match has no roster, return a lane per player in the timeline."""
    changes: dict[str, list[tuple[bool, float]]] = {}
    guests: dict[str, RosterPlayer] = {}
    for item in items:
        if not isinstance(item, PlayerConnectedItem | PlayerDisconnectedItem) or item.player.steam_id is None:
            continue
        if not item.timestamp:  # stored by an earlier version, without the time
            continue
        person, steam_id = item.player, item.player.steam_id
        changes.setdefault(steam_id, []).append((isinstance(item, PlayerConnectedItem), seconds(item.timestamp)))
        guests[steam_id] = RosterPlayer(steam_id=steam_id, name=person.name, team=person.team)
    listed = list(roster) or list(guests.values())
    return [_lane(player, guests.get(player.steam_id), changes, window) for player in listed[:MAX_LANES]]


def find_pauses(items: Iterable[TimelineItem], window: TimeRange) -> list[TimeRange]:
    """Return the time ranges in which the game was paused; the last may last until the end of the window."""
    changes = [
        (isinstance(item, PausedItem), seconds(item.timestamp))
        for item in items
        if isinstance(item, PausedItem | UnpausedItem) and item.timestamp
    ]
    return _spans(changes, window)


def seconds(timestamp: str) -> float:
    """Convert an ISO 8601 time to seconds since 1970."""
    return datetime.fromisoformat(timestamp).timestamp()


def _lane(
    player: RosterPlayer,
    guest: RosterPlayer | None,
    changes: dict[str, list[tuple[bool, float]]],
    window: TimeRange,
) -> Lane:
    name = player.name or (guest.name if guest else None)
    subject = player_subject(player.steam_id, name, player.team)
    own = changes.get(player.steam_id, [])
    if not own and player.state is not PlayerState.NEVER_JOINED:
        # If the player was on the server before the map began and stayed, its timeline has no item for them.
        since = window[0] if player.since is None else seconds(player.since)
        own = [(player.state is PlayerState.CONNECTED, since)]
    return Lane(subject, tuple(_spans(own, window)), bool(own))


def _spans(changes: Sequence[tuple[bool, float]], window: TimeRange) -> list[TimeRange]:
    """Return ranges from a start to the next end. If the first change is an end, its range begins with the window."""
    start, end = window
    spans: list[TimeRange] = []
    since = None if not changes or changes[0][0] else start
    for is_start, at in changes:
        if is_start and since is None:
            since = at
        elif not is_start and since is not None:
            spans.append((since, at))
            since = None
    if since is not None:
        spans.append((since, end))
    clipped = ((max(start, first), min(end, last)) for first, last in spans)
    return [(first, last) for first, last in clipped if last > first]
