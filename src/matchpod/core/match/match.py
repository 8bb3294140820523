"""Run the state machine of a match over game events and time.

`now_ms` is our clock and drives the alarms; `at_ms` of an event is the server's clock and gives times and durations.
"""

# RULES
# - Every phase change is looked up in TRANSITIONS by phase and trigger; an unknown pair changes nothing.
# - With a roster, play is started once all listed players have entered the map. Without one, the game starts play.
#   In modes with a series, all players must also have joined a side, or the time to choose one must be over.
#   A map that goes live always counts, even if its start was not requested.
# - If the caller turned automatic start off, each map starts when its players are ready or a person orders the start.
#   If the map is not started within twice the time to join after all players have entered, the match is canceled.
# - Players who are disconnected by a map change or a server restart do not count as having left.
# - A map that loads during play does not end the current map: the report of the current map's end may still arrive.
# - If a listed player leaves while no map is live, the time to join starts again.
#   It starts at that moment or when the next map loads, and stops when all listed players have entered the map.
#   If a client is still loading when the time to join ends, the match waits for it, at most for the load time.
#   After lost lines it is unknown who is connected, so the alarm waits for the console's list of players.
# - If the caller chose a forfeit for no-shows, a team wins if it is the only complete team when the time to join ends.
#   If the server was silent or replaced during that time, or lines were lost, the match is canceled instead.
# - Timeouts are alarms. The earliest due alarm fires first, so a late tick has the same effect as a punctual one.
# - While a demo is recorded, timeouts between the end of a map and the next map are longer by the GOTV delay and 30 s.
#   During this time no map change is requested again, because it would cut the recording short.
# - If log lines about the end of a map were lost, the map is over once the server is on a later map of the series,
#   or once the plugin reports the end of the series.
#   Such a map keeps its last known score, and has a winner only if the plugin's reports determine the winner.
#   A series with such a map ends when all maps are over, or when reports or known winners decide the series.
# - An action that changes the roster, extends the time to join or ends the match does so on request, if still possible.
#   Most actions are done once the server's log or its plugin confirms them, and fail without confirmation in time.
#   See `match_actions`.
# - A person may order the start: play begins without the listed players who are not connected.
#   The match waits for such a player again only after they have connected.
#   An ordered start is not revoked when players leave.
# - A team may forfeit: the match ends with the score so far, and a live map ends without a winner.
#   A forfeit has no effect once play has decided the match, even if the report of the end is still missing.
# - A match whose server logs ten times as many kills as its settings allow is canceled.
# - A match ends once. After its end it returns no effects, and applies only late plugin reports of MVPs and shots.

from __future__ import annotations

import msgspec

from cs2_protocol.game import Team, is_human
from matchpod.core.anticheat.detection import Detection, add_detection
from matchpod.core.anticheat.detectors import Detectors
from matchpod.core.effects import (
    CancelMatch,
    CancelReason,
    Effect,
    EndMatch,
    Kick,
    LoadMap,
    SendAction,
    SendRoster,
    StartPlay,
)
from matchpod.core.events import (
    COMBAT_EVENTS,
    CheatSuspected,
    GameEvent,
    LiveReported,
    LogGap,
    MapEnded,
    MapLive,
    MapLoading,
    NamedEvent,
    ResultReported,
    RoundRestored,
    RoundStarted,
    ServerRestarted,
    ShotsCounted,
    WarmupBegan,
)
from matchpod.core.match.actions import ActionAnswer, ActionRecord, ActionRequest, ActionType, ServerVerdict
from matchpod.core.match.alarms import Alarm
from matchpod.core.match.match_actions import DECIDED, NOT_CONFIRMED, REFUSED, ROSTER_ACTIONS, MatchActions
from matchpod.core.match.phases import TRANSITIONS, MatchPhase, Trigger
from matchpod.core.match.played_map import MapStatus, PlayedMap, map_name, unknown_maps
from matchpod.core.match.presence import Presence
from matchpod.core.match.reported_series import Report, ReportedSeries
from matchpod.core.match.roster import Roster, RosterRole
from matchpod.core.match.series import SeriesRules
from matchpod.core.match.timers import Timers, to_ms
from matchpod.core.model import GameSettings, OnNoShow
from matchpod.core.outcome import Outcome

