"""Test changes of money."""

from __future__ import annotations

from cs2_simulator.play.fights.economy import change_money
from simulator_tests.play.fights.battlefield import Battlefield


def test_money_line_has_a_user_id_one_too_high() -> None:
    field = Battlefield()
    change_money(field.arena, field.cts[0], 300)
    assert field.log.texts == ['"player 0<1><[U:1:1000]><CT>" money change 800+300 = $1100 (tracked)']


def test_change_may_be_untracked() -> None:
    field = Battlefield()
    change_money(field.arena, field.cts[0], -300, is_tracked=False)
    assert field.log.texts == ['"player 0<1><[U:1:1000]><CT>" money change 800-300 = $500']


def test_limit_caps_the_money_but_not_the_logged_change() -> None:
    field = Battlefield()
    field.cts[0].money = 15050
    change_money(field.arena, field.cts[0], 1500)
    assert field.log.texts[0].endswith("money change 15050+1500 = $16000 (tracked)")


def test_no_money_line_is_logged_for_a_player_at_the_limit() -> None:
    field = Battlefield()
    field.cts[0].money = 16000
    change_money(field.arena, field.cts[0], 300)
    assert field.log.lines == []


def test_money_does_not_become_negative() -> None:
    field = Battlefield()
    field.cts[0].money = 100
    change_money(field.arena, field.cts[0], -300)
    assert field.cts[0].money == 0


def test_money_changes_without_a_line_if_money_logging_is_disabled() -> None:
    field = Battlefield(settings={"mp_logmoney": "0"})
    change_money(field.arena, field.cts[0], -300, "purchase: weapon_p250")
    assert (field.cts[0].money, field.log.lines) == (500, [])
