"""Track the phase, round and score of a map, and emit the events of its flow.

A map is live from the first round after the last `Match_Start` outside warmup, if a human is on a side. The server
prints `Match_Start` for every restart, so a later `Match_Start`, or a status of -1 rounds, discards the previous
rounds; knife rounds need no special case. Scores come from the server and are converted from sides to teams. While the
teams' sides are uncertain, the last certain score is kept, and a map that ends has no winner unless the plugin reports
it. The end of a map needs two sources, such as `Game Over` and the score of the last round, or a plugin report and a
line that only follows the end of a match. After a timeout, a single report is accepted.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from cs2_protocol.game import PlayerId, RoundEndReason, Side
from cs2_protocol.log_lines import world_lines
from matchpod.core import events
from matchpod.core.events import GameEvent
from matchpod.core.match.played_map import is_same_map
from matchpod.core.model import GameSettings, MatchType
from matchpod.cs2.combat import Combat
from matchpod.cs2.map_end import EndReport, EndRules
from matchpod.cs2.sides import SideTracker

CONFIRM_TIMEOUT_MS = 20_000
"""Timeout in ms for the second source of a map's end. A log post takes less than a second, unless it has to be sent
again."""

END_BYTES = 2_000
END_PLAYER_BYTES = 500
"""A loss of at most END_BYTES, plus this number of bytes per player, cannot be from two rounds. In four real matches,
the end of a map has 1,300 to 4,800 bytes. A further round would add statistics and money of each player, and the lines
of its end."""

MAX_ROUNDS = 1000
"""Maximum number of rounds per map. No match is longer; a larger number in a log is invalid, and would cost memory."""

_NO_SCORE = (0, 0)
_REASONS = {reason.value: reason for reason in RoundEndReason}
_SURRENDERS = (RoundEndReason.CTS_SURRENDER, RoundEndReason.TERRORISTS_SURRENDER)
_TIMEOUT_VOTE = "StartTimeOut"
_TIMEOUTS = {"TimeOutCTs": Side.CT, "TimeOutTs": Side.T}


class MapPhase(StrEnum):
    UNKNOWN = "unknown"
    """Reading began in the middle of the log; the next status line shows the phase."""
    WARMUP = "warmup"
    """Warmup: events do not count."""
    ARMED = "armed"
    """The match was started or restarted; the next round is round 1."""
    LIVE = "live"
    """Live: events count toward score and statistics."""
    OVER = "over"
    """Over: events do not count until another map is loaded, or a backup of this map is restored."""


class Loss(msgspec.Struct, frozen=True):
    """Lost log lines: when the loss was first noticed, and its size in bytes; None if the size is unknown."""

    at_ms: int
    size: int | None


class MapFlow(msgspec.Struct):
    """The state of the current map. `is_map_open` is True between the events MapLive and MapEnded of `open_map`."""

    sides: SideTracker
    combat: Combat
    is_deathmatch: bool = False
    phase: MapPhase = MapPhase.UNKNOWN
    map_name: str = ""
    is_map_open: bool = False
    open_map: str = ""
    is_warmup: bool | None = None
    """True in warmup; None if this is unknown, as after a map load."""
    is_warmup_reported: bool = False
    is_restoring: bool = False
    awaits_start: bool = False
    """True if the current play does not belong to the match, which begins with the next `Match_Start` or map load."""
    match_start_ms: int = 0
    rounds_played: int = 0
    scores: list[tuple[int, int]] = msgspec.field(default_factory=lambda: [_NO_SCORE])
    """The scores by team of this map; the index is the number of rounds played."""
    is_freeze: bool = False
    is_freeze_time: bool = False
    """True from the start of freeze time until the next round begins."""
    is_freeze_cut: bool = False
    """True if lines of the current freeze time were lost, or if its start was not seen."""
    is_start_certain: bool = False
    """True if the sides were certain at the start of the current round."""
    freeze_score: tuple[int, int] | None = None
    """The score by side in the status line of the current freeze time, or the latest score while sides are in doubt."""
    end_rules: EndRules = msgspec.field(default_factory=EndRules)
    side_names: dict[Side, str | None] = {}
    """The team names by side, as printed since the map was loaded or last went live. Earlier names may belong to the
    other team."""
    is_first_assumed: bool = False
    """True if the log begins in a freeze time, and the following round is assumed to be the first. The score after this
    round shows whether that is right."""
    unseen_start_ms: int | None = None
    """When the current round began, as long as no player has been seen on a side."""
    surrendered_to: Side | None = None
    timeout_callers: dict[Side, PlayerId] = {}
    """Per side, the player who called a timeout by vote, if the timeout has not begun yet."""
    loss: Loss | None = None
    """The lines lost since the score was last printed, or None. The map may have ended in lost lines."""
    is_restart_asked: bool = False
    """True if a restart was announced, to which the next `Match_Start` belongs."""
    end_report: EndReport | None = None
    end_received_ms: int | None = None
    """When the pending `end_report`, which waits for a second source, was received; None if there is none."""

    @staticmethod
    def of(settings: GameSettings) -> MapFlow:
        """Return the flow of a server that has not sent anything yet."""
        flow = MapFlow(SideTracker.of(settings), Combat(is_free_for_all=settings.is_free_for_all))
        flow.is_deathmatch = settings.match_type is MatchType.DEATHMATCH
        flow.end_rules = EndRules.of(settings)
        return flow

    def restart(self) -> None:
        """Discard the state of the map and the players, because a new server process has started."""
        self.phase = MapPhase.UNKNOWN
        self.is_warmup, self.is_restoring, self.unseen_start_ms = None, False, None
        self.loss, self.is_restart_asked, self.is_freeze_cut = None, False, True
        self.rounds_played = self.match_start_ms = 0
        self.sides.clear_sides()

    def on_lost_lines(self, at_ms: int, size: int) -> None:
        """Handle lost lines, which may contain the start or end of the match, or a change of sides.

        `size` is the number of lost bytes; 0 if it is unknown.
        """
        self.awaits_start, self.freeze_score, self.unseen_start_ms = False, None, None
        self.is_restoring, self.is_freeze_cut = False, True
        before = self.loss or Loss(at_ms, 0)
        self.loss = Loss(before.at_ms, before.size + size if size and before.size is not None else None)
        if self.is_restart_asked and self.phase is MapPhase.LIVE:
            self.phase = MapPhase.ARMED
        self.sides.mark_doubtful()

    # --- lines -------------------------------------------------------------------------------------------------

    def set_side(self, at_ms: int, player_id: PlayerId, side: Side | None, out: list[GameEvent]) -> None:
        """Set the side of a player; None removes them from both sides. In a deathmatch the map may go live."""
        self.sides.set_side(player_id, side)
        self.start_deathmatch(at_ms, out)

    def on_map_loading(self, at_ms: int, line: world_lines.LoadingMap, out: list[GameEvent]) -> None:
        """Handle a map load. It also confirms a pending report of the map's end."""
        self._move_past_end(at_ms, out)
        self.sides.clear_sides()
        self.side_names = {}
        self.phase, self.map_name = MapPhase.WARMUP, line.map_name
        self.is_warmup, self.is_restoring, self.awaits_start = None, False, False
        self.loss, self.is_restart_asked = None, False
        self.unseen_start_ms = None
        self.rounds_played = self.match_start_ms = 0
        out.append(events.MapLoading(at_ms, line.map_name))

    def on_world_trigger(self, at_ms: int, line: world_lines.WorldTriggered, out: list[GameEvent]) -> None:
        """Handle the start of the match or of a round, a restore, and the start or end of warmup."""
        match line.trigger:
            case "Match_Start":
                self._match_start(at_ms, line.map_name or self.map_name, out)
            case "Match_Reloaded":
                self.is_restoring = True
            case "Warmup_Start":
                self.is_warmup = True
            case "Warmup_End":
                self.is_warmup = False
            case "Round_Start":
                self._round_start(at_ms, out)
            case trigger if trigger.startswith("Restart_Round_"):
                self.is_restart_asked = True

    def on_freeze(self, at_ms: int, _line: world_lines.FreezeStarted, out: list[GameEvent]) -> None:
        """Handle the start of freeze time. At halftime, all players have changed sides by this time."""
        self.is_freeze = self.is_freeze_time = True
        self.is_freeze_cut = self.is_start_certain = False
        self.freeze_score = self.unseen_start_ms = None
        if self.phase is MapPhase.LIVE and not self.is_restoring:
            self._vote(at_ms, out)

    def on_team_name(self, _at_ms: int, line: world_lines.TeamPlaying, _out: list[GameEvent]) -> None:
        """Record the team name on a side. It does not show changes of sides: after halftime the old name is kept."""
        if line.name and self.side_names.get(line.side.other) == line.name:
            del self.side_names[line.side.other]  # outdated: the team has changed sides
        self.side_names[line.side] = line.name

    def on_round_end(self, at_ms: int, line: world_lines.RoundEndNotice, out: list[GameEvent]) -> None:
        """Handle the notice that decides a round, and its new score."""
        if self.is_restoring or self.is_warmup or self.phase in (MapPhase.OVER, MapPhase.WARMUP):
            return
        won_ct, won_t = line.side is Side.CT, line.side is Side.T
        before = (max(line.ct - won_ct, 0), max(line.t - won_t, 0))
        if self.is_first_assumed and before != _NO_SCORE:
            self.phase, self.is_map_open = MapPhase.UNKNOWN, False
        if self.phase is not MapPhase.LIVE or sum(before) < sum(self.freeze_score or self.scores[-1]):
            self._resume_at(at_ms, self._rounds_until(before), before, out)
            if self.phase is not MapPhase.LIVE:
                return  # the map has ended, and the round belongs to another match
        reason = _REASONS.get(line.notice, RoundEndReason.UNKNOWN)
        if (bomb_end := self.combat.bomb_end(at_ms, reason)) is not None:
            out.append(bomb_end)
        if self.is_start_certain and self.sides.by_team(*before) == self.scores[-1]:
            self.sides.is_doubtful = False  # no round was lost, so the teams cannot have changed sides
        self._vote(at_ms, out, is_seen_only=True)
        self._follow_score(at_ms, before, out)
        # The score also counts rounds whose lines were lost, except draws.
        self.rounds_played = min(max(self.rounds_played + 1, line.ct + line.t), MAX_ROUNDS)
        self.is_first_assumed = self.is_freeze = self.is_freeze_time = self.is_start_certain = False
        self.freeze_score = self.unseen_start_ms = self.loss = None
        self.is_restart_asked = False
        score = self._record_score(line.ct, line.t)
        winner = None if line.side is None or self.sides.is_doubtful else self.sides.team_on(line.side)
        if reason in _SURRENDERS:
            self.surrendered_to = line.side
        self.sides.seen.clear()
        is_last = self.end_rules.is_end(score)
        out.append(events.RoundDecided(at_ms, self.rounds_played, winner, line.side, reason, *score, is_last=is_last))

    def on_score(self, at_ms: int, line: world_lines.MatchScore, out: list[GameEvent]) -> None:
        """Handle a status line of the match: the score and the number of rounds played."""
        if self.awaits_start and line.rounds_played >= 0:
            return
        if self._is_next_map(line.map_name):
            self.on_map_loading(at_ms, world_lines.LoadingMap(line.map_name), out)
        self._set_map_name(line.map_name or self.map_name)
        if self.is_restoring:
            self._resume_at(at_ms, line.rounds_played, (line.ct, line.t), out)
        elif line.rounds_played < 0:
            self._enter_warmup(at_ms, out)
        elif self.phase is not MapPhase.OVER:
            self.is_warmup = False
            self._apply_live_score(at_ms, line, out)

    def on_game_over(self, at_ms: int, line: world_lines.GameOver, out: list[GameEvent]) -> None:
        """Handle `Game Over`. It ends the map immediately if a second source agrees."""
        if self.phase is MapPhase.OVER or self.awaits_start:
            return
        self._set_map_name(self.map_name or line.map_name)
        by_side = (line.ct, line.t)
        is_live, self.is_map_open = self.phase is MapPhase.LIVE, self._is_open_here()
        if is_live:
            self._vote(at_ms, out, is_seen_only=True)
            self._follow_score(at_ms, by_side, out)
        is_last_score = self.rounds_played > 0 and self.sides.by_team(*by_side) == self.scores[-1]
        earlier = self.end_report
        self.end_report = EndReport(at_ms=at_ms, by_side=by_side, by_team=earlier.by_team if earlier else None)
        if (is_live and (is_last_score or self.is_deathmatch)) or earlier is not None:
            self.confirm_end(at_ms, out)

    def on_pause(self, at_ms: int, line: world_lines.PauseChanged, out: list[GameEvent]) -> None:
        """Handle the start or end of a pause."""
        if self.phase not in (MapPhase.LIVE, MapPhase.ARMED):
            return
        if line.is_enabled:
            caller = self.timeout_callers.pop(side, None) if (side := _TIMEOUTS.get(line.by)) else None
            out.append(events.Paused(at_ms, line.by, caller))
        else:
            out.append(events.Unpaused(at_ms, line.by))

    def on_vote(self, _at_ms: int, line: world_lines.Vote, _out: list[GameEvent]) -> None:
        """Record who called a successful vote for a timeout. The pause begins with the next freeze time."""
        player = line.player
        if line.step == "succeeded" and line.issue.strip() == _TIMEOUT_VOTE and player.side and player.player_id:
            self.timeout_callers[player.side] = player.player_id

    def on_unpause(self, at_ms: int, _line: world_lines.MatchUnpaused, out: list[GameEvent]) -> None:
        """Handle the end of a pause."""
        if self.phase in (MapPhase.LIVE, MapPhase.ARMED):
            out.append(events.Unpaused(at_ms, ""))

    # --- plugin reports and timeouts ---------------------------------------------------------------------------

    def report_end(self, report: EndReport, out: list[GameEvent]) -> None:
        """Apply the plugin's report that the map is over."""
        waiting = self.end_report
        if waiting is not None and waiting.by_side is not None:
            self.end_report = msgspec.structs.replace(waiting, by_team=report.by_team, winner=report.winner)
            self.confirm_end(report.at_ms, out)
        elif self.is_map_open and (waiting is None or waiting.by_team is None):
            self.end_report = report
            if self.phase is not MapPhase.LIVE:  # the server has left the map, which serves as the second source
                self.confirm_end(report.at_ms, out)

    def next_deadline_ms(self) -> int | None:
        """Return the deadline at which `accept_unconfirmed_end` must be called; None if no report is pending."""
        report, received_ms = self.end_report, self.end_received_ms
        return None if report is None else (report.at_ms if received_ms is None else received_ms) + CONFIRM_TIMEOUT_MS

    def stamp_end_report(self, now_ms: int) -> None:
        """Record on our clock when a pending report was received, because the server's clock may be wrong."""
        if self.end_report is None:
            self.end_received_ms = None
        elif self.end_received_ms is None:
            self.end_received_ms = now_ms

    def accept_unconfirmed_end(self, now_ms: int, out: list[GameEvent]) -> None:
        """End the map on a single report of its end, if the deadline for a second source has passed."""
        due_ms = self.next_deadline_ms()
        if self.end_report is not None and due_ms is not None and now_ms >= due_ms:
            self.confirm_end(self.end_report.at_ms, out)

    def confirm_end(self, at_ms: int, out: list[GameEvent]) -> None:
        """End the map with its pending report, if any, because a second source agreed or the timeout has passed."""
        report, self.end_report = self.end_report, None
        if report is None or not (self.is_map_open or self.sides.has_humans):
            return
        if not self.is_map_open:
            self.scores = [_NO_SCORE]
            self.sides.decide_start_side(self.side_names)
        if report.by_side is not None and report.by_team in (report.by_side, report.by_side[::-1]):
            # The plugin identifies teams by name: its report may swap the log's score, but not change its numbers.
            self.sides.follow_score(report.by_side, report.by_team)
        by_team = report.by_team if report.by_side is None else self._by_team(*report.by_side)
        score = by_team or report.score_of_winner(self.scores[-1])
        if score is None:
            return
        if not self.is_map_open:
            self._go_live(at_ms, out, rounds_played=min(sum(score), MAX_ROUNDS))
        is_last_score = self.phase is MapPhase.LIVE and score == self.scores[-1]
        if self.phase is MapPhase.LIVE:
            self.phase = MapPhase.OVER
        self.is_map_open = False
        winner = None if self.surrendered_to is None else self.sides.team_on(self.surrendered_to)
        is_certain = winner is None and (report.by_side is None or score in (report.by_side, report.by_side[::-1]))
        is_known = is_certain or not self.sides.is_doubtful
        has_score = is_known and (report.by_side or report.by_team) is not None
        is_complete = self.is_deathmatch or (is_last_score and has_score)
        names = self.sides.names_by_team(self.side_names)
        out.append(events.MapEnded(report.at_ms, self.map_name, *score, is_complete, winner, is_known, *names))

    # --- transitions -------------------------------------------------------------------------------------------

    def _match_start(self, at_ms: int, map_name: str, out: list[GameEvent]) -> None:
        self.awaits_start = False
        if self._is_next_map(map_name):
            self.on_map_loading(at_ms, world_lines.LoadingMap(map_name), out)
        self._move_past_end(at_ms, out)
        if self.phase is not MapPhase.OVER:
            self.phase, self.match_start_ms, self.map_name = MapPhase.ARMED, at_ms, map_name
            if self.is_warmup is False:  # the server prints `Match_Start` in warmup too
                self.start_deathmatch(at_ms, out)

    def start_deathmatch(self, at_ms: int, out: list[GameEvent]) -> bool:
        """Make a restarted deathmatch live if a human is on a side, even without a status line. True if it is live."""
        is_ready = self.phase is MapPhase.ARMED and not self.is_warmup and self.sides.has_humans
        if self.is_deathmatch and is_ready:
            self._go_live(at_ms, out)
        return self.phase is MapPhase.LIVE

    def _round_start(self, at_ms: int, out: list[GameEvent]) -> None:
        if self.end_report is not None and at_ms > self.end_report.at_ms:
            self.end_report = None  # play continues, so the reported end was wrong
        sides, is_certain, is_cut = self.sides, self.sides.is_certain, self.is_freeze_cut
        self.is_freeze_time = self.is_freeze_cut = False
        is_new = self.phase is MapPhase.UNKNOWN and not (self.is_deathmatch or self.is_map_open or self.awaits_start)
        if (is_new or self.phase is MapPhase.ARMED) and not self.is_warmup:
            if sides.has_humans:
                self._go_live(at_ms, out)
                self.is_first_assumed = is_new
            else:
                self.unseen_start_ms = at_ms
        if self.phase is not MapPhase.LIVE:
            return
        self._vote(at_ms, out, is_seen_only=True)
        self.combat.new_round()
        self.is_start_certain = not sides.is_doubtful
        number, unseen = self.rounds_played + 1, tuple(sides.unproven)
        out.append(
            events.RoundStarted(at_ms, number, *sides.lineups(), sides.team1_side, is_certain, is_cut, unseen=unseen)
        )

    def start_unseen_round(self, out: list[GameEvent]) -> None:
        """Start the current round retroactively, now that a player has been seen on a side."""
        start_ms, self.unseen_start_ms = self.unseen_start_ms, None
        if start_ms is not None and self.phase in (MapPhase.UNKNOWN, MapPhase.ARMED):
            self._round_start(start_ms, out)

    def _vote(self, at_ms: int, out: list[GameEvent], *, is_seen_only: bool = False) -> None:
        """Determine by a vote of the players which side each team is on.

        With `is_seen_only`, only recently seen players vote. This detects a change of sides whose lines were lost.
        """
        was_doubtful = self.sides.is_doubtful
        has_swapped = self.sides.vote(is_seen_only=is_seen_only)
        if has_swapped:
            out.append(events.SidesSwapped(at_ms, self.sides.team1_side))
        if self.freeze_score is not None and (has_swapped or was_doubtful):
            self._record_score(*self.freeze_score)

    def _apply_live_score(self, at_ms: int, line: world_lines.MatchScore, out: list[GameEvent]) -> None:
        by_side, rounds = (line.ct, line.t), min(line.rounds_played, MAX_ROUNDS)
        if self.phase is MapPhase.LIVE and rounds >= self.rounds_played:
            self.loss = None
            self._follow_score(at_ms, by_side, out)
            self.rounds_played, self.freeze_score = rounds, by_side if self.is_freeze else None
            self._record_score(*by_side)
        elif self.phase is MapPhase.LIVE or rounds > 0:
            self._resume_at(at_ms, rounds, by_side, out)  # the lines of a restore, or of some rounds, were lost
        else:
            if self.phase is not MapPhase.ARMED:
                self.phase, self.match_start_ms = MapPhase.ARMED, at_ms
            self.start_deathmatch(at_ms, out)

    def _resume_at(self, at_ms: int, rounds: int, by_side: tuple[int, int], out: list[GameEvent]) -> None:
        """Continue the map after `rounds` rounds, because a backup was restored or lines were lost."""
        kept, self.is_start_certain = min(max(rounds, 0), MAX_ROUNDS), False
        if kept == 0 and not self.is_restoring and self._end_unseen(at_ms, out):
            return
        is_known = self._is_open_here() or (self.phase is MapPhase.OVER and self.is_restoring)
        may_be_new = not self.is_restoring and self.phase in (MapPhase.WARMUP, MapPhase.ARMED)
        if may_be_new and kept < len(self.scores):
            is_known = is_known and self.scores[kept] in (by_side, by_side[::-1])
        is_inferred, self.is_restoring, self.end_report = not self.is_restoring, False, None
        if not is_known or (kept == 0 and self.phase is not MapPhase.LIVE):
            self._go_live(at_ms, out, rounds_played=kept, by_side=by_side)
            return
        self.sides.vote()
        if kept < len(self.scores):
            self.sides.follow_score(by_side, self.scores[kept])
        self.rounds_played = kept
        score = self._record_score(*by_side)
        out.append(events.RoundRestored(at_ms, kept, *score, is_inferred, may_be_new=may_be_new))
        self.phase, self.is_map_open, self.is_warmup_reported = MapPhase.LIVE, True, False
        self.surrendered_to = self.loss = None
        self.combat.new_round()

    def _enter_warmup(self, at_ms: int, out: list[GameEvent]) -> None:
        """Handle a status of -1 rounds, which means warmup. It also confirms a pending report of the map's end."""
        self._move_past_end(at_ms, out)
        if self.phase is MapPhase.OVER or self._end_unseen(at_ms, out):
            return
        self.phase = MapPhase.WARMUP
        if self.is_map_open and not self.is_warmup_reported:
            self.is_warmup_reported = True
            out.append(events.WarmupBegan(at_ms))

    def _go_live(
        self, at_ms: int, out: list[GameEvent], *, rounds_played: int = 0, by_side: tuple[int, int] = _NO_SCORE
    ) -> None:
        if rounds_played == 0 and self._end_unseen(at_ms, out):
            return
        self.sides.decide_start_side(self.side_names)
        self.sides.lineups()
        self.phase, self.is_map_open, self.open_map, self.is_warmup_reported = MapPhase.LIVE, True, self.map_name, False
        self.end_report = self.surrendered_to = self.loss = None
        self.is_start_certain = self.is_restart_asked = False
        self.rounds_played, self.scores = rounds_played, [_NO_SCORE]
        self.combat.new_round()
        since_ms = self.match_start_ms if rounds_played == 0 and self.match_start_ms else at_ms
        score, names = self._record_score(*by_side), self.sides.names_by_team(self.side_names)
        self.side_names = {}
        out.append(events.MapLive(at_ms, self.map_name, since_ms, self.sides.team1_side, *names, rounds_played, *score))

    def _move_past_end(self, at_ms: int, out: list[GameEvent]) -> None:
        """End the map if its end was reported or its last score won it, because the server behaves as after a match."""
        if self.end_report is None and self.phase is MapPhase.LIVE and self.end_rules.is_end(self.scores[-1]):
            self.end_report = EndReport(at_ms=at_ms, by_team=self.scores[-1])
        self.confirm_end(at_ms, out)

    def _end_unseen(self, at_ms: int, out: list[GameEvent]) -> bool:
        """True if it ends the map: the score is 0:0 again after lost lines, and the next round may have ended the map.

        The winner is known if only one result was possible, and the loss is too small to contain a second round.
        """
        ends, loss = self.end_rules.ends_after(self.scores[-1]), self.loss
        # After one round, a score of 0:0 may also mean that a knife round ended.
        is_knife = self.rounds_played < 2
        if loss is None or not ends or is_knife or self.is_restart_asked or not self._is_open_here():
            return False
        self.phase, self.is_map_open, self.end_report = MapPhase.OVER, False, None
        most = END_BYTES + END_PLAYER_BYTES * len(self.sides.player_sides)
        is_known = len(ends) == 1 and loss.size is not None and loss.size <= most
        score, names = ends[0] if is_known else self.scores[-1], self.sides.names_by_team(self.side_names)
        ended_ms = min(loss.at_ms, at_ms)
        end = events.MapEnded(ended_ms, self.map_name, *score, is_complete=False, is_winner_known=is_known)
        out.append(msgspec.structs.replace(end, team1_name=names[0], team2_name=names[1]))
        return True

    def _rounds_until(self, by_side: tuple[int, int]) -> int:
        """Return the number of rounds after which the map had this score, including draws."""
        total = sum(by_side)
        return next((count for count, score in reversed([*enumerate(self.scores)]) if sum(score) == total), total)

    def _follow_score(self, at_ms: int, by_side: tuple[int, int], out: list[GameEvent]) -> None:
        if self.sides.follow_score(by_side, self.scores[-1]):
            out.append(events.SidesSwapped(at_ms, self.sides.team1_side))

    def _record_score(self, ct: int, t: int) -> tuple[int, int]:
        score = self._by_team(ct, t)
        if self.sides.is_doubtful:
            self.freeze_score = (ct, t)
        del self.scores[self.rounds_played :]
        self.scores += [score] * (self.rounds_played + 1 - len(self.scores))
        return score

    def _by_team(self, ct: int, t: int) -> tuple[int, int]:
        """Convert a score by side to a score by team. While the sides are in doubt, return the last certain score.

        An equal score needs no conversion.
        """
        return self.scores[-1] if self.sides.is_doubtful and ct != t else self.sides.by_team(ct, t)

    def _set_map_name(self, name: str) -> None:
        self.map_name = name
        self.open_map = self.open_map or name  # if the log begins mid-map, the map's name is logged later

    def _is_open_here(self) -> bool:
        # if the names differ, another map is loaded and the end of the open map was lost
        return self.is_map_open and is_same_map(self.open_map, self.map_name)

    def _is_next_map(self, map_name: str) -> bool:
        """True if a line after the end of a map names another map. The line about loading that map was then lost."""
        return (
            self.phase is MapPhase.OVER and all((self.map_name, map_name)) and not is_same_map(self.map_name, map_name)
        )
