"""Define the timeouts of a match, each with its reason."""

from __future__ import annotations

import msgspec

from matchpod.core.model import GameSettings

DEMO_S = 30.0
"""Time that a server needs after a map to stop its recording, in addition to the GOTV delay. The plugin waits 14.5 s,
and changes the map after 24 s."""

UPLOAD_BEGINS_S = 60.0
"""Time after a map, in addition to the GOTV delay, by which its upload has begun. The plugin waits 29.5 s."""

MIN_UPLOAD_BEGINS_S = 10.0
"""Minimum of this time at any game speed, because the machine does not run faster."""


class Timers(msgspec.Struct, frozen=True, kw_only=True):
    """The timeouts of one match; a sandbox with accelerated time divides all of them by its speed."""

    join_s: float = 300.0
    """Default time for all players to connect. The time runs again if a listed player leaves while no map is live."""
    all_left_grace_s: float = 30.0
    """Time to reconnect after all players left a live map. A brief network outage must not end the match."""
    idle_s: float = 600.0
    """Time to return after all players left before play began. If no player returns, the match is canceled."""
    max_duration_s: float = 6 * 3600.0
    """Maximum length of a match, longer than any bo5; a match that still runs after this was abandoned."""
    team_choice_s: float = 20.0
    """Time for the players to get a side before play starts anyway; plugin or players usually choose within seconds."""
    map_change_grace_s: float = 120.0
    """Time for players to return after a map change. It is twice the time in which a slow client loads a map."""
    client_load_s: float = 60.0
    """Time on or off the console's list after which a player has entered or left, if their log lines were lost."""
    ask_again_s: float = 60.0
    """Time after which a start or map change is requested again. Both usually take half as long."""
    dm_end_margin_s: float = 30.0
    """Time after the time limit of a deathmatch until our clock ends it, because the game's end line is unreliable."""
    dm_minute_s: float = 60.0
    """Seconds per minute of deathmatch; fewer in accelerated time."""
    demo_s: float = 0.0
    """Additional time between two maps, so that no map change of ours cuts a recording; 0 without recording."""

    @staticmethod
    def of(settings: GameSettings) -> Timers:
        """Return the timeouts of a match with these settings."""
        join_s = Timers().join_s if settings.join_seconds is None else settings.join_seconds
        return Timers(join_s=join_s, demo_s=settings.tv_delay_s + DEMO_S if settings.record_demo else 0.0)

    def empty_grace_s(self, *, was_live: bool, is_live: bool) -> float:
        """Return how long a server may be empty. Between maps players may quit and rejoin, so they get more time."""
        if not was_live:
            return self.idle_s
        return self.all_left_grace_s if is_live else self.map_change_grace_s

    def at_speed(self, speed: float) -> Timers:
        """Return the same timeouts for a game that runs `speed` times as fast."""
        return Timers(**{name: seconds / speed for name, seconds in msgspec.structs.asdict(self).items()})


def upload_due_ms(settings: GameSettings, ended_at_ms: int, *, speed: float) -> int:
    """Return the deadline for the beginning of a demo upload after the end of its map, in a game of this speed."""
    return ended_at_ms + to_ms(max(MIN_UPLOAD_BEGINS_S, (settings.tv_delay_s + UPLOAD_BEGINS_S) / speed))


def to_ms(seconds: float) -> int:
    """Convert seconds to whole milliseconds."""
    return round(seconds * 1000)
