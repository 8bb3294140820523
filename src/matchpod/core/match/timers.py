"""Define the timeouts of a match, each with its reason."""

from __future__ import annotations

import msgspec

from matchpod.core.model import GameSettings

DEMO_S = 30.0
"""Time in seconds after a map, in addition to the GOTV delay, that a server needs to complete its recording. The plugin
waits 14.5 s before it stops the recording, and 24 s before it changes the map."""

UPLOAD_BEGINS_S = 60.0
"""Time in seconds after a map, in addition to the GOTV delay, within which the upload of its demo must begin. The
plugin waits 29.5 s before it uploads."""

MIN_UPLOAD_BEGINS_S = 10.0
"""Lower limit in seconds of the time within which an upload must begin. It matters in accelerated games, because the
machine that uploads runs at normal speed."""


class Timers(msgspec.Struct, frozen=True, kw_only=True):
    """The timeouts of one match. A sandbox with accelerated time divides all of them by its speed."""

    join_s: float = 300.0
    """Default time for all players to join. It starts again if a listed player leaves while no map is live."""
    all_left_grace_s: float = 30.0
    """Grace period for players to reconnect after all of them left a live map. A brief network outage must not end the
    match."""
    idle_s: float = 600.0
    """Time for players to return if all of them leave before play begins. If none returns, the match is canceled."""
    max_duration_s: float = 6 * 3600.0
    """Maximum length of a match: longer than any bo5. A match that still runs after this time was abandoned."""
    team_choice_s: float = 20.0
    """Time for the players to get a side; after it, play starts anyway. Plugin or players usually choose within
    seconds."""
    map_change_grace_s: float = 120.0
    """Grace period for players to return after a map change: twice the time that a slow client needs to load a map."""
    client_load_s: float = 60.0
    """Load time of a client. If log lines were lost, a player who has been on the console's list for this time has
    entered, and a player who has been missing from it for this time has left."""
    ask_again_s: float = 60.0
    """Interval at which an unconfirmed start or map change is requested again. Both usually take half as long."""
    dm_end_margin_s: float = 30.0
    """Time after a deathmatch's time limit at which we end it by our clock, as the game's end line is unreliable."""
    dm_minute_s: float = 60.0
    """Length in seconds of one requested minute of deathmatch; shorter in accelerated time."""
    demo_s: float = 0.0
    """Extension of the timeouts between two maps, so that our map changes do not cut a recording short; 0 if the
    match is not recorded."""

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
        """Return these timeouts for a game that runs `speed` times as fast."""
        return Timers(**{name: seconds / speed for name, seconds in msgspec.structs.asdict(self).items()})


def upload_due_ms(settings: GameSettings, ended_at_ms: int, *, speed: float) -> int:
    """Return the deadline by which the upload of a map's demo must begin, in a game that runs at this speed."""
    return ended_at_ms + to_ms(max(MIN_UPLOAD_BEGINS_S, (settings.tv_delay_s + UPLOAD_BEGINS_S) / speed))


def to_ms(seconds: float) -> int:
    """Convert seconds to whole milliseconds."""
    return round(seconds * 1000)
