"""How much a hit hurts."""

from __future__ import annotations

from random import Random

import pytest

from matchpod.simulator.play.fights.arsenal import WEAPONS, weapon_named
from matchpod.simulator.play.fights.wounds import blast, body_part, flame, shot, stab, vital_part
from matchpod.simulator.play.player import Player
from tests.unit.simulator.play.fights.battlefield import Battlefield, Fixed


@pytest.fixture
def victim() -> Player:
    return Battlefield().ts[0]


def wear(player: Player, *, helmet: bool = True) -> Player:
    player.armor, player.has_helmet = 100, helmet
    return player


def test_bullet_in_a_bare_head_is_printed_without_a_limit(victim: Player) -> None:
    assert shot(WEAPONS["ak47"], victim, "head", 1.0).damage == 144


def test_armour_takes_its_part_and_wears_off(victim: Player) -> None:
    blow = shot(WEAPONS["ak47"], wear(victim), "chest", 0.98)
    assert (blow.damage, blow.armor_damage) == (27, 3)


def test_helmet_is_needed_for_the_head(victim: Player) -> None:
    assert shot(WEAPONS["ak47"], wear(victim, helmet=False), "head", 1.0).armor_damage == 0


def test_legs_have_no_armour(victim: Player) -> None:
    assert shot(WEAPONS["ak47"], wear(victim), "left leg", 1.0).damage == 27


def test_every_bullet_hurts(victim: Player) -> None:
    assert shot(WEAPONS["glock"], victim, "chest", 0.001).damage == 1


def test_armour_never_loses_more_than_there_is(victim: Player) -> None:
    victim.armor = 2
    assert shot(WEAPONS["glock"], victim, "chest", 1.0).armor_damage == 2


def test_grenade_wears_armour_off_by_what_it_holds_back(victim: Player) -> None:
    bare = blast(victim, 62)
    worn = blast(wear(victim), 62)
    assert (bare.damage, worn.damage, worn.armor_damage) == (62, 37, 24)


def test_taser_kills_through_armour(victim: Player) -> None:
    assert stab(Random(1), WEAPONS["taser"], wear(victim), 1.0).damage == 500


def test_stab_in_the_back_kills(victim: Player) -> None:
    knife = weapon_named("knife_t")
    assert (stab(Fixed(0.99), knife, victim, 1.0).damage, stab(Fixed(0.99), knife, wear(victim), 1.0).damage) == (
        180,
        153,
    )


def test_fire_hurts_more_the_longer_it_burns() -> None:
    assert [flame(tick, 1.0).damage for tick in (0, 1, 4, 20)] == [1, 1, 4, 8]


def test_body_parts_are_those_of_the_log() -> None:
    dice = Random(1)
    parts = {body_part(dice) for _ in range(400)} | {vital_part(dice) for _ in range(50)}
    assert parts == {"chest", "stomach", "neck", "left arm", "right arm", "left leg", "right leg"}
