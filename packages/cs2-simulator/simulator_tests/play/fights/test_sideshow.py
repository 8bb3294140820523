"""Test the minor events of a round."""

from __future__ import annotations

from random import Random

from cs2_protocol.log_lines.player_lines import Attacked, GrenadeLaunched, Killed, KilledOther, LeftBuyzone, Suicide
from cs2_simulator.play.fights.combat import Battle
from cs2_simulator.play.fights.script_runner import ScriptRunner
from cs2_simulator.play.fights.sideshow import plan_buyzone_exits, plan_side_events
from simulator_tests.play.fights.battlefield import Battlefield, FixedRng


def play(field: Battlefield, battle: Battle, *, is_buyzone_exit: bool = False) -> None:
    runner = ScriptRunner(field.agenda)
    if is_buyzone_exit:
        plan_buyzone_exits(battle, runner)
    else:
        plan_side_events(battle, runner, fight_ms=30_000)
    field.run(runner.play(lambda: False))


def test_all_players_leave_the_buy_zone_once(field: Battlefield) -> None:
    before_ms = field.arena.clock_ms
    play(field, Battle(field.arena, Random(1)), is_buyzone_exit=True)
    assert len(field.log.lines_of(LeftBuyzone)) == 10
    assert field.arena.clock_ms - before_ms <= 6100


def test_player_who_left_the_server_does_not_leave_the_buy_zone() -> None:
    field = Battlefield(cts=1, ts=1).spawn_all()
    runner = ScriptRunner(field.agenda)
    plan_buyzone_exits(Battle(field.arena, FixedRng(0.9)), runner)
    field.agenda.call_in(100, lambda: field.leave(field.cts[0]))
    field.run(runner.play(lambda: False))
    assert [line.player.team for line in field.log.lines_of(LeftBuyzone)] == ["TERRORIST"]


def test_minor_events_happen_at_the_lowest_roll(field: Battlefield) -> None:
    field.cts[2].grenades.append("decoy")
    play(field, Battle(field.arena, FixedRng(0.0)))
    assert len(field.log.lines_of(GrenadeLaunched)) == 1
    assert [line.thing for line in field.log.lines_of(KilledOther)] == ["chicken", "prop_physics_multiplayer"]
    assert len(field.log.lines_of(Suicide)) == 1
    assert field.log.lines_of(Attacked)


def test_teammate_can_be_killed_by_accident(field: Battlefield) -> None:
    play(field, Battle(field.arena, FixedRng(0.005)))
    assert [line.player.team == line.victim.team for line in field.log.lines_of(Killed)] == [True]


def test_players_who_must_live_do_not_die_by_accident(field: Battlefield) -> None:
    play(field, Battle(field.arena, FixedRng(0.0), must_live=lambda _player: True))
    assert all(player.is_alive for player in field.arena.players)


def test_nothing_happens_if_all_players_left(field: Battlefield) -> None:
    runner = ScriptRunner(field.agenda)
    plan_side_events(Battle(field.arena, FixedRng(0.0)), runner, fight_ms=30_000)
    for player in list(field.arena.players):
        field.leave(player)
    field.run(runner.play(lambda: False))
    assert field.log.lines == []
