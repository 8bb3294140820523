"""How do the rounds of a map follow one another? Freeze time, play, decision, and what comes after it.

Chance is taken from streams named by how many maps were played to their end before, the round, and how often it was
begun in this match: neither what happened before nor what somebody sent over the console changes a round, a match that
is started anew is the same one, and a round that is played again from a backup differs.
Watchers are told last, and a script waits once after it told them: they may call off all that goes on here.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from matchpod.core.model import Side
from matchpod.cs2.log_lines.player_lines import SwitchedTeam
from matchpod.cs2.log_lines.world_lines import WorldTriggered
from matchpod.simulator.agenda import TICKS_PER_S, Script
from matchpod.simulator.play.arena import Arena
from matchpod.simulator.play.fights.deathmatch import play_deathmatch
from matchpod.simulator.play.fights.economy import Economy
from matchpod.simulator.play.fights.fate import choose_winner
from matchpod.simulator.play.fights.round_play import RoundStyle, play_aftermath, play_round
from matchpod.simulator.play.flow.backups import Backup, Backups, belongings_of
from matchpod.simulator.play.flow.ending import MS_PER_MINUTE, deathmatch_score, write_game_over
from matchpod.simulator.play.flow.freeze import Opening
from matchpod.simulator.play.flow.map_load import is_hostage_map
from matchpod.simulator.play.flow.pauses import Pauses
from matchpod.simulator.play.flow.schedule import Next, follows, rules_of
from matchpod.simulator.play.flow.slot import Slot
from matchpod.simulator.play.flow.standing import Phase, Standing
from matchpod.simulator.play.player import Player
from matchpod.simulator.play.watcher import RoundEnd

MIN_BUY_MS = 2_000
"""People buy on into the round where the freeze time is too short for it."""

LEAST_PAUSE_MS = 100
"""Between two rounds, whatever is set: a round can be over in the tick it starts in, and the next one too."""

ENDLESS_MS = 365 * 24 * 3_600_000
"""A deathmatch without a time limit."""


class Rounds:
    """The rounds of the map being played."""

    def __init__(self, arena: Arena, standing: Standing, pauses: Pauses, over: Callable[[], None]) -> None:
        """`over` is called when nothing more is to be played: after a knife round, and after `Game Over`."""
        self._arena = arena
        self._standing = standing
        self._pauses = pauses
        self._over = over
        self.economy = Economy()
        self.opening = Opening(arena, standing, self.economy)
        self.backups = Backups()
        self.number = 0
        """The round being played; 0 outside a match."""
        self._maps_over = 0
        """Maps played to their end; the present one not yet, since it can be opened again by a backup."""
        self._is_over = False
        self._begun: dict[int, int] = {}
        """How often each round of this match was begun."""
        self._next = Next.ROUND
        self._is_freeze = False
        self._is_idle = False
        self._started_tick = 0
        self._round_start = Slot(arena.agenda)
        self._flow = Slot(arena.agenda)
        self._aside = Slot(arena.agenda)

    def stop(self) -> None:
        """Call off whatever goes on."""
        for slot in (self._round_start, self._flow, self._aside):
            slot.cancel()
        self.number = 0
        self._is_freeze = self._is_idle = False
        self._next = Next.ROUND

    def begin(self, *, is_knife: bool) -> None:
        """A match starts from nothing, or the knife round before it."""
        self.stop()
        arena = self._arena
        self._standing.reset(Phase.KNIFE if is_knife else Phase.LIVE)
        self._started_tick = arena.agenda.tick
        self._begun.clear()
        self._maps_over += self._is_over
        self._is_over = False
        if is_knife:
            arena.book.close()
        else:
            arena.book.open(is_free_for_all=self._is_free_for_all, has_respawns=self._is_deathmatch)
        self.economy.start_half(arena)
        self._open_freeze(is_match_start=True)
        if not is_knife:
            for watcher in tuple(arena.watchers):
                watcher.went_live()
            self.tell_of_freeze()

    def go_on(self) -> None:
        """The standing was set to a backup: its next round is played now, and time counts anew."""
        self._started_tick = self._arena.agenda.tick
        self._is_over = False
        self._open_freeze()

    def tell_of_freeze(self) -> None:
        """Let the watchers know of a freeze time that was opened, as long as it lasts."""
        number = self.number
        for watcher in tuple(self._arena.watchers):
            if self._is_freeze and self.number == number:
                watcher.freeze_began(number)

    def look_again(self) -> None:
        """A pause began or ended: freeze time does not end under one, and after it lasts its full length again."""
        if not self._is_freeze:
            return
        if self._pauses.is_on:
            self._round_start.cancel()
            self._pauses.run_timeouts()
        else:
            self._round_start.call_in(self._freeze_ms, self._start_round)

    def came(self, player: Player) -> None:
        """Somebody took a side: in freeze time he comes to life, in a round he waits, an idle game goes on."""
        if self._is_idle:
            self._open_next()
        elif self._is_freeze:
            self.economy.spawn(self._arena, player)

    def _open_next(self) -> None:
        """The freeze time of the next round; where nobody is left the game waits for somebody."""
        arena, standing = self._arena, self._standing
        self._is_idle = not arena.playing
        if self._is_idle:
            return
        self.economy.pay_for_dead(arena)
        if self._next is Next.HALF:
            standing.change_sides()
            self.economy.swap_sides()
            switch_sides(arena)
        if self._next is not Next.ROUND:
            self.economy.start_half(arena)
        self._next = Next.ROUND
        self._open_freeze()
        self.tell_of_freeze()

    def _open_freeze(self, *, is_match_start: bool = False) -> None:
        arena, standing = self._arena, self._standing
        is_knife = standing.phase is Phase.KNIFE
        self.number = 0 if is_knife else standing.rounds_played + 1
        has_bomb = self._style in (RoundStyle.BOMB, RoundStyle.RETAKE) and not self._is_deathmatch
        bomb = self._dice("bomb") if has_bomb else None
        self.opening.open(round_number=standing.rounds_played + 1, is_match_start=is_match_start, bomb=bomb)
        self._is_freeze = True
        self.look_again()
        self._aside.cancel()
        if is_knife or self._is_deathmatch:
            return
        self._write_backup()
        self._aside.run(self.economy.buy(arena, self._dice("buy"), max(self._freeze_ms, MIN_BUY_MS)))

    def _start_round(self) -> None:
        arena = self._arena
        self._is_freeze = False
        if not arena.playing:
            self._is_idle = True
            return
        arena.restart_clock()
        arena.log.write(WorldTriggered("Round_Start"))
        if self._standing.phase is Phase.KNIFE:
            self._flow.run(self._play_knife(self._dice("knife")))
            return
        dice, fate = self._dice("round"), self._dice("fate")
        self._begun[self.number] = self._begun.get(self.number, 0) + 1
        one = self._standing.team1_side
        arena.book.round_started(self.number, arena.on(one), arena.on(one.other))
        self._flow.run(self._play_deathmatch(dice) if self._is_deathmatch else self._play_round(dice, fate))
        for watcher in tuple(arena.watchers):
            watcher.round_started(self.number)

    def _play_knife(self, dice: Random) -> Script[None]:
        side = self._standing.team1_side
        winner = choose_winner(self._arena, dice, round_number=0, team1_side=side, score=(0, 0))
        end = yield from play_round(self._arena, dice, winner, RoundStyle.KNIFE)
        self._standing.count(end.side)
        self._standing.write_round_end(end)
        self._tell_of_end(0, end)
        yield 0
        self._over()

    def _play_round(self, dice: Random, fate: Random) -> Script[None]:
        arena, standing, number = self._arena, self._standing, self.number
        winner = choose_winner(arena, fate, round_number=number, team1_side=standing.team1_side, score=standing.score)
        end = yield from play_round(arena, dice, winner, self._style)
        standing.count(end.side)
        standing.write_round_end(end)
        self.economy.pay(arena, end)
        arena.book.decided(standing.team_on(end.side), end.mvp)
        self._next = self._what_follows()
        # At once: whom the bomb killed dies in this tick, before the map is over.
        self._aside.start(play_aftermath(arena, self._dice("aftermath")))
        if self._next is Next.OVER:
            self._end_map()
        self._tell_of_end(number, end)
        yield 0
        if self._next is Next.OVER:
            self._over()
            return
        pause_s = arena.variables.number("mp_round_restart_delay")
        if self._next is Next.HALF:
            pause_s += arena.variables.number("mp_halftime_duration")
        yield max(int(pause_s * 1000), LEAST_PAUSE_MS)
        self._open_next()

    def _play_deathmatch(self, dice: Random) -> Script[None]:
        arena, is_ffa = self._arena, self._is_free_for_all
        limit_ms = int(arena.variables.number("mp_timelimit") * MS_PER_MINUTE) or ENDLESS_MS
        until_ms = limit_ms - self._played_ms
        yield from play_deathmatch(arena, dice, is_free_for_all=is_ffa, until_ms=until_ms)
        self._standing.score = deathmatch_score(arena, is_free_for_all=is_ffa)
        self._end_map()
        self._over()

    def _end_map(self) -> None:
        write_game_over(self._arena, self._standing, self._played_ms)
        self._is_over = True

    def _tell_of_end(self, number: int, end: RoundEnd) -> None:
        for watcher in tuple(self._arena.watchers):
            watcher.round_ended(number, end)

    def _what_follows(self) -> Next:
        arena, standing = self._arena, self._standing
        limit_ms = arena.variables.number("mp_timelimit") * MS_PER_MINUTE
        if 0 < limit_ms <= self._played_ms:
            return Next.OVER
        return follows(rules_of(arena.variables, arena.scenario), standing.rounds_played, standing.score)

    def _write_backup(self) -> None:
        arena, standing = self._arena, self._standing
        if arena.variables.is_on("mp_backup_round_auto"):
            backup = Backup(
                map_name=arena.map_name,
                rounds_played=standing.rounds_played,
                score=standing.score,
                team1_side=standing.team1_side,
                belongings=belongings_of(arena),
                economy=self.economy.snapshot(),
            )
            self.backups.write(arena.variables.text("mp_backup_round_file"), backup)

    def _dice(self, purpose: str) -> Random:
        return self._arena.dice(purpose, self._maps_over + 1, self.number, self._begun.get(self.number, 0))

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
        if self._standing.phase is Phase.KNIFE:
            return RoundStyle.KNIFE
        if self._arena.variables.mode_name == "retakes":
            return RoundStyle.RETAKE
        return RoundStyle.HOSTAGE if is_hostage_map(self._arena.map_name) else RoundStyle.BOMB


def switch_sides(arena: Arena) -> None:
    """Everybody goes to the other side; nobody dies of it."""
    for player in arena.playing:
        side = Side(player.team).other
        arena.log.write(SwitchedTeam(player.teamless_token, player.team, side))
        player.team = side.value
