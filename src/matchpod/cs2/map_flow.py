"""How far is the map, which round is it, whose score? The lines of the flow of a map → events.

A map counts from the round that starts after the last `Match_Start` outside warmup, once people stand on the field.
That line is printed for every restart, so the round after it is live until another one, or a score of -1 rounds, takes
it back: knife rounds and restarts fall out by themselves. Scores are the server's words, turned from sides to teams.
A map ends on two witnesses: `Game Over` with the score of the last round, or with the plugin, or with anything that
only a server past its match does. One witness alone is believed after some time of silence.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from matchpod.core import events
from matchpod.core.events import GameEvent, RoundEndReason
from matchpod.core.model import GameSettings, MatchType, PlayerId, Side, Team
from matchpod.core.played_map import is_same_map
from matchpod.cs2.combat import Combat
from matchpod.cs2.log_lines import world_lines
from matchpod.cs2.sides import Sides

PATIENCE_MS = 20_000
"""The log arrives in well under a second; a server that resends after a fault of ours gets this long to catch up."""

MAX_ROUNDS = 1000
"""No match is longer; a larger number is nonsense and would only cost memory."""

_NO_SCORE = (0, 0)
_USUAL_ROUNDS = {MatchType.COMPETITIVE: 24, MatchType.WINGMAN: 16}
_OVERTIME_ROUNDS = 6
_REASONS = {reason.value: reason for reason in RoundEndReason}
_SURRENDERS = (RoundEndReason.CTS_SURRENDER, RoundEndReason.TERRORISTS_SURRENDER)


class MapPhase(StrEnum):
    """How far the map is."""

    UNKNOWN = "unknown"
    """The log was joined somewhere; the next line of the flow tells where."""
    WARMUP = "warmup"
    """Nothing counts."""
    ARMED = "armed"
    """The match was (re)started; the next round is round 1."""
    LIVE = "live"
    """Everything counts."""
    OVER = "over"
    """Nothing counts until another map is loaded or a backup of this one is restored."""


class EndClaim(msgspec.Struct, frozen=True, kw_only=True):
    """One witness of the end of a map: `Game Over` knows the score by side, the plugin by team or only the winner."""

    at_ms: int
    by_side: tuple[int, int] | None = None
    by_team: tuple[int, int] | None = None
    winner: Team | None = None


class MapFlow(msgspec.Struct):
    """The map being played. `is_told` says that `told_map` was called live and its end was not told yet."""

    sides: Sides
    combat: Combat
    is_deathmatch: bool = False
    phase: MapPhase = MapPhase.UNKNOWN
    map_name: str = ""
    is_told: bool = False
    told_map: str = ""
    is_warmup: bool = False
    is_warmup_told: bool = False
    is_restoring: bool = False
    awaits_start: bool = False
    """Whatever is being played, it is not our match: that one begins with the next `Match_Start` or map."""
    match_start_ms: int = 0
    rounds_played: int = 0
    scores: list[tuple[int, int]] = msgspec.field(default_factory=lambda: [_NO_SCORE])
    """By team, after 0, 1, 2 … rounds of this map."""
    is_freeze: bool = False
    freeze_score: tuple[int, int] | None = None
    """By side, as the status line of this freeze time said it."""
    max_rounds: int | None = None
    """Where one team cannot be caught any more, if the mode has such a score."""
    side_names: dict[Side, str | None] = {}
    surrendered_to: Side | None = None
    claim: EndClaim | None = None
    claim_heard_ms: int | None = None
    """A witness of the end that waits for a second one."""

    @staticmethod
    def of(settings: GameSettings) -> MapFlow:
        """The flow of a server that has said nothing yet."""
        usual = _USUAL_ROUNDS.get(settings.match_type)
        flow = MapFlow(Sides.of(settings), Combat(is_free_for_all=settings.is_free_for_all))
        flow.is_deathmatch = settings.match_type is MatchType.DEATHMATCH
        flow.max_rounds = usual and (settings.max_rounds or usual)
        return flow

    def restart(self) -> None:
        """Another server process speaks: its map and players have to introduce themselves again."""
        self.phase = MapPhase.UNKNOWN
        self.is_warmup = self.is_restoring = False
        self.rounds_played = self.match_start_ms = 0
        self.sides.clear_field()

    # --- lines -------------------------------------------------------------------------------------------------

    def stand(self, at_ms: int, player_id: PlayerId, side: Side | None, out: list[GameEvent]) -> None:
        """A player took a side, or left the field."""
        self.sides.stand(player_id, side)
        self._start_deathmatch(at_ms, out)

    def loading(self, at_ms: int, line: world_lines.LoadingMap, out: list[GameEvent]) -> None:
        """A map is being loaded: an end that waited for a second witness has it."""
        self._go_past_end(at_ms, out)
        self.sides.clear_field()
        self.phase, self.map_name = MapPhase.WARMUP, line.map_name
        self.is_warmup = self.is_restoring = self.awaits_start = False
        self.rounds_played = self.match_start_ms = 0
        out.append(events.MapLoading(at_ms, line.map_name))

    def world(self, at_ms: int, line: world_lines.WorldTriggered, out: list[GameEvent]) -> None:
        """Starts and ends of rounds, warmup and the match."""
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

    def freeze(self, at_ms: int, _line: world_lines.FreezeStarted, out: list[GameEvent]) -> None:
        """Freeze time begins: at halftime everybody has changed sides by now."""
        self.is_freeze, self.freeze_score = True, None
        if self.phase is MapPhase.LIVE and not self.is_restoring and self.sides.vote():
            out.append(events.SidesSwapped(at_ms, self.sides.team1_side))

    def team_name(self, _at_ms: int, line: world_lines.TeamPlaying, _out: list[GameEvent]) -> None:
        """The name of the team on a side. Right after halftime it is still the old one, so it moves nobody."""
        self.side_names[line.side] = line.name

    def notice(self, at_ms: int, line: world_lines.Notice, out: list[GameEvent]) -> None:
        """A round was decided."""
        if self.is_restoring or self.is_warmup or self.phase in (MapPhase.OVER, MapPhase.WARMUP):
            return
        won_ct, won_t = line.side is Side.CT, line.side is Side.T
        before = (max(line.ct - won_ct, 0), max(line.t - won_t, 0))
        if self.phase is not MapPhase.LIVE:
            self._join(at_ms, sum(before), before, out)
        reason = _REASONS.get(line.notice, RoundEndReason.UNKNOWN)
        self._bomb_ends_round(at_ms, reason, out)
        self._ask_players(at_ms, out)
        self._follow_score(at_ms, before, out)
        # A round that was lost on the way shows in the score; a drawn one does not.
        self.rounds_played = min(max(self.rounds_played + 1, line.ct + line.t), MAX_ROUNDS)
        score = self._keep_score(line.ct, line.t)
        winner = None if line.side is None else self.sides.team_on(line.side)
        if reason in _SURRENDERS:
            self.surrendered_to = line.side
        self.sides.seen.clear()
        self.is_freeze, self.freeze_score = False, None
        out.append(events.RoundDecided(at_ms, self.rounds_played, winner, line.side, reason, *score))

    def score(self, at_ms: int, line: world_lines.MatchScore, out: list[GameEvent]) -> None:
        """The status of the match: the score, and how many rounds were played."""
        if self.awaits_start and line.rounds_played >= 0:
            return
        if self._is_next_map(line.map_name):
            self.loading(at_ms, world_lines.LoadingMap(line.map_name), out)
        self.map_name = line.map_name or self.map_name
        if self.is_restoring:
            self._join(at_ms, line.rounds_played, (line.ct, line.t), out)
        elif line.rounds_played < 0:
            self._warmup(at_ms, out)
        elif self.phase is not MapPhase.OVER:
            self.is_warmup = False
            self._live_score(at_ms, line, out)

    def game_over(self, at_ms: int, line: world_lines.GameOver, out: list[GameEvent]) -> None:
        """The server says the map is over; believed at once if a second witness agrees."""
        if self.phase is MapPhase.OVER or self.awaits_start:
            return
        by_side = (line.ct, line.t)
        is_live, self.is_told = self.phase is MapPhase.LIVE, self._is_told_here()
        if is_live:
            self._follow_score(at_ms, by_side, out)
        is_last_score = self.rounds_played > 0 and self.sides.by_team(*by_side) == self.scores[-1]
        said = self.claim
        self.claim = EndClaim(at_ms=at_ms, by_side=by_side, by_team=said.by_team if said else None)
        if (is_live and (is_last_score or self.is_deathmatch)) or said is not None:
            self.confirm_end(at_ms, out)

    def pause(self, at_ms: int, line: world_lines.PauseChanged, out: list[GameEvent]) -> None:
        """A pause was switched on or off."""
        if self.phase in (MapPhase.LIVE, MapPhase.ARMED):
            out.append(events.Paused(at_ms, line.by) if line.is_enabled else events.Unpaused(at_ms, line.by))

    def unpaused(self, at_ms: int, _line: world_lines.MatchUnpaused, out: list[GameEvent]) -> None:
        """Play goes on."""
        if self.phase in (MapPhase.LIVE, MapPhase.ARMED):
            out.append(events.Unpaused(at_ms, ""))

    # --- the plugin, and time ----------------------------------------------------------------------------------

    def claim_end(self, claim: EndClaim, out: list[GameEvent]) -> None:
        """The plugin says the map is over."""
        waiting = self.claim
        if waiting is not None and waiting.by_side is not None:
            self.claim = msgspec.structs.replace(waiting, by_team=claim.by_team, winner=claim.winner)
            self.confirm_end(claim.at_ms, out)
        elif self.is_told and (waiting is None or waiting.by_team is None):
            self.claim = claim
            if self.phase is not MapPhase.LIVE:  # the server has gone on: that is the second witness
                self.confirm_end(claim.at_ms, out)

    def next_deadline_ms(self) -> int | None:
        """When `settle` must be called at the latest; None while nothing waits."""
        if self.claim is None:
            return None
        return (self.claim.at_ms if self.claim_heard_ms is None else self.claim_heard_ms) + PATIENCE_MS

    def hear(self, now_ms: int) -> None:
        """Note when a claim was heard by our clock: the server's may run faster or be set otherwise."""
        if self.claim is None:
            self.claim_heard_ms = None
        elif self.claim_heard_ms is None:
            self.claim_heard_ms = now_ms

    def settle(self, now_ms: int, out: list[GameEvent]) -> None:
        """Believe a single witness of the end once the log has had its time."""
        due_ms = self.next_deadline_ms()
        if due_ms is not None and now_ms >= due_ms:
            self.confirm_end(now_ms, out)

    def confirm_end(self, at_ms: int, out: list[GameEvent]) -> None:
        """The second witness of the end has come, or enough time has passed for one."""
        claim, self.claim = self.claim, None
        if claim is None or not (self.is_told or self.sides.has_people):
            return
        if not self.is_told:
            self.sides.begin(self.side_names)
        if claim.by_side is not None and claim.by_team == self.sides.by_team(*claim.by_side)[::-1]:
            self.sides.turn()  # the plugin knows the teams by name: it may turn the score of the log, but not change it
        score = self._claimed_score(claim)
        if score is None:
            return
        if not self.is_told:
            self._go_live(at_ms, out, rounds_played=min(sum(score), MAX_ROUNDS))
        is_last_score = self.phase is MapPhase.LIVE and score == self.scores[-1]
        is_complete = self.is_deathmatch or (is_last_score and (claim.by_side or claim.by_team) is not None)
        if self.phase is MapPhase.LIVE:
            self.phase = MapPhase.OVER
        self.is_told = False
        winner = None if self.surrendered_to is None else self.sides.team_on(self.surrendered_to)
        out.append(events.MapEnded(claim.at_ms, self.map_name, *score, is_complete=is_complete, winner=winner))

    def _claimed_score(self, claim: EndClaim) -> tuple[int, int] | None:
        if claim.by_side is not None:
            return self.sides.by_team(*claim.by_side)
        if claim.by_team is not None:
            return claim.by_team
        # Only the winner is known: the last score of the log must say the same, a made-up one is worse than none.
        one, two = self.scores[-1]
        return (one, two) if claim.winner is (Team.TEAM1 if one > two else Team.TEAM2) and one != two else None

    # --- steps -------------------------------------------------------------------------------------------------

    def _match_start(self, at_ms: int, map_name: str, out: list[GameEvent]) -> None:
        self.awaits_start = False
        if self._is_next_map(map_name):
            self.loading(at_ms, world_lines.LoadingMap(map_name), out)
        self._go_past_end(at_ms, out)
        if self.phase is not MapPhase.OVER:
            self.phase, self.match_start_ms, self.map_name = MapPhase.ARMED, at_ms, map_name
            self._start_deathmatch(at_ms, out)

    def _start_deathmatch(self, at_ms: int, out: list[GameEvent]) -> None:
        """One endless round, for which a server may print neither start nor status: people on the field start it."""
        is_ready = self.phase is MapPhase.ARMED and not self.is_warmup and self.sides.has_people
        if self.is_deathmatch and is_ready:
            self._go_live(at_ms, out)

    def _round_start(self, at_ms: int, out: list[GameEvent]) -> None:
        if self.claim is not None and at_ms > self.claim.at_ms:
            self.claim = None  # play goes on: whoever said it was over was wrong
        if self.phase is MapPhase.ARMED and not self.is_warmup and self.sides.has_people:
            self._go_live(at_ms, out)
        if self.phase is not MapPhase.LIVE:
            return
        self._ask_players(at_ms, out)
        self.combat.new_round()
        team1, team2 = self.sides.line_ups()
        out.append(events.RoundStarted(at_ms, self.rounds_played + 1, team1, team2, self.sides.team1_side))

    def _ask_players(self, at_ms: int, out: list[GameEvent]) -> None:
        """Those who were seen since the last round know best where they stand: their moves may have been lost."""
        if self.sides.vote(is_fresh=True):
            out.append(events.SidesSwapped(at_ms, self.sides.team1_side))
            if self.freeze_score is not None:
                self._keep_score(*self.freeze_score)

    def _bomb_ends_round(self, at_ms: int, reason: RoundEndReason, out: list[GameEvent]) -> None:
        if reason is RoundEndReason.TARGET_BOMBED:
            out.append(events.BombExploded(at_ms))
        elif reason is RoundEndReason.BOMB_DEFUSED and (event := self.combat.defused(at_ms)) is not None:
            out.append(event)

    def _live_score(self, at_ms: int, line: world_lines.MatchScore, out: list[GameEvent]) -> None:
        by_side, rounds = (line.ct, line.t), min(line.rounds_played, MAX_ROUNDS)
        if self.phase is MapPhase.LIVE and rounds >= self.rounds_played:
            self._follow_score(at_ms, by_side, out)
            self.rounds_played, self.freeze_score = rounds, by_side if self.is_freeze else None
            self._keep_score(*by_side)
        elif self.phase is MapPhase.LIVE or rounds > 0:
            self._join(at_ms, rounds, by_side, out)  # went back, or had gone on, and the lines that said so were lost
        else:
            if self.phase is not MapPhase.ARMED:
                self.phase, self.match_start_ms = MapPhase.ARMED, at_ms
            self._start_deathmatch(at_ms, out)

    def _join(self, at_ms: int, rounds: int, by_side: tuple[int, int], out: list[GameEvent]) -> None:
        """The map stands after this many rounds, by a restored backup or for all we know: go on from there."""
        kept = min(max(rounds, 0), MAX_ROUNDS)
        is_known = self._is_told_here() or (self.phase is MapPhase.OVER and self.is_restoring)
        self.is_restoring, self.claim = False, None
        if not is_known or (kept == 0 and self.phase is not MapPhase.LIVE):
            self._go_live(at_ms, out, rounds_played=kept, by_side=by_side)
            return
        self.sides.vote()
        if kept < len(self.scores):
            self.sides.match_score(by_side, self.scores[kept])
        out.append(events.RoundRestored(at_ms, kept, *self.sides.by_team(*by_side)))
        self.phase, self.is_told, self.is_warmup_told = MapPhase.LIVE, True, False
        self.surrendered_to = None
        self.combat.new_round()
        self.rounds_played = kept
        self._keep_score(*by_side)

    def _warmup(self, at_ms: int, out: list[GameEvent]) -> None:
        """-1 rounds: the server is in warmup. After an end that waited that is the second witness."""
        self._go_past_end(at_ms, out)
        if self.phase is MapPhase.OVER:
            return
        self.phase = MapPhase.WARMUP
        if self.is_told and not self.is_warmup_told:
            self.is_warmup_told = True
            out.append(events.WarmupBegan(at_ms))

    def _go_live(
        self, at_ms: int, out: list[GameEvent], *, rounds_played: int = 0, by_side: tuple[int, int] = _NO_SCORE
    ) -> None:
        self.sides.begin(self.side_names)
        self.sides.line_ups()
        self.phase, self.is_told, self.told_map, self.is_warmup_told = MapPhase.LIVE, True, self.map_name, False
        self.claim = self.surrendered_to = None
        self.rounds_played, self.scores = rounds_played, [_NO_SCORE]
        self.combat.new_round()
        team1_side = self.sides.team1_side
        since_ms = self.match_start_ms if rounds_played == 0 and self.match_start_ms else at_ms
        names = self.side_names.get(team1_side), self.side_names.get(team1_side.other)
        score = self._keep_score(*by_side)
        out.append(events.MapLive(at_ms, self.map_name, since_ms, team1_side, *names, rounds_played, *score))

    def _go_past_end(self, at_ms: int, out: list[GameEvent]) -> None:
        """The server does what one does after a match. If the last score won the map, that is the end of it."""
        if self.claim is None and self.phase is MapPhase.LIVE and self._is_won():
            self.claim = EndClaim(at_ms=at_ms, by_team=self.scores[-1])
        self.confirm_end(at_ms, out)

    def _is_won(self) -> bool:
        if self.max_rounds is None:
            return False
        most, rounds = max(self.scores[-1]), sum(self.scores[-1])
        overtimes = -(-max(rounds - self.max_rounds, 0) // _OVERTIME_ROUNDS)
        return most == self.max_rounds // 2 + overtimes * _OVERTIME_ROUNDS // 2 + 1

    def _follow_score(self, at_ms: int, by_side: tuple[int, int], out: list[GameEvent]) -> None:
        if self.sides.match_score(by_side, self.scores[-1]):
            out.append(events.SidesSwapped(at_ms, self.sides.team1_side))

    def _keep_score(self, ct: int, t: int) -> tuple[int, int]:
        score = self.sides.by_team(ct, t)
        del self.scores[self.rounds_played :]
        while len(self.scores) <= self.rounds_played:
            self.scores.append(score)
        return score

    def _is_told_here(self) -> bool:
        return self.is_told and is_same_map(self.told_map, self.map_name)  # else its end was lost on the way

    def _is_next_map(self, map_name: str) -> bool:
        """After the end another map is named: its `Loading map` was lost."""
        is_other = bool(self.map_name and map_name) and not is_same_map(self.map_name, map_name)
        return self.phase is MapPhase.OVER and is_other
