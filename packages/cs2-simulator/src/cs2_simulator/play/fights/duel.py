"""Play a fight between two players: some hits, some return fire, and the kill. It takes about a second.

The caller chooses the loser. The course is random: the weapon, the distance, head or body hits, walls and smoke. A gun
never fires faster than its cycle time, even at different victims. A cheater mostly hits heads, from far away and often
without seeing the victim, and attacks the next victim immediately.
"""

from __future__ import annotations

from random import Random
from typing import NamedTuple

from cs2_simulator.agenda import Script
from cs2_simulator.play.fights.arsenal import ItemKind, Weapon, weapon_named
from cs2_simulator.play.fights.combat import Battle, best_weapon
from cs2_simulator.play.fights.terrain import REACH, nearby_position
from cs2_simulator.play.fights.wounds import Hit, body_part, shot, stab, vital_part
from cs2_simulator.play.player import Player

_HEAD_FACTORS = {
    ItemKind.PISTOL: 1.2,
    ItemKind.SMG: 1.05,
    ItemKind.RIFLE: 1.2,
    ItemKind.SNIPER: 0.5,
    ItemKind.MACHINE_GUN: 0.7,
}
"""Factors for the probability of headshots, by weapon kind. Other kinds make no headshots in this simulator."""
_MAX_HEAD_SHARE = 0.9

_PENETRATED = 0.03
_NOSCOPE = 0.07
_IN_AIR = 0.01
_THROUGH_SMOKE = 0.09
_WALL_FACTOR = 0.65

_RETURN_FIRE = 0.3
"""Probability that the victim, after being hit, hits back."""
_PISTOL_IN_HAND = 0.06
_KNIFE_IN_HAND = 0.012
_TASER_IN_HAND = 0.12

_CHEATER_HEADS = 0.97
_CHEATER_UNSEEN = 0.45
_CHEATER_REACH = (600, 2400)
_UNSEEN = ("throughsmoke", "penetrated", "attackerblind", "throughsmoke")

_GUNS = frozenset(_HEAD_FACTORS)


class Aim(NamedTuple):
    modifiers: tuple[str, ...]
    is_for_head: bool
    body_hits: int
    """Number of body hits before the headshot."""
    factor: float


def duel(
    battle: Battle, killer: Player, victim: Player, *, is_quick: bool = False, is_located: bool = False
) -> Script[None]:
    """Play a fight until the victim dies. It ends early if the killer dies, a player leaves, or the victim must live.

    `is_located` is true if the victim's position was just logged. The victim then stays there.
    """
    battle.read_log_settings()
    rng = battle.rng
    weapon = choose_weapon(rng, killer)
    is_cheating = killer.person.is_cheater and weapon.kind in _GUNS
    reach = _CHEATER_REACH if is_cheating else REACH[weapon.kind]
    place = battle.terrain.place_attacker if is_located else battle.terrain.place_both
    distance = place(rng, killer, victim, reach)
    aim = _choose_aim(battle, killer, weapon)
    factor = aim.factor * weapon.falloff ** (distance / 500)
    if not battle.are_enemies(killer, victim):
        factor *= battle.team_bullet_factor
    body_hits = aim.body_hits
    while _are_alive(killer, victim):
        wait_ms = _cycle_ms(battle, killer, weapon)
        if wait_ms:
            yield wait_ms
            if not _are_alive(killer, victim):
                return
        _fire(battle, killer, weapon)
        before = victim.health
        hit = _next_hit(rng, weapon, victim, factor=factor, is_for_head=aim.is_for_head, body_hits=body_hits)
        if battle.apply_hit(killer, victim, hit, aim.modifiers):
            return
        if victim.health == before or (victim.health == 1 and battle.must_live(victim)):
            return
        body_hits -= 1
        if is_quick:
            yield weapon.cycle_ms  # the gun's fire rate
            continue
        yield weapon.cycle_ms * (1 + int(rng.random() * 2))
        if _are_alive(killer, victim) and rng.random() < _RETURN_FIRE:
            graze(battle, victim, killer)


