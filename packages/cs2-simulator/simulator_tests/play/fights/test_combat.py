"""Test hits, deaths, assists, rewards and their statistics."""

from __future__ import annotations

import pytest

from cs2_protocol.log_lines.player_lines import Assisted, Attacked, Killed, MoneyChange, Suicide
from cs2_simulator.play.counts.tally import Tally
from cs2_simulator.play.fights.arsenal import WEAPONS, weapon_named
from cs2_simulator.play.fights.combat import Battle
from cs2_simulator.play.fights.wounds import Hit
from cs2_simulator.play.player import Player
from simulator_tests.play.fights.battlefield import Battlefield, FixedRng


def hit(damage: int, weapon: str = "ak47", hitgroup: str = "chest") -> Hit:
    return Hit(WEAPONS.get(weapon) or weapon_named(weapon), damage, 0, hitgroup)


@pytest.fixture
def field() -> Battlefield:
    field = Battlefield().spawn_all()
    field.go_live()
    return field


def tally_of(field: Battlefield, player: Player) -> Tally:
    return next(tally for tally in field.arena.book.tallies() if tally.player_id == player.person.player_id)


def test_kill_logs_hit_bomb_drop_kill_assist_and_money_in_order(field: Battlefield) -> None:
    battle = Battle(field.arena, FixedRng(0.5))
    killer, helper, victim = field.cts[0], field.cts[1], field.ts[0]
    victim.has_bomb = True
    battle.apply_hit(helper, victim, hit(41))
    assert battle.apply_hit(killer, victim, hit(144, "ak47", "head"), ("headshot",))
    tail = [text.split("> ")[-1] if "triggered" in text else text for text in field.log.texts[1:]]
    assert [type(line).__name__ for line in field.log.lines[1:]] == [
        "Attacked",
        "Triggered",
        "Killed",
        "Assisted",
        "MoneyChange",
    ]
    assert 'triggered "Dropped_The_Bomb"' in tail[1]
    assert tail[2].endswith('with "ak47" (headshot)')
    assert not victim.has_bomb
    assert battle.is_bomb_dropped


def test_lethal_hit_logs_full_damage_but_counts_only_lost_health(field: Battlefield) -> None:
    battle = Battle(field.arena, FixedRng(0.5))
    field.ts[0].health = 30
    battle.apply_hit(field.cts[0], field.ts[0], hit(144))
    (line,) = field.log.lines_of(Attacked)
    assert (line.damage, line.health) == (144, 0)
    assert tally_of(field, field.cts[0]).damage == 30


@pytest.mark.parametrize(("damage", "assists"), [(39, 0), (40, 1)])
def test_damage_before_a_death_by_an_own_grenade_is_an_assist_without_a_line(
    field: Battlefield, damage: int, assists: int
) -> None:
    battle, victim = Battle(field.arena, FixedRng(0.5)), field.ts[0]
    battle.apply_hit(field.cts[1], victim, hit(damage))
    assert battle.apply_hit(victim, victim, hit(100, "hegrenade"))
    assert field.log.lines_of(Assisted) == []
    assert tally_of(field, field.cts[1]).assists == assists


def test_flash_assist_counts_while_the_victim_is_blind(field: Battlefield) -> None:
    battle = Battle(field.arena, FixedRng(0.5))
    victim = field.ts[0]
    victim.blind_until_ms = field.arena.clock_ms + 1000
    battle.blinded_by[victim] = field.cts[3]
    battle.apply_hit(field.cts[0], victim, hit(100))
    (line,) = field.log.lines_of(Assisted)
    assert (line.player, line.is_flash) == (field.cts[3].token, True)


@pytest.mark.parametrize("number", [0, 6])
def test_flash_by_the_killer_or_the_victims_team_is_not_an_assist(field: Battlefield, number: int) -> None:
    battle = Battle(field.arena, FixedRng(0.5))
    victim = field.ts[0]
    victim.blind_until_ms = field.arena.clock_ms + 1000
    battle.blinded_by[victim] = field.arena.players[number]
    battle.apply_hit(field.cts[0], victim, hit(100))
    assert field.log.lines_of(Assisted) == []


def test_team_kill_costs_money_and_is_not_a_kill(field: Battlefield) -> None:
    battle = Battle(field.arena, FixedRng(0.5))
    battle.apply_hit(field.cts[0], field.cts[1], hit(100))
    assert field.log.lines_of(MoneyChange)[0].change == -300
    assert battle.kills == {}


def test_player_who_must_live_keeps_one_health_point(field: Battlefield) -> None:
    battle = Battle(field.arena, FixedRng(0.5), must_live=lambda _player: True)
    assert not battle.apply_hit(field.cts[0], field.ts[0], hit(144))
    assert not battle.apply_hit(field.cts[0], field.ts[0], hit(144))
    assert [line.damage for line in field.log.lines_of(Attacked)] == [99]
    assert field.ts[0].health == 1


@pytest.mark.parametrize(("detail", "shown"), [("0", 0), ("1", 1), ("2", 1), ("3", 2)])
def test_logdetail_selects_the_logged_hits(detail: str, shown: int) -> None:
    field = Battlefield(settings={"mp_logdetail": detail}).spawn_all()
    battle = Battle(field.arena, FixedRng(0.5))
    battle.apply_hit(field.cts[0], field.ts[0], hit(10))
    battle.apply_hit(field.cts[0], field.cts[1], hit(10))
    assert len(field.log.lines_of(Attacked)) == shown
    assert (field.ts[0].health, field.cts[1].health) == (90, 90)


def test_death_by_own_grenade_is_a_suicide(field: Battlefield) -> None:
    Battle(field.arena, FixedRng(0.5)).apply_hit(field.cts[0], field.cts[0], hit(120, "hegrenade", "generic"))
    assert field.log.lines_of(Suicide)[0].weapon == "hegrenade"
    assert field.log.lines_of(Killed) == []
    assert tally_of(field, field.cts[0]).deaths == 1


def test_self_hit_line_may_have_a_broken_steam_id(field: Battlefield) -> None:
    battle = Battle(field.arena, FixedRng(0.05, 0.0, 0.05, 0.99, 0.5))
    for _ in range(3):
        battle.apply_hit(field.cts[0], field.cts[0], hit(10, "hegrenade", "generic"))
    ids = [line.victim.steam_id for line in field.log.lines_of(Attacked)]
    assert ids[0] == ""
    assert not ids[1].isascii()
    assert ids[2] == "[U:1:1000]"
