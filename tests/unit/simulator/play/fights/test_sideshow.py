"""What happens beside the fights."""

from __future__ import annotations

from random import Random

from matchpod.cs2.log_lines.player_lines import Attacked, GrenadeLaunched, Killed, KilledOther, LeftBuyzone, Suicide
from matchpod.simulator.play.fights.combat import Battle
from matchpod.simulator.play.fights.sideshow import plan_leaving, plan_sideshow
from matchpod.simulator.play.fights.timeline import Timeline
from tests.unit.simulator.play.fights.battlefield import Battlefield, Fixed


def play(field: Battlefield, battle: Battle, *, leaving: bool = False) -> None:
    timeline = Timeline(field.agenda)
    if leaving:
        plan_leaving(battle, timeline)
    else:
        plan_sideshow(battle, timeline, fight_ms=30_000)
    field.run(timeline.play(lambda: False))


def test_everybody_leaves_the_buy_zone_once() -> None:
    field = Battlefield().spawn_all()
    before_ms = field.arena.clock_ms
    play(field, Battle(field.arena, Random(1)), leaving=True)
    assert len(field.log.of(LeftBuyzone)) == 10
    assert field.arena.clock_ms - before_ms <= 6100


def test_who_is_gone_leaves_no_buy_zone() -> None:
    field = Battlefield(cts=1, ts=1).spawn_all()
    timeline = Timeline(field.agenda)
    plan_leaving(Battle(field.arena, Fixed(0.9)), timeline)
    field.agenda.call_in(100, lambda: field.leave(field.cts[0]))
    field.run(timeline.play(lambda: False))
    assert [line.player.team for line in field.log.of(LeftBuyzone)] == ["TERRORIST"]


def test_everything_that_can_happen_happens() -> None:
    field = Battlefield().spawn_all()
    field.cts[2].grenades.append("decoy")
    play(field, Battle(field.arena, Fixed(0.0)))
    assert len(field.log.of(GrenadeLaunched)) == 1
    assert [line.thing for line in field.log.of(KilledOther)] == ["chicken", "prop_physics_multiplayer"]
    assert len(field.log.of(Suicide)) == 1
    assert field.log.of(Attacked)


def test_team_mate_is_killed_by_mistake() -> None:
    field = Battlefield().spawn_all()
    play(field, Battle(field.arena, Fixed(0.005)))
    assert [line.player.team == line.victim.team for line in field.log.of(Killed)] == [True]


def test_nothing_has_to_happen() -> None:
    field = Battlefield().spawn_all()
    play(field, Battle(field.arena, Fixed(0.99)))
    assert field.log.lines == []


def test_nobody_dies_by_mistake_whom_the_story_needs() -> None:
    field = Battlefield().spawn_all()
    play(field, Battle(field.arena, Fixed(0.0), must_live=lambda _player: True))
    assert all(player.is_alive for player in field.arena.players)


def test_nothing_happens_where_everybody_left() -> None:
    field = Battlefield().spawn_all()
    timeline = Timeline(field.agenda)
    plan_sideshow(Battle(field.arena, Fixed(0.0)), timeline, fight_ms=30_000)
    for player in list(field.arena.players):
        field.leave(player)
    field.run(timeline.play(lambda: False))
    assert field.log.lines == []


def test_lonely_player_hits_no_team_mate() -> None:
    field = Battlefield(cts=1, ts=0).spawn_all()
    play(field, Battle(field.arena, Fixed(0.0)))
    assert field.log.of(Attacked) == []


def test_exchange_of_fire_is_answered_now_and_then() -> None:
    field = Battlefield(cts=1, ts=1).spawn_all()
    play(field, Battle(field.arena, Random(2)))
    assert {line.player.team for line in field.log.of(Attacked)} <= {"CT", "TERRORIST"}
    assert all(player.is_alive for player in field.arena.players)
