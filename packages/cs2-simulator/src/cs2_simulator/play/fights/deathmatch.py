"""Play modes with respawns: deathmatch until its time limit, and warmup.

There are no rounds, money or bomb. Fights follow each other, and a killed player respawns after about 1.5 seconds, in
deathmatch with a random gun. Players respawn in no other mode.
"""

from __future__ import annotations

from random import Random

from cs2_simulator.agenda import Script
from cs2_simulator.play.arena import Arena
from cs2_simulator.play.fights.arsenal import MAX_ARMOR
from cs2_simulator.play.fights.combat import Battle, best_weapon
from cs2_simulator.play.fights.duel import duel
from cs2_simulator.play.fights.economy import log_pick_up, strip
from cs2_simulator.play.fights.purchases import start_pistol
from cs2_simulator.play.fights.script_runner import ScriptRunner
from cs2_simulator.play.player import MAX_HEALTH, Player

KILLS_PER_PLAYER_MINUTE = 2.5
RESPAWN_MS = 1500
_CHECK_MS = 500
"""Interval in milliseconds at which new and dead players are spawned."""
_MIN_FIGHT_MS = 50
"""Minimum time in milliseconds between fights, so that the clock always advances."""
_WARMUP_KILL_MS = 10_000
_CHICKENS = 0.1

_GUNS = ("ak47", "m4a1", "m4a1_silencer", "awp", "deagle", "ak47", "m4a1", "ssg08", "galilar", "famas", "mp9", "p90")


def play_deathmatch(arena: Arena, rng: Random, *, is_free_for_all: bool, until_ms: int) -> Script[None]:
    battle = Battle(arena, rng, is_free_for_all=is_free_for_all, has_rewards=False)
    respawn_play = _RespawnPlay(battle, is_armed=True)
    respawn_play.start(fight_ms=None)
    yield from respawn_play.runner.play(lambda: arena.clock_ms >= until_ms)


def play_warmup(arena: Arena, rng: Random) -> Script[None]:
    respawn_play = _RespawnPlay(Battle(arena, rng, has_rewards=False), is_armed=False)
    respawn_play.start(fight_ms=_WARMUP_KILL_MS)
    yield from respawn_play.runner.play(lambda: False)


class _RespawnPlay:
    def __init__(self, battle: Battle, *, is_armed: bool) -> None:
        self.runner = ScriptRunner(battle.arena.agenda)
        self._battle = battle
        self._arena = battle.arena
        self._rng = battle.rng
        self._is_armed = is_armed
        self._died_at_ms: dict[Player, int] = {}

    def start(self, *, fight_ms: int | None) -> None:
        """Start the fights.

        `fight_ms` is the mean time between fights; if None, it depends on the number of players.
        """
        self.runner.start(self._respawn_dead())
        self.runner.start(self._keep_fighting(fight_ms))

    def _respawn_dead(self) -> Script[None]:
        for player in self._arena.playing:
            if player.is_alive and self._is_armed:
                self._arm(player)
        while True:
            now_ms = self._arena.clock_ms
            for player in self._arena.playing:
                if player.is_alive:
                    continue
                # A player without a recorded death, such as one who has just joined, is spawned at once.
                if now_ms - self._died_at_ms.get(player, -RESPAWN_MS) >= RESPAWN_MS - _CHECK_MS // 2:
                    self._respawn(player)
            yield _CHECK_MS

    def _keep_fighting(self, fight_ms: int | None) -> Script[None]:
        arena, roll = self._arena, self._rng.random
        while True:
            began_ms = arena.clock_ms
            pair = self._choose_enemies()
            if pair is not None:
                killer, victim = pair
                yield from duel(self._battle, killer, victim)
                if not victim.is_alive:
                    self._died_at_ms[victim] = arena.clock_ms
            elif (players := arena.playing) and players[0].is_alive and roll() < _CHICKENS:
                self._battle.kill_other(players[0], "chicken", best_weapon(players[0]).name)
            count = max(len(arena.playing), 1)
            mean_ms = fight_ms or 60_000 / KILLS_PER_PLAYER_MINUTE / count
            wait_ms = int(mean_ms * (0.4 + 1.2 * roll())) if pair else 1000
            yield max(_MIN_FIGHT_MS if pair else 1000, wait_ms - (arena.clock_ms - began_ms))

    def _choose_enemies(self) -> tuple[Player, Player] | None:
        living = [player for player in self._arena.players if player.is_alive]
        if len(living) < 2:
            return None
        (killer,) = self._rng.choices(living, [max(player.person.skill, 0.1) for player in living])
        enemies = [player for player in living if self._battle.are_enemies(killer, player)]
        return (killer, enemies[int(self._rng.random() * len(enemies))]) if enemies else None

    def _respawn(self, player: Player) -> None:
        strip(player)
        player.is_alive = True
        player.health = MAX_HEALTH
        player.blind_until_ms = 0
        player.fired = ("", 0)
        self._battle.clear_wounds(player)
        self._battle.terrain.place(self._rng, player)
        player.pistol = start_pistol(player)
        log_pick_up(self._arena, player, "knife")
        log_pick_up(self._arena, player, player.pistol)
        if self._is_armed:
            self._arm(player)

    def _arm(self, player: Player) -> None:
        player.armor, player.has_helmet = MAX_ARMOR, True
        player.primary = _GUNS[int(self._rng.random() * len(_GUNS))]
        log_pick_up(self._arena, player, player.primary)
