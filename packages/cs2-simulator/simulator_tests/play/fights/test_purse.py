"""Test changes of money."""

from __future__ import annotations

from cs2_simulator.play.fights.economy import change_money
from simulator_tests.play.fights.battlefield import Battlefield


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


def test_money_changes_without_a_line_if_money_logging_is_disabled() -> None:
    field = Battlefield(settings={"mp_logmoney": "0"})
    change_money(field.arena, field.cts[0], -300, "purchase: weapon_p250")
    assert (field.cts[0].money, field.log.lines) == (500, [])
