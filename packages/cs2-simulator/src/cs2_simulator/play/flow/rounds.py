"""Play the rounds of a map: freeze time, play, decision, and what follows.

The key of a random stream consists of the number of maps finished before, the number of the round, and how often this
round was started in this match. So earlier events and console commands do not change a round, a restarted match is the
same again, and a round played again after a restore is different.
Watchers are notified last, and a script yields once after notifying them, because watchers may cancel everything that
was scheduled here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from operator import attrgetter
from random import Random
from zlib import crc32

from cs2_protocol.game import Side
from cs2_protocol.log_lines.player_lines import SwitchedTeam
from cs2_protocol.log_lines.world_lines import FreezeStarted, GameOver, WorldTriggered
from cs2_simulator.agenda import TICKS_PER_S, Script
from cs2_simulator.play.arena import Arena
from cs2_simulator.play.fights.deathmatch import play_deathmatch
from cs2_simulator.play.fights.economy import Economy
from cs2_simulator.play.fights.fate import choose_winner
from cs2_simulator.play.fights.round_play import RoundStyle, play_aftermath, play_round
from cs2_simulator.play.flow.accolades import accolades
from cs2_simulator.play.flow.backups import Backup, Backups
from cs2_simulator.play.flow.map_load import is_hostage_map
from cs2_simulator.play.flow.pauses import Pauses
from cs2_simulator.play.flow.schedule import NextStep, next_step, rules_of
from cs2_simulator.play.flow.slot import TaskSlot
from cs2_simulator.play.flow.standing import GamePhase, Standing
from cs2_simulator.play.flow.stats_rows import stats_block
from cs2_simulator.play.player import Player

MIN_BUY_MS = 2_000
"""Minimum time for purchases in milliseconds. It extends into the round if the freeze time is shorter."""

MIN_PAUSE_MS = 100
"""Minimum pause between two rounds, in milliseconds. A round can end in its first tick, so time might not advance
otherwise."""

ENDLESS_MS = 365 * 24 * 3_600_000
"""Duration in milliseconds of a deathmatch without a time limit."""


NO_MAP_GROUP = ""
"""The map group of a server that was started with a map: none, so its `Game Over` line has two spaces in a row."""

MS_PER_MINUTE = 60_000


class Rounds:
    def __init__(self, arena: Arena, standing: Standing, pauses: Pauses, on_over: Callable[[], None]) -> None:
        """`on_over` is called after a knife round and after `Game Over`."""
        self._arena = arena
        self._standing = standing
        self._pauses = pauses
        self._on_over = on_over
        self.economy = Economy()
        self.backups = Backups()
        self.number = 0
        """The number of the current round; 0 outside a match and in a knife round."""
        self._maps_over = 0
        """Finished maps, without the current one, which a backup can reopen."""
        self._is_over = False
        self._start_counts: dict[int, int] = {}
        """How often each round of this match was started."""
        self._next = NextStep.ROUND
        self._is_freeze = False
        self._is_idle = False
        self._is_played = False
        """True from `Round_Start` to the decision."""
        self._started_tick = 0
        self._round_start = TaskSlot(arena.agenda)
        self._flow = TaskSlot(arena.agenda)
        self._background = TaskSlot(arena.agenda)

    @property
    def is_between_halves(self) -> bool:
        return self._next in (NextStep.HALF, NextStep.OVERTIME)

    def stop(self) -> None:
        for slot in (self._round_start, self._flow, self._background):
            slot.cancel()
        self.number = 0
        self._is_freeze = self._is_idle = self._is_played = False
        self._next = NextStep.ROUND

    def begin(self, *, is_knife: bool) -> None:
        """Start a match from the beginning, or the knife round that precedes it."""
        self.stop()
        arena = self._arena
        self._standing.reset(GamePhase.KNIFE if is_knife else GamePhase.LIVE)
        self._started_tick = arena.agenda.tick
        self._start_counts.clear()
        self._maps_over += self._is_over
        self._is_over = False
        if is_knife:
            arena.book.close()
        else:
            arena.book.open(is_free_for_all=self._is_free_for_all, has_respawns=self._is_deathmatch)
        self.economy.start_half(arena)
        self._begin_freeze(is_match_start=True)
        if not is_knife:
            arena.notify(lambda watcher: watcher.went_live())
            self.notify_freeze_began()

    def resume(self) -> None:
        """Continue with the next round after score and sides were set from a backup. The time limit restarts."""
        self._started_tick = self._arena.agenda.tick
        self._is_over = False
        self._begin_freeze()

    def spawn_all(self, *, round_number: int = 1, is_match_start: bool = False, bomb_rng: Random | None = None) -> None:
        """Start a freeze time, all in one tick.

        `bomb_rng` chooses the bomb carrier; if it is None, there is no bomb.
        """
        arena, standing = self._arena, self._standing
        write = arena.log.write
        write(FreezeStarted())
        scores = {"ct_score": standing.side_score(Side.CT), "t_score": standing.side_score(Side.T)}
        for line in stats_block(arena, round_number=round_number, **scores):
            write(line)
        arena.write_last_lines()
        for player in sorted(arena.playing, key=_spawn_order):
            self.economy.spawn(arena, player)
        if is_match_start:
            standing.write_match_start()
        if bomb_rng is not None:
            self.economy.assign_bomb(arena, bomb_rng)
        standing.write_status()

    def notify_freeze_began(self) -> None:
        """Notify the watchers of a freeze time. Stop early if a watcher ends the freeze time."""
        number = self.number
        for watcher in tuple(self._arena.watchers):
            if self._is_freeze and self.number == number:
                watcher.freeze_began(number)

    def update_freeze(self) -> None:
        """Extend the freeze time while a pause is active. When the pause ends, a full freeze time starts."""
        if not self._is_freeze:
            return
        if self._pauses.is_on:
            self._round_start.cancel()
            self._pauses.run_timeouts()
        else:
            self._round_start.call_in(self._freeze_ms, self._start_round)

    def player_joined(self, player: Player) -> None:
        """Spawn a player who joined a side in freeze time.

        In a round they have to wait. If the game is idle, it resumes.
        """
        if self._is_idle:
            self._begin_next()
        elif self._is_freeze:
            self.economy.spawn(self._arena, player)

    def player_left(self) -> None:
        """Check immediately whether the round is decided.

        A real round ends in the tick in which its last player leaves.
        """
        if self._is_played:
            self._flow.wake()

    def _begin_next(self) -> None:
        """Begin the freeze time of the next round. If there are no players, wait for a player to join."""
        arena, standing = self._arena, self._standing
        self._is_idle = not arena.playing
        if self._is_idle:
            return
        arena.notify(lambda watcher: watcher.round_restarting())
        self.economy.pay_for_dead(arena)
        if self._next is NextStep.HALF:
            standing.change_sides()
            self.economy.swap_sides()
            switch_sides(arena)
        if self._next is not NextStep.ROUND:
            self.economy.start_half(arena)
        self._next = NextStep.ROUND
        self._begin_freeze()
        self.notify_freeze_began()

    def _begin_freeze(self, *, is_match_start: bool = False) -> None:
        arena, standing = self._arena, self._standing
        is_knife = standing.phase is GamePhase.KNIFE
        self.number = 0 if is_knife else standing.rounds_played + 1
        has_bomb = self._style in (RoundStyle.BOMB, RoundStyle.RETAKE) and not self._is_deathmatch
        rng = self._rng("bomb") if has_bomb else None
        self.spawn_all(round_number=standing.rounds_played + 1, is_match_start=is_match_start, bomb_rng=rng)
        self._is_freeze = True
        self.update_freeze()
        self._background.cancel()
        if is_knife or self._is_deathmatch:
            return
        self._write_backup()
        self._background.run(self.economy.buy(arena, self._rng("buy"), max(self._freeze_ms, MIN_BUY_MS)))

    def _start_round(self) -> None:
        arena = self._arena
        self._is_freeze = False
        if not arena.playing:
            self._is_idle = True
            return
        arena.restart_clock()
        arena.log.write(WorldTriggered("Round_Start"))
        if self._standing.phase is GamePhase.KNIFE:
            self._flow.run(self._play_knife(self._rng("knife")))
            return
        rng, winner_rng = self._rng("round"), self._rng("fate")
        self._start_counts[self.number] = self._start_counts.get(self.number, 0) + 1
        side = self._standing.team1_side
        arena.book.round_started(self.number, arena.players_on(side), arena.players_on(side.other))
        self._flow.run(self._play_deathmatch(rng) if self._is_deathmatch else self._play_round(rng, winner_rng))
        arena.notify(lambda watcher: watcher.round_started(self.number))

    def _play_knife(self, rng: Random) -> Script[None]:
        side = self._standing.team1_side
        winner = choose_winner(self._arena, rng, team1_side=side, score=(0, 0))
        end = yield from play_round(self._arena, rng, winner, RoundStyle.KNIFE)
        self._standing.count_round(end.side)
        self._standing.write_round_end(end)
        self._arena.notify(lambda watcher: watcher.round_ended(0, end))
        yield 0
        self._on_over()

    def _play_round(self, rng: Random, winner_rng: Random) -> Script[None]:
        arena, standing, number = self._arena, self._standing, self.number
        side = standing.team1_side
        winner = choose_winner(arena, winner_rng, team1_side=side, score=standing.score)
        self._is_played = True
        end = yield from play_round(arena, rng, winner, self._style)
        self._is_played = False
        standing.count_round(end.side)
        standing.write_round_end(end)
        self.economy.pay(arena, end)
        arena.book.round_decided(standing.team_on(end.side), end.mvp)
        self._next = self._next_step()
        # Started without a delay: players killed by the bomb die in this tick, before the map ends.
        self._background.start(play_aftermath(arena, self._rng("aftermath")))
        if self._next is NextStep.OVER:
            self._end_map()
        arena.notify(lambda watcher: watcher.round_ended(number, end))
        yield 0
        if self._next is NextStep.OVER:
            self._on_over()
            return
        pause_s = arena.variables.number("mp_round_restart_delay")
        if self._next is NextStep.HALF:
            pause_s += arena.variables.number("mp_halftime_duration")
        yield max(int(pause_s * 1000), MIN_PAUSE_MS)
        self._begin_next()

    def _play_deathmatch(self, rng: Random) -> Script[None]:
        arena, is_ffa = self._arena, self._is_free_for_all
        limit_ms = int(arena.variables.number("mp_timelimit") * MS_PER_MINUTE) or ENDLESS_MS
        until_ms = limit_ms - self._played_ms
        yield from play_deathmatch(arena, rng, is_free_for_all=is_ffa, until_ms=until_ms)
        self._standing.score = _deathmatch_score(arena, is_free_for_all=is_ffa)
        self._end_map()
        self._on_over()

    def _end_map(self) -> None:
        """Log the awards, the score and `Game Over`, and close the book of statistics."""
        arena, standing = self._arena, self._standing
        for line in accolades(arena):
            arena.log.write(line)
        standing.write_status()
        ct, t = standing.side_score(Side.CT), standing.side_score(Side.T)
        # Rounded to minutes: a real map of 9:56 minutes is logged with 10 min.
        minutes = round(self._played_ms / MS_PER_MINUTE)
        arena.log.write(GameOver(arena.variables.mode_name, NO_MAP_GROUP, arena.map_name, ct, t, minutes))
        standing.phase = GamePhase.OVER
        arena.is_map_over = True
        arena.book.close()
        self._is_over = True

    def _next_step(self) -> NextStep:
        arena, standing = self._arena, self._standing
        limit_ms = arena.variables.number("mp_timelimit") * MS_PER_MINUTE
        if 0 < limit_ms <= self._played_ms:
            return NextStep.OVER
        return next_step(rules_of(arena.variables, arena.scenario), standing.rounds_played, standing.score)

    def _write_backup(self) -> None:
        arena, standing = self._arena, self._standing
        if arena.variables.is_on("mp_backup_round_auto"):
            backup = Backup(
                map_name=arena.map_name,
                rounds_played=standing.rounds_played,
                score=standing.score,
                team1_side=standing.team1_side,
                players={
                    player.person.player_id: replace(player, grenades=list(player.grenades)) for player in arena.playing
                },
                economy=self.economy.snapshot(),
            )
            self.backups.write(arena.variables.text("mp_backup_round_file"), backup)

    def _rng(self, purpose: str) -> Random:
        return self._arena.rng(purpose, self._maps_over + 1, self.number, self._start_counts.get(self.number, 0))

    @property
    def _played_ms(self) -> int:
        return (self._arena.agenda.tick - self._started_tick) * 1000 // TICKS_PER_S

    @property
    def _freeze_ms(self) -> int:
        return int(self._arena.variables.number("mp_freezetime") * 1000)

    @property
    def _is_deathmatch(self) -> bool:
        return self._arena.variables.mode_name == "deathmatch"

    @property
    def _is_free_for_all(self) -> bool:
        return self._arena.variables.is_on("mp_teammates_are_enemies")

    @property
    def _style(self) -> RoundStyle:
        if self._standing.phase is GamePhase.KNIFE:
            return RoundStyle.KNIFE
        if self._arena.variables.mode_name == "retakes":
            return RoundStyle.RETAKE
        return RoundStyle.HOSTAGE if is_hostage_map(self._arena.map_name) else RoundStyle.BOMB


def _deathmatch_score(arena: Arena, *, is_free_for_all: bool) -> tuple[int, int]:
    if is_free_for_all:
        return 0, 0
    tallies = arena.book.tallies()
    one, two = (sum(tally.kills for tally in tallies if tally.team == team) for team in (1, 2))
    return one, two


def _spawn_order(player: Player) -> int:
    """Return the sort key for spawns.

    In a real match their order is always the same, and it is not the order of user ids.
    """
    return crc32(player.person.player_id.encode())


def switch_sides(arena: Arena) -> None:
    """Move all players to the other side without killing them, including players who have left."""
    for player in sorted((*arena.playing, *arena.absent), key=attrgetter("user_id")):
        if player.side is not None:
            side = player.side.other
            arena.log.write(SwitchedTeam(player.teamless_token, player.team, side))
            player.team = side.value
    for player in arena.players:
        if player.kept_team:  # still loading the map; it is a guess that the game does not log their change of side
            player.kept_team = Side(player.kept_team).other.value
