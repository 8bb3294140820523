"""Control the game of a server: map loads, warmup, knife round, match and its end.

Commands take effect in the tick in which they arrive; anything that takes time is scheduled. Watchers are notified
last, because they may cancel everything that was scheduled here.
"""

from __future__ import annotations

from cs2_protocol.game import Side
from cs2_protocol.log_lines.player_lines import Connected, Disconnected, Entered, Suicide, SwitchedTeam
from cs2_protocol.log_lines.player_token import player_token
from cs2_protocol.log_lines.world_lines import WorldTriggered
from cs2_simulator.agenda import TICKS_PER_S, Script
from cs2_simulator.play.arena import Arena
from cs2_simulator.play.door import LOOP_DEACTIVATE
from cs2_simulator.play.flow.backups import reload_match
from cs2_simulator.play.flow.map_load import load_ms, map_to_load, run_load
from cs2_simulator.play.flow.pauses import TIMEOUTS, Pauses
from cs2_simulator.play.flow.rounds import Rounds, switch_sides
from cs2_simulator.play.flow.slot import TaskSlot
from cs2_simulator.play.flow.standing import GamePhase, Standing
from cs2_simulator.play.flow.warmup import Warmup
from cs2_simulator.play.player import PENDING_ID, UNASSIGNED, Player
from cs2_simulator.play.watcher import Watcher

__all__ = ["Game", "GamePhase"]

RESTART_NOTICE_MS = 500
"""Milliseconds from a restart command to its announcement. In a real log, the announcement follows within a second."""

MAX_RESTART_S = 60

FIRST_FREEZE_MS = 3_000
"""Milliseconds from a map load to the first freeze time, unless a player joins earlier."""

REJOIN_MS = 4_000
"""Milliseconds for which no player is on a side after a map restart."""

TV = player_token("SourceTV", 0, "BOT", "")
"""SourceTV, which has user id 0 on every map."""


