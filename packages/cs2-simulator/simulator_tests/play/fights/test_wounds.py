"""Test the damage of hits."""

from __future__ import annotations

from random import Random

import pytest

from cs2_simulator.play.fights.arsenal import WEAPONS, weapon_named
from cs2_simulator.play.fights.wounds import blast, body_part, flame, shot, stab, vital_part
from cs2_simulator.play.player import Player
from simulator_tests.play.fights.battlefield import Battlefield, FixedRng


@pytest.fixture
def victim() -> Player:
    return Battlefield().ts[0]


def armored(player: Player, *, helmet: bool = True) -> Player:
    player.armor, player.has_helmet = 100, helmet
    return player


def test_headshot_damage_is_not_capped(victim: Player) -> None:
    assert shot(WEAPONS["ak47"], victim, "head", 1.0).damage == 144


def test_armor_absorbs_damage_and_loses_points(victim: Player) -> None:
    hit = shot(WEAPONS["ak47"], armored(victim), "chest", 0.98)
    assert (hit.damage, hit.armor_damage) == (27, 3)


def test_armor_without_helmet_does_not_protect_the_head(victim: Player) -> None:
    assert shot(WEAPONS["ak47"], armored(victim, helmet=False), "head", 1.0).armor_damage == 0


def test_armor_does_not_protect_the_legs(victim: Player) -> None:
    assert shot(WEAPONS["ak47"], armored(victim), "left leg", 1.0).damage == 27


def test_bullet_damage_is_at_least_one(victim: Player) -> None:
    assert shot(WEAPONS["glock"], victim, "chest", 0.001).damage == 1


def test_armor_damage_is_capped_at_the_remaining_armor(victim: Player) -> None:
    victim.armor = 2
    assert shot(WEAPONS["glock"], victim, "chest", 1.0).armor_damage == 2


def test_armor_absorbs_part_of_a_grenade_and_loses_points(victim: Player) -> None:
    bare = blast(victim, 62)
    protected = blast(armored(victim), 62)
    assert (bare.damage, protected.damage, protected.armor_damage) == (62, 37, 24)


def test_taser_ignores_armor(victim: Player) -> None:
    assert stab(Random(1), WEAPONS["taser"], armored(victim), 1.0).damage == 500


def test_stab_in_the_back_kills(victim: Player) -> None:
    knife = weapon_named("knife_t")
    assert stab(FixedRng(0.99), knife, victim, 1.0).damage == 180
    assert stab(FixedRng(0.99), knife, armored(victim), 1.0).damage == 153


def test_fire_damage_grows_with_time() -> None:
    assert [flame(tick, 1.0).damage for tick in (0, 1, 4, 20)] == [1, 1, 4, 8]


def test_body_parts_are_hit_groups_of_the_log() -> None:
    rng = Random(1)
    parts = {body_part(rng) for _ in range(400)} | {vital_part(rng) for _ in range(50)}
    assert parts == {"chest", "stomach", "neck", "left arm", "right arm", "left leg", "right leg"}
