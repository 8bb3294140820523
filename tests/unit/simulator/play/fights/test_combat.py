"""Hits, falls, assists, rewards, and what the book is told."""

from __future__ import annotations

import pytest

from matchpod.core.model import Side
from matchpod.cs2.log_lines.player_lines import Assisted, Attacked, Killed, KilledOther, MoneyChange, Suicide
from matchpod.simulator.play.counts.tally import Tally
from matchpod.simulator.play.fights.arsenal import WEAPONS, weapon_named
from matchpod.simulator.play.fights.combat import Battle, best_weapon
from matchpod.simulator.play.fights.wounds import Blow
from matchpod.simulator.play.player import Player
from tests.unit.simulator.play.fights.battlefield import Battlefield, Fixed


def blow(damage: int, weapon: str = "ak47", hitgroup: str = "chest") -> Blow:
    return Blow(WEAPONS.get(weapon) or weapon_named(weapon), damage, 0, hitgroup)


@pytest.fixture
def field() -> Battlefield:
    field = Battlefield().spawn_all()
    field.go_live()
    return field


def tally_of(field: Battlefield, player: Player) -> Tally:
    return next(tally for tally in field.arena.book.tallies() if tally.player_id == player.person.player_id)


def test_hit_prints_what_is_left(field: Battlefield) -> None:
    battle = Battle(field.arena, Fixed(0.5))
    battle.hit(field.cts[0], field.ts[0], blow(27, "usp_silencer"))
    assert field.log.texts == [
        '"player 0<0><[U:1:1000]><CT>" [10 20 30] attacked "player 5<5><[U:1:1035]><TERRORIST>" [10 20 30] with '
        '"hkp2000" (damage "27") (damage_armor "0") (health "73") (armor "0") (hitgroup "chest")'
    ]


def test_lethal_hit_precedes_bomb_kill_assist_and_money(field: Battlefield) -> None:
    battle = Battle(field.arena, Fixed(0.5))
    killer, helper, victim = field.cts[0], field.cts[1], field.ts[0]
    victim.has_bomb = True
    battle.hit(helper, victim, blow(41))
    assert battle.hit(killer, victim, blow(144, "ak47", "head"), ("headshot",))
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
    assert battle.is_bomb_loose


def test_lethal_hit_prints_whole_damage_and_tells_what_was_lost(field: Battlefield) -> None:
    battle = Battle(field.arena, Fixed(0.5))
    field.ts[0].health = 30
    battle.hit(field.cts[0], field.ts[0], blow(144))
    (line,) = field.log.of(Attacked)
    assert (line.damage, line.health) == (144, 0)
    assert tally_of(field, field.cts[0]).damage == 30


def test_forty_damage_are_no_assist(field: Battlefield) -> None:
    battle = Battle(field.arena, Fixed(0.5))
    battle.hit(field.cts[1], field.ts[0], blow(40))
    battle.hit(field.cts[0], field.ts[0], blow(100))
    assert field.log.of(Assisted) == []


def test_only_the_greatest_helper_assists(field: Battlefield) -> None:
    battle = Battle(field.arena, Fixed(0.5))
    battle.hit(field.cts[1], field.ts[0], blow(41))
    battle.hit(field.cts[2], field.ts[0], blow(45))
    battle.hit(field.cts[0], field.ts[0], blow(100))
    (line,) = field.log.of(Assisted)
    assert (line.player, line.is_flash) == (field.cts[2].token, False)


def test_own_team_mates_never_assist_the_enemy(field: Battlefield) -> None:
    battle = Battle(field.arena, Fixed(0.5))
    battle.hit(field.ts[1], field.ts[0], blow(60))
    battle.hit(field.cts[0], field.ts[0], blow(100))
    assert field.log.of(Assisted) == []


def test_helper_who_left_assists_nobody(field: Battlefield) -> None:
    battle = Battle(field.arena, Fixed(0.5))
    helper = field.cts[1]
    battle.hit(helper, field.ts[0], blow(60))
    field.leave(helper)
    battle.hit(field.cts[0], field.ts[0], blow(100))
    assert field.log.of(Assisted) == []


def test_flash_of_a_team_mate_assists_while_the_victim_is_blind(field: Battlefield) -> None:
    battle = Battle(field.arena, Fixed(0.5))
    victim = field.ts[0]
    victim.blind_until_ms = field.arena.clock_ms + 1000
    battle.blinded_by[victim] = field.cts[3]
    battle.hit(field.cts[0], victim, blow(100))
    (line,) = field.log.of(Assisted)
    assert (line.player, line.is_flash) == (field.cts[3].token, True)


@pytest.mark.parametrize("number", [0, 6])
def test_own_flash_and_that_of_the_victims_mates_assist_nobody(field: Battlefield, number: int) -> None:
    battle = Battle(field.arena, Fixed(0.5))
    victim = field.ts[0]
    victim.blind_until_ms = field.arena.clock_ms + 1000
    battle.blinded_by[victim] = field.arena.players[number]
    battle.hit(field.cts[0], victim, blow(100))
    assert field.log.of(Assisted) == []


