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
# - A match ends once. After that nothing comes out of it, and only the plugin's late word on the last MVP is heard.

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Final

import msgspec

from matchpod.core import series
from matchpod.core.anticheat.detection import Detection, keep_detection
from matchpod.core.anticheat.watch import Watch
from matchpod.core.effects import CancelMatch, CancelReason, Effect, EndMatch, Kick, LoadMap, StartPlay
from matchpod.core.events import (
    COMBAT_EVENTS,
    CheatSuspected,
    GameEvent,
    MapEnded,
    MapLive,
    MapLoading,
    RoundRestored,
    WarmupBegan,
)
from matchpod.core.model import GameSettings, PlayerId, Team, Winner, is_human
from matchpod.core.outcome import Outcome, OutcomeKind
from matchpod.core.played_map import MapStatus, NamedEvent, PlayedMap, map_name
from matchpod.core.presence import Presence
from matchpod.core.timers import Alarm, Timers, to_ms

ROSTER_INCOMPLETE = "Match canceled: not all players joined in time"
"""What the players who did come read when they are kicked."""


class Phase(StrEnum):
    """Where a match stands."""

    WARMUP = "warmup"
    """A map waits for its players."""
    STARTING = "starting"
    """Play was asked for; the map does not count yet."""
    LIVE = "live"
    """The current map counts."""
    BETWEEN_MAPS = "between_maps"
    """A map is over, the series goes on; the next map is loading or waits for its players."""
    OVER = "over"
    """The match has its outcome; final."""


class Trigger(StrEnum):
    """What can move a match to another phase."""

    ROSTER_READY = "roster_ready"
    """All listed players are in the game and on their sides."""
    ROSTER_BROKEN = "roster_broken"
    """A listed player left before the map was live."""
    MAP_LIVE = "map_live"
    """The server began a map that counts, or began it anew."""
    MAP_ENDED = "map_ended"
    """A map has its final score and another one follows."""
    MAP_REOPENED = "map_reopened"
    """A backup of the map that had just ended, or that a crash had cut off, was restored."""
    SUSPENDED = "suspended"
    """The server is back in warmup although the map had not ended."""
    DECIDED = "decided"
    """The last map is over."""
    CANCELED = "canceled"
    """The match ends without a result."""


TRANSITIONS: Final[dict[tuple[Phase, Trigger], Phase]] = {
    (Phase.WARMUP, Trigger.ROSTER_READY): Phase.STARTING,
    (Phase.WARMUP, Trigger.MAP_LIVE): Phase.LIVE,
    (Phase.WARMUP, Trigger.MAP_REOPENED): Phase.LIVE,
    (Phase.WARMUP, Trigger.MAP_ENDED): Phase.BETWEEN_MAPS,
    (Phase.WARMUP, Trigger.DECIDED): Phase.OVER,
    (Phase.WARMUP, Trigger.CANCELED): Phase.OVER,
    (Phase.STARTING, Trigger.ROSTER_BROKEN): Phase.WARMUP,
    (Phase.STARTING, Trigger.MAP_LIVE): Phase.LIVE,
    (Phase.STARTING, Trigger.MAP_REOPENED): Phase.LIVE,
    (Phase.STARTING, Trigger.MAP_ENDED): Phase.BETWEEN_MAPS,
    (Phase.STARTING, Trigger.DECIDED): Phase.OVER,
    (Phase.STARTING, Trigger.CANCELED): Phase.OVER,
    (Phase.LIVE, Trigger.MAP_LIVE): Phase.LIVE,
    (Phase.LIVE, Trigger.MAP_ENDED): Phase.BETWEEN_MAPS,
    (Phase.LIVE, Trigger.DECIDED): Phase.OVER,
    (Phase.LIVE, Trigger.SUSPENDED): Phase.WARMUP,
    (Phase.LIVE, Trigger.CANCELED): Phase.OVER,
    (Phase.BETWEEN_MAPS, Trigger.ROSTER_READY): Phase.STARTING,
    (Phase.BETWEEN_MAPS, Trigger.MAP_LIVE): Phase.LIVE,
    (Phase.BETWEEN_MAPS, Trigger.MAP_REOPENED): Phase.LIVE,
    (Phase.BETWEEN_MAPS, Trigger.CANCELED): Phase.OVER,
}


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
        return [played.winner for played in self.maps if played.is_finished and played.winner is not None]

    @property
    def winner(self) -> Winner | None:
        """Who won; None while undecided, when canceled and in a deathmatch."""
        if self.outcome is None or not self.outcome.is_finished or not self.map_winners:
            return None
        return series.winner(self.settings.series_format, self.map_winners)

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
                self._tell_current_map(event)
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
        self._move(Trigger.MAP_LIVE)
        if self.current_map.is_finished:
            self.maps.append(PlayedMap.upcoming(self.settings, self.map_number))
        for player_id, connection in self.presence.connected.items():
            if connection.name:
                self.current_map.remember_name(player_id, connection.name)
        self.current_map.apply(event)
        self._count_from(now_ms)

    def _restore(self, event: RoundRestored, now_ms: int) -> None:
        is_cut_off = self.phase is not Phase.BETWEEN_MAPS and self.current_map.status is MapStatus.LIVE
        if (is_cut_off or self.phase is Phase.BETWEEN_MAPS) and self._move(Trigger.MAP_REOPENED):
            self._count_from(now_ms)
        self._tell_current_map(event)

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
        if not self.settings.match_type.has_series or series.is_decided(self.settings.series_format, self.map_winners):
            self._move(Trigger.DECIDED)
            self.outcome = Outcome(kind=OutcomeKind.FINISHED, at_ms=now_ms)
            return [EndMatch()]
        self._move(Trigger.MAP_ENDED)
        self.presence.map_ended(now_ms)
        return self._ask(now_ms)

    def _tell_current_map(self, event: GameEvent) -> None:
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

    # --- the roster ---------------------------------------------------------------------------------------------

    def _follow_roster(self, now_ms: int) -> list[Effect]:
        if self.phase is Phase.STARTING:
            if self.presence.complete_since_ms() is None:
                self._move(Trigger.ROSTER_BROKEN)
                self.asked_at_ms = None
            return []
        ready_at_ms = self._ready_at_ms()
        if ready_at_ms is None or ready_at_ms > now_ms or not self._move(Trigger.ROSTER_READY):
            return []
        return self._ask(now_ms)

    def _ready_at_ms(self) -> int | None:
        if self.phase not in (Phase.WARMUP, Phase.BETWEEN_MAPS):
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
                return self.cancel(CancelReason.ALL_PLAYERS_LEFT, now_ms)
            case Alarm.IDLE:
                return self.cancel(CancelReason.IDLE_TIMEOUT, now_ms)
            case Alarm.MAX_DURATION:
                return self.cancel(CancelReason.MAX_DURATION_EXCEEDED, now_ms)
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