def graze(battle: Battle, attacker: Player, victim: Player) -> bool:
    """Fire a non-lethal shot, without moving the attacker. Return False if it would kill, or if no gun is ready."""
    rng = battle.rng
    weapon = best_weapon(attacker)
    if weapon.kind not in _GUNS or _cycle_ms(battle, attacker, weapon):
        return False
    factor = 0.9 if battle.are_enemies(attacker, victim) else battle.team_bullet_factor
    hit = shot(weapon, victim, "head" if rng.random() < 0.06 else body_part(rng), factor)
    if hit.damage >= victim.health:
        return False
    _fire(battle, attacker, weapon)
    battle.apply_hit(attacker, victim, hit if factor else hit._replace(damage=0))
    if rng.random() < 0.5:
        victim.position = nearby_position(rng, victim.position)
    return True


def spray(battle: Battle, attacker: Player, victim: Player, *, hits: int) -> Script[None]:
    """Fire several non-lethal shots at the fire rate of the gun."""
    for _ in range(hits):
        if not _are_alive(attacker, victim) or not graze(battle, attacker, victim):
            return
        yield best_weapon(attacker).cycle_ms


def choose_weapon(rng: Random, player: Player) -> Weapon:
    """Choose the weapon that a player uses in a fight. A taser has only one shot."""
    chance = rng.random()
    if player.has_taser and chance < _TASER_IN_HAND:
        player.has_taser = False
        return weapon_named("taser")
    if chance > 1 - _KNIFE_IN_HAND:
        return weapon_named(player.knife)
    if player.pistol and chance < _PISTOL_IN_HAND:
        return weapon_named(player.pistol)
    return best_weapon(player)


def _fire(battle: Battle, player: Player, weapon: Weapon) -> None:
    player.fired = weapon.name, battle.arena.clock_ms + weapon.cycle_ms


def _cycle_ms(battle: Battle, player: Player, weapon: Weapon) -> int:
    gun, ready_ms = player.fired
    if gun != weapon.name or player.person.is_cheater:
        return 0
    return max(0, ready_ms - battle.arena.clock_ms)


def _are_alive(one: Player, other: Player) -> bool:
    return one.is_alive and other.is_alive


def _next_hit(rng: Random, weapon: Weapon, victim: Player, *, factor: float, is_for_head: bool, body_hits: int) -> Hit:
    """Return the next hit.

    If the killer aims for the head, a body hit that would be lethal is replaced by a headshot.
    """
    if weapon.kind is ItemKind.KNIFE or weapon.kind is ItemKind.TASER:
        return stab(rng, weapon, victim, factor)
    if is_for_head:
        head = shot(weapon, victim, "head", factor)
        if body_hits <= 0 and head.damage >= victim.health:
            return head
        body = shot(weapon, victim, body_part(rng), factor)
        return head if body.damage >= victim.health else body
    part = vital_part(rng) if weapon.kind is ItemKind.SNIPER else body_part(rng)
    return shot(weapon, victim, part, factor)


def _choose_aim(battle: Battle, killer: Player, weapon: Weapon) -> Aim:
    rng = battle.rng
    roll = rng.random
    head_factor = _HEAD_FACTORS.get(weapon.kind, 0.0)
    if killer.person.is_cheater and head_factor:
        unseen = (_UNSEEN[int(roll() * len(_UNSEEN))],) if roll() < _CHEATER_UNSEEN else ()
        is_for_head = roll() < _CHEATER_HEADS
        return Aim(("headshot", *unseen) if is_for_head else unseen, is_for_head, 0, 1.0)
    is_for_head = roll() < min(killer.person.headshots * head_factor, _MAX_HEAD_SHARE)
    modifiers = ["headshot"] if is_for_head else []
    chance = roll()
    factor = 1.0
    now_ms = battle.arena.clock_ms
    if chance < _PENETRATED and head_factor:
        modifiers.append("penetrated")
        factor = _WALL_FACTOR
    if weapon.kind is ItemKind.SNIPER and roll() < _NOSCOPE:
        modifiers.append("noscope")
    if battle.smoke_until_ms > now_ms and head_factor and roll() < _THROUGH_SMOKE:
        modifiers.append("throughsmoke")
    if killer.blind_until_ms > now_ms:
        modifiers.append("attackerblind")
    if chance > 1 - _IN_AIR:
        modifiers.append("attackerinair")
    roll_hits = roll()
    return Aim(tuple(modifiers), is_for_head, (roll_hits > 0.5) + (roll_hits > 0.85), factor)
