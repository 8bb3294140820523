"""Test the choice of the winner of a round."""

from __future__ import annotations

from random import Random

import pytest

from cs2_protocol.game import Side
from cs2_simulator.play.fights.fate import choose_winner
from cs2_simulator.scenarios import Scenario
from simulator_tests.play.fights.battlefield import Battlefield


def make_field(scenario: Scenario = Scenario.FULL_MATCH, **settings: str) -> Battlefield:
    return Battlefield(settings={"sim_scenario": scenario.value, **settings}).spawn_all()


def play_rounds(field: Battlefield, rounds: int, seed: int, score: tuple[int, int] = (0, 0)) -> tuple[int, int]:
    """Choose the winners of `rounds` rounds with changing sides and return the score."""
    for number in range(rounds):
        side = Side.CT if number % 3 else Side.T
        winner = choose_winner(field.arena, Random(f"{seed}/{number}"), team1_side=side, score=score)
        score = (score[0] + 1, score[1]) if winner is side else (score[0], score[1] + 1)
    return score


@pytest.mark.parametrize("scenario", [Scenario.TIE, Scenario.OVERTIME])
@pytest.mark.parametrize("rounds", [2, 4, 24])
def test_regulation_ends_level_in_tie_and_overtime_scenarios(scenario: Scenario, rounds: int) -> None:
    field = make_field(scenario, mp_maxrounds=str(rounds))
    for seed in range(8):
        assert play_rounds(field, rounds, seed) == (rounds // 2, rounds // 2)


@pytest.mark.parametrize("scenario", [Scenario.TIE, Scenario.OVERTIME])
def test_regulation_of_odd_length_is_level_before_the_last_round(scenario: Scenario) -> None:
    field = make_field(scenario, mp_maxrounds="15")
    for seed in range(8):
        assert play_rounds(field, 14, seed) == (7, 7)
        assert sum(play_rounds(field, 15, seed)) == 15


def test_second_overtime_never_ends_level() -> None:
    field = make_field(Scenario.OVERTIME, mp_overtime_maxrounds="6")
    first_overtimes = set()
    for seed in range(60):
        first_overtimes.add(play_rounds(field, 6, seed, (12, 12)))
        one, two = play_rounds(field, 6, seed, (15, 15))
        assert one != two
    assert (15, 15) in first_overtimes
    assert len(first_overtimes) > 2


def test_overtime_of_length_zero_does_not_raise() -> None:
    field = make_field(Scenario.OVERTIME, mp_overtime_maxrounds="0")
    assert sum(play_rounds(field, 6, 1, (12, 12))) == 30


def test_one_sided_scenario_has_a_dominant_team() -> None:
    one, two = play_rounds(make_field(Scenario.ONE_SIDED), 500, 1)
    assert 0.88 < one / 500 < 0.96
    assert two > 0
