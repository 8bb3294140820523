"""How long does a match wait, and for what? Times in seconds, each with its reason."""

from __future__ import annotations

from enum import StrEnum

import msgspec

JOIN_S = 300.0
"""Five minutes for everyone to connect: the promise of the API."""

ALL_LEFT_GRACE_S = 30.0
"""A crash or a lost line of all players at once must not end a match; half a minute is enough to be back."""

IDLE_S = 600.0
"""People came and went before play: long enough to agree on another try, short enough to free the server."""

MAX_DURATION_S = 6 * 3600.0
"""Longer than any bo5; what still runs then is forgotten."""

TEAM_CHOICE_S = 20.0
"""In the game but on no side: the plugin or the player settles that in a few seconds, nobody waits longer for it."""

MAP_CHANGE_GRACE_S = 120.0
"""Loading a map takes a slow client about a minute; twice that before nobody is expected back."""

CLIENT_LOAD_S = 60.0
"""After so long on the server a client has loaded the map, or never will: where the log lost that it entered."""

ASK_AGAIN_S = 60.0
"""Starting play and changing the map take half that; a command that got lost is repeated."""

SERIES_PATIENCE_MS = 20_000
"""A series that the plugin calls over, or that is won while maps of it are unknown: the log has so long to tell of it,
the plugin of the unknown maps. By our clock in every world: how long bytes take does not depend on the game's speed."""

DM_END_MARGIN_S = 30.0
"""The game ends a deathmatch by itself. No log line is proven for that, so our clock ends it a little later."""


class Alarm(StrEnum):
    """What our clock can bring about."""

    ALL_LEFT = "all_left"
    ASK_AGAIN = "ask_again"
    IDLE = "idle"
    JOIN = "join"
    MAX_DURATION = "max_duration"
    READY = "ready"
    SERIES_OVER = "series_over"
    TIME_UP = "time_up"


class Timers(msgspec.Struct, frozen=True, kw_only=True):
    """The waits of one match; a sandbox whose world runs faster divides all of them."""

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

    def at_speed(self, speed: float) -> Timers:
        """The same waits in a world that runs `speed` times as fast."""
        return Timers(**{name: seconds / speed for name, seconds in msgspec.structs.asdict(self).items()})


def to_ms(seconds: float) -> int:
    """Whole milliseconds."""
    return round(seconds * 1000)
