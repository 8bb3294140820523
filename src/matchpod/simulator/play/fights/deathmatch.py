"""What happens where the dead come back? Deathmatch until its time is up, and the play of a warmup.

No rounds, no money, no bomb: fights one after another, and a second and a half later the loser is back with another
gun. Nobody is brought to life here by anything but these scripts.
"""

from __future__ import annotations

from random import Random

from matchpod.simulator.agenda import Script
from matchpod.simulator.play.arena import Arena
from matchpod.simulator.play.fights.arsenal import MAX_ARMOR
from matchpod.simulator.play.fights.combat import Battle, best_weapon
from matchpod.simulator.play.fights.duel import duel
from matchpod.simulator.play.fights.economy import strip, take_item
from matchpod.simulator.play.fights.purchases import start_pistol
from matchpod.simulator.play.fights.timeline import Timeline
from matchpod.simulator.play.player import MAX_HEALTH, Player

KILLS_PER_PLAYER_MINUTE = 2.5
RESPAWN_MS = 1500
_LOOK_MS = 500
"""How often we look who has come or left, and who has to come back."""
_LEAST_MS = 50
"""From fight to fight: time goes on whatever becomes of them."""
_WARMUP_KILL_MS = 10_000
_CHICKENS = 0.1

_GUNS = ("ak47", "m4a1", "m4a1_silencer", "awp", "deagle", "ak47", "m4a1", "ssg08", "galilar", "famas", "mp9", "p90")


def play_deathmatch(arena: Arena, dice: Random, *, is_free_for_all: bool, until_ms: int) -> Script[None]:
    """Fights and respawns until that time."""
    battle = Battle(arena, dice, is_free_for_all=is_free_for_all, has_rewards=False)
    arcade = _Arcade(battle, is_armed=True)
    arcade.start(fight_ms=None)
    yield from arcade.timeline.play(lambda: arena.clock_ms >= until_ms)


def play_warmup(arena: Arena, dice: Random) -> Script[None]:
    """A little shooting, without end."""
    arcade = _Arcade(Battle(arena, dice, has_rewards=False), is_armed=False)
    arcade.start(fight_ms=_WARMUP_KILL_MS)
    yield from arcade.timeline.play(lambda: False)


class _Arcade:
    def __init__(self, battle: Battle, *, is_armed: bool) -> None:
        self.timeline = Timeline(battle.arena.agenda)
        self._battle = battle
        self._arena = battle.arena
        self._dice = battle.dice
        self._is_armed = is_armed
        self._died_at_ms: dict[Player, int] = {}

    def start(self, *, fight_ms: int | None) -> None:
        """Begin; `fight_ms` is the time from fight to fight, None lets it follow from the number of players."""
        self.timeline.start(self._bring_back())
        self.timeline.start(self._fight_on(fight_ms))

    def _bring_back(self) -> Script[None]:
        for player in self._arena.playing:
            if player.is_alive and self._is_armed:
                self._arm(player)
        while True:
            now_ms = self._arena.clock_ms
            for player in self._arena.playing:
                if player.is_alive:
                    continue
                # Whoever was never seen to die has just come.
                if now_ms - self._died_at_ms.get(player, -RESPAWN_MS) >= RESPAWN_MS - _LOOK_MS // 2:
                    self._respawn(player)
            yield _LOOK_MS

    def _fight_on(self, fight_ms: int | None) -> Script[None]:
        arena, roll = self._arena, self._dice.random
        while True:
            began_ms = arena.clock_ms
            pair = self._two_enemies()
            if pair is not None:
                killer, victim = pair
                yield from duel(self._battle, killer, victim)
                if not victim.is_alive:
                    self._died_at_ms[victim] = arena.clock_ms
            elif (alone := arena.playing) and alone[0].is_alive and roll() < _CHICKENS:
                self._battle.kill_thing(alone[0], "chicken", best_weapon(alone[0]).name)
            count = max(len(arena.playing), 1)
            mean_ms = fight_ms or 60_000 / KILLS_PER_PLAYER_MINUTE / count
            wait_ms = int(mean_ms * (0.4 + 1.2 * roll())) if pair else 1000
            yield max(_LEAST_MS if pair else 1000, wait_ms - (arena.clock_ms - began_ms))

    def _two_enemies(self) -> tuple[Player, Player] | None:
        living = [player for player in self._arena.players if player.is_alive]
        if len(living) < 2:
            return None
        (killer,) = self._dice.choices(living, [max(player.person.skill, 0.1) for player in living])
        enemies = [player for player in living if self._battle.are_enemies(killer, player)]
        return (killer, enemies[int(self._dice.random() * len(enemies))]) if enemies else None

    def _respawn(self, player: Player) -> None:
        strip(player)
        player.is_alive = True
        player.health = MAX_HEALTH
        player.blind_until_ms = 0
        self._battle.came_to_life(player)
        self._battle.terrain.put(self._dice, player)
        player.pistol = start_pistol(player)
        take_item(self._arena, player, "knife")
        take_item(self._arena, player, player.pistol)
        if self._is_armed:
            self._arm(player)

    def _arm(self, player: Player) -> None:
        player.armor, player.has_helmet = MAX_ARMOR, True
        player.primary = _GUNS[int(self._dice.random() * len(_GUNS))]
        take_item(self._arena, player, player.primary)
