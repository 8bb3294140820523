"""Recognize the knife round before a map, in which nothing counts.

In the log, a knife round looks like an ordinary first round, except that the server restarts the game after it. So if a
map should begin with a knife round, its first start in the log is treated as the start of the knife round. The knife
round ends when it is decided, when the server returns to warmup, or when the plugin reports that the map is live. If a
second round follows without a restart, there was no knife round: the map is live, and its first round is missing.
"""

from __future__ import annotations

import msgspec

from matchpod.core.events import GameEvent, MapLive, RoundDecided, RoundStarted
from matchpod.core.match.reported_series import ReportedSeries
from matchpod.core.model import GameSettings, StartSides


class KnifeRound(msgspec.Struct, omit_defaults=True):
    """The knife round of the newest map. `start` is the event that began it; None unless it is in progress."""

    over_on: int = 0
    """Number of the last map whose knife round is over; 0 if there is none."""
    start: MapLive | None = None

    def begins(self, event: MapLive, settings: GameSettings, number: int, reported: ReportedSeries) -> bool:
        """Apply the start of map `number`; return True if its knife round begins, so that the map is not live yet."""
        is_due = settings.sides_on(number) is StartSides.KNIFE and settings.uses_plugin and self.over_on < number
        if is_due and reported.live_number != number and event.rounds_played == 0:
            self.start = event
            return True
        self.start, self.over_on = None, number if is_due else self.over_on
        return False

    def apply(self, event: GameEvent, number: int) -> MapLive | None:
        """Apply an event on map `number`. If it shows that there was no knife round, return the start of the map."""
        if isinstance(event, RoundDecided):
            self.end(number)
        elif isinstance(event, RoundStarted) and self.start is not None and event.round_number > 1:
            return msgspec.structs.replace(self.start, rounds_played=event.round_number - 1)
        return None

    def end(self, number: int) -> None:
        """End the knife round of map `number`, if one is in progress."""
        if self.start is not None:
            self.start, self.over_on = None, number
