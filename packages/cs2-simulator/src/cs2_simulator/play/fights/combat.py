"""Apply hits: damage, deaths, assists and rewards, with their log lines and statistics.

The lines of a kill are the lethal `attacked`, the dropped bomb of a carrier, `killed`, the assist and the money, in
this order. All damage of a round is applied by one `Battle`, which records who hurt whom. The state of the game does
not depend on the settings that select which hits are logged.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from cs2_protocol.log_lines.player_lines import Assisted, Attacked, BombDeath, Killed, KilledOther, Suicide, Triggered
from cs2_protocol.log_lines.player_token import PlayerToken, player_token
from cs2_simulator.play.arena import Arena
from cs2_simulator.play.fights.arsenal import Weapon, weapon_named
from cs2_simulator.play.fights.economy import change_money, give_bomb
from cs2_simulator.play.fights.terrain import Terrain, nearby_position
from cs2_simulator.play.fights.wounds import Hit
from cs2_simulator.play.player import Player

ASSIST_DAMAGE = 40
"""An assist requires more than this damage to the victim."""

_DEFAULT_REWARD = 300

_PROPS_PER_PENETRATION = 3
"""One in this many props is hit through another object. In a real match, 5 of 27 chickens and props were."""

_GARBAGE_IDS = ("", "", "`As֬\x02")
"""Steam ids printed when players hit or blind themselves: empty or garbage. One real log has 37 such lines."""
_GARBAGE_SHARE = 0.1

_LOG_ENEMIES = 1
_LOG_TEAM_MATES = 2


class Battle:
    """Applies and records the damage of a round or, with respawns, since each player's last respawn.

    `must_live` returns True for a player who must not die yet: a lethal hit leaves them one health point.
    """

    def __init__(
        self,
        arena: Arena,
        rng: Random,
        *,
        is_free_for_all: bool = False,
        has_rewards: bool = True,
        must_live: Callable[[Player], bool] = lambda _player: False,
    ) -> None:
        self.arena = arena
        self.rng = rng
        self.terrain = Terrain(arena.map_name)
        self.kills: dict[Player, int] = {}
        self.damage_dealt: dict[Player, int] = {}
        self.blinded_by: dict[Player, Player] = {}
        self.dropped_guns: list[str] = []
        self.is_bomb_dropped = False
        self.smoke_until_ms = 0
        self.deaths = 0
        """Deaths so far, of any cause."""
        self.must_live = must_live
        self._is_free_for_all = is_free_for_all
        self._has_rewards = has_rewards
        self._wounds: dict[Player, dict[Player, int]] = {}
        self.read_log_settings()
        self._read_friendly_fire()

    def read_log_settings(self) -> None:
        """Read the settings that select which hits are logged.

        Called before each fight, not for each hit, to save time.
        """
        detail = self.arena.variables.whole("mp_logdetail")
        self._logs_enemies = bool(detail & _LOG_ENEMIES)
        self._logs_team_mates = bool(detail & _LOG_TEAM_MATES)

    def _read_friendly_fire(self) -> None:
        variables = self.arena.variables
        is_friendly_fire = variables.is_on("mp_friendlyfire")
        self.team_bullet_factor = variables.number("ff_damage_reduction_bullets") if is_friendly_fire else 0.0
        self.team_grenade_factor = variables.number("ff_damage_reduction_grenade") if is_friendly_fire else 0.0
        self.team_burn_factor = variables.number("ff_damage_reduction_other") if is_friendly_fire else 0.0

    def are_enemies(self, one: Player, other: Player) -> bool:
        """True if a kill of one player by the other counts as a kill, and not as a team kill or suicide."""
        return one is not other and (self._is_free_for_all or one.team != other.team)

    def is_here(self, player: Player) -> bool:
        return player in self.arena.players

    def clear_wounds(self, player: Player) -> None:
        self._wounds.pop(player, None)

    def apply_hit(self, attacker: Player, victim: Player, hit: Hit, modifiers: tuple[str, ...] = ()) -> bool:
        """Apply a hit; return True if it killed the victim."""
        weapon, damage, armor_damage, hitgroup = hit
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
            self.damage_dealt[attacker] = self.damage_dealt.get(attacker, 0) + lost
        if victim.health:
            return False
        self._kill(attacker, victim, weapon, modifiers)
        return True

    def commit_suicide(self, victim: Player, weapon: str = "world") -> None:
        self._mark_dead(victim)
        self.arena.log.write(Suicide(victim.token, victim.position, weapon))
        self.arena.book.died(victim)
        victim.has_bomb = False

    def kill_by_bomb(self, victim: Player) -> None:
        """Kill a player by the bomb. The round is already decided, so the game does not count this death."""
        self.arena.log.write(BombDeath(victim.token, victim.position))
        self._mark_dead(victim)
        self.arena.log.write(Suicide(victim.token, victim.position, "world"))
        self.arena.book.killed_by_bomb(victim)

    def kill_other(self, killer: Player, target: str, weapon: str) -> None:
        entity = 40 + int(self.rng.random() * 600)
        position = nearby_position(self.rng, killer.position)
        modifiers = ("penetrated",) if target != "chicken" and entity % _PROPS_PER_PENETRATION == 0 else ()
        self.arena.log.write(KilledOther(killer.token, killer.position, target, entity, position, weapon, modifiers))
        if target == "chicken":
            self.arena.book.chicken_killed(killer)

    def pick_up_bomb(self, player: Player) -> None:
        self.is_bomb_dropped = False
        give_bomb(self.arena, player)

    def self_token(self, player: Player) -> PlayerToken:
        """Return the second token of a line in which this player hits or blinds themselves."""
        if self.rng.random() >= _GARBAGE_SHARE:
            return player.token
        steam_id = _GARBAGE_IDS[int(self.rng.random() * len(_GARBAGE_IDS))]
        return player_token(player.person.name, player.user_id, steam_id, player.team)

    def _second_token(self, attacker: Player, victim: Player) -> PlayerToken:
        return self.self_token(victim) if attacker is victim else victim.token

    def _mark_dead(self, victim: Player) -> None:
        victim.is_alive = False
        victim.health = 0
        self.deaths += 1
        if victim.is_in_buy_zone and self._has_rewards:
            self.arena.plan_last_line(victim)
        victim.is_in_buy_zone = False
        if victim.has_bomb:
            self.is_bomb_dropped = True
            self.arena.log.write(Triggered(victim.token, "Dropped_The_Bomb"))
        gun = victim.primary or victim.pistol
        if gun:
            self.dropped_guns.append(gun)

    def _kill(self, attacker: Player, victim: Player, weapon: Weapon, modifiers: tuple[str, ...]) -> None:
        if attacker is victim:
            self.commit_suicide(victim, weapon.name)
            helper = self._helper(victim, victim, ASSIST_DAMAGE - 1)
            if helper is not None:  # counted, but not logged: no line in 3 of 3 real cases
                self.arena.book.assist(helper, victim, is_flash=False)
            return
        arena = self.arena
        self._mark_dead(victim)
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
        victim.has_bomb = False  # after the book has counted the kill: it counts kills of bomb carriers
        self._count_assist(attacker, victim)
        if is_enemy:
            self.kills[attacker] = self.kills.get(attacker, 0) + 1
        if self._has_rewards:
            self._reward(attacker, weapon, is_enemy=is_enemy)

    def _count_assist(self, killer: Player, victim: Player) -> None:
        """Count at most one assist: by the player who hurt the victim most, else by the player who blinded them."""
        helper = self._helper(killer, victim, ASSIST_DAMAGE)
        is_flash = helper is None and victim.blind_until_ms > self.arena.clock_ms
        if is_flash:
            helper = self.blinded_by.get(victim)
            if helper is killer or helper is None or not self.are_enemies(helper, victim) or not self.is_here(helper):
                return
        if helper is not None:
            self.arena.log.write(Assisted(helper.token, victim.token, is_flash))
            self.arena.book.assist(helper, victim, is_flash=is_flash)

    def _helper(self, killer: Player, victim: Player, most: int) -> Player | None:
        """Return the enemy, other than the killer, who hurt the victim most, if the damage was more than `most`."""
        helper = None
        for other, lost in self._wounds.pop(victim, {}).items():
            if lost > most and other is not killer and self.are_enemies(other, victim) and self.is_here(other):
                helper, most = other, lost
        return helper

    def _reward(self, killer: Player, weapon: Weapon, *, is_enemy: bool) -> None:
        variables = self.arena.variables
        if not variables.is_on("mp_playercashawards"):
            return
        if not is_enemy:
            # The game logs some money changes without `(tracked)`, but it is unknown which. This is a guess, to have
            # such lines in the log.
            change_money(self.arena, killer, variables.whole("cash_player_killed_teammate"), is_tracked=False)
        elif weapon.reward == _DEFAULT_REWARD:
            change_money(self.arena, killer, variables.whole("cash_player_killed_enemy_default"))
        else:
            factor = variables.number("cash_player_killed_enemy_factor")
            change_money(self.arena, killer, int(weapon.reward * factor))


def best_weapon(player: Player) -> Weapon:
    return weapon_named(player.primary or player.pistol or player.knife)
