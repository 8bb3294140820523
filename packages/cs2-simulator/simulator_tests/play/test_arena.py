"""Tests of the arena: the empty `left buyzone` lines of players who left or died."""

from __future__ import annotations

from simulator_tests.play.fights.battlefield import Battlefield


def test_line_of_a_dead_player_has_their_id_and_comes_once_at_the_end_of_the_tick() -> None:
    field = Battlefield()
    field.arena.plan_last_line(field.cts[0])
    field.arena.plan_last_line(field.cts[0])
    assert field.log.texts == []
    field.agenda.run_until(field.agenda.now_ms)
    assert field.log.texts == ['"player 0<0><[U:1:1000]><CT>" left buyzone with [ ]']


def test_line_of_a_player_who_left_has_no_id() -> None:
    field = Battlefield()
    player = field.cts[0]
    field.leave(player)
    field.arena.plan_last_line(player)
    field.arena.write_last_lines()
    assert field.log.texts == ['"player 0<0><STEAM_ID_PENDING><CT>" left buyzone with [ ]']


def test_there_is_no_line_after_the_end_of_the_map_or_without_item_lines() -> None:
    for settings, is_map_over in (({}, True), ({"mp_logdetail_items": "0"}, False)):
        field = Battlefield(settings=settings)
        field.arena.is_map_over = is_map_over
        field.arena.plan_last_line(field.cts[0])
        field.arena.write_last_lines()
        assert field.log.texts == []
