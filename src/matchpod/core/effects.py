"""What must the world do now? Values that the rules return and the shell performs.

An effect may be performed twice (a restart, a take-over), so each is harmless when repeated.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from matchpod.core.model import PlayerId

UNKNOWN_USER_ID = -1
"""The line that told the user id was lost: find the player by his player id."""


class CancelReason(StrEnum):
    """Why a match ended without a result."""

    CANCELED_BY_USER = "canceled_by_user"
    NO_PLAYERS_JOINED = "no_players_joined"
    INCOMPLETE_ROSTER = "incomplete_roster"
    ALL_PLAYERS_LEFT = "all_players_left"
    NO_CAPACITY = "no_capacity"
    SERVER_FAILED = "server_failed"
    SERVER_LOST = "server_lost"
    IDLE_TIMEOUT = "idle_timeout"
    MAX_DURATION_EXCEEDED = "max_duration_exceeded"


class Kick(msgspec.Struct, frozen=True, tag=True):
    """Remove a player from the server, with a reason he can read."""

    player_id: PlayerId
    user_id: int
    reason: str


class StartPlay(msgspec.Struct, frozen=True, tag=True):
    """Leave warmup now: the last listed player is in."""

    map_number: int


class LoadMap(msgspec.Struct, frozen=True, tag=True):
    """The next map of the series should be on the server; a plugin may already be changing to it."""

    map_number: int
    map_name: str


class EndMatch(msgspec.Struct, frozen=True, tag=True):
    """The match is over and has a result."""


class CancelMatch(msgspec.Struct, frozen=True, tag=True):
    """The match ends without a result. The lists are filled for an incomplete roster only."""

    reason: str
    missing_players: tuple[PlayerId, ...] = ()
    connected_players: tuple[PlayerId, ...] = ()


Effect = Kick | StartPlay | LoadMap | EndMatch | CancelMatch
