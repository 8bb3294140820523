"""Test the fights of a round."""

from __future__ import annotations

from random import Random

import pytest

from cs2_protocol.game import Side
from cs2_protocol.log_lines.player_lines import Killed
from cs2_simulator.play.fights.combat import Battle
from cs2_simulator.play.fights.falls import Fights
from cs2_simulator.play.player import Participant
from simulator_tests.play.fights.battlefield import Battlefield, FixedRng


@pytest.mark.parametrize("seed", range(10))
def test_fights_leave_the_requested_number_of_players_alive(field: Battlefield, seed: int) -> None:
    until_ms = field.arena.clock_ms + 60_000
    field.run(Fights(Battle(field.arena, Random(seed))).until_left(cts=2, ts=0, until_ms=until_ms))
    assert (len(field.arena.alive_on(Side.CT)), len(field.arena.alive_on(Side.T))) == (2, 0)
    assert field.arena.clock_ms <= until_ms


def test_fights_end_when_a_side_has_left(field: Battlefield) -> None:
    script = Fights(Battle(field.arena, Random(1))).until_left(cts=1, ts=1, until_ms=field.arena.clock_ms + 60_000)
    next(script)
    for player in list(field.ts):
        field.leave(player)
    list(script)
    assert field.log.lines == []


def test_cheater_kills_all_enemies() -> None:
    field = Battlefield(cts=0, ts=5)
    field.add(10, "CT", Participant("x", 10, is_cheater=True))
    field.spawn_all()
    field.run(
        Fights(Battle(field.arena, FixedRng(0.3))).until_left(cts=1, ts=0, until_ms=field.arena.clock_ms + 60_000)
    )
    assert len(field.log.lines_of(Killed)) == 5


def test_burst_of_kills_ends_when_the_cheater_leaves() -> None:
    field = Battlefield(cts=0, ts=5)
    cheater = field.add(10, "CT", Participant("x", 10, is_cheater=True))
    field.spawn_all()
    script = Fights(Battle(field.arena, FixedRng(0.3))).until_left(cts=1, ts=0, until_ms=field.arena.clock_ms + 60_000)
    next(script)
    next(script)
    field.leave(cheater)
    list(script)
    assert len(field.log.lines_of(Killed)) < 5


def test_time_advances_even_if_no_victim_may_die(field: Battlefield) -> None:
    battle = Battle(field.arena, Random(1), must_live=lambda player: player.team == Side.T)
    script = Fights(battle).until_left(cts=5, ts=0, until_ms=0)
    for _ in range(3000):
        field.agenda.run_until(field.agenda.now_ms + next(script))
    assert field.arena.clock_ms > 10_000
    assert len(field.arena.alive_on(Side.T)) == 5
