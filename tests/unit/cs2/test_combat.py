"""Combat, grenades and the bomb."""

from __future__ import annotations

import pytest

from matchpod.core import events as ev
from matchpod.core.events import GrenadeKind

from .server_log import ServerLog, id64


def live() -> ServerLog:
    return ServerLog().goes_live()


def attack(log: ServerLog, attacker: int, victim: int, health: int = 60) -> ServerLog:
    return log.say(
        f'{log.token(attacker)} [1 2 3] attacked {log.token(victim)} [1 2 3] with "ak47" (damage "40")'
        f' (damage_armor "0") (health "{health}") (armor "0") (hitgroup "head")'
    )


def begins_defuse(log: ServerLog, account: int) -> ServerLog:
    return log.say(f'{log.token(account)} triggered "Begin_Bomb_Defuse_With_Kit"').wait()


def defused(log: ServerLog) -> ev.BombDefused:
    return log.round_end("CT", "Bomb_Defused").last(ev.BombDefused)


@pytest.mark.parametrize(("victim", "is_enemy"), [(3, True), (2, False), (1, False)])
def test_a_hit_knows_friend_from_foe(victim: int, is_enemy: bool) -> None:
    log = attack(live(), 1, victim)
    assert log.last(ev.Damage) == ev.Damage(log.now, id64(1), id64(victim), "ak47", "head", 40, 60, is_enemy)


def test_a_kill_has_its_circumstances_and_distance() -> None:
    log = live().kill(1, 3, "awp", " (headshot penetrated throughsmoke attackerblind noscope attackerinair)")
    assert log.last(ev.Kill) == ev.Kill(
        log.now, id64(1), id64(3), "awp", True, True, True, True, True, True, True, distance=5.0
    )


def test_inair_is_not_a_word_of_the_game() -> None:
    assert not live().kill(1, 3, "awp", " (inair)").last(ev.Kill).is_in_air


def test_a_team_kill_is_no_enemy_kill() -> None:
    assert not live().kill(1, 2).last(ev.Kill).is_enemy


def test_a_player_killed_by_his_own_weapon_died_and_nobody_killed() -> None:
    log = live().kill(1, 1, "hegrenade")
    assert log.last(ev.Death) == ev.Death(log.now, id64(1), "hegrenade")
    assert not log.all(ev.Kill)


def test_a_bomb_death_is_told_with_its_cause() -> None:
    log = live()
    log.say(f"{log.token(1)} [1 2 3] was killed by the bomb.", f'{log.token(1)} [1 2 3] committed suicide with "world"')
    assert [death.cause for death in log.all(ev.Death)] == ["bomb", "world"]


def test_assists_and_blindings_are_told() -> None:
    log = live()
    log.say(
        f"{log.token(1)} assisted killing {log.token(3)}",
        f"{log.token(2)} flash-assisted killing {log.token(3)}",
        f"{log.token(3)} blinded for 2.50 by {log.token(1)} from flashbang entindex 9 ",
        f"{log.token(2)} blinded for 1.50 by {log.token(1)} from flashbang entindex 9 ",
    )
    assert [(assist.player_id, assist.is_flash) for assist in log.all(ev.Assist)] == [(id64(1), False), (id64(2), True)]
    assert [(blind.seconds, blind.is_enemy) for blind in log.all(ev.Blinded)] == [(2.5, True), (1.5, False)]


def test_throws_are_counted_when_they_leave_the_hand() -> None:
    log = live()
    for verb in ("hegrenade", "flashgrenade", "smokegrenade", "molotov", "decoygrenade"):
        log.say(f"{log.token(1)} sv_throw_{verb} 1.0 2.0 3.0")
    log.say(f"{log.token(1)} threw hegrenade [1 2 3]")
    assert [thrown.kind for thrown in log.all(ev.GrenadeThrown)] == list(GrenadeKind)


def test_landings_are_counted_in_logs_that_print_no_throws() -> None:
    log = live()
    log.say(f"{log.token(1)} threw hegrenade [1 2 3]", f"{log.token(1)} threw tagrenade [1 2 3]")
    assert [thrown.kind for thrown in log.all(ev.GrenadeThrown)] == [GrenadeKind.HE]


def test_chickens_count_and_windows_do_not() -> None:
    log = live()
    log.say(
        f'{log.token(1)} [1 2 3] killed other "chicken<145>" [4 5 6] with "knife"',
        f'{log.token(1)} [1 2 3] killed other "func_breakable<145>" [4 5 6] with "knife"',
    )
    assert [chicken.player_id for chicken in log.all(ev.ChickenKilled)] == [id64(1)]


def test_a_plant_has_its_site() -> None:
    log = live()
    log.say(f'{log.token(3)} triggered "Got_The_Bomb"', f'{log.token(3)} triggered "Planted_The_Bomb" at bombsite B')
    assert log.last(ev.BombPlanted) == ev.BombPlanted(log.now, id64(3), "B")


def test_the_defuser_is_the_last_who_began_though_no_line_says_so() -> None:
    log = begins_defuse(begins_defuse(live(), 1), 2)
    assert defused(log).player_id == id64(2)


def test_the_defuser_is_still_alive() -> None:
    log = begins_defuse(begins_defuse(live(), 1), 2).kill(3, 2)
    assert defused(log).player_id == id64(1)


def test_a_defuser_who_left_or_fell_by_himself_is_not_the_one() -> None:
    log = begins_defuse(begins_defuse(live(), 1), 2).leaves(2)
    log.say(f'{log.token(1)} [1 2 3] committed suicide with "world"')
    assert defused(log).player_id is None


def test_the_money_of_the_tick_settles_it_between_two() -> None:
    log = begins_defuse(begins_defuse(live(), 1), 2)
    log.say('"Ann<2><[U:1:1]><CT>" money change 100+300 = $400 (tracked)')
    assert defused(log).player_id == id64(1)


def test_money_of_an_earlier_tick_settles_nothing() -> None:
    log = begins_defuse(begins_defuse(live(), 1), 2)
    log.say('"Ann<2><[U:1:1]><CT>" money change 100+300 = $400 (tracked)').wait()
    assert defused(log).player_id == id64(2)


def test_who_began_in_the_round_before_is_forgotten() -> None:
    log = begins_defuse(live(), 1).plays("CT")
    assert defused(log).player_id is None


def test_a_defuse_that_is_logged_counts_once() -> None:
    log = begins_defuse(live(), 1)
    log.say(f'{log.token(1)} triggered "Defused_The_Bomb"').round_end("CT", "Bomb_Defused")
    assert [event.player_id for event in log.all(ev.BombDefused)] == [id64(1)]
