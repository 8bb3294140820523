"""When does a match start, go on and end? One state machine over game events and our clock.

`now_ms` is our clock and drives the alarms; `at_ms` of an event is the server's clock and gives times and durations.
"""

# RULES
# - Every phase change looks its pair of phase and trigger up in TRANSITIONS; an unknown pair changes nothing.
# - A roster starts play by itself: all listed players have entered and, where teams play, are on a side or have had
#   their time to take one. Without a roster the players start; a map that is live is live, whoever started it.
# - Nobody leaves by a map change or a server restart. A map that loads during play does not end play: the second
#   witness of its end may still be on the way.
# - Clocks are alarms. The earliest that is due fires, so a late tick decides as a punctual one would have.
# - The end of a map can be lost on the way. Once the server is on a later map of the series, or the plugin calls the
#   series over, the map is over too: with the score last told, and without a winner unless the plugin's word gives one.
#   Whether such a series goes on is the plugin's to say, for nobody else knows.
# - A match ends once. After that nothing comes out of it, and only the plugin's late word on the last MVP is heard.

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from matchpod.core import series
from matchpod.core.anticheat.detection import Detection, keep_detection
from matchpod.core.anticheat.watch import Watch
from matchpod.core.effects import CancelMatch, CancelReason, Effect, EndMatch, Kick, LoadMap, StartPlay
from matchpod.core.events import (
    COMBAT_EVENTS,
    CheatSuspected,
    GameEvent,
    LiveReported,
    MapEnded,
    MapLive,
    MapLoading,
    ResultReported,
    RoundRestored,
    RoundStarted,
    WarmupBegan,
)
from matchpod.core.model import GameSettings, PlayerId, Team, Winner, is_human
from matchpod.core.outcome import Outcome, OutcomeKind
from matchpod.core.phases import TRANSITIONS, Phase, Trigger
from matchpod.core.played_map import MapStatus, NamedEvent, PlayedMap, map_name, unknown_maps, winners_of
from matchpod.core.presence import Presence
from matchpod.core.reported_series import Report, ReportedSeries
from matchpod.core.timers import SERIES_PATIENCE_MS, Alarm, Timers, to_ms

__all__ = ("ROSTER_INCOMPLETE", "TRANSITIONS", "Match", "Phase", "Trigger")

ROSTER_INCOMPLETE = "Match canceled: not all players joined in time"
"""What the players who did come read when they are kicked."""


