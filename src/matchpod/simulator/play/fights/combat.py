"""What follows from a hit? Its lines in the game's order, the fall, the assist, the reward, and what the book is told.

The lethal `attacked` comes first, then the bomb that a dying carrier drops, `killed`, the assist, the money. All
damage of a round goes through one Battle, which remembers who hurt whom. State never depends on what is logged.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from matchpod.cs2.log_lines.player_lines import Assisted, Attacked, Item, Killed, KilledOther, Suicide, Triggered
from matchpod.cs2.log_lines.player_token import PlayerToken, player_token
from matchpod.simulator.play.arena import Arena
from matchpod.simulator.play.fights.arsenal import Weapon, picked_name, weapon_named
from matchpod.simulator.play.fights.purse import change_money
from matchpod.simulator.play.fights.terrain import Terrain, step_aside
from matchpod.simulator.play.fights.wounds import Blow
from matchpod.simulator.play.player import Player

ASSIST_DAMAGE = 40
"""Who did more than this to a victim helped to kill him."""

_DEFAULT_REWARD = 300

_GARBAGE_IDS = ("", "", "`As֬\x02")
"""CS2 prints an empty or garbage Steam id where a player hits or blinds himself: 37 such lines in one real log."""
_GARBAGE_SHARE = 0.1

_LOG_ENEMIES = 1
_LOG_TEAM_MATES = 2


class Battle:
    """Everybody's wounds in one round, or since they last came to life.

    `must_live` names who may not die yet for the story's sake: a lethal hit leaves him one point of health.
    """

    def __init__(
        self,
        arena: Arena,
        dice: Random,
        *,
        is_free_for_all: bool = False,
        has_rewards: bool = True,
        must_live: Callable[[Player], bool] = lambda _player: False,
    ) -> None:
        self.arena = arena
        self.dice = dice
        self.terrain = Terrain(arena.map_name)
        self.kills: dict[Player, int] = {}
        self.dealt: dict[Player, int] = {}
        self.blinded_by: dict[Player, Player] = {}
        self.dropped_guns: list[str] = []
        self.is_bomb_loose = False
        self.smoke_until_ms = 0
        self.falls = 0
        """Deaths so far, by whatever cause."""
        self.must_live = must_live
        self._is_free_for_all = is_free_for_all
        self._has_rewards = has_rewards
        self._wounds: dict[Player, dict[Player, int]] = {}
        self.look_at_settings()
        self._look_at_friendly_fire()

    def look_at_settings(self) -> None:
        """Read whose hits are logged; called before each fight rather than at each hit."""
        detail = self.arena.variables.whole("mp_logdetail")
        self._logs_enemies = bool(detail & _LOG_ENEMIES)
        self._logs_team_mates = bool(detail & _LOG_TEAM_MATES)

    def _look_at_friendly_fire(self) -> None:
        variables = self.arena.variables
        is_friendly_fire = variables.is_on("mp_friendlyfire")
        self.bullets_on_friends = variables.number("ff_damage_reduction_bullets") if is_friendly_fire else 0.0
        self.grenades_on_friends = variables.number("ff_damage_reduction_grenade") if is_friendly_fire else 0.0
        self.fire_on_friends = variables.number("ff_damage_reduction_other") if is_friendly_fire else 0.0

    def are_enemies(self, one: Player, other: Player) -> bool:
        """True when a kill of the other would be a kill."""
        return one is not other and (self._is_free_for_all or one.team != other.team)

    def is_here(self, player: Player) -> bool:
        """True while he is on the server."""
        return player in self.arena.players

    def came_to_life(self, player: Player) -> None:
        """Forget the wounds of a life that is over."""
        self._wounds.pop(player, None)

    def hit(self, attacker: Player, victim: Player, blow: Blow, modifiers: tuple[str, ...] = ()) -> bool:
        """A hit lands; True when it killed."""
        weapon, damage, armor_damage, hitgroup = blow
        before = victim.health
        if damage >= before and self.must_live(victim):
            damage = before - 1
            if not damage:
                return False
        lost = damage if damage < before else before
        victim.health = before - lost
        victim.armor -= armor_damage
        is_enemy = self.are_enemies(attacker, victim)
        token = self._second_token(attacker, victim)
        arena = self.arena
        if self._logs_enemies if is_enemy else self._logs_team_mates:
            arena.log.write(
                Attacked(
                    attacker.token, attacker.position, token, victim.position, weapon.logged,
                    damage, armor_damage, victim.health, victim.armor, hitgroup,
                )
            )  # fmt: skip
        arena.book.hit(attacker, victim, weapon.name, lost)
        wounds = self._wounds.setdefault(victim, {})
        wounds[attacker] = wounds.get(attacker, 0) + lost
        if is_enemy:
            self.dealt[attacker] = self.dealt.get(attacker, 0) + lost
        if victim.health:
            return False
        self._fall(attacker, victim, weapon, modifiers)
        return True

    def die_alone(self, victim: Player, weapon: str = "world") -> None:
        """A fall, or a grenade of his own."""
        self._lie_down(victim)
        self.arena.log.write(Suicide(victim.token, victim.position, weapon))
        self.arena.book.died(victim, self.arena.agenda.now_ms)
        victim.has_bomb = False

    def kill_thing(self, killer: Player, thing: str, weapon: str) -> None:
        """Something that is not a player breaks or dies."""
        entity = 40 + int(self.dice.random() * 600)
        position = step_aside(self.dice, killer.position)
        self.arena.log.write(KilledOther(killer.token, killer.position, thing, entity, position, weapon))
        if thing == "chicken":
            self.arena.book.chicken(killer)

    def pick_up(self, player: Player, name: str) -> None:
        """Something comes into a player's hands."""
        if self.arena.variables.is_on("mp_logdetail_items"):
            self.arena.log.write(Item(player.token, "picked up", picked_name(name)))

    def pick_up_bomb(self, player: Player) -> None:
        """The bomb changes its carrier."""
        self.is_bomb_loose = False
        player.has_bomb = True
        self.pick_up(player, "c4")
        self.arena.log.write(Triggered(player.token, "Got_The_Bomb"))

    def garbled(self, player: Player) -> PlayerToken:
        """The second token of a line in which a player does something to himself."""
        if self.dice.random() >= _GARBAGE_SHARE:
            return player.token
        steam_id = _GARBAGE_IDS[int(self.dice.random() * len(_GARBAGE_IDS))]
        return player_token(player.person.name, player.user_id, steam_id, player.team)

    def _second_token(self, attacker: Player, victim: Player) -> PlayerToken:
        return self.garbled(victim) if attacker is victim else victim.token

    def _lie_down(self, victim: Player) -> None:
        victim.is_alive = False
        victim.health = 0
        self.falls += 1
        if victim.has_bomb:
            self.is_bomb_loose = True
            self.arena.log.write(Triggered(victim.token, "Dropped_The_Bomb"))
        gun = victim.primary or victim.pistol
        if gun:
            self.dropped_guns.append(gun)

    def _fall(self, attacker: Player, victim: Player, weapon: Weapon, modifiers: tuple[str, ...]) -> None:
        if attacker is victim:
            self.die_alone(victim, weapon.name)
            return
        arena = self.arena
        self._lie_down(victim)
        arena.log.write(
            Killed(attacker.token, attacker.position, victim.token, victim.position, weapon.name, modifiers)
        )
        is_enemy = self.are_enemies(attacker, victim)
        arena.book.kill(
            attacker,
            victim,
            weapon.name,
            is_headshot="headshot" in modifiers,
            is_blind=attacker.blind_until_ms > arena.clock_ms,
            at_ms=arena.agenda.now_ms,
        )
        victim.has_bomb = False  # only now: the book counts kills of the carrier
        self._tell_assist(attacker, victim)
        if is_enemy:
            self.kills[attacker] = self.kills.get(attacker, 0) + 1
        if self._has_rewards:
            self._reward(attacker, weapon, is_enemy=is_enemy)

    def _tell_assist(self, killer: Player, victim: Player) -> None:
        """One helper a kill: who hurt the victim most, else who blinds him now."""
        helper, most = None, ASSIST_DAMAGE
        for other, lost in self._wounds.pop(victim, {}).items():
            if lost > most and other is not killer and self.are_enemies(other, victim) and self.is_here(other):
                helper, most = other, lost
        is_flash = helper is None and victim.blind_until_ms > self.arena.clock_ms
        if is_flash:
            helper = self.blinded_by.get(victim)
            if helper is killer or helper is None or not self.are_enemies(helper, victim) or not self.is_here(helper):
                return
        if helper is not None:
            self.arena.log.write(Assisted(helper.token, victim.token, is_flash))
            self.arena.book.assist(helper, victim, is_flash=is_flash)

    def _reward(self, killer: Player, weapon: Weapon, *, is_enemy: bool) -> None:
        variables = self.arena.variables
        if not variables.is_on("mp_playercashawards"):
            return
        if not is_enemy:
            change_money(self.arena, killer, variables.whole("cash_player_killed_teammate"))
        elif weapon.reward == _DEFAULT_REWARD:
            change_money(self.arena, killer, variables.whole("cash_player_killed_enemy_default"))
        else:
            factor = variables.number("cash_player_killed_enemy_factor")
            change_money(self.arena, killer, int(weapon.reward * factor))


def best_weapon(player: Player) -> Weapon:
    """What he fights with when nothing speaks against it."""
    return weapon_named(player.primary or player.pistol or player.knife)
