"""Test the bomb of a round."""

from __future__ import annotations

from random import Random

from cs2_protocol.game import Side
from cs2_protocol.log_lines.player_lines import MoneyChange, Triggered
from cs2_simulator.play.fights.bomb import PLANT_MS, Bomb
from cs2_simulator.play.fights.combat import Battle
from simulator_tests.play.fights.battlefield import Battlefield, FixedRng


def field_with_bomb(rng: Random | None = None) -> tuple[Battlefield, Bomb]:
    field = Battlefield().spawn_all()
    field.go_live()
    field.ts[2].has_bomb = True
    return field, Bomb(Battle(field.arena, rng or FixedRng(0.3)))


def triggers(field: Battlefield) -> list[str]:
    return [line.trigger for line in field.log.lines_of(Triggered)]


def test_planter_is_paid_right_before_the_plant_is_logged() -> None:
    field, bomb = field_with_bomb()
    field.run(bomb.plant(PLANT_MS))
    assert [text.split('<TERRORIST>" ')[1] for text in field.log.texts] == [
        'triggered "Bomb_Begin_Plant" at bombsite A',
        "money change 800+300 = $1100 (tracked)",
        'triggered "Planted_The_Bomb" at bombsite A',
    ]
    assert bomb.planter is field.ts[2]
    assert bomb.explodes_at_ms == field.arena.clock_ms + 40_000
    assert sum(tally.bomb_plants for tally in field.arena.book.tallies()) == 1


def test_bomb_that_no_player_carries_is_picked_up_before_the_plant() -> None:
    field, bomb = field_with_bomb()
    field.ts[2].has_bomb = False
    field.run(bomb.plant(PLANT_MS))
    assert triggers(field) == ["Got_The_Bomb", "Bomb_Begin_Plant", "Planted_The_Bomb"]


def test_bomb_is_picked_up_only_if_dropped() -> None:
    field, bomb = field_with_bomb()
    bomb.pick_up()
    assert field.log.lines == []
    field.ts[2].has_bomb = False
    bomb._battle.is_bomb_dropped = True
    bomb.pick_up()
    assert triggers(field) == ["Got_The_Bomb"]


def test_defuser_is_paid_and_the_defuse_itself_is_not_logged() -> None:
    field, bomb = field_with_bomb()
    field.run(bomb.defuse(may_abort=False))
    assert triggers(field) == ["Begin_Bomb_Defuse_Without_Kit"]
    assert isinstance(field.log.lines[-1], MoneyChange)
    assert sum(tally.bomb_defuses for tally in field.arena.book.tallies()) == 1


def test_defuse_may_be_aborted_once() -> None:
    field, bomb = field_with_bomb(FixedRng(0.1))
    field.run(bomb.defuse(may_abort=True))
    assert len(triggers(field)) == 2


def test_explosion_sets_the_health_of_nearby_players_to_zero() -> None:
    field, bomb = field_with_bomb(FixedRng(0.1))
    bomb.explode()
    assert {player.team for player in field.arena.players if not player.health} == {Side.CT}
    assert all(player.is_alive for player in field.arena.players)
