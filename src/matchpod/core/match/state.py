"""Hold the state of a match, and answer questions about it: its current map, its score, and the alarms that are set.

The rules that change the state are in `match`.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from cs2_protocol.game import PlayerId, Team
from matchpod.core.anticheat.detection import Detection
from matchpod.core.anticheat.detectors import Detectors
from matchpod.core.match import series
from matchpod.core.match.game_times import GameTimes
from matchpod.core.match.knife_round import KnifeRound
from matchpod.core.match.phases import MatchPhase
from matchpod.core.match.played_map import PlayedMap, unknown_maps, winners_of
from matchpod.core.match.presence import Presence
from matchpod.core.match.reported_series import ReportedSeries
from matchpod.core.match.timers import SERIES_END_GRACE_MS, Alarm, Timers, to_ms
from matchpod.core.model import GameSettings, Winner
from matchpod.core.outcome import Outcome


class MatchState(msgspec.Struct, kw_only=True):
    """The complete state of a match, as snapshots contain it.

    `maps` ends with the current map: the first map is in it from the start, a later one once it goes live.
    `asked_at_ms` is when the last StartPlay or LoadMap was requested; None once the server has carried it out.
    `roster_broken_ms` is since when a listed player is absent although all had joined, while no map is live.
    """

    settings: GameSettings
    created_at_ms: int
    presence: Presence
    maps: list[PlayedMap]
    watch: Detectors
    reported: ReportedSeries
    timers: Timers = Timers()
    phase: MatchPhase = MatchPhase.WARMUP
    allocated_at_ms: int | None = None
    was_pending: bool = False
    first_live_at_ms: int | None = None
    live_at_ms: int | None = None
    asked_at_ms: int | None = None
    roster_broken_ms: int | None = None
    detections: list[Detection] = msgspec.field(default_factory=list)
    outcome: Outcome | None = None
    times: GameTimes = msgspec.field(default_factory=GameTimes)
    knife: KnifeRound = msgspec.field(default_factory=KnifeRound)

    @property
    def current_map(self) -> PlayedMap:
        """The current or most recent map."""
        return self.maps[-1]

    @property
    def map_number(self) -> int:
        """The number of the current or next map; of the last map after the match is over."""
        has_next = self.current_map.is_finished and self.phase is not MatchPhase.OVER
        return self.current_map.number + has_next

    @property
    def series_score(self) -> tuple[int, int]:
        """Maps won by each team. If a finished match lacks a map winner, the score reported by the plugin, if any."""
        uses_report = self.outcome is not None and self.outcome.is_finished and bool(unknown_maps(self.maps))
        return (self.reported.score if uses_report else None) or series.maps_won(winners_of(self.maps))

    @property
    def winner(self) -> Winner | None:
        """The winner; None while undecided, if canceled, and in a deathmatch."""
        is_over = self.outcome is not None and self.outcome.is_finished and self.current_map.is_scored
        return Winner.of(*self.series_score) if is_over and self.reported.is_winner_known(self.maps) else None

    @property
    def is_log_complete(self) -> bool | None:
        """False if lines of the log that count are known to be missing; None if no map has begun."""
        begun = [played for played in self.maps if played.started_at_ms is not None]
        return all(played.is_complete for played in begun) if begun else None

    def team_of(self, player_id: PlayerId) -> Team | None:
        """Return a player's team: from the roster, else from the game; None in free-for-all and if unknown."""
        team = self.settings.team_of(player_id) or self.presence.teams.get(player_id)
        return None if self.settings.is_free_for_all else team

    def _are_all_maps_over(self) -> bool:
        return self.map_number > self.settings.series_format.length

    def _ready_at_ms(self) -> int | None:
        if self.phase not in (MatchPhase.WARMUP, MatchPhase.BETWEEN_MAPS) or self._are_all_maps_over():
            return None
        complete_ms = self.presence.complete_since_ms()
        if complete_ms is None or not self.settings.match_type.has_series or self.presence.is_everyone_on_a_side():
            return complete_ms
        return complete_ms + to_ms(self.timers.team_choice_s)

    def next_deadline_ms(self) -> int | None:
        """Return when `tick` must be called next; None if the match is over."""
        return None if self.phase is MatchPhase.OVER else min(self.alarms())[0]

    def alarms(self) -> Iterator[tuple[int, Alarm]]:
        """Yield the alarms that are set, and when they are due."""
        timers, minutes = self.timers, self.settings.deathmatch_minutes
        since_ms = self.created_at_ms if self.allocated_at_ms is None else self.allocated_at_ms
        # A deathmatch that is requested to be longer than the maximum duration still gets its full time.
        requested_s = timers.join_s + (minutes or 0) * timers.dm_minute_s + timers.dm_end_margin_s
        yield since_ms + to_ms(max(timers.max_duration_s, requested_s)), Alarm.MAX_DURATION
        if not self.presence.ever_connected:
            yield (since_ms if self.was_pending else self.created_at_ms) + to_ms(timers.join_s), Alarm.JOIN
        elif self.first_live_at_ms is None and self.presence.missing():
            yield since_ms + to_ms(timers.join_s), Alarm.JOIN
        elif self.roster_broken_ms is not None and not self.presence.is_doubtful:
            yield self._after_map_change(self.roster_broken_ms + to_ms(timers.join_s)), Alarm.JOIN
        if self.presence.empty_since_ms is not None:
            yield self._empty_alarm(self.presence.empty_since_ms)
        if self.asked_at_ms is not None:
            yield self.asked_at_ms + to_ms(timers.ask_again_s), Alarm.ASK_AGAIN
        ready_at_ms = self._ready_at_ms()
        if ready_at_ms is not None:
            yield ready_at_ms, Alarm.READY
        if self.reported.over_since_ms is not None:
            yield self.reported.over_since_ms + SERIES_END_GRACE_MS, Alarm.SERIES_OVER
        if self.phase is MatchPhase.LIVE and self.live_at_ms is not None and minutes is not None:
            lasts_s = minutes * timers.dm_minute_s + timers.dm_end_margin_s
            yield self.live_at_ms + to_ms(lasts_s), Alarm.TIME_UP

    def _empty_alarm(self, since_ms: int) -> tuple[int, Alarm]:
        timers, was_live = self.timers, self.first_live_at_ms is not None
        until_ms = since_ms + to_ms(timers.empty_grace_s(was_live=was_live, is_live=self.phase is MatchPhase.LIVE))
        return self._after_map_change(until_ms), Alarm.ALL_LEFT if was_live else Alarm.IDLE

    def _after_map_change(self, due_ms: int) -> int:
        """Return a time that leaves players enough time to return after a map change."""
        changed_ms = self.presence.map_change_at_ms
        return due_ms if changed_ms is None else max(due_ms, changed_ms + to_ms(self.timers.map_change_grace_s))