@pytest.mark.parametrize(
    ("weapon", "reward"), [("ak47", 300), ("mp9", 600), ("awp", 100), ("knife_karambit", 1500), ("mag7", 900)]
)
def test_kill_pays_by_the_weapon(field: Battlefield, weapon: str, reward: int) -> None:
    Battle(field.arena, Fixed(0.5)).hit(field.cts[0], field.ts[0], blow(180, weapon))
    assert field.cts[0].money == 800 + reward


def test_team_kill_costs_money_and_is_no_kill(field: Battlefield) -> None:
    battle = Battle(field.arena, Fixed(0.5))
    battle.hit(field.cts[0], field.cts[1], blow(100))
    assert field.log.of(MoneyChange)[0].change == -300
    assert battle.kills == {}


def test_no_reward_where_there_are_none(field: Battlefield) -> None:
    Battle(field.arena, Fixed(0.5), has_rewards=False).hit(field.cts[0], field.ts[0], blow(100))
    field.variables.set("mp_playercashawards", "0")
    Battle(field.arena, Fixed(0.5)).hit(field.cts[0], field.ts[1], blow(100))
    assert field.cts[0].money == 800


def test_who_must_live_keeps_one_point_of_health(field: Battlefield) -> None:
    battle = Battle(field.arena, Fixed(0.5), must_live=lambda _player: True)
    assert not battle.hit(field.cts[0], field.ts[0], blow(144))
    assert not battle.hit(field.cts[0], field.ts[0], blow(144))
    assert [line.damage for line in field.log.of(Attacked)] == [99]
    assert field.ts[0].health == 1


@pytest.mark.parametrize(("detail", "shown"), [("0", 0), ("1", 1), ("2", 1), ("3", 2)])
def test_detail_says_whose_hits_are_logged(detail: str, shown: int) -> None:
    field = Battlefield(settings={"mp_logdetail": detail}).spawn_all()
    battle = Battle(field.arena, Fixed(0.5))
    battle.hit(field.cts[0], field.ts[0], blow(10))
    battle.hit(field.cts[0], field.cts[1], blow(10))
    assert len(field.log.of(Attacked)) == shown
    assert (field.ts[0].health, field.cts[1].health) == (90, 90)


def test_in_a_free_for_all_everybody_is_an_enemy(field: Battlefield) -> None:
    battle = Battle(field.arena, Fixed(0.5), is_free_for_all=True)
    battle.hit(field.cts[0], field.cts[1], blow(100))
    assert battle.kills == {field.cts[0]: 1}


def test_own_grenade_is_a_suicide(field: Battlefield) -> None:
    Battle(field.arena, Fixed(0.5)).hit(field.cts[0], field.cts[0], blow(120, "hegrenade", "generic"))
    assert field.log.of(Suicide)[0].weapon == "hegrenade"
    assert field.log.of(Killed) == []
    assert tally_of(field, field.cts[0]).deaths == 1


def test_line_about_oneself_may_lack_the_steam_id(field: Battlefield) -> None:
    battle = Battle(field.arena, Fixed(0.05, 0.0, 0.05, 0.99, 0.5))
    for _ in range(3):
        battle.hit(field.cts[0], field.cts[0], blow(10, "hegrenade", "generic"))
    ids = [line.victim.steam_id for line in field.log.of(Attacked)]
    assert ids[0] == ""
    assert not ids[1].isascii()
    assert ids[2] == "[U:1:1000]"


def test_chicken_counts_and_a_window_does_not(field: Battlefield) -> None:
    battle = Battle(field.arena, Fixed(0.5))
    battle.kill_thing(field.cts[0], "chicken", "knife")
    battle.kill_thing(field.cts[0], "func_breakable", "ak47")
    assert [line.thing for line in field.log.of(KilledOther)] == ["chicken", "func_breakable"]
    assert tally_of(field, field.cts[0]).chicken_kills == 1


def test_bomb_changes_hands_with_two_lines(field: Battlefield) -> None:
    Battle(field.arena, Fixed(0.5)).pick_up_bomb(field.ts[2])
    assert [text.partition('<TERRORIST>" ')[2] for text in field.log.texts] == [
        'picked up "c4"',
        'triggered "Got_The_Bomb"',
    ]


def test_pick_up_is_silent_where_items_are_not_logged() -> None:
    field = Battlefield(settings={"mp_logdetail_items": "0"}).spawn_all()
    Battle(field.arena, Fixed(0.5)).pick_up(field.ts[2], "ak47")
    assert field.log.lines == []


def test_new_life_forgets_old_wounds(field: Battlefield) -> None:
    battle = Battle(field.arena, Fixed(0.5))
    battle.hit(field.cts[1], field.ts[0], blow(60))
    battle.came_to_life(field.ts[0])
    battle.hit(field.cts[0], field.ts[0], blow(100))
    assert field.log.of(Assisted) == []


def test_best_weapon_is_the_gun_then_the_pistol_then_the_knife(field: Battlefield) -> None:
    player = field.ts[0]
    player.primary = "ak47"
    assert best_weapon(player).name == "ak47"
    player.primary = ""
    assert best_weapon(player).name == "glock"
    player.pistol = ""
    assert best_weapon(player).name == "knife_t"
    assert player.team == Side.T
