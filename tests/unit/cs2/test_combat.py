"""Tests of combat, grenade and bomb events."""

from __future__ import annotations

import pytest

from matchpod.core import events as ev
from matchpod.core.events import GrenadeKind
from matchpod.cs2.combat import MAX_DEFUSING, MAX_WEAPON_CHARS
from tests.unit.cs2.server_log import ServerLog, id64


def live() -> ServerLog:
    return ServerLog().go_live()


def attack(log: ServerLog, attacker: int, victim: int, health: int = 60) -> ServerLog:
    return log.write(
        f'{log.token(attacker)} [1 2 3] attacked {log.token(victim)} [1 2 3] with "ak47" (damage "40")'
        f' (damage_armor "0") (health "{health}") (armor "0") (hitgroup "head")'
    )


def begin_defuse(log: ServerLog, account: int) -> ServerLog:
    return log.write(f'{log.token(account)} triggered "Begin_Bomb_Defuse_With_Kit"').wait()


def defused(log: ServerLog) -> ev.BombDefused:
    return log.round_end("CT", "Bomb_Defused").last(ev.BombDefused)


@pytest.mark.parametrize(("victim", "is_enemy"), [(3, True), (2, False), (1, False)])
def test_hit_says_whether_its_victim_is_an_enemy(victim: int, is_enemy: bool) -> None:
    log = attack(live(), 1, victim)
    assert log.last(ev.Damage) == ev.Damage(log.now, id64(1), id64(victim), "ak47", "head", 40, 60, is_enemy)


def test_kill_has_its_modifiers_and_distance() -> None:
    log = live().kill(1, 3, "awp", " (headshot penetrated throughsmoke attackerblind noscope attackerinair)")
    assert log.last(ev.Kill) == ev.Kill(
        log.now, id64(1), id64(3), "awp", True, True, True, True, True, True, True, distance=5.0
    )


def test_self_kill_is_a_death_and_not_a_kill() -> None:
    log = live().kill(1, 1, "hegrenade")
    assert log.last(ev.Death) == ev.Death(log.now, id64(1), "hegrenade")
    assert not log.all(ev.Kill)


def test_bomb_death_has_the_bomb_as_cause() -> None:
    log = live()
    log.write(
        f"{log.token(1)} [1 2 3] was killed by the bomb.", f'{log.token(1)} [1 2 3] committed suicide with "world"'
    )
    assert [death.cause for death in log.all(ev.Death)] == ["bomb", "world"]


def test_assists_and_blindings_are_events() -> None:
    log = live()
    log.write(
        f"{log.token(1)} assisted killing {log.token(3)}",
        f"{log.token(2)} flash-assisted killing {log.token(3)}",
        f"{log.token(3)} blinded for 2.50 by {log.token(1)} from flashbang entindex 9 ",
        f"{log.token(2)} blinded for 1.50 by {log.token(1)} from flashbang entindex 9 ",
    )
    assert [(assist.player_id, assist.is_flash) for assist in log.all(ev.Assist)] == [(id64(1), False), (id64(2), True)]
    assert [(blind.seconds, blind.is_enemy) for blind in log.all(ev.Blinded)] == [(2.5, True), (1.5, False)]


def test_throws_are_counted_at_launch() -> None:
    log = live()
    for verb in ("hegrenade", "flashgrenade", "smokegrenade", "molotov", "decoygrenade"):
        log.write(f"{log.token(1)} sv_throw_{verb} 1.0 2.0 3.0")
    log.write(f"{log.token(1)} threw hegrenade [1 2 3]")
    assert [thrown.kind for thrown in log.all(ev.GrenadeThrown)] == list(GrenadeKind)


def test_landings_count_as_throws_in_logs_without_launch_lines() -> None:
    log = live()
    log.write(f"{log.token(1)} threw hegrenade [1 2 3]", f"{log.token(1)} threw tagrenade [1 2 3]")
    assert [thrown.kind for thrown in log.all(ev.GrenadeThrown)] == [GrenadeKind.HE]


def test_killed_chickens_are_counted_and_broken_windows_are_not() -> None:
    log = live()
    log.write(
        f'{log.token(1)} [1 2 3] killed other "chicken<145>" [4 5 6] with "knife"',
        f'{log.token(1)} [1 2 3] killed other "func_breakable<145>" [4 5 6] with "knife"',
    )
    assert [chicken.player_id for chicken in log.all(ev.ChickenKilled)] == [id64(1)]


def test_plant_has_its_bombsite() -> None:
    log = live()
    log.write(f'{log.token(3)} triggered "Got_The_Bomb"', f'{log.token(3)} triggered "Planted_The_Bomb" at bombsite B')
    assert log.last(ev.BombPlanted) == ev.BombPlanted(log.now, id64(3), "B")


def test_defuser_is_the_last_player_who_began_to_defuse() -> None:
    log = begin_defuse(begin_defuse(live(), 1), 2)
    assert defused(log).player_id == id64(2)


def test_defuser_must_be_alive() -> None:
    log = begin_defuse(begin_defuse(live(), 1), 2).kill(3, 2)
    assert defused(log).player_id == id64(1)


def test_player_who_left_or_died_is_not_the_defuser() -> None:
    log = begin_defuse(begin_defuse(live(), 1), 2).leave(2)
    log.write(f'{log.token(1)} [1 2 3] committed suicide with "world"')
    assert defused(log).player_id is None


def test_reward_in_the_same_tick_decides_between_two_defusers() -> None:
    log = begin_defuse(begin_defuse(live(), 1), 2)
    log.write('"Ann<2><[U:1:1]><CT>" money change 100+300 = $400 (tracked)')
    assert defused(log).player_id == id64(1)


def test_reward_in_an_earlier_tick_decides_nothing() -> None:
    log = begin_defuse(begin_defuse(live(), 1), 2)
    log.write('"Ann<2><[U:1:1]><CT>" money change 100+300 = $400 (tracked)').wait()
    assert defused(log).player_id == id64(2)


def test_defuse_attempts_of_the_previous_round_are_forgotten() -> None:
    log = begin_defuse(live(), 1).play("CT")
    assert defused(log).player_id is None


def test_logged_defuse_counts_once() -> None:
    log = begin_defuse(live(), 1)
    log.write(f'{log.token(1)} triggered "Defused_The_Bomb"').round_end("CT", "Bomb_Defused")
    assert [event.player_id for event in log.all(ev.BombDefused)] == [id64(1)]


def test_number_of_players_who_may_be_defusing_is_bounded() -> None:
    log = live()
    for account in range(10, 20 + MAX_DEFUSING):
        log.write(f'"P<{account}><[U:1:{account}]><CT>" triggered "Begin_Bomb_Defuse_With_Kit"')
    assert len(log.interpreter.flow.combat.defusing) == MAX_DEFUSING
    assert defused(log).player_id == id64(19 + MAX_DEFUSING)


def test_forged_names_of_weapons_are_cut() -> None:
    log = live().kill(1, 3, "w" * 1_000)
    assert log.last(ev.Kill).weapon == "w" * MAX_WEAPON_CHARS
    log.write(f'{log.token(1)} [1 2 3] committed suicide with "{"w" * 1_000}"')
    assert log.last(ev.Death).cause == "w" * MAX_WEAPON_CHARS
