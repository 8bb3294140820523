"""Turn log lines into game events, with a table of handlers by line type.

Presence and chat are handled here, rounds and scores in `map_flow`, fights in `combat`, money and equipment in
`economy`, and the game's own statistics in `stats_block`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from cs2_protocol.game import PlayerId, Side, is_human
from cs2_protocol.log_lines import player_lines, world_lines
from cs2_protocol.log_lines.player_token import PlayerToken
from cs2_protocol.log_lines.reader import Line
from cs2_protocol.weapons import UTILITY
from matchpod.core import events
from matchpod.core.events import GameEvent
from matchpod.core.match.actions import MIN_SAID_BYTES
from matchpod.core.model import GameSettings
from matchpod.cs2.combat import DEFUSE_REWARD, Combat
from matchpod.cs2.economy import EconomyReader, is_purchase
from matchpod.cs2.map_flow import MapFlow, MapPhase
from matchpod.cs2.stats_block import StatsBlock

MAX_USERS = 1024
"""Maximum number of players whose user id is stored: far more than join a server during one match."""

# A player who quits to the main menu also has one of these reasons, so a reason does not prove a map change.
_MAP_CHANGE_REASONS = frozenset(
    f"NETWORK_DISCONNECT_{word}" for word in ("LOOPDEACTIVATE", "LOOPSHUTDOWN", "LOOP_LEVELLOAD_ACTIVATE")
)


class Interpreter(msgspec.Struct):
    """Interprets the log of one server. Its state is plain data that can be stored after any line."""

    flow: MapFlow
    block: StatsBlock = msgspec.field(default_factory=StatsBlock)
    economy: EconomyReader = msgspec.field(default_factory=EconomyReader)
    users: dict[PlayerId, int] = {}
    """The user id of each player who entered. A rejoining player gets a new id; the old connection may end later."""
    absent: dict[PlayerId, None] = {}
    """Players and bots who have disconnected. Most later lines about them do not prove that they are back."""

    @staticmethod
    def of(settings: GameSettings) -> Interpreter:
        """Return an interpreter for a server that has not sent anything yet."""
        return Interpreter(MapFlow.of(settings))

    def read(self, at_ms: int, line: Line, out: list[GameEvent]) -> None:
        """Interpret a line, and append its events to `out`. Most lines have no events."""
        kind = type(line)
        step = _STEPS.get(kind)
        if step is not None:
            step(self, at_ms, line, out)
            return
        fight, flow = _COMBAT.get(kind), self.flow
        if fight is not None and (flow.phase is MapPhase.LIVE or self._is_live_now(at_ms, line, out)):
            if flow.sides.guests and _has_guest(line, flow.sides.guests):
                return
            event = fight(flow.combat, at_ms, line)
            if event is not None:
                out.append(event)
            if flow.sides.unproven or type(event) in _PROOFS:
                self._observe_fighters(at_ms, line, out)
            return
        change = _FLOW.get(kind)
        if change is not None:
            change(flow, at_ms, line, out)

    def restart(self) -> None:
        """Discard the map and the players, because a new server process has started."""
        self.flow.restart()
        self.economy.forget()
        self.users.clear()
        self.absent.clear()

    def on_lost_lines(self, at_ms: int, size: int) -> None:
        """Handle lost lines: players may have returned, teams may have changed sides, and the match may have begun."""
        self.flow.on_lost_lines(at_ms, size)
        self.economy.forget()
        self.absent.clear()

    def _is_live_now(self, at_ms: int, line: Line, out: list[GameEvent]) -> bool:
        """True if a fight shows that the map is live: a deathmatch, or a round that began before a player was seen."""
        if self.flow.unseen_start_ms is not None and isinstance(line, player_lines.PlayerLogLine):
            self._observe_side(at_ms, line.player, out)
        return self.flow.start_deathmatch(at_ms, out)

    def _is_absent(self, token: PlayerToken) -> bool:
        """True for a line about a player who is not on the server."""
        return token.is_pending or token.player_id in self.absent

    def _observe_fighters(self, at_ms: int, line: Line, out: list[GameEvent]) -> None:
        """Update the sides of the players in a fight line, except players who may have left since their action."""
        match line:
            case player_lines.Killed() | player_lines.Attacked():
                is_kill = isinstance(line, player_lines.Killed)
                if line.weapon not in UTILITY:  # a grenade may explode after its thrower has left
                    self._observe_side(at_ms, line.player, out, is_proof=is_kill)
                self._observe_side(at_ms, line.victim, out, is_proof=is_kill)
            case player_lines.Triggered(trigger=trigger) if trigger != "Dropped_The_Bomb":
                self._observe_side(at_ms, line.player, out, is_proof=trigger == "Planted_The_Bomb")
            case player_lines.GrenadeLaunched() | player_lines.BlindedBy() | player_lines.BombDeath():
                self._observe_side(at_ms, line.player, out)
            case _:
                pass

    def _connected(self, at_ms: int, line: player_lines.Connected, out: list[GameEvent]) -> None:
        token = line.player
        if token.is_pending:
            return
        self._arrive(at_ms, token.player_id, out)
        if is_human(token.player_id):
            self.users.pop(token.player_id, None)
            out.append(events.PlayerConnected(at_ms, token.player_id, token.name, token.user_id))

    def _entered(self, at_ms: int, line: player_lines.Entered, out: list[GameEvent]) -> None:
        token = line.player
        if token.is_pending:
            return
        self._arrive(at_ms, token.player_id, out)
        if is_human(token.player_id):
            if len(self.users) >= MAX_USERS:
                self.users.clear()
            self.users[token.player_id] = token.user_id
            out.append(events.PlayerEntered(at_ms, token.player_id, token.name, token.user_id))

    def _arrive(self, at_ms: int, player_id: PlayerId, out: list[GameEvent]) -> None:
        self.absent.pop(player_id, None)
        if player_id in self.flow.sides.unproven:
            self.flow.set_side(at_ms, player_id, None, out)  # the line about their disconnect is lost

    def _switched(self, at_ms: int, line: player_lines.SwitchedTeam, out: list[GameEvent]) -> None:
        player_id = line.player.player_id
        side = Side(line.new) if line.new in ("CT", "TERRORIST") else None
        if player_id and (side is None or not self._is_absent(line.player)):
            if player_id in self.flow.sides.unproven and side and line.old in ("CT", "TERRORIST"):
                self.flow.sides.player_sides[player_id] = side  # at halftime also printed for players who have left
            else:
                self.flow.set_side(at_ms, player_id, side, out)
            team = self.flow.sides.team_of(player_id)
            out.append(events.PlayerJoinedSide(at_ms, player_id, line.player.name, side, team))

    def _disconnected(self, at_ms: int, line: player_lines.Disconnected, out: list[GameEvent]) -> None:
        player_id, user_id = line.player.player_id, line.player.user_id
        if not player_id or self.users.get(player_id, user_id) != user_id:
            return  # an old connection of a player who has rejoined in the meantime
        self.users.pop(player_id, None)
        if len(self.absent) >= MAX_USERS:
            self.absent.clear()
        self.absent[player_id] = None
        self._prove(at_ms, player_id, out)
        self.flow.set_side(at_ms, player_id, None, out)
        if self.flow.phase is MapPhase.LIVE and player_id not in self.flow.sides.guests:
            out.append(self.flow.combat.player_left(at_ms, player_id))
        if is_human(player_id):
            is_map_change = line.reason in _MAP_CHANGE_REASONS
            out.append(events.PlayerDisconnected(at_ms, player_id, line.player.name, line.reason, is_map_change))

    def _renamed(self, at_ms: int, line: player_lines.ChangedName, out: list[GameEvent]) -> None:
        if is_human(line.player.player_id):
            out.append(events.PlayerRenamed(at_ms, line.player.player_id, line.new_name))

    def _chat(self, at_ms: int, line: player_lines.Chat, out: list[GameEvent]) -> None:
        if player_id := line.player.player_id:
            out.append(events.ChatMessage(at_ms, player_id, line.player.name, line.is_team_only, line.message))

    def _console_chat(self, at_ms: int, line: world_lines.ConsoleChat, out: list[GameEvent]) -> None:
        out.append(events.ServerSaid(at_ms, line.message))

    def _rcon(self, at_ms: int, line: world_lines.RconCommand, out: list[GameEvent]) -> None:
        if len(line.command) >= MIN_SAID_BYTES:  # shorter commands are regular console queries
            out.append(events.CommandLogged(at_ms, len(line.command.encode())))

    def _item(self, at_ms: int, line: player_lines.ItemTransfer, out: list[GameEvent]) -> None:
        sides, player_id = self.flow.sides, line.player.player_id
        if sides.seen.get(player_id) is line.player.side:  # avoids a call for every fifth line
            return
        if line.verb != "dropped" or player_id not in sides.unproven:  # the items of leaving players are dropped, too
            self._observe_side(at_ms, line.player, out, is_proof=line.verb == "purchased")

    def _observe_side(self, at_ms: int, token: PlayerToken, out: list[GameEvent], *, is_proof: bool = False) -> None:
        """Update a player's side from any line about the player.

        The line about a team change may be lost, and none is printed when a player rejoins. `is_proof` is True for a
        line that is never printed for players who have left; it proves that the player is back, even if the lines about
        the return are missing.
        """
        side, player_id, sides = token.side, token.player_id, self.flow.sides
        if side is None or not player_id or sides.seen.get(player_id) is side or player_id in sides.guests:
            return
        is_return = self._is_absent(token)
        if is_return:
            if token.is_pending or not is_proof:
                return
            del self.absent[player_id]
        self._prove(at_ms, player_id, out, side=side)
        is_new = player_id not in sides.player_sides and player_id not in self.users
        is_late = is_new and self.flow.phase is MapPhase.LIVE and not sides.is_doubtful
        self.flow.set_side(at_ms, player_id, side, out)
        if is_new and self.flow.unseen_start_ms is not None:
            self.flow.start_unseen_round(out)
        if is_late and (team := sides.team_of(player_id)) is not None:  # the log has no line about the player's arrival
            out.append(events.LineupGrown(at_ms, player_id, team, is_return=is_return))

    def _prove(self, at_ms: int, player_id: PlayerId, out: list[GameEvent], side: Side | None = None) -> None:
        """Record that a player is on the server, on this side, if they might have left in lost lines."""
        sides = self.flow.sides
        if player_id in sides.unproven:
            sides.set_side(player_id, side or sides.player_sides[player_id])
            if self.flow.phase is MapPhase.LIVE and (team := sides.team_of(player_id)) is not None:
                out.append(events.LineupGrown(at_ms, player_id, team, was_unseen=True))

    def _world_trigger(self, at_ms: int, line: world_lines.WorldTriggered, out: list[GameEvent]) -> None:
        self.flow.on_world_trigger(at_ms, line, out)
        if line.trigger == "Round_Start":
            self.economy.is_play = self.economy.is_known
            self._add_economy(at_ms, self.flow.rounds_played + 1, out)

    def _round_end(self, at_ms: int, line: world_lines.RoundEndNotice, out: list[GameEvent]) -> None:
        self.flow.on_round_end(at_ms, line, out)
        self.economy.is_play = False
        self._add_economy(at_ms, self.flow.rounds_played, out)

    def _freeze(self, at_ms: int, line: world_lines.FreezeStarted, out: list[GameEvent]) -> None:
        self._add_economy(at_ms, self.flow.rounds_played, out)  # include changes after the decision
        self.economy.start_freeze()
        self.flow.on_freeze(at_ms, line, out)

    def _add_economy(self, at_ms: int, round_number: int, out: list[GameEvent]) -> None:
        if self.economy.is_changed and self.flow.phase is MapPhase.LIVE:
            out.append(self.economy.event(at_ms, round_number, without=self.flow.sides.guests))

    def _left_buyzone(self, at_ms: int, line: player_lines.LeftBuyzone, out: list[GameEvent]) -> None:
        economy, flow = self.economy, self.flow
        if line.items:  # dead players and players who have left have no items
            self._observe_side(at_ms, line.player, out, is_proof=True)
        is_counted = economy.is_play and flow.phase is MapPhase.LIVE and line.player.player_id not in flow.sides.guests
        is_new = is_counted and economy.leave_buyzone(line)
        # to save time, return one event for all players who have left the zone
        if is_new and len(economy.equipment) == len(flow.sides.player_sides):
            self._add_economy(at_ms, flow.rounds_played + 1, out)

    def _money(self, at_ms: int, line: player_lines.MoneyChange, out: list[GameEvent]) -> None:
        if self.flow.sides.unproven or line.player.player_id in self.absent:
            self._observe_side(at_ms, line.player, out, is_proof=is_purchase(line))
        if self.economy.is_known and not self._is_absent(line.player):
            self.economy.change_money(line)
        if line.change == DEFUSE_REWARD:
            self.flow.combat.record_payment(at_ms, line)

    def _stats_mark(self, at_ms: int, line: world_lines.StatsMark, out: list[GameEvent]) -> None:
        if self.block.read_mark(line):
            self.economy.set_money(self.block.money)
            if self.flow.phase is MapPhase.LIVE:
                guests = self.flow.sides.guests
                rows = tuple([row for row in self.block.rows if row.player_id not in guests])
                out.append(events.GameCounted(at_ms, self.block.round_number, rows))

    def _stats_field(self, _at_ms: int, line: world_lines.StatsField, _out: list[GameEvent]) -> None:
        self.block.read_field(line)

    def _stats_player(self, _at_ms: int, line: world_lines.StatsPlayer, _out: list[GameEvent]) -> None:
        if self.flow.phase is MapPhase.LIVE:
            self.block.read_player(line)
        else:
            self.block.read_money(line)


def _has_guest(line: Line, guests: Mapping[PlayerId, None]) -> bool:
    """True for a fight line that involves a spectator or coach. Such lines do not count in any statistics.

    CS2 has no coach slots, so the plugin kills coaches at the start of each round to take them out of the game.
    """
    match line:
        case player_lines.Killed() | player_lines.Attacked() | player_lines.Assisted():
            return line.player.player_id in guests or line.victim.player_id in guests
        case player_lines.BlindedBy():
            return line.player.player_id in guests or line.thrower.player_id in guests
        case player_lines.PlayerLogLine():
            return line.player.player_id in guests
        case _:
            return False


_PROOFS = frozenset((events.Kill, events.Death, events.BombPlanted))
"""Types of fight events that update the sides of players even if no lines were lost."""

_STEPS: dict[type, Callable[..., None]] = {
    player_lines.ItemTransfer: Interpreter._item,
    player_lines.MoneyChange: Interpreter._money,
    player_lines.LeftBuyzone: Interpreter._left_buyzone,
    world_lines.WorldTriggered: Interpreter._world_trigger,
    world_lines.RoundEndNotice: Interpreter._round_end,
    world_lines.FreezeStarted: Interpreter._freeze,
    player_lines.Connected: Interpreter._connected,
    player_lines.Entered: Interpreter._entered,
    player_lines.SwitchedTeam: Interpreter._switched,
    player_lines.Disconnected: Interpreter._disconnected,
    player_lines.ChangedName: Interpreter._renamed,
    player_lines.Chat: Interpreter._chat,
    world_lines.ConsoleChat: Interpreter._console_chat,
    world_lines.RconCommand: Interpreter._rcon,
    world_lines.StatsPlayer: Interpreter._stats_player,
    world_lines.StatsField: Interpreter._stats_field,
    world_lines.StatsMark: Interpreter._stats_mark,
}

_COMBAT: dict[type, Callable[..., GameEvent | None]] = {
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

_FLOW: dict[type, Callable[..., None]] = {
    world_lines.TeamPlaying: MapFlow.on_team_name,
    world_lines.MatchScore: MapFlow.on_score,
    world_lines.PauseChanged: MapFlow.on_pause,
    world_lines.MatchUnpaused: MapFlow.on_unpause,
    world_lines.LoadingMap: MapFlow.on_map_loading,
    world_lines.GameOver: MapFlow.on_game_over,
    world_lines.Vote: MapFlow.on_vote,
}
