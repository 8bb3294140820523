"""What is being played, and who may change that? The flow of a server: maps, warmup, knife round, match, its end.

Commands act at once, in the tick they come; what takes time is planned. Watchers are told last, because what they do
may call off everything that is planned here.
"""

from __future__ import annotations

from matchpod.core.model import Side
from matchpod.cs2.log_lines.player_lines import Connected, Disconnected, Entered, Suicide, SwitchedTeam
from matchpod.cs2.log_lines.player_token import player_token
from matchpod.cs2.log_lines.world_lines import WorldTriggered
from matchpod.simulator.agenda import Script
from matchpod.simulator.play.arena import Arena
from matchpod.simulator.play.door import LOOP_DEACTIVATE
from matchpod.simulator.play.flow.ending import take_off_teams
from matchpod.simulator.play.flow.map_load import load_ms, map_to_load, run_load
from matchpod.simulator.play.flow.pauses import TIMEOUTS, Pauses
from matchpod.simulator.play.flow.reload import reload_match
from matchpod.simulator.play.flow.rounds import Rounds, switch_sides
from matchpod.simulator.play.flow.slot import Slot
from matchpod.simulator.play.flow.standing import Phase, Standing
from matchpod.simulator.play.flow.warmup import Warmup
from matchpod.simulator.play.player import UNASSIGNED, Player
from matchpod.simulator.play.watcher import Watcher

__all__ = ["Game", "Phase"]

RESTART_NOTICE_MS = 500
"""The game looks for a restart now and then: in a real log it is announced in the second after the command."""

MAX_RESTART_S = 60

FIRST_FREEZE_MS = 3_000
"""When a map that was just loaded opens its first freeze time, with nobody there."""

REJOIN_MS = 4_000
"""How long people stand on no side after a map has started anew."""

TV = player_token("SourceTV", 0, "BOT", "")
"""The broadcast, which takes number 0 on every map."""


