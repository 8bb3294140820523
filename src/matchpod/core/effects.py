"""Define effects: actions that the rules return and the service executes.

An effect may be executed twice (after a restart or a takeover), so every effect is idempotent.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import msgspec

from cs2_protocol.game import PlayerId

UNKNOWN_USER_ID = -1
"""Placeholder for the user id of a player if the log line with the user id was lost."""


class CancelReason(StrEnum):
    """Why a match ended without a result."""

    CANCELED_BY_USER = "canceled_by_user"
    CANCELED_BY_OPERATOR = "canceled_by_operator"
    NO_PLAYERS_JOINED = "no_players_joined"
    INCOMPLETE_ROSTER = "incomplete_roster"
    ALL_PLAYERS_LEFT = "all_players_left"
    NO_CAPACITY = "no_capacity"
    SERVER_FAILED = "server_failed"
    SERVER_LOST = "server_lost"
    LOG_QUOTA_EXCEEDED = "log_quota_exceeded"
    IDLE_TIMEOUT = "idle_timeout"
    MAX_DURATION_EXCEEDED = "max_duration_exceeded"


BY_HAND: Final = (CancelReason.CANCELED_BY_USER, CancelReason.CANCELED_BY_OPERATOR)
"""The reasons for matches that were canceled on request. All other reasons are failures or timeouts."""


class Kick(msgspec.Struct, frozen=True, tag=True):
    """Remove a player from the server; the reason is shown to the player."""

    player_id: PlayerId
    user_id: int
    reason: str


class StartPlay(msgspec.Struct, frozen=True, tag=True):
    """End the warmup, because all listed players have joined or a person ordered the start."""

    map_number: int


class LoadMap(msgspec.Struct, frozen=True, tag=True):
    """Load the next map of the series; a plugin may already be changing to it."""

    map_number: int
    map_name: str


class EndMatch(msgspec.Struct, frozen=True, tag=True):
    """End the match with a result."""


class CancelMatch(msgspec.Struct, frozen=True, tag=True):
    """End the match without a result. The lists of players are set only if the reason is `incomplete_roster`."""

    reason: CancelReason
    missing_players: tuple[PlayerId, ...] = ()
    connected_players: tuple[PlayerId, ...] = ()
    absent_players: tuple[PlayerId, ...] = ()


class SendAction(msgspec.Struct, frozen=True, tag=True):
    """Send the commands of an action to the server, unless the action has ended in the meantime."""

    action_id: str


class SendRoster(msgspec.Struct, frozen=True, tag=True):
    """Send the plugin again the people whom actions added: a restored round also restores its previous list."""


Effect = Kick | StartPlay | LoadMap | EndMatch | CancelMatch | SendAction | SendRoster
