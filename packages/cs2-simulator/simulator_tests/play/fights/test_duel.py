"""Test fights between two players."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest

from cs2_protocol.log_lines.player_lines import Attacked, Killed
from cs2_simulator.play.fights.combat import Battle
from cs2_simulator.play.fights.duel import duel, spray
from cs2_simulator.play.player import Participant
from simulator_tests.play.fights.battlefield import Battlefield, FixedRng


def armed_field(gun: str = "ak47", **settings: str) -> Battlefield:
    field = Battlefield(settings=settings).spawn_all()
    for player in field.arena.players:
        player.primary, player.armor, player.has_helmet = gun, 100, True
    return field


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("gun", ["ak47", "mp9", "awp", "ssg08", "nova", "negev", ""])
def test_duel_ends_with_the_victims_death(seed: int, gun: str) -> None:
    field = armed_field(gun)
    battle = Battle(field.arena, Random(seed))
    field.run(duel(battle, field.cts[0], field.ts[0]))
    assert not field.ts[0].is_alive
    assert field.cts[0].is_alive
    lethal = [line for line in field.log.lines_of(Attacked) if line.health == 0]
    (kill,) = field.log.lines_of(Killed)
    assert len(lethal) == 1
    assert ("headshot" in kill.modifiers) == (lethal[0].hitgroup == "head")


@pytest.mark.parametrize(("gun", "cycle_ms"), [("awp", 1455), ("ssg08", 1250), ("ak47", 100)])
def test_gun_needs_its_cycle_time_before_the_next_victim(gun: str, cycle_ms: int) -> None:
    for seed in range(10):
        field = armed_field(gun)
        battle, killer = Battle(field.arena, Random(seed)), field.cts[0]
        killer.pistol = ""
        killed_ms = []
        for victim in field.ts:
            field.run(duel(battle, killer, victim, is_quick=True))
            killed_ms.append((field.log.lines_of(Killed)[-1].weapon, field.agenda.now_ms))
        gaps = [
            after_ms - before_ms
            for (before, before_ms), (after, after_ms) in pairwise(killed_ms)
            if before == after == gun
        ]
        assert all(gap >= cycle_ms for gap in gaps)


def test_cheater_does_not_wait_for_the_gun() -> None:
    field = armed_field("awp")
    killer = field.add(20, "CT", Participant("cheater", 99, is_cheater=True))
    killer.primary, killer.is_alive = "awp", True
    battle = Battle(field.arena, FixedRng(0.5))
    before_ms = field.agenda.now_ms
    for victim in field.ts[:2]:
        field.run(duel(battle, killer, victim, is_quick=True))
    assert field.agenda.now_ms - before_ms < 1_000


def test_duel_ends_when_the_victim_leaves() -> None:
    field = armed_field("")
    script = duel(Battle(field.arena, FixedRng(0.3)), field.cts[0], field.ts[0])
    next(script)
    field.leave(field.ts[0])
    assert list(script) == []


def test_cheater_kills_have_suspicious_modifiers() -> None:
    field = Battlefield(cts=0, ts=0)
    cheater = field.add(0, "CT", Participant("x", 9, is_cheater=True))
    victims = [field.add(number, "TERRORIST") for number in range(1, 60)]
    field.spawn_all()
    cheater.primary = "m4a1"
    battle = Battle(field.arena, Random(1))
    for victim in victims:
        field.run(duel(battle, cheater, victim, is_quick=True))
    kills = [line for line in field.log.lines_of(Killed) if not line.weapon.startswith("knife")]
    assert sum("headshot" in line.modifiers for line in kills) >= 50
    assert sum(len(line.modifiers) > 1 for line in kills) >= 15


def test_kill_modifiers_include_all_kinds() -> None:
    field = Battlefield(cts=1, ts=600).spawn_all()
    killer = field.cts[0]
    killer.primary = "awp"
    battle = Battle(field.arena, Random(3))
    battle.smoke_until_ms = killer.blind_until_ms = field.arena.clock_ms + 10_000_000
    for victim in field.ts:
        field.run(duel(battle, killer, victim, is_quick=True))
    modifiers = {modifier for line in field.log.lines_of(Killed) for modifier in line.modifiers}
    assert modifiers == {"headshot", "penetrated", "noscope", "throughsmoke", "attackerblind", "attackerinair"}


def test_spray_on_teammates_without_friendly_fire_deals_no_damage() -> None:
    field = armed_field(mp_friendlyfire="0")
    field.run(spray(Battle(field.arena, Random(1)), field.cts[0], field.cts[1], hits=2))
    assert [line.damage for line in field.log.lines_of(Attacked)] == [0, 0]
    assert field.cts[1].health == 100
