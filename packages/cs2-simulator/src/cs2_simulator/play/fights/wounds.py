"""Compute the damage of a hit, by weapon, distance, body part and armor, as the log prints it."""

from __future__ import annotations

from random import Random
from typing import NamedTuple

from cs2_simulator.play.fights.arsenal import INFERNO, WEAPONS, ItemKind, Weapon
from cs2_simulator.play.player import Player

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
"""Damage of slashes, and of stabs from the front and from behind."""

ARMOR_WEAR = 0.5
"""Share of the absorbed damage by which armor decreases. For an HE grenade the share is 1."""


class Hit(NamedTuple):
    """The effect of a hit. `damage` is not limited to the remaining health."""

    weapon: Weapon
    damage: int
    armor_damage: int
    hitgroup: str


def shot(weapon: Weapon, victim: Player, hitgroup: str, factor: float) -> Hit:
    """Return the hit of a bullet.

    `factor` is the share of damage that is left after distance, walls and friendly fire reduction.
    """
    force = weapon.damage * _FACTORS[hitgroup] * factor
    is_covered = victim.has_helmet if hitgroup == "head" else hitgroup not in _UNARMORED
    if victim.armor and is_covered:
        passed = force * weapon.pierce
        armor_damage = int((force - passed) * ARMOR_WEAR)
        return Hit(weapon, int(passed) or 1, min(armor_damage, victim.armor), hitgroup)
    return Hit(weapon, int(force) or 1, 0, hitgroup)


def blast(victim: Player, force: float) -> Hit:
    """Return the hit of an HE grenade. Armor absorbs two fifths of the damage and decreases by this amount."""
    weapon = WEAPONS["hegrenade"]
    if victim.armor:
        passed = force * weapon.pierce
        return Hit(weapon, int(passed), min(int(force - passed), victim.armor), "generic")
    return Hit(weapon, int(force), 0, "generic")


def stab(rng: Random, weapon: Weapon, victim: Player, factor: float) -> Hit:
    """Return the hit of a knife or taser. Its hit group is always `generic`."""
    if weapon.kind is ItemKind.TASER:
        return Hit(weapon, int(weapon.damage * factor), 0, "generic")
    force = _STABS[int(rng.random() * len(_STABS))] * factor
    if victim.armor:
        return Hit(weapon, int(force * weapon.pierce), min(int(force * 0.075), victim.armor), "generic")
    return Hit(weapon, int(force), 0, "generic")


def flame(tick: int, factor: float) -> Hit:
    """Return the hit of fire, which ignores armor. Its damage grows with every tick up to a maximum."""
    return Hit(INFERNO, max(1, int(min(1 + tick * 0.8, INFERNO.damage) * factor)), 0, "generic")


def body_part(rng: Random) -> str:
    """Return a random hit group other than the head."""
    return _BODY[int(rng.random() * len(_BODY))]


def vital_part(rng: Random) -> str:
    """Return a random hit group for a hit with a sniper rifle."""
    return _VITAL[int(rng.random() * len(_VITAL))]
