"""How does one player bring down another? Some hits, some answers, the last shot, over a second or so.

Who falls is settled before; the way there is chance: the weapon, the distance, heads or bodies, walls and smoke.
A cheater's way is not: he hits heads, far away and out of sight.
"""

from __future__ import annotations

from random import Random
from typing import NamedTuple

from matchpod.simulator.agenda import Script
from matchpod.simulator.play.fights.arsenal import Kind, Weapon, weapon_named
from matchpod.simulator.play.fights.combat import Battle, best_weapon
from matchpod.simulator.play.fights.terrain import reach_of, step_aside
from matchpod.simulator.play.fights.wounds import Blow, body_part, shot, stab, vital_part
from matchpod.simulator.play.player import Player

_HEAD_FACTORS = {Kind.PISTOL: 1.2, Kind.SMG: 1.05, Kind.RIFLE: 1.2, Kind.SNIPER: 0.5, Kind.MACHINE_GUN: 0.7}
"""With which weapons heads are aimed at; kinds not named never kill by the head here."""
_MAX_HEAD_SHARE = 0.9

_PENETRATED = 0.03
_NOSCOPE = 0.07
_IN_AIR = 0.01
_THROUGH_SMOKE = 0.09
_WALL_FACTOR = 0.65

_ANSWER = 0.3
"""How often the one who loses a fight hits back after being hit."""
_PISTOL_IN_HAND = 0.06
_KNIFE_IN_HAND = 0.012
_TASER_IN_HAND = 0.12

_CHEATER_HEADS = 0.97
_CHEATER_UNSEEN = 0.45
_CHEATER_REACH = (600, 2400)
_UNSEEN = ("throughsmoke", "penetrated", "attackerblind", "throughsmoke")

_GUNS = frozenset(_HEAD_FACTORS)


class Aim(NamedTuple):
    """How a shooter goes about it."""

    modifiers: tuple[str, ...]
    is_for_head: bool
    body_hits: int
    """How many bullets hit the body before the head is hit."""
    factor: float


def duel(
    battle: Battle, killer: Player, victim: Player, *, is_quick: bool = False, is_seen: bool = False
) -> Script[None]:
    """A fight to the death; it ends early when either is gone, or when the story spares the victim.

    `is_seen` says that the log has just told where the victim stands.
    """
    battle.look_at_settings()
    dice = battle.dice
    weapon = draw_weapon(dice, killer)
    is_cheating = killer.person.is_cheater and weapon.kind in _GUNS
    reach = _CHEATER_REACH if is_cheating else reach_of(weapon.kind)
    place = battle.terrain.aim_at if is_seen else battle.terrain.face
    distance = place(dice, killer, victim, reach)
    aim = _take_aim(battle, killer, weapon)
    factor = aim.factor * weapon.falloff ** (distance / 500)
    if not battle.are_enemies(killer, victim):
        factor *= battle.bullets_on_friends
    body_hits = aim.body_hits
    while _are_alive(killer, victim):
        before = victim.health
        blow = _next_blow(dice, weapon, victim, factor=factor, is_for_head=aim.is_for_head, body_hits=body_hits)
        if battle.hit(killer, victim, blow, aim.modifiers):
            return
        if victim.health == before or (victim.health == 1 and battle.must_live(victim)):
            return
        body_hits -= 1
        if is_quick:
            yield weapon.cycle_ms  # no gun is faster
            continue
        yield weapon.cycle_ms * (1 + int(dice.random() * 2))
        if _are_alive(killer, victim) and dice.random() < _ANSWER:
            graze(battle, victim, killer)


def graze(battle: Battle, attacker: Player, victim: Player) -> bool:
    """A bullet that kills nobody, from where both stand; False when he has none such."""
    dice = battle.dice
    weapon = best_weapon(attacker)
    if weapon.kind not in _GUNS:
        return False
    factor = 0.9 if battle.are_enemies(attacker, victim) else battle.bullets_on_friends
    blow = shot(weapon, victim, "head" if dice.random() < 0.06 else body_part(dice), factor)
    if blow.damage >= victim.health:
        return False
    battle.hit(attacker, victim, blow if factor else blow._replace(damage=0))
    if dice.random() < 0.5:
        victim.position = step_aside(dice, victim.position)
    return True


def spray(battle: Battle, attacker: Player, victim: Player, *, hits: int) -> Script[None]:
    """A few such bullets, as fast as the gun is."""
    for _ in range(hits):
        if not _are_alive(attacker, victim) or not graze(battle, attacker, victim):
            return
        yield best_weapon(attacker).cycle_ms


def draw_weapon(dice: Random, player: Player) -> Weapon:
    """What a player has in his hand just now; a taser has one shot."""
    chance = dice.random()
    if player.has_taser and chance < _TASER_IN_HAND:
        player.has_taser = False
        return weapon_named("taser")
    if chance > 1 - _KNIFE_IN_HAND:
        return weapon_named(player.knife)
    if player.pistol and chance < _PISTOL_IN_HAND:
        return weapon_named(player.pistol)
    return best_weapon(player)


def _are_alive(one: Player, other: Player) -> bool:
    return one.is_alive and other.is_alive


def _next_blow(
    dice: Random, weapon: Weapon, victim: Player, *, factor: float, is_for_head: bool, body_hits: int
) -> Blow:
    """The next hit. Who aims for the head kills by the head: a body hit that would kill becomes one."""
    if weapon.kind is Kind.KNIFE or weapon.kind is Kind.TASER:
        return stab(dice, weapon, victim, factor)
    if is_for_head:
        head = shot(weapon, victim, "head", factor)
        if body_hits <= 0 and head.damage >= victim.health:
            return head
        body = shot(weapon, victim, body_part(dice), factor)
        return head if body.damage >= victim.health else body
    part = vital_part(dice) if weapon.kind is Kind.SNIPER else body_part(dice)
    return shot(weapon, victim, part, factor)


def _take_aim(battle: Battle, killer: Player, weapon: Weapon) -> Aim:
    dice = battle.dice
    roll = dice.random
    head_factor = _HEAD_FACTORS.get(weapon.kind, 0.0)
    if killer.person.is_cheater and head_factor:
        unseen = (_UNSEEN[int(roll() * len(_UNSEEN))],) if roll() < _CHEATER_UNSEEN else ()
        is_for_head = roll() < _CHEATER_HEADS
        return Aim(("headshot", *unseen) if is_for_head else unseen, is_for_head, 0, 1.0)
    is_for_head = roll() < min(killer.person.headshots * head_factor, _MAX_HEAD_SHARE)
    words = ["headshot"] if is_for_head else []
    chance = roll()
    factor = 1.0
    now_ms = battle.arena.clock_ms
    if chance < _PENETRATED and head_factor:
        words.append("penetrated")
        factor = _WALL_FACTOR
    if weapon.kind is Kind.SNIPER and roll() < _NOSCOPE:
        words.append("noscope")
    if battle.smoke_until_ms > now_ms and head_factor and roll() < _THROUGH_SMOKE:
        words.append("throughsmoke")
    if killer.blind_until_ms > now_ms:
        words.append("attackerblind")
    if chance > 1 - _IN_AIR:
        words.append("attackerinair")
    lead = roll()
    return Aim(tuple(words), is_for_head, (lead > 0.5) + (lead > 0.85), factor)
