"""Define the timeouts of a match, each with its reason."""

from __future__ import annotations

from enum import StrEnum

import msgspec

JOIN_S = 300.0
"""Time for all players to connect, as documented in the API."""

ALL_LEFT_GRACE_S = 30.0
"""A brief outage that disconnects all players must not end the match; half a minute is enough to reconnect."""

IDLE_S = 600.0
"""All players left before play began: long enough for them to come back, short enough to free the server."""

MAX_DURATION_S = 6 * 3600.0
"""Longer than any bo5; a match that still runs after this was abandoned."""

TEAM_CHOICE_S = 20.0
"""Time for a player in the game to get a side; the plugin or the player usually chooses within seconds."""

MAP_CHANGE_GRACE_S = 120.0
"""A slow client takes about a minute to load a map; after twice that, players are no longer expected back."""

CLIENT_LOAD_S = 60.0
"""If the log lost a player's entry line, the player counts as entered after this time on the server."""

ASK_AGAIN_S = 60.0
"""Repeat a lost start or map-change command after this time; both usually take half as long."""

SERIES_END_GRACE_MS = 20_000
"""After a series is reported over, or won with unknown maps, time for the missing log lines and reports to arrive.
Not scaled by `at_speed`: network delay does not depend on the game's speed."""

DM_END_MARGIN_S = 30.0
"""The game ends a deathmatch itself, but without a reliable log line, so our clock ends it a little later."""


class Alarm(StrEnum):
    """Timeouts of a match."""

    ALL_LEFT = "all_left"
    ASK_AGAIN = "ask_again"
    IDLE = "idle"
    JOIN = "join"
    MAX_DURATION = "max_duration"
    READY = "ready"
    SERIES_OVER = "series_over"
    TIME_UP = "time_up"


class Timers(msgspec.Struct, frozen=True, kw_only=True):
    """The timeouts of one match; a sandbox with accelerated time divides all of them."""

    join_s: float = JOIN_S
    all_left_grace_s: float = ALL_LEFT_GRACE_S
    idle_s: float = IDLE_S
    max_duration_s: float = MAX_DURATION_S
    team_choice_s: float = TEAM_CHOICE_S
    map_change_grace_s: float = MAP_CHANGE_GRACE_S
    client_load_s: float = CLIENT_LOAD_S
    ask_again_s: float = ASK_AGAIN_S
    dm_end_margin_s: float = DM_END_MARGIN_S
    dm_minute_s: float = 60.0

    def empty_grace_s(self, *, was_live: bool, is_live: bool) -> float:
        """How long a server may be empty. Between maps players may quit and rejoin, so they get more time."""
        if not was_live:
            return self.idle_s
        return self.all_left_grace_s if is_live else self.map_change_grace_s

    def at_speed(self, speed: float) -> Timers:
        """Return the same timeouts for a game that runs `speed` times as fast."""
        return Timers(**{name: seconds / speed for name, seconds in msgspec.structs.asdict(self).items()})


def to_ms(seconds: float) -> int:
    """Convert seconds to whole milliseconds."""
    return round(seconds * 1000)