__all__ = ("ROSTER_INCOMPLETE", "TRANSITIONS", "Match", "MatchPhase", "Trigger")

ROSTER_INCOMPLETE = "Match canceled: not all players joined in time"
"""Kick reason shown to the players who joined."""


class Match(MatchActions, kw_only=True):
    """The state machine of a match. It applies events, fires alarms, and returns the resulting effects."""

    @classmethod
    def create(cls, settings: GameSettings, created_at_ms: int, timers: Timers | None = None) -> Match:
        """Return a new match that waits for its players."""
        return cls(
            settings=settings,
            created_at_ms=created_at_ms,
            presence=Presence(roster=Roster.of(settings)),
            maps=[PlayedMap.upcoming(settings, 1)],
            watch=Detectors.of(settings),
            reported=ReportedSeries(rules=SeriesRules.of(settings)),
            timers=timers or Timers.of(settings),
        )

    def set_allocated(self, at_ms: int, *, was_pending: bool = False) -> None:
        """Record when the server of the match was allocated, and whether the match had to wait for it. Idempotent."""
        self.allocated_at_ms, self.was_pending = at_ms, was_pending

    def apply(self, event: GameEvent, now_ms: int) -> list[Effect]:
        """Apply an event and return the resulting effects."""
        if type(event) in COMBAT_EVENTS:
            return self._apply_combat(event, now_ms) if self.phase is MatchPhase.LIVE else []
        if self.phase is MatchPhase.OVER or isinstance(event, ShotsCounted):
            self._apply_late(event)
            return []
        effects: list[Effect] = [*self.presence.apply(event, now_ms)]
        match event:
            case MapLive():
                self._go_live(event, now_ms)
            case MapEnded():
                effects += self._end_map(event, now_ms)
            case RoundRestored():
                effects += self._restore(event, now_ms)
            case MapLoading() if self.phase is MatchPhase.BETWEEN_MAPS:
                self.asked_at_ms = self.roster_broken_ms = None  # the time to join starts again for all players
            case WarmupBegan():
                self.knife.end(self.map_number)
                self._move(Trigger.SUSPENDED)
            case CheatSuspected():
                self._add_detection(event)
            case LogGap() | ServerRestarted():
                self.disturb(now_ms)
                self._apply_to_current_map(event, now_ms)
            case _:
                effects += self._apply_report(event, now_ms) if isinstance(event, Report) else []
                self._apply_to_current_map(event, now_ms)
        for found in self.watch.apply(event):
            self._add_detection(found)
        effects += self._check_roster(now_ms)
        self._track_roster(now_ms)
        if self.open_actions:
            self._observe_actions(event, now_ms)
        return effects

    def request_action(self, action: ActionRequest, now_ms: int) -> list[Effect]:
        """Begin a requested action. It fails immediately if it is no longer possible."""
        if action.id in self.actions:
            return []
        if (found := self.obstacle_to(action)) is not None:
            self._refuse_action(action, found.text, now_ms)
            return []
        record = self._add_action(action, now_ms)
        effects: list[Effect] = [SendAction(action.id)]
        match action.type:
            case ActionType.EXTEND_JOIN:
                self.extra_join_ms += to_ms(action.seconds or 0)
                self._finish_action(record)
                return []
            case ActionType.START:
                return [*self.start(now_ms), *effects]
            case ActionType.FORFEIT if action.winner is not None:
                if ended := self.forfeit(action.winner, now_ms):
                    return ended
                self._finish_action(record, DECIDED)
                return []
            case ActionType.ADD_PLAYER | ActionType.REMOVE_PLAYER | ActionType.REPLACE_PLAYER:
                effects += self._change_roster(record, now_ms)
                if self._is_carried_out(record):
                    self._finish_action(record)
            case _:
                pass
        return effects

    def answer_action(self, answer: ActionAnswer, now_ms: int) -> list[Effect]:
        """Apply the server's answer to an action."""
        record = self.open_action(answer.action_id)
        if record is None:
            return []
        match answer.verdict:
            case ServerVerdict.REFUSED:
                return self._fail_action(record, answer.detail or REFUSED, now_ms)
            case ServerVerdict.LATER:
                record.refusal = answer.detail
            case ServerVerdict.ACCEPTED:
                record.is_answered = True
                if self._is_carried_out(record):
                    self._finish_action(record)
        return []

    def resume(self, now_ms: int) -> None:
        """Record that log lines and commands may have been lost. An unconfirmed start is soon requested again."""
        self.presence.mark_doubtful(now_ms)
        if self.phase is MatchPhase.STARTING and self.asked_at_ms is not None:
            self.asked_at_ms = min(self.asked_at_ms, now_ms - to_ms(self.timers.ask_again_s))

    def disturb(self, now_ms: int) -> None:
        """Record that players may have been unable to join, or that log lines about joining may have been lost."""
        self.disturbed_ms = now_ms

    def tick(self, now_ms: int) -> list[Effect]:
        """Fire the earliest alarm if it is due. Call again until `next_deadline_ms` is in the future."""
        if self.phase is MatchPhase.OVER:
            return []
        due_ms, alarm = min(self.alarms())
        return self._fire(alarm, now_ms) if due_ms <= now_ms else []

    def cancel(self, reason: CancelReason, now_ms: int) -> list[Effect]:
        """Cancel the match, unless it has already ended."""
        return self._cancel(CancelMatch(reason), now_ms)

    def start(self, now_ms: int) -> list[Effect]:
        """Start play without the missing players. No effects if no player is connected or no map waits to start."""
        if not self.presence.connected or self.presence.is_map_over or self._are_all_maps_over():
            return []
        if not self._move(Trigger.START_ORDERED):
            return []
        self.presence.excuse_absent()
        self.is_start_ordered, self.roster_broken_ms = True, None
        return self._request_next_step(now_ms)

    def forfeit(self, winner: Team, now_ms: int) -> list[Effect]:
        """End the match with this winner. No effects if it is over or already decided, or is a deathmatch."""
        is_cut = self.current_map.status is MapStatus.LIVE
        is_decided = self.reported.over_since_ms is not None or self._are_all_maps_over()
        if is_decided or (is_cut and self.current_map.has_final_score) or not self.current_map.is_scored:
            return []
        if not self._move(Trigger.DECIDED):
            return []
        self.current_map.cut() if is_cut else self.current_map.cancel()
        self.outcome = Outcome(at_ms=now_ms, forfeited_to=winner)
        self._end_actions()
        return [EndMatch()]

    def _apply_combat(self, event: GameEvent, now_ms: int) -> list[Effect]:
        if self.current_map.apply_combat(event):
            return self.cancel(CancelReason.LOG_QUOTA_EXCEEDED, now_ms)
        for found in self.watch.apply(event):
            self._add_detection(found)
        return []

    # --- events -------------------------------------------------------------------------------------------------

    def _move(self, trigger: Trigger) -> bool:
        """Change the phase as the transition table defines for this trigger; False if it defines no transition."""
        target = TRANSITIONS.get((self.phase, trigger))
        if target is None:
            return False
        self.phase = target
        return True

    def _go_live(self, event: MapLive, now_ms: int) -> None:
        self._sync_map_number(event.map_name)
        if self._are_all_maps_over():
            return  # all maps have been played, but the plugin has not reported the winner yet
        if self.knife.begins(event, self.settings, self.map_number, self.reported):
            if not self.settings.auto_start:
                self._move(Trigger.START_ORDERED)  # the players were ready
            return
        self.reported.begin_map(self.settings, self.maps, is_cut=self.presence.is_cut)
        self._move(Trigger.MAP_LIVE)
        for player_id, connection in self.presence.connected.items():
            if connection.name:
                self.current_map.remember_name(player_id, connection.name)
        self.current_map.apply(event)
        self._mark_live(now_ms)

    def _restore(self, event: RoundRestored, now_ms: int) -> list[Effect]:
        self.reported.discard_end(self.current_map.number)
        is_cut_off = self.phase is not MatchPhase.BETWEEN_MAPS and self.current_map.status is MapStatus.LIVE
        if (is_cut_off or self.phase is MatchPhase.BETWEEN_MAPS) and self._move(Trigger.MAP_REOPENED):
            self._mark_live(now_ms)
        self._apply_to_current_map(event, now_ms)
        return [SendRoster()] if self.is_plugin_list_outdated else []

    def _mark_live(self, now_ms: int) -> None:
        self.extra_join_ms = 0
        self.presence.is_map_over = self.is_start_ordered = False
        self.asked_at_ms = self.start_awaited_ms = None
        self.live_at_ms = now_ms
        self.first_live_at_ms = now_ms if self.first_live_at_ms is None else self.first_live_at_ms

    def _end_map(self, event: MapEnded, now_ms: int) -> list[Effect]:
        if self.current_map.status is not MapStatus.LIVE:
            return []
        self.current_map.apply(event)
        is_won = not self.settings.match_type.has_series or self.reported.is_decided(self.maps)
        is_known = not unknown_maps(self.maps)
        if (is_known and is_won) or (not is_known and self.reported.accounts_for(self.maps)):
            return self._finish(now_ms)
        self._move(Trigger.MAP_ENDED)
        self.presence.map_ended(now_ms)
        if is_won or self._are_all_maps_over():
            self.reported.over_since_ms = now_ms  # wait for the plugin's report of the final score
            return []
        must_wait = not is_known and not self.roster.is_open and self.reported.may_be_won(self.maps)
        return [] if must_wait else self._request_next_step(now_ms)

    def _finish(self, now_ms: int) -> list[Effect]:
        self.reported.infer_results(self.maps)
        self._move(Trigger.DECIDED)
        self.outcome = Outcome(at_ms=now_ms)
        self._end_actions()
        return [EndMatch()]

    def _apply_to_current_map(self, event: GameEvent, now_ms: int) -> None:
        if isinstance(event, RoundStarted):
            self.reported.extend_wait(now_ms)
        if (start := self.knife.apply(event, self.map_number)) is not None:
            self._go_live(start, now_ms)
        # Events before play do not count. Between maps, late plugin reports count until the next map loads.
        is_between = self.phase is MatchPhase.BETWEEN_MAPS and self.presence.is_map_over
        if self.phase is not MatchPhase.LIVE and not is_between:
            return
        if not (isinstance(event, NamedEvent) and self.presence.is_outsider(event.player_id)):
            self.current_map.apply(event)

    def _apply_late(self, event: GameEvent) -> None:
        """Apply a plugin report that counts even if it arrives after the end of its map."""
        if not isinstance(event, ShotsCounted):
            self.current_map.apply_after_end(event)
        elif event.map_number <= len(self.maps):
            listed = {who: shots for who, shots in event.shots.items() if not self.presence.is_outsider(who)}
            self.maps[event.map_number - 1].ledger.apply(msgspec.structs.replace(event, shots=listed))

    def _add_detection(self, event: CheatSuspected) -> None:
        player_id, current = event.player_id, self.current_map
        if not is_human(player_id) or self.presence.is_outsider(player_id):
            return
        is_next_map = current.is_finished and not self.presence.is_map_over and not self._are_all_maps_over()
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
        add_detection(self.detections, found)

    # --- maps whose end was lost --------------------------------------------------------------------------------

    def end_series(self, now_ms: int) -> list[Effect]:
        """Stop waiting for reports. End the match if all maps are over, or the reports or known winners decide it."""
        self.reported.over_since_ms = None
        if self.phase is MatchPhase.OVER:
            return []
        can_win = self.settings.match_type.has_series
        is_won = can_win and (self.reported.finalize(self.settings, self.maps) or self.reported.is_decided(self.maps))
        return self._finish(now_ms) if is_won or self._are_all_maps_over() else []

    def _sync_map_number(self, loaded: str) -> None:
        """Determine which map of the series the server is on, and end all maps before it."""
        loaded = loaded if self.presence.is_cut else ""
        number = self.reported.current_number(loaded, self.settings, self.current_map)
        self.reported.end_maps_before(number, self.settings, self.maps)

    def _apply_report(self, report: Report, now_ms: int) -> list[Effect]:
        is_live = self.phase is MatchPhase.LIVE
        if isinstance(report, ResultReported) or (isinstance(report, LiveReported) and is_live):
            self.reported.assign_number(report.map_number, self.settings, self.maps)
        if not (isinstance(report, LiveReported) and report.map_number < self.map_number + is_live):
            self.reported.apply(report, now_ms)  # not a late report of a map that is already live or over
        self.reported.infer_results(self.maps)
        is_over = self.phase is MatchPhase.BETWEEN_MAPS and self.reported.accounts_for(self.maps)
        return self._finish(now_ms) if is_over else []

    # --- the roster ---------------------------------------------------------------------------------------------

    def _check_roster(self, now_ms: int) -> list[Effect]:
        if self.phase is MatchPhase.STARTING:
            is_complete = self.is_start_ordered or self.presence.complete_since_ms() is not None
            if not is_complete and self._move(Trigger.ROSTER_BROKEN):
                self.asked_at_ms = None
            return []
        ready_at_ms = self._ready_at_ms()
        if ready_at_ms is None or ready_at_ms > now_ms:
            return []
        self._sync_map_number(self.presence.loaded_map)
        return self._request_next_step(now_ms) if self._move(Trigger.ROSTER_READY) else []

    def _track_roster(self, now_ms: int) -> None:
        """Record when the roster became incomplete, and when the match began to wait for its players to start play.

        The time at which the wait began is not reset when a player leaves and returns.
        """
        if self.start_awaited_ms is None and self._awaits_start():
            self.start_awaited_ms = now_ms
        if not self._awaits_roster():
            self.roster_broken_ms = None
        elif self.presence.absent():
            self.roster_broken_ms = now_ms if self.roster_broken_ms is None else self.roster_broken_ms
        elif not self.presence.loading():
            self.roster_broken_ms = None

    def _fail_action(self, record: ActionRecord, why: str, now_ms: int) -> list[Effect]:
        """Record why an action failed, and undo its change of the roster."""
        self._finish_action(record, why)
        if record.action.type not in ROSTER_ACTIONS:
            return []
        roster, (leaves, comes) = self.roster, record.action.moves
        if comes is not None:
            roster = roster.remove(comes)
        if leaves is not None and record.role_before is not None:
            roster = roster.add(leaves, record.role_before)
        return self._set_roster(roster, now_ms)

    def _change_roster(self, record: ActionRecord, now_ms: int) -> list[Effect]:
        roster, (leaves, comes) = self.roster, record.action.moves
        role = record.action.role or RosterRole.PLAYER
        if leaves is not None:
            role = record.role_before = roster.role_of(leaves) or role
            roster = roster.remove(leaves)
        return self._set_roster(roster if comes is None else roster.add(comes, role), now_ms)

    def _set_roster(self, roster: Roster, now_ms: int) -> list[Effect]:
        effects: list[Effect] = [*self.presence.change_roster(roster), *self._check_roster(now_ms)]
        self._track_roster(now_ms)
        return effects

    def _request_next_step(self, now_ms: int) -> list[Effect]:
        self.asked_at_ms, number = now_ms, self.map_number
        is_loaded = self.phase is MatchPhase.STARTING
        return [StartPlay(number) if is_loaded else LoadMap(number, map_name(self.settings, number))]

    # --- the clock ----------------------------------------------------------------------------------------------

    def _fire(self, alarm: Alarm, now_ms: int) -> list[Effect]:
        match alarm:
            case Alarm.JOIN:
                return self._handle_join_timeout(now_ms)
            case Alarm.ALL_LEFT:
                return self._handle_departure(now_ms)
            case Alarm.IDLE | Alarm.NOT_READY:
                return self.cancel(CancelReason.IDLE_TIMEOUT, now_ms)
            case Alarm.MAX_DURATION:
                return self.cancel(CancelReason.MAX_DURATION_EXCEEDED, now_ms)
            case Alarm.SERIES_OVER:
                return self.end_series(now_ms)
            case Alarm.READY:
                return self._check_roster(now_ms)
            case Alarm.ACTION:
                late = [record for record in self._open_actions() if record.until_ms <= now_ms]
                failed = [self._fail_action(record, record.refusal or NOT_CONFIRMED, now_ms) for record in late]
                return [effect for effects in failed for effect in effects]
            case Alarm.ASK_AGAIN:
                return self._request_next_step(now_ms)
            case Alarm.TIME_UP:
                return self._end_map(self.current_map.time_limit_end(self.settings.deathmatch_minutes or 0), now_ms)

    def _handle_departure(self, now_ms: int) -> list[Effect]:
        if self.phase is MatchPhase.LIVE and self.current_map.has_final_score:
            return self._end_map(self.current_map.unreported_end(), now_ms)  # the players left because the map is over
        return self.end_series(now_ms) or self.cancel(CancelReason.ALL_PLAYERS_LEFT, now_ms)

    def _handle_join_timeout(self, now_ms: int) -> list[Effect]:
        if not self.presence.ever_connected:
            return self.cancel(CancelReason.NO_PLAYERS_JOINED, now_ms)
        if self.first_live_at_ms is not None and (ended := self.end_series(now_ms)):
            return ended
        if (winner := self._no_show_winner(now_ms)) is not None:
            return self.forfeit(winner, now_ms)
        connected = {**self.presence.connected, **self.presence.guests}.items()
        kicks: list[Effect] = [Kick(player_id, found.user_id, ROSTER_INCOMPLETE) for player_id, found in connected]
        cancel = CancelMatch(
            CancelReason.INCOMPLETE_ROSTER,
            missing_players=self.presence.missing_of_created(),
            connected_players=self.presence.joined_of_created(),
            absent_players=self.presence.not_here() if self.presence.absent() else self.presence.loading(),
        )
        return kicks + self._cancel(cancel, now_ms)

    def _no_show_winner(self, now_ms: int) -> Team | None:
        """Return the only team that is complete when the time to join ends; None if the match must not be forfeited."""
        since_ms, load_ms = self._joining_since_ms(), to_ms(self.timers.client_load_s)
        is_disturbed = since_ms is None or (self.disturbed_ms is not None and self.disturbed_ms >= since_ms)
        if self.settings.on_no_show is not OnNoShow.FORFEIT or is_disturbed:
            return None
        here = [team for team in Team if self.presence.is_team_here(team, now_ms, load_ms=load_ms)]
        return here[0] if len(here) == 1 else None

    def _cancel(self, effect: CancelMatch, now_ms: int) -> list[Effect]:
        if not self._move(Trigger.CANCELED):
            return []
        self.current_map.cancel()
        is_complete = self.is_log_complete
        self.outcome = Outcome(at_ms=now_ms, is_log_complete=is_complete, **msgspec.structs.asdict(effect))
        self._end_actions()
        return [effect]