class Game(Watcher):
    """The game of one server. Nothing is loaded at first; until then, and while a map loads, commands do nothing."""

    def __init__(self, arena: Arena) -> None:
        self._arena = arena
        self._standing = Standing(arena)
        self._pauses = Pauses(arena, self._look_again)
        self._warmup = Warmup(arena, self._pauses, self.end_warmup)
        self._rounds = Rounds(arena, self._standing, self._pauses, self._rounds_over)
        self._asked_map = ""
        self._is_knife_next = False
        self._has_commenced = False
        self._load = Slot(arena.agenda)
        self._restart = Slot(arena.agenda)
        self._afterwards = Slot(arena.agenda)
        self._rejoining = Slot(arena.agenda)
        arena.watchers.append(self)
        arena.variables.observers.append(self._variable_changed)

    # --- how it stands ---------------------------------------------------------------------------------------------

    @property
    def phase(self) -> Phase:
        """What is being played."""
        return self._standing.phase

    @property
    def is_paused(self) -> bool:
        """True while a pause or a timeout holds the game, or will at the next freeze time."""
        return self._pauses.is_on

    @property
    def round_number(self) -> int:
        """The round being played, from 1; 0 outside a match."""
        return self._rounds.number

    @property
    def rounds_played(self) -> int:
        """Rounds of the match that are decided."""
        return self._standing.rounds_played

    @property
    def team1_side(self) -> Side:
        """Where the team named by `mp_teamname_1` stands."""
        return self._standing.team1_side

    @property
    def score(self) -> tuple[int, int]:
        """Rounds won by the first team and the second."""
        return self._standing.score

    def side_score(self, side: Side) -> int:
        """Rounds won by the team on a side."""
        return self._standing.side_score(side)

    def team_name(self, side: Side) -> str:
        """The name of the team on a side; empty when it has none."""
        return self._standing.team_name(side)

    # --- maps ------------------------------------------------------------------------------------------------------

    def load_map(self, map_name: str) -> None:
        """Leave the map and load another, or the same; a workshop map is asked for by its number."""
        arena = self._arena
        self._call_off()
        self._warmup.stop()
        self._rounds.stop()
        self._pauses.clear()
        arena.book.close()
        self._standing.phase = Phase.LOADING
        self._asked_map = map_name
        arena.is_busy = True
        arena.map_number += 1
        self._load.call_in(load_ms(arena), self._finish_load)
        self._disconnect_all()
        if arena.map_name:
            for watcher in tuple(arena.watchers):
                watcher.map_closing()

    def _disconnect_all(self) -> None:
        arena = self._arena
        for player in tuple(arena.players):
            arena.log.write(Disconnected(player.token, LOOP_DEACTIVATE))
            if player.is_alive:
                arena.log.write(Suicide(player.token, player.position, "world"))
            arena.players.remove(player)
            player.is_alive = player.is_in_game = False
            for watcher in tuple(arena.watchers):
                watcher.player_left(player, LOOP_DEACTIVATE)

    def _finish_load(self) -> None:
        arena = self._arena
        arena.map_name = map_to_load(self._asked_map, arena.scenario)
        # Only here: what was said of the map before has the time of the load to be sent, as on a real server.
        arena.log.begin_map()
        for line in run_load(arena.variables, arena.map_name):
            arena.log.write(line)
        if arena.variables.is_on("tv_enable"):
            arena.log.write(Connected(TV, "(unknown)"))
            arena.log.write(Entered(TV))
        arena.log.write(WorldTriggered("Warmup_Start"))
        arena.is_busy = False
        self._is_knife_next = self._has_commenced = False
        self._standing.forget_sides()
        self._standing.reset(Phase.WARMUP)
        self._warmup.begin(is_announced=True)
        self._afterwards.call_in(FIRST_FREEZE_MS, lambda: self._rounds.opening.open(is_match_start=True))
        for watcher in tuple(arena.watchers):
            watcher.map_loaded(arena.map_name)
        self._tell_of_warmup()

    # --- warmup and starts -----------------------------------------------------------------------------------------

    def start_warmup(self) -> None:
        """Go to warmup, from wherever; the first team begins as CT after it."""
        if self.phase is Phase.LOADING:
            return
        self._standing.forget_sides()
        self._open_warmup()
        self._tell_of_warmup()

    def end_warmup(self) -> None:
        """Start the match, or the knife round before it, if this is warmup."""
        if self.phase is Phase.WARMUP:
            self._warmup.end()
            self._start()

    def restart(self, seconds: int) -> None:
        """Start the match anew in some seconds; warmup and knife round begin anew as what they are."""
        if self.phase is not Phase.LOADING and seconds > 0:
            self._restart.run(self._restart_in(min(seconds, MAX_RESTART_S)))

    def start_knife_round(self) -> None:
        """Let the next start be a knife round."""
        self._is_knife_next = True

    def swap_teams(self) -> None:
        """The teams change sides, and what is played starts anew."""
        if self.phase is not Phase.LOADING:
            self._standing.swap_teams()
            self._rounds.economy.swap_sides()
            switch_sides(self._arena)
            self.restart(1)

    def end_now(self) -> None:
        """Break the match off without an end: back to warmup."""
        self._call_off()
        self._is_knife_next = False
        self._pauses.clear()
        self.start_warmup()

    def _restart_in(self, seconds: int) -> Script[None]:
        yield RESTART_NOTICE_MS
        word = "second" if seconds == 1 else "seconds"
        self._arena.log.write(WorldTriggered(f"Restart_Round_({seconds}_{word})"))
        self._standing.write_scores()
        yield seconds * 1000
        if self.phase is Phase.WARMUP:
            self._open_warmup()
            self._tell_of_warmup()
        else:
            self._start()

    def _start(self) -> None:
        self._afterwards.cancel()
        self._rounds.begin(is_knife=self._is_knife_next)

    def _open_warmup(self) -> None:
        self._afterwards.cancel()
        self._rounds.stop()
        self._arena.book.close()
        self._standing.reset(Phase.WARMUP)
        self._rounds.economy.start_half(self._arena)
        self._rounds.opening.open(is_match_start=True)
        self._warmup.begin()

    def _commence(self, player: Player) -> None:
        """The first player of a map stands on a side: the game begins, still in warmup."""
        self._has_commenced = True
        self._arena.log.write(WorldTriggered("Game_Commencing"))
        self._standing.write_teams()
        self._rounds.economy.spawn(self._arena, player)
        self._open_warmup()

    # --- pauses and backups ----------------------------------------------------------------------------------------

    def pause(self, by: str) -> None:
        """Hold the game in freeze time, this one or the next; `by` is the word of the log for who does.

        Timeouts are for matches: there is none in warmup.
        """
        if by not in TIMEOUTS or self.phase in (Phase.KNIFE, Phase.LIVE):
            self._pauses.pause(by)

    def unpause(self, by: str) -> None:
        """Let go of a pause; what does not hold the game is passed over."""
        self._pauses.unpause(by)

    def backups(self) -> list[str]:
        """The files of rounds that can be played again, newest first."""
        return self._rounds.backups.names()

    @property
    def last_backup(self) -> str:
        """The newest of them; empty when there is none."""
        return self._rounds.backups.last

    def restore(self, file: str) -> bool:
        """Go back to a backup of this map, out of a match, out of warmup or after the end; False when there is none."""
        arena, rounds = self._arena, self._rounds
        backup = rounds.backups.find(file)
        if backup is None or backup.map_name != arena.map_name or self.phase is Phase.LOADING:
            return False
        self._call_off()
        self._is_knife_next = False
        self._warmup.stop()
        rounds.stop()
        reload_match(arena, self._standing, rounds.economy, backup)
        rounds.go_on()
        for watcher in tuple(arena.watchers):
            watcher.restored(backup.rounds_played)
        rounds.tell_of_freeze()
        return True

    # --- after the last round --------------------------------------------------------------------------------------

    def _rounds_over(self) -> None:
        if self.phase is Phase.KNIFE:
            self._is_knife_next = False
            self.start_warmup()
            return
        self._afterwards.run(self._go_on_after(tuple(self._arena.playing)))
        for watcher in tuple(self._arena.watchers):
            watcher.map_ended()

    def _go_on_after(self, played: tuple[Player, ...]) -> Script[None]:
        """What a server does with a map that is over, when nobody tells it anything else."""
        arena = self._arena
        yield int(arena.variables.number("mp_match_restart_delay") * 1000)
        if not arena.variables.is_on("mp_match_end_restart"):
            self.load_map(self._asked_map)
            return
        sides = {player: player.team for player in played}
        self._rounds.stop()
        take_off_teams(arena, played)
        self._standing.forget_score()
        self._has_commenced = False
        self._rounds.economy.start_half(arena)
        self._rounds.opening.open(is_match_start=True)
        self._standing.forget_sides()
        self._standing.reset(Phase.WARMUP)
        self._warmup.begin()
        self._rejoining.call_in(REJOIN_MS, lambda: self._rejoin(sides))
        self._tell_of_warmup()

    def _rejoin(self, sides: dict[Player, str]) -> None:
        """Who is still here takes his side again."""
        arena = self._arena
        for player, side in sides.items():
            if player not in arena.players or player.team != UNASSIGNED:
                continue
            team = arena.team_of(player) or side
            arena.log.write(SwitchedTeam(player.teamless_token, UNASSIGNED, team))
            player.team = team
            for watcher in tuple(arena.watchers):
                watcher.player_joined(player)

    # --- what happens on the server --------------------------------------------------------------------------------

    def player_joined(self, player: Player) -> None:
        """Somebody took a team: the game may begin with him, or he with the game."""
        if player.is_playing and self.phase is Phase.WARMUP:
            if self._has_commenced:
                self._rounds.economy.spawn(self._arena, player)
            else:
                self._commence(player)
        elif player.is_playing:
            self._rounds.came(player)
        self._warmup.look_again()

    def player_left(self, player: Player, reason: str) -> None:
        """Somebody is gone: warmup may have to wait again."""
        self._warmup.look_again()

    def _variable_changed(self, name: str) -> None:
        if name == "mp_warmuptime":
            self._warmup.restart_countdown()
        elif name == "mp_warmup_pausetimer":
            self._warmup.look_again()

    def _look_again(self) -> None:
        self._rounds.look_again()
        self._warmup.look_again()

    def _call_off(self) -> None:
        for slot in (self._load, self._restart, self._afterwards, self._rejoining):
            slot.cancel()

    def _tell_of_warmup(self) -> None:
        for watcher in tuple(self._arena.watchers):
            watcher.warmup_began()
