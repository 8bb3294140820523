"""How much does a hit hurt? Damage by weapon, distance, part of the body and armour, as the log prints it."""

from __future__ import annotations

from random import Random
from typing import NamedTuple

from matchpod.simulator.play.fights.arsenal import INFERNO, WEAPONS, Kind, Weapon
from matchpod.simulator.play.player import Player

_FACTORS = {
    "head": 4.0,
    "neck": 1.0,
    "chest": 1.0,
    "stomach": 1.25,
    "left arm": 1.0,
    "right arm": 1.0,
    "left leg": 0.75,
    "right leg": 0.75,
}
_UNARMORED = frozenset(("left leg", "right leg"))

# Shares of 292 body hits in a real log: chest 53 %, stomach 24 %, arms 12 %, legs 10 %, neck 1 %.
_BODY = (
    *("chest",) * 18, *("stomach",) * 8, *("right arm", "left arm") * 2, *("right leg", "left leg") * 2, "neck",
)  # fmt: skip
_VITAL = ("chest", "chest", "chest", "stomach", "right arm")

_STABS = (36, 36, 55, 61, 180)
"""Slash, slash, and stabs from the front and from behind."""

ARMOR_WEAR = 0.5
"""How much of what armour holds back it loses itself; grenades wear it off wholly."""


class Blow(NamedTuple):
    """A hit as it lands: `damage` is not cut at the health that is left."""

    weapon: Weapon
    damage: int
    armor_damage: int
    hitgroup: str


def shot(weapon: Weapon, victim: Player, hitgroup: str, factor: float) -> Blow:
    """A bullet in some part of the body; `factor` is what distance, walls and friendship leave of its force."""
    force = weapon.damage * _FACTORS[hitgroup] * factor
    is_covered = victim.has_helmet if hitgroup == "head" else hitgroup not in _UNARMORED
    if victim.armor and is_covered:
        passed = force * weapon.pierce
        worn = int((force - passed) * ARMOR_WEAR)
        return Blow(weapon, int(passed) or 1, min(worn, victim.armor), hitgroup)
    return Blow(weapon, int(force) or 1, 0, hitgroup)


def blast(victim: Player, force: float) -> Blow:
    """A grenade going off: armour holds back two fifths, and is worn off by as much."""
    weapon = WEAPONS["hegrenade"]
    if victim.armor:
        passed = force * weapon.pierce
        return Blow(weapon, int(passed), min(int(force - passed), victim.armor), "generic")
    return Blow(weapon, int(force), 0, "generic")


def stab(dice: Random, weapon: Weapon, victim: Player, factor: float) -> Blow:
    """A knife, or the taser; they know no part of the body."""
    if weapon.kind is Kind.TASER:
        return Blow(weapon, int(weapon.damage * factor), 0, "generic")
    force = _STABS[int(dice.random() * len(_STABS))] * factor
    if victim.armor:
        return Blow(weapon, int(force * weapon.pierce), min(int(force * 0.075), victim.armor), "generic")
    return Blow(weapon, int(force), 0, "generic")


def flame(tick: int, factor: float) -> Blow:
    """Fire: more with every tick that one stands in it, armour or not."""
    return Blow(INFERNO, max(1, int(min(1 + tick * 0.8, INFERNO.damage) * factor)), 0, "generic")


def body_part(dice: Random) -> str:
    """Where a bullet hits that was not meant for the head."""
    return _BODY[int(dice.random() * len(_BODY))]


def vital_part(dice: Random) -> str:
    """Where a sniper aims."""
    return _VITAL[int(dice.random() * len(_VITAL))]
