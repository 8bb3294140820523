"""Test grenades from the throw to the detonation."""

from __future__ import annotations

from random import Random

import pytest

from cs2_protocol.log_lines.player_lines import Attacked, BlindedBy, GrenadeLanded, GrenadeLaunched
from cs2_protocol.log_lines.world_lines import MolotovSpawned
from cs2_simulator.play.fights.combat import Battle
from cs2_simulator.play.fights.grenades import throw
from simulator_tests.play.fights.battlefield import Battlefield, FixedRng


def thrown(grenade: str, rng: Random, **settings: str) -> tuple[Battlefield, Battle]:
    field = Battlefield(settings=settings).spawn_all()
    field.go_live()
    field.cts[0].grenades.append(grenade)
    battle = Battle(field.arena, rng)
    field.run(throw(battle, field.cts[0], grenade))
    return field, battle


@pytest.mark.parametrize(
    ("grenade", "launched", "end", "landed"),
    [
        ("hegrenade", "hegrenade", " 44 3.000", "hegrenade"),
        ("flashbang", "flashgrenade", " 43", "flashbang"),
        ("smokegrenade", "smokegrenade", " 45 2", "smokegrenade"),
        ("molotov", "molotov", " 46", "molotov"),
        ("incgrenade", "molotov", " 48", "molotov"),
        ("decoy", "decoygrenade", " 47", "decoy"),
    ],
)
def test_throw_and_landing_have_the_names_of_a_real_log(grenade: str, launched: str, end: str, landed: str) -> None:
    field, _ = thrown(grenade, Random(1))
    (start,), (landing,) = field.log.lines_of(GrenadeLaunched), field.log.lines_of(GrenadeLanded)
    assert (start.grenade, start.numbers.endswith(end), landing.grenade) == (launched, True, landed)
    assert (landing.entity is not None) == (grenade == "flashbang")
    assert field.cts[0].grenades == []


def test_molotov_spawn_is_logged_right_after_the_throw() -> None:
    field, _ = thrown("molotov", Random(1))
    kinds = [type(line) for line in field.log.lines]
    assert kinds.index(MolotovSpawned) == kinds.index(GrenadeLaunched) + 1


def test_fire_deals_damage_in_ticks_for_a_limited_time() -> None:
    field, _ = thrown("molotov", FixedRng(0.0299))
    hits = [line.damage for line in field.log.lines_of(Attacked) if line.victim == field.ts[0].token]
    assert hits == [1, 1]


def test_flash_thrown_at_a_player_blinds_this_player_for_seconds(field: Battlefield) -> None:
    field.cts[0].grenades.append("flashbang")
    battle = Battle(field.arena, FixedRng(0.99, 0.99, 0.99, 0.99, 0.99))
    field.run(throw(battle, field.cts[0], "flashbang", field.ts[2]))
    assert [line.player for line in field.log.lines_of(BlindedBy)] == [field.ts[2].token]
    assert field.ts[2].blind_until_ms >= field.arena.clock_ms + 2_000


def test_blinded_dead_player_may_be_logged_but_is_not_counted(field: Battlefield) -> None:
    field.go_live()
    field.ts[0].is_alive = False
    field.ts[0].health = 0
    field.cts[0].grenades.append("flashbang")
    field.run(throw(Battle(field.arena, FixedRng(0.01)), field.cts[0], "flashbang"))
    assert field.ts[0].token in [line.player for line in field.log.lines_of(BlindedBy)]
    assert sum(tally.enemies_flashed for tally in field.arena.book.tallies()) == 4


def test_grenade_of_a_dead_player_still_detonates(field: Battlefield) -> None:
    thrower = field.cts[0]
    thrower.grenades.append("hegrenade")
    script = throw(Battle(field.arena, Random(1)), thrower, "hegrenade")
    next(script)
    thrower.is_alive = False
    list(script)
    assert len(field.log.lines_of(GrenadeLanded)) == 1