class Game(Watcher):
    """The game of one server. Until a map is loaded, most commands do nothing."""

    def __init__(self, arena: Arena) -> None:
        self._arena = arena
        self.standing = Standing(arena)
        self._pauses = Pauses(arena, self._pauses_changed)
        self._warmup = Warmup(arena, self._pauses, self.end_warmup)
        self.rounds = Rounds(arena, self.standing, self._pauses, self._rounds_over)
        self._requested_map = ""
        self._is_knife_next = False
        self._has_commenced = False
        self._change = TaskSlot(arena.agenda)
        self._load = TaskSlot(arena.agenda)
        self._restart = TaskSlot(arena.agenda)
        self._follow_up = TaskSlot(arena.agenda)
        self._rejoin_plan = TaskSlot(arena.agenda)
        arena.watchers.append(self)
        arena.variables.observers.append(self._variable_changed)

    # --- state -----------------------------------------------------------------------------------------------------

    @property
    def phase(self) -> GamePhase:
        return self.standing.phase

    @property
    def is_paused(self) -> bool:
        """True while a pause or timeout is active, even if play only stops at the next freeze time."""
        return self._pauses.is_on

    @property
    def is_timeout_running(self) -> bool:
        return self._pauses.is_timeout_running

    @property
    def is_halftime(self) -> bool:
        """True from the end of a half, or from the end of regulation before overtime, until the next freeze time."""
        return self.rounds.is_between_halves

    @property
    def team1_side(self) -> Side:
        return self.standing.team1_side

    @property
    def score(self) -> tuple[int, int]:
        return self.standing.score

    # --- maps ------------------------------------------------------------------------------------------------------

    def change_map(self, map_name: str) -> None:
        """Load a map in the next frame. As on a real server, the console still answers with the old map until then."""
        self._change.call_in(1000 // TICKS_PER_S, lambda: self.load_map(map_name))

    def load_map(self, map_name: str) -> None:
        """Leave the map and load another map, or the same map again. A workshop map is requested by its id."""
        arena = self._arena
        self._change.cancel()
        self._cancel_plans()
        self._warmup.stop()
        self.rounds.stop()
        self._pauses.clear()
        arena.book.close()
        self.standing.phase = GamePhase.LOADING
        self._requested_map = map_name
        arena.is_busy = True
        arena.map_number += 1
        self._load.call_in(load_ms(arena), self._finish_load)
        self._disconnect_all()
        arena.absent.clear()
        arena.buy_zone_exits.clear()
        if arena.map_name:
            arena.notify(lambda watcher: watcher.map_closing())

    def _disconnect_all(self) -> None:
        arena = self._arena
        for player in tuple(arena.players):
            arena.log.write(Disconnected(player.token, LOOP_DEACTIVATE))
            if player.is_alive and not player.person.is_bot:
                arena.log.write(Suicide(player.token, player.position, "world"))
            arena.players.remove(player)
            player.is_alive = player.is_in_game = False
            for watcher in tuple(arena.watchers):
                watcher.player_left(player, LOOP_DEACTIVATE)

    def _finish_load(self) -> None:
        arena = self._arena
        arena.map_name = map_to_load(self._requested_map, arena.scenario)
        # Restart the log here, not earlier: as on a real server, the log of the previous map can still be sent during
        # the load.
        arena.log.begin_map()
        for line in run_load(arena.variables, arena.map_name):
            arena.log.write(line)
        if arena.variables.is_on("tv_enable"):
            arena.log.write(Connected(TV, "(unknown)"))
            arena.log.write(Entered(TV))
        arena.log.write(WorldTriggered("Warmup_Start"))
        arena.is_busy = False
        self._is_knife_next = self._has_commenced = False
        self.standing.reset_sides()
        self.standing.reset(GamePhase.WARMUP)
        self._warmup.begin(is_announced=True)
        self._follow_up.call_in(FIRST_FREEZE_MS, lambda: self.rounds.spawn_all(is_match_start=True))
        arena.notify(lambda watcher: watcher.map_loaded(arena.map_name))
        self._arena.notify(lambda watcher: watcher.warmup_began())

    # --- warmup and starts -----------------------------------------------------------------------------------------

    def start_warmup(self) -> None:
        """Start warmup, except during a map load. Afterwards, team 1 begins as CT."""
        if self.phase is GamePhase.LOADING:
            return
        self.standing.reset_sides()
        self._open_warmup()
        self._arena.notify(lambda watcher: watcher.warmup_began())

    def end_warmup(self) -> None:
        """End warmup, and start the match or the knife round that precedes it."""
        if self.phase is GamePhase.WARMUP:
            self._arena.notify(lambda watcher: watcher.warmup_ending())
            self._warmup.end()
            self._start()

    def restart(self, seconds: int) -> None:
        """Restart the current match, knife round or warmup after `seconds`, at most MAX_RESTART_S."""
        if self.phase is not GamePhase.LOADING and seconds > 0:
            self._restart.run(self._restart_in(min(seconds, MAX_RESTART_S)))

    def start_knife_round(self) -> None:
        self._is_knife_next = True

    def swap_teams(self) -> None:
        if self.phase is not GamePhase.LOADING:
            self.standing.swap_teams()
            self.rounds.economy.swap_sides()
            switch_sides(self._arena)
            self.restart(1)

    def end_now(self) -> None:
        """Abort the match without logging `Game Over`, and start warmup."""
        self._cancel_plans()
        self._is_knife_next = False
        self._pauses.clear()
        self.start_warmup()

    def _restart_in(self, seconds: int) -> Script[None]:
        yield RESTART_NOTICE_MS
        unit = "second" if seconds == 1 else "seconds"
        self._arena.log.write(WorldTriggered(f"Restart_Round_({seconds}_{unit})"))
        self.standing.write_scores()
        yield seconds * 1000
        if self.phase is GamePhase.WARMUP:
            self._open_warmup()
            self._arena.notify(lambda watcher: watcher.warmup_began())
        else:
            self._start()

    def _start(self) -> None:
        self._follow_up.cancel()
        self.rounds.begin(is_knife=self._is_knife_next)

    def _open_warmup(self) -> None:
        self._follow_up.cancel()
        self.rounds.stop()
        self._arena.book.close()
        self.standing.reset(GamePhase.WARMUP)
        self.rounds.economy.start_half(self._arena)
        self.rounds.spawn_all(is_match_start=True)
        self._warmup.begin()

    def _commence(self, player: Player) -> None:
        """Commence the game when the first player has joined a side: log it and spawn the player. Warmup continues."""
        self._has_commenced = True
        self._arena.log.write(WorldTriggered("Game_Commencing"))
        self.standing.write_teams()
        self.rounds.economy.spawn(self._arena, player)
        self._open_warmup()

    # --- pauses and backups ----------------------------------------------------------------------------------------

    def pause(self, by: str) -> None:
        """Pause the game in the current or next freeze time; `by` is the cause that is logged.

        Timeouts exist in matches and knife rounds only, not in warmup.
        """
        if by not in TIMEOUTS or self.phase in (GamePhase.KNIFE, GamePhase.LIVE):
            self._pauses.pause(by)

    def unpause(self, by: str) -> None:
        """End a pause. Ignored if the pause is not active."""
        self._pauses.unpause(by)

    def end_timeouts(self) -> None:
        """End active timeouts without logging their end."""
        self._pauses.end_timeouts()

    def backups(self) -> list[str]:
        return self.rounds.backups.names()

    @property
    def last_backup(self) -> str:
        return self.rounds.backups.last

    def restore(self, file: str) -> bool:
        """Restore a backup of this map, even in warmup or after the end of the map.

        Return False if there is no such backup, or if a map is loading.
        """
        arena, rounds = self._arena, self.rounds
        backup = rounds.backups.find(file)
        if backup is None or backup.map_name != arena.map_name or self.phase is GamePhase.LOADING:
            return False
        self._cancel_plans()
        self._is_knife_next = False
        self._warmup.stop()
        rounds.stop()
        reload_match(arena, self.standing, rounds.economy, backup)
        rounds.resume()
        arena.notify(lambda watcher: watcher.restored(backup.rounds_played))
        rounds.notify_freeze_began()
        return True

    # --- after the last round --------------------------------------------------------------------------------------

    def _rounds_over(self) -> None:
        if self.phase is GamePhase.KNIFE:
            self._is_knife_next = False
            self.start_warmup()
            return
        self._follow_up.run(self._continue_after_map((*self._arena.playing, *self._arena.absent)))
        self._arena.notify(lambda watcher: watcher.map_ended())

    def _continue_after_map(self, played: tuple[Player, ...]) -> Script[None]:
        """Restart or reload the map after its end. A server does this if it gets no commands."""
        arena = self._arena
        yield int(arena.variables.number("mp_match_restart_delay") * 1000)
        if not arena.variables.is_on("mp_match_end_restart"):
            self.load_map(self._requested_map)
            return
        sides = {player: player.team for player in played}
        self.rounds.stop()
        _unassign(arena, played)
        self.standing.reset_score()
        self._has_commenced = False
        self.rounds.economy.start_half(arena)
        self.rounds.spawn_all(is_match_start=True)
        self.standing.reset_sides()
        self.standing.reset(GamePhase.WARMUP)
        self._warmup.begin()
        self._rejoin_plan.call_in(REJOIN_MS, lambda: self._rejoin(sides))
        self._arena.notify(lambda watcher: watcher.warmup_began())

    def _rejoin(self, sides: dict[Player, str]) -> None:
        """Move the players who are still connected to their previous sides."""
        arena = self._arena
        for player, side in sides.items():
            if player not in arena.players or player.team != UNASSIGNED:
                continue
            team = arena.required_team(player) or side
            arena.log.write(SwitchedTeam(player.teamless_token, UNASSIGNED, team))
            player.team = team
            for watcher in tuple(arena.watchers):
                watcher.player_joined(player)

    # --- events ----------------------------------------------------------------------------------------------------

    def player_joined(self, player: Player) -> None:
        """Commence the game if this is the first player; otherwise let the player into the running game."""
        if player.is_playing and self.phase is GamePhase.WARMUP:
            if self._has_commenced:
                self.rounds.economy.spawn(self._arena, player)
            else:
                self._commence(player)
        elif player.is_playing:
            self.rounds.player_joined(player)
        self._warmup.update()

    def player_left(self, player: Player, reason: str) -> None:
        """Update the warmup, which may have to wait for players again, or the round, which may now be decided."""
        self._warmup.update()
        self.rounds.player_left()

    def _variable_changed(self, name: str) -> None:
        if name == "mp_warmuptime":
            self._warmup.restart_countdown()
        elif name == "mp_warmup_pausetimer":
            self._warmup.update()

    def _pauses_changed(self) -> None:
        self.rounds.update_freeze()
        self._warmup.update()

    def _cancel_plans(self) -> None:
        for slot in (self._load, self._restart, self._follow_up, self._rejoin_plan):
            slot.cancel()


def _unassign(arena: Arena, played: tuple[Player, ...]) -> None:
    """Remove all players who were on a side at the end of the map from their teams, even those who have left since."""
    for player in played:
        if player.side is None:
            continue
        token = player_token(player.person.name, player.user_id, PENDING_ID, None)
        arena.log.write(SwitchedTeam(token, player.team, UNASSIGNED))
        player.team = UNASSIGNED
        player.is_alive = False
