"""What do a server's lines mean for the match? Lines in order → game events: what counts, which round, whose score.

A map counts from the round that starts after the last `Match_Start` outside warmup. That line is printed for every
restart, so the round after it is live until another one, or a score of -1 rounds, takes it back: knife rounds and
restarts fall out by themselves. Scores are the server's own words, turned from sides to teams. A map ends on two
witnesses: `Game Over` with the score of the last round, or with anything that only a server past its match does.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

import msgspec

from matchpod.core import events
from matchpod.core.events import GameEvent, RoundEndReason
from matchpod.core.model import GameSettings, MatchType, PlayerId, Side, is_human
from matchpod.cs2.combat import DEFUSE_REWARD, Combat
from matchpod.cs2.log_lines import player_lines, world_lines
from matchpod.cs2.log_lines.player_token import PlayerToken
from matchpod.cs2.log_lines.reader import Line
from matchpod.cs2.sides import Sides
from matchpod.cs2.stats_block import StatsBlock

# A client that goes back to its menu prints this reason as well, so it is a hint and no proof of a map change.
_MAP_CHANGE_REASONS = frozenset(
    f"NETWORK_DISCONNECT_{word}" for word in ("LOOPDEACTIVATE", "LOOPSHUTDOWN", "LOOP_LEVELLOAD_ACTIVATE")
)
_NO_SCORE = (0, 0)


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


class Interpreter(msgspec.Struct):
    """Reads one server. Plain data: it can be stored at any line and go on from there."""

    sides: Sides
    combat: Combat
    is_deathmatch: bool = False
    phase: MapPhase = MapPhase.UNKNOWN
    map_name: str = ""
    is_warmup: bool = False
    is_restoring: bool = False
    match_start_ms: int = 0
    rounds_played: int = 0
    scores: list[tuple[int, int]] = msgspec.field(default_factory=lambda: [_NO_SCORE])
    """By team, after 0, 1, 2 … rounds of this map."""
    side_names: dict[Side, str | None] = {}
    game_over: world_lines.GameOver | None = None
    """A `Game Over` that waits for its second witness."""
    block: StatsBlock = msgspec.field(default_factory=StatsBlock)
    ids: dict[str, PlayerId] = {}
    """Connected players by `name<userid>`: some lines print the id as pending."""

    @staticmethod
    def of(settings: GameSettings) -> Interpreter:
        """An interpreter for a server that has said nothing yet."""
        combat = Combat(is_free_for_all=settings.is_free_for_all)
        return Interpreter(Sides.of(settings), combat, is_deathmatch=settings.match_type is MatchType.DEATHMATCH)

    def read(self, at_ms: int, line: Line, out: list[GameEvent]) -> None:
        """Append to `out` what a line means; most lines mean nothing."""
        kind = type(line)
        step = _FLOW.get(kind)
        if step is not None:
            step(self, at_ms, line, out)
            return
        fight = _COMBAT.get(kind)
        if fight is not None and self.phase is MapPhase.LIVE:
            event = fight(self.combat, at_ms, line)
            if event is not None:
                out.append(event)

    def restart(self) -> None:
        """Another server process speaks: its map and players have to introduce themselves again."""
        self.phase, self.game_over = MapPhase.UNKNOWN, None
        self.is_warmup = self.is_restoring = False
        self.rounds_played, self.scores = 0, [_NO_SCORE]
        self.sides.clear_field()
        self.ids.clear()

    # --- players -----------------------------------------------------------------------------------------------

    def _id(self, token: PlayerToken) -> PlayerId:
        return token.player_id or self.ids.get(f"{token.name}<{token.user_id}>", "")

    def _connected(self, at_ms: int, line: player_lines.Connected, out: list[GameEvent]) -> None:
        token = line.player
        if is_human(token.player_id):
            self.ids[f"{token.name}<{token.user_id}>"] = token.player_id
            out.append(events.PlayerConnected(at_ms, token.player_id, token.name, token.user_id))

    def _entered(self, at_ms: int, line: player_lines.Entered, out: list[GameEvent]) -> None:
        token = line.player
        if is_human(token.player_id):
            out.append(events.PlayerEntered(at_ms, token.player_id, token.name, token.user_id))

    def _switched(self, at_ms: int, line: player_lines.SwitchedTeam, out: list[GameEvent]) -> None:
        player_id = self._id(line.player)
        if not player_id:
            return
        side = Side(line.new) if line.new in ("CT", "TERRORIST") else None
        self.sides.stand(player_id, side)
        out.append(events.PlayerJoinedSide(at_ms, player_id, line.player.name, side, self.sides.team_of(player_id)))

    def _disconnected(self, at_ms: int, line: player_lines.Disconnected, out: list[GameEvent]) -> None:
        player_id = self._id(line.player)
        if not player_id:
            return
        self.sides.stand(player_id, None)
        self.ids.pop(f"{line.player.name}<{line.player.user_id}>", None)
        if self.phase is MapPhase.LIVE:
            out.append(self.combat.gone(at_ms, player_id))
        if is_human(player_id):
            is_map_change = line.reason in _MAP_CHANGE_REASONS
            out.append(events.PlayerDisconnected(at_ms, player_id, line.player.name, line.reason, is_map_change))

    def _renamed(self, at_ms: int, line: player_lines.ChangedName, out: list[GameEvent]) -> None:
        if is_human(line.player.player_id):
            out.append(events.PlayerRenamed(at_ms, line.player.player_id, line.new_name))

    def _chat(self, at_ms: int, line: player_lines.Chat, out: list[GameEvent]) -> None:
        if player_id := self._id(line.player):
            out.append(events.ChatSaid(at_ms, player_id, line.player.name, line.is_team_only, line.said))

    def _item(self, _at_ms: int, line: player_lines.Item, _out: list[GameEvent]) -> None:
        """Nobody picks up a weapon off the field: who is seen doing so stands where the line says."""
        token = line.player
        if token.side is not None and token.player_id and self.sides.standing.get(token.player_id) is not token.side:
            self.sides.stand(token.player_id, token.side)

    def _money(self, at_ms: int, line: player_lines.MoneyChange, _out: list[GameEvent]) -> None:
        if line.change == DEFUSE_REWARD:
            self.combat.money(at_ms, line)

    # --- the flow of a map -------------------------------------------------------------------------------------

    def _loading(self, at_ms: int, line: world_lines.LoadingMap, out: list[GameEvent]) -> None:
        self.confirm_end(at_ms, out)
        self.sides.clear_field()
        self.phase, self.map_name = MapPhase.WARMUP, line.map_name
        self.is_warmup = self.is_restoring = False
        self.rounds_played, self.scores = 0, [_NO_SCORE]
        out.append(events.MapLoading(at_ms, line.map_name))

    def _world(self, at_ms: int, line: world_lines.WorldTriggered, out: list[GameEvent]) -> None:
        match line.trigger:
            case "Match_Start" if self.phase is not MapPhase.OVER:
                self._take_back(at_ms, out)
                self.phase, self.match_start_ms = MapPhase.ARMED, at_ms
                self.map_name = line.map_name or self.map_name
            case "Match_Reloaded":
                self.is_restoring = True
            case "Warmup_Start":
                self.is_warmup = True
            case "Warmup_End":
                self.is_warmup = False
            case "Round_Start":
                self._round_start(at_ms, out)

    def _round_start(self, at_ms: int, out: list[GameEvent]) -> None:
        if self.phase is MapPhase.ARMED and not self.is_warmup:
            self._go_live(at_ms, out, rounds_played=0)
        if self.phase is not MapPhase.LIVE:
            return
        self.combat.new_round()
        team1, team2 = self.sides.line_ups()
        out.append(events.RoundStarted(at_ms, self.rounds_played + 1, team1, team2, self.sides.team1_side))

    def _freeze(self, at_ms: int, _line: world_lines.FreezeStarted, out: list[GameEvent]) -> None:
        if self.phase is MapPhase.LIVE and not self.is_restoring and self.sides.vote():
            out.append(events.SidesSwapped(at_ms, self.sides.team1_side))

    def _team_name(self, _at_ms: int, line: world_lines.TeamPlaying, _out: list[GameEvent]) -> None:
        self.side_names[line.side] = line.name

    def _notice(self, at_ms: int, line: world_lines.Notice, out: list[GameEvent]) -> None:
        if self.is_restoring or self.phase is MapPhase.OVER or self.is_warmup:
            return
        if self.phase is not MapPhase.LIVE:
            if self.phase is MapPhase.WARMUP:
                return
            self._go_live(at_ms, out, rounds_played=max(line.ct + line.t - 1, 0))
        reason = _REASONS.get(line.notice, RoundEndReason.UNKNOWN)
        self._bomb_ends_round(at_ms, reason, out)
        before = (line.ct - (line.side is Side.CT), line.t - (line.side is Side.T))
        if self.sides.match_score(before, self.scores[-1]):
            out.append(events.SidesSwapped(at_ms, self.sides.team1_side))
        # A round that was lost on the way shows in the score; a drawn one does not.
        self.rounds_played = max(self.rounds_played + 1, line.ct + line.t)
        score = self._keep_score(line.ct, line.t)
        winner = None if line.side is None else self.sides.team_on(line.side)
        out.append(events.RoundDecided(at_ms, self.rounds_played, winner, line.side, reason, *score))

    def _bomb_ends_round(self, at_ms: int, reason: RoundEndReason, out: list[GameEvent]) -> None:
        if reason is RoundEndReason.TARGET_BOMBED:
            out.append(events.BombExploded(at_ms))
        elif reason is RoundEndReason.BOMB_DEFUSED and (event := self.combat.defused(at_ms)) is not None:
            out.append(event)

    def _score(self, at_ms: int, line: world_lines.MatchScore, out: list[GameEvent]) -> None:
        self.map_name = line.map_name or self.map_name
        if self.is_restoring:
            self._restored(at_ms, line, out)
        elif line.rounds_played < 0:
            self.confirm_end(at_ms, out)
            if self.phase is not MapPhase.OVER:
                self._take_back(at_ms, out)
                self.phase = MapPhase.WARMUP
        elif self.phase is not MapPhase.OVER:
            self.is_warmup = False
            self._live_score(at_ms, line, out)

    def _live_score(self, at_ms: int, line: world_lines.MatchScore, out: list[GameEvent]) -> None:
        if self.phase is MapPhase.LIVE:
            if line.rounds_played > self.rounds_played:
                self.rounds_played = line.rounds_played
            elif self.sides.match_score((line.ct, line.t), self.scores[-1]):
                out.append(events.SidesSwapped(at_ms, self.sides.team1_side))
            self._keep_score(line.ct, line.t)
        elif line.rounds_played > 0:
            self._go_live(at_ms, out, rounds_played=line.rounds_played)
            self._keep_score(line.ct, line.t)
        else:
            if self.phase is not MapPhase.ARMED:
                self.phase, self.match_start_ms = MapPhase.ARMED, at_ms
            if self.is_deathmatch:
                # One endless round: a server may print no Round_Start for it.
                self._go_live(at_ms, out, rounds_played=0)

    def _restored(self, at_ms: int, line: world_lines.MatchScore, out: list[GameEvent]) -> None:
        """A backup was loaded: the map is back to what it was after `rounds_played` rounds."""
        kept = max(line.rounds_played, 0)
        self.is_restoring, self.game_over = False, None
        self.sides.vote()
        if kept < len(self.scores):
            self.sides.match_score((line.ct, line.t), self.scores[kept])
        if self.phase in (MapPhase.LIVE, MapPhase.OVER):
            out.append(events.RoundRestored(at_ms, kept, *self.sides.by_team(line.ct, line.t)))
            self.phase = MapPhase.LIVE
        else:
            self._go_live(at_ms, out, rounds_played=kept)
        self.combat.new_round()
        self.rounds_played = kept
        del self.scores[kept + 1 :]
        self._keep_score(line.ct, line.t)

    def _game_over(self, at_ms: int, line: world_lines.GameOver, out: list[GameEvent]) -> None:
        if self.phase is MapPhase.OVER:
            return
        self.game_over = line
        is_live = self.phase is MapPhase.LIVE
        is_witnessed = self.rounds_played > 0 and self.sides.by_team(line.ct, line.t) == self.scores[-1]
        if is_live and (is_witnessed or self.is_deathmatch):
            self.confirm_end(at_ms, out)

    def confirm_end(self, at_ms: int, out: list[GameEvent]) -> None:
        """The second witness of a waiting `Game Over` has come."""
        line, self.game_over = self.game_over, None
        if line is None:
            return
        is_complete = self.phase is MapPhase.LIVE and self.sides.by_team(line.ct, line.t) == self.scores[-1]
        if self.phase is not MapPhase.LIVE:
            self._go_live(at_ms, out, rounds_played=line.ct + line.t)
        self.end_map(at_ms, self.sides.by_team(line.ct, line.t), out, is_complete=is_complete or self.is_deathmatch)

    def end_map(self, at_ms: int, score: tuple[int, int], out: list[GameEvent], *, is_complete: bool) -> None:
        """The map is over with this score by team."""
        self.phase, self.game_over = MapPhase.OVER, None
        out.append(events.MapEnded(at_ms, self.map_name, *score, is_complete=is_complete))

    def _pause(self, at_ms: int, line: world_lines.PauseChanged, out: list[GameEvent]) -> None:
        if self.phase in (MapPhase.LIVE, MapPhase.ARMED):
            out.append(events.Paused(at_ms, line.by) if line.is_enabled else events.Unpaused(at_ms, line.by))

    def _unpaused(self, at_ms: int, _line: world_lines.MatchUnpaused, out: list[GameEvent]) -> None:
        if self.phase in (MapPhase.LIVE, MapPhase.ARMED):
            out.append(events.Unpaused(at_ms, ""))

    def _stats_mark(self, at_ms: int, line: world_lines.StatsMark, out: list[GameEvent]) -> None:
        if self.block.see_mark(line) and self.phase is MapPhase.LIVE:
            out.append(events.GameCounted(at_ms, self.block.round_number, tuple(self.block.rows)))

    def _stats_field(self, _at_ms: int, line: world_lines.StatsField, _out: list[GameEvent]) -> None:
        self.block.see_field(line)

    def _stats_player(self, _at_ms: int, line: world_lines.StatsPlayer, _out: list[GameEvent]) -> None:
        if self.phase is MapPhase.LIVE:
            self.block.see_player(line)

    # --- shared steps ------------------------------------------------------------------------------------------

    def _go_live(self, at_ms: int, out: list[GameEvent], *, rounds_played: int) -> None:
        self.sides.vote()
        self.sides.line_ups()
        self.phase, self.game_over = MapPhase.LIVE, None
        self.rounds_played, self.scores = rounds_played, [_NO_SCORE]
        self.combat.new_round()
        team1_side = self.sides.team1_side
        since_ms = self.match_start_ms if rounds_played == 0 and self.match_start_ms else at_ms
        names = self.side_names.get(team1_side), self.side_names.get(team1_side.other)
        out.append(events.MapLive(at_ms, self.map_name, since_ms, team1_side, *names, rounds_played))

    def _take_back(self, at_ms: int, out: list[GameEvent]) -> None:
        """Whatever was live did not count: a knife round, or a restart."""
        if self.phase is MapPhase.LIVE:
            out.append(events.RoundRestored(at_ms, 0, 0, 0))
        self.rounds_played, self.scores = 0, [_NO_SCORE]

    def _keep_score(self, ct: int, t: int) -> tuple[int, int]:
        score = self.sides.by_team(ct, t)
        del self.scores[self.rounds_played :]
        while len(self.scores) <= self.rounds_played:
            self.scores.append(score)
        return score


_Fight = Callable[..., GameEvent | None]
_Step = Callable[..., None]

_COMBAT: dict[type, _Fight] = {
    player_lines.Attacked: Combat.attacked,
    player_lines.Killed: Combat.killed,
    player_lines.Assisted: Combat.assisted,
    player_lines.BlindedBy: Combat.blinded,
    player_lines.GrenadeLaunched: Combat.launched,
    player_lines.GrenadeLanded: Combat.landed,
    player_lines.Triggered: Combat.triggered,
    player_lines.KilledOther: Combat.killed_other,
    player_lines.Suicide: Combat.suicide,
    player_lines.BombDeath: Combat.bomb_death,
}

_FLOW: dict[type, _Step] = {
    player_lines.Item: Interpreter._item,
    player_lines.MoneyChange: Interpreter._money,
    player_lines.Connected: Interpreter._connected,
    player_lines.Entered: Interpreter._entered,
    player_lines.SwitchedTeam: Interpreter._switched,
    player_lines.Disconnected: Interpreter._disconnected,
    player_lines.ChangedName: Interpreter._renamed,
    player_lines.Chat: Interpreter._chat,
    world_lines.StatsPlayer: Interpreter._stats_player,
    world_lines.StatsField: Interpreter._stats_field,
    world_lines.StatsMark: Interpreter._stats_mark,
    world_lines.TeamPlaying: Interpreter._team_name,
    world_lines.MatchScore: Interpreter._score,
    world_lines.Notice: Interpreter._notice,
    world_lines.WorldTriggered: Interpreter._world,
    world_lines.FreezeStarted: Interpreter._freeze,
    world_lines.PauseChanged: Interpreter._pause,
    world_lines.MatchUnpaused: Interpreter._unpaused,
    world_lines.LoadingMap: Interpreter._loading,
    world_lines.GameOver: Interpreter._game_over,
}

_REASONS = {reason.value: reason for reason in RoundEndReason}