class Match(msgspec.Struct, kw_only=True):
    """A match as a fold over events and time; the whole of it survives a snapshot.

    `maps` ends with the current map: the first from the beginning, a later one from the moment it goes live.
    `asked_at_ms` is when StartPlay or LoadMap was asked for and the server has not followed yet.
    """

    settings: GameSettings
    created_at_ms: int
    presence: Presence
    maps: list[PlayedMap]
    watch: Watch
    reported: ReportedSeries
    timers: Timers = Timers()
    phase: Phase = Phase.WARMUP
    allocated_at_ms: int | None = None
    was_pending: bool = False
    first_live_at_ms: int | None = None
    live_at_ms: int | None = None
    asked_at_ms: int | None = None
    detections: list[Detection] = msgspec.field(default_factory=list)
    outcome: Outcome | None = None

    @classmethod
    def create(cls, settings: GameSettings, created_at_ms: int, timers: Timers | None = None) -> Match:
        """A match that waits for its first map and players."""
        return cls(
            settings=settings,
            created_at_ms=created_at_ms,
            presence=Presence(roster=settings.roster),
            maps=[PlayedMap.upcoming(settings, 1)],
            watch=Watch.of(settings),
            reported=ReportedSeries(series_format=settings.series_format),
            timers=timers or Timers(),
        )

    @property
    def current_map(self) -> PlayedMap:
        """The map being played or played last."""
        return self.maps[-1]

    @property
    def map_number(self) -> int:
        """The number of the map that is played or comes next; of the last one when the match is over."""
        has_next = self.current_map.is_finished and self.phase is not Phase.OVER
        return self.current_map.number + has_next

    @property
    def map_winners(self) -> list[Winner]:
        """The winners of the finished maps, in order."""
        return winners_of(self.maps)

    @property
    def series_score(self) -> tuple[int, int]:
        """Maps won by each team; in the end, where not all were seen, as the plugin counted them."""
        is_told = self.outcome is not None and self.outcome.is_finished and bool(unknown_maps(self.maps))
        return (self.reported.score if is_told else None) or series.maps_won(self.map_winners)

    @property
    def winner(self) -> Winner | None:
        """Who won; None while undecided, when canceled and in a deathmatch."""
        is_over = self.outcome is not None and self.outcome.is_finished
        return Winner.of(*self.series_score) if is_over and self.current_map.is_scored else None

    def team_of(self, player_id: PlayerId) -> Team | None:
        """The team of a player: by roster, else by what the game told; None where everyone plays for himself."""
        if self.settings.is_free_for_all:
            return None
        return self.settings.team_of(player_id) or self.presence.teams.get(player_id)

    def allocated(self, at_ms: int, *, was_pending: bool = False) -> None:
        """The match has a server since then, perhaps after a wait; repeat it as often as you like."""
        self.allocated_at_ms, self.was_pending = at_ms, was_pending

    def apply(self, event: GameEvent, now_ms: int) -> list[Effect]:
        """Take in what happened and say what must be done."""
        if type(event) in COMBAT_EVENTS:
            if self.phase is Phase.LIVE:
                self.current_map.fight(event)
                for found in self.watch.see(event):
                    self._keep_detection(found)
            return []
        if self.phase is Phase.OVER:
            self.current_map.hear_late(event)
            return []
        effects: list[Effect] = [*self.presence.apply(event, now_ms)]
        match event:
            case MapLive():
                self._go_live(event, now_ms)
            case MapEnded():
                effects += self._end_map(event, now_ms)
            case RoundRestored():
                self._restore(event, now_ms)
            case MapLoading() if self.phase is Phase.BETWEEN_MAPS:
                self.asked_at_ms = None
            case WarmupBegan():
                self._move(Trigger.SUSPENDED)
            case CheatSuspected():
                self._keep_detection(event)
            case _:
                effects += self._hear_plugin(event, now_ms) if isinstance(event, Report) else []
                self._tell_current_map(event, now_ms)
        for found in self.watch.see(event):
            self._keep_detection(found)
        return effects + self._follow_roster(now_ms)

    def tick(self, now_ms: int) -> list[Effect]:
        """Fire the earliest alarm that is due. Call again while `next_deadline_ms` is not in the future."""
        if self.phase is Phase.OVER:
            return []
        due_ms, alarm = min(self._alarms())
        return self._fire(alarm, now_ms) if due_ms <= now_ms else []

    def next_deadline_ms(self) -> int | None:
        """When `tick` must be called at the latest; None when the match is over."""
        return None if self.phase is Phase.OVER else min(self._alarms())[0]

    def cancel(self, reason: str, now_ms: int) -> list[Effect]:
        """End the match without a result, unless it has ended already."""
        return self._cancel(CancelMatch(reason), now_ms)

    # --- events -------------------------------------------------------------------------------------------------

    def _move(self, trigger: Trigger) -> bool:
        """Change the phase by the table; False where the table has no such pair."""
        target = TRANSITIONS.get((self.phase, trigger))
        if target is None:
            return False
        self.phase = target
        return True

    def _go_live(self, event: MapLive, now_ms: int) -> None:
        self._find_place(event.map_name)
        if self.map_number > self.settings.series_format.length:
            return  # all maps are played, and the plugin has not said who won them
        self.reported.begin_anew(self.settings, self.maps, is_cut=self.presence.is_cut)
        self._move(Trigger.MAP_LIVE)
        if self.current_map.is_finished:
            self.maps.append(PlayedMap.upcoming(self.settings, self.map_number))
        for player_id, connection in self.presence.connected.items():
            if connection.name:
                self.current_map.remember_name(player_id, connection.name)
        self.current_map.apply(event)
        self._count_from(now_ms)

    def _restore(self, event: RoundRestored, now_ms: int) -> None:
        self.reported.forget_end(self.current_map.number)
        is_cut_off = self.phase is not Phase.BETWEEN_MAPS and self.current_map.status is MapStatus.LIVE
        if (is_cut_off or self.phase is Phase.BETWEEN_MAPS) and self._move(Trigger.MAP_REOPENED):
            self._count_from(now_ms)
        self._tell_current_map(event, now_ms)

    def _count_from(self, now_ms: int) -> None:
        self.presence.is_map_over = False
        self.asked_at_ms = None
        self.live_at_ms = now_ms
        if self.first_live_at_ms is None:
            self.first_live_at_ms = now_ms

    def _end_map(self, event: MapEnded, now_ms: int) -> list[Effect]:
        if self.current_map.status is not MapStatus.LIVE:
            return []
        self.current_map.apply(event)
        has_series = self.settings.match_type.has_series
        is_won = not has_series or series.is_decided(self.settings.series_format, self.map_winners)
        is_known = not unknown_maps(self.maps)
        if (is_known and is_won) or (not is_known and self.reported.accounts_for(self.maps)):
            return self._finish(now_ms)
        self._move(Trigger.MAP_ENDED)
        self.presence.map_ended(now_ms)
        if is_won:
            self.reported.over_since_ms = now_ms  # but by how much? The plugin says that in a moment
        return self._ask(now_ms) if is_known else []

    def _finish(self, now_ms: int) -> list[Effect]:
        self.reported.fill_in(self.maps)
        self._move(Trigger.DECIDED)
        self.outcome = Outcome(kind=OutcomeKind.FINISHED, at_ms=now_ms)
        return [EndMatch()]

    def _tell_current_map(self, event: GameEvent, now_ms: int) -> None:
        if isinstance(event, RoundStarted):
            self.reported.wait_on(now_ms)
        # Before play nothing counts. Between maps a plugin's late word does, until the next map loads.
        is_between = self.phase is Phase.BETWEEN_MAPS and self.presence.is_map_over
        if self.phase is not Phase.LIVE and not is_between:
            return
        if not (isinstance(event, NamedEvent) and self.presence.is_unlisted(event.player_id)):
            self.current_map.apply(event)

    def _keep_detection(self, event: CheatSuspected) -> None:
        player_id, current = event.player_id, self.current_map
        if not is_human(player_id) or self.presence.is_unlisted(player_id):
            return
        is_next_map = current.is_finished and not self.presence.is_map_over
        connection = self.presence.connected.get(player_id)
        found = Detection(
            player_id=player_id,
            name=connection.name if connection else current.names.get(player_id, event.name),
            team=self.team_of(player_id),
            kind=event.kind,
            reason=event.reason,
            weapon=event.weapon,
            map_number=self.map_number if is_next_map else current.number,
            round_number=None if is_next_map else current.latest_round,
            detected_at_ms=event.at_ms,
        )
        keep_detection(self.detections, found)

    # --- maps whose end was lost --------------------------------------------------------------------------------

    def end_series(self, now_ms: int) -> list[Effect]:
        """Nobody will tell more of a series that is over: end it with what is known, if that is enough."""
        self.reported.over_since_ms = None
        if self.phase is Phase.OVER or not self.settings.match_type.has_series:
            return []
        is_won = series.is_decided(self.settings.series_format, self.map_winners)
        return self._finish(now_ms) if self.reported.close(self.settings, self.maps) or is_won else []

    def _find_place(self, loaded: str) -> None:
        """Which map of the series is the server on? Those before it are over, whether or not that was told."""
        loaded = loaded if self.presence.is_cut else ""
        number = self.reported.number_of(loaded, self.settings, self.current_map)
        self.reported.pass_unseen(number, self.settings, self.maps)

    def _hear_plugin(self, report: Report, now_ms: int) -> list[Effect]:
        is_live = self.phase is Phase.LIVE
        if isinstance(report, ResultReported) or (isinstance(report, LiveReported) and is_live):
            self.reported.place(report.map_number, self.settings, self.maps)
        if not (isinstance(report, LiveReported) and report.map_number < self.map_number + is_live):
            self.reported.hear(report, now_ms)  # no late word on a map that is live already
        self.reported.fill_in(self.maps)
        is_over = self.phase is Phase.BETWEEN_MAPS and self.reported.accounts_for(self.maps)
        return self._finish(now_ms) if is_over else []

    # --- the roster ---------------------------------------------------------------------------------------------

    def _follow_roster(self, now_ms: int) -> list[Effect]:
        if self.phase is Phase.STARTING:
            if self.presence.complete_since_ms() is None:
                self._move(Trigger.ROSTER_BROKEN)
                self.asked_at_ms = None
            return []
        ready_at_ms = self._ready_at_ms()
        if ready_at_ms is None or ready_at_ms > now_ms:
            return []
        self._find_place(self.presence.loaded_map)
        return self._ask(now_ms) if self._move(Trigger.ROSTER_READY) else []

    def _ready_at_ms(self) -> int | None:
        has_map = self.map_number <= self.settings.series_format.length
        if self.phase not in (Phase.WARMUP, Phase.BETWEEN_MAPS) or not has_map:
            return None
        complete_ms = self.presence.complete_since_ms()
        if complete_ms is None or not self.settings.match_type.has_series or self.presence.is_everyone_on_a_side():
            return complete_ms
        return complete_ms + to_ms(self.timers.team_choice_s)

    def _ask(self, now_ms: int) -> list[Effect]:
        self.asked_at_ms = now_ms
        number = self.map_number
        if self.phase is Phase.STARTING:
            return [StartPlay(number)]
        return [LoadMap(number, map_name(self.settings, number))]

    # --- the clock ----------------------------------------------------------------------------------------------

    def _alarms(self) -> Iterator[tuple[int, Alarm]]:
        timers = self.timers
        since_ms = self.created_at_ms if self.allocated_at_ms is None else self.allocated_at_ms
        minutes = self.settings.deathmatch_minutes
        # A deathmatch may be asked for that is longer than any match should be: it still gets its time.
        asked_s = timers.join_s + (minutes or 0) * timers.dm_minute_s + timers.dm_end_margin_s
        yield since_ms + to_ms(max(timers.max_duration_s, asked_s)), Alarm.MAX_DURATION
        if not self.presence.ever_connected:
            yield (since_ms if self.was_pending else self.created_at_ms) + to_ms(timers.join_s), Alarm.JOIN
        elif self.first_live_at_ms is None and self.presence.missing():
            yield since_ms + to_ms(timers.join_s), Alarm.JOIN
        if self.presence.empty_since_ms is not None:
            yield self._empty_until_ms(self.presence.empty_since_ms)
        if self.asked_at_ms is not None:
            yield self.asked_at_ms + to_ms(timers.ask_again_s), Alarm.ASK_AGAIN
        ready_at_ms = self._ready_at_ms()
        if ready_at_ms is not None:
            yield ready_at_ms, Alarm.READY
        if self.reported.over_since_ms is not None:
            yield self.reported.over_since_ms + SERIES_PATIENCE_MS, Alarm.SERIES_OVER
        if self.phase is Phase.LIVE and self.live_at_ms is not None and minutes is not None:
            lasts_s = minutes * timers.dm_minute_s + timers.dm_end_margin_s
            yield self.live_at_ms + to_ms(lasts_s), Alarm.TIME_UP

    def _empty_until_ms(self, since_ms: int) -> tuple[int, Alarm]:
        alarm = Alarm.IDLE if self.first_live_at_ms is None else Alarm.ALL_LEFT
        if alarm is Alarm.IDLE:
            grace_s = self.timers.idle_s
        elif self.phase is Phase.LIVE:
            grace_s = self.timers.all_left_grace_s
        else:
            # Between maps people quit and come back: a pause, not the middle of a match.
            grace_s = self.timers.map_change_grace_s
        until_ms = since_ms + to_ms(grace_s)
        if self.presence.map_change_at_ms is not None:
            until_ms = max(until_ms, self.presence.map_change_at_ms + to_ms(self.timers.map_change_grace_s))
        return until_ms, alarm

    def _fire(self, alarm: Alarm, now_ms: int) -> list[Effect]:
        match alarm:
            case Alarm.JOIN:
                return self._give_up_waiting(now_ms)
            case Alarm.ALL_LEFT:
                return self.end_series(now_ms) or self.cancel(CancelReason.ALL_PLAYERS_LEFT, now_ms)
            case Alarm.IDLE:
                return self.cancel(CancelReason.IDLE_TIMEOUT, now_ms)
            case Alarm.MAX_DURATION:
                return self.cancel(CancelReason.MAX_DURATION_EXCEEDED, now_ms)
            case Alarm.SERIES_OVER:
                return self.end_series(now_ms)
            case Alarm.READY:
                return self._follow_roster(now_ms)
            case Alarm.ASK_AGAIN:
                return self._ask(now_ms)
            case Alarm.TIME_UP:
                return self._end_map(self.current_map.time_up(self.settings.deathmatch_minutes or 0), now_ms)

    def _give_up_waiting(self, now_ms: int) -> list[Effect]:
        if not self.presence.ever_connected:
            return self.cancel(CancelReason.NO_PLAYERS_JOINED, now_ms)
        kicks: list[Effect] = [
            Kick(player_id, connection.user_id, ROSTER_INCOMPLETE)
            for player_id, connection in self.presence.connected.items()
        ]
        missing, joined = self.presence.missing(), self.presence.joined()
        return kicks + self._cancel(CancelMatch(CancelReason.INCOMPLETE_ROSTER, missing, joined), now_ms)

    def _cancel(self, effect: CancelMatch, now_ms: int) -> list[Effect]:
        if not self._move(Trigger.CANCELED):
            return []
        self.current_map.cancel()
        self.outcome = Outcome(
            kind=OutcomeKind.CANCELED,
            at_ms=now_ms,
            reason=effect.reason,
            missing_players=effect.missing_players,
            connected_players=effect.connected_players,
        )
        return [effect]
