"""Test the rules of halves, overtime and early wins."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cs2_simulator.play.flow.schedule import NextStep, Rules, next_step, rules_of
from cs2_simulator.scenarios import Scenario
from cs2_simulator.variables import Variables


def play(rules: Rules, winners: list[int]) -> tuple[list[NextStep], tuple[int, int]]:
    """Return the next step after each round until the map is over, and the final score. Winner 0 is a draw."""
    score, steps = (0, 0), []
    for number, winner in enumerate(winners, start=1):
        score = (score[0] + (winner == 1), score[1] + (winner == 2))
        steps.append(next_step(rules, number, score))
        if steps[-1] is NextStep.OVER:
            break
    return steps, score


def test_all_rounds_are_played_without_clinching() -> None:
    steps, score = play(Rules(24, can_clinch=False), [1] * 30)
    assert (len(steps), score) == (24, (24, 0))


def test_level_score_without_overtime_ends_the_map() -> None:
    assert next_step(Rules(24), 24, (12, 12)) is NextStep.OVER


def test_map_without_halves_never_changes_sides() -> None:
    steps, _ = play(Rules(15, has_halves=False), [1, 2] * 8)
    assert NextStep.HALF not in steps


def test_drawn_rounds_count_as_played() -> None:
    steps, score = play(Rules(4), [0, 1, 0, 0])
    assert (steps, score) == ([NextStep.ROUND, NextStep.HALF, NextStep.ROUND, NextStep.OVER], (1, 0))


def test_rules_come_from_the_variables() -> None:
    variables = Variables()
    for name, value in {"mp_maxrounds": "16", "mp_halftime": "1", "mp_match_can_clinch": "0"}.items():
        variables.set(name, value)
    variables.set("mp_overtime_enable", "1")
    variables.set("mp_overtime_maxrounds", "4")
    assert rules_of(variables, Scenario.FULL_MATCH) == Rules(16, can_clinch=False, overtime_rounds=4)


@pytest.mark.parametrize(("scenario", "is_on"), [(Scenario.TIE, "1"), (Scenario.FULL_MATCH, "0")])
def test_overtime_has_no_rounds_if_disabled_or_in_the_tie_scenario(scenario: Scenario, is_on: str) -> None:
    variables = Variables()
    variables.set("mp_overtime_enable", is_on)
    assert rules_of(variables, scenario).overtime_rounds == 0


@given(
    st.integers(1, 30),
    st.sampled_from([0, 2, 4, 6]),
    st.booleans(),
    st.lists(st.sampled_from([0, 1, 2]), min_size=90, max_size=90),
)
def test_every_map_ends_by_its_rules(rounds: int, overtime: int, can_clinch: bool, winners: list[int]) -> None:
    rules = Rules(rounds, can_clinch=can_clinch, overtime_rounds=overtime)
    steps, score = play(rules, winners)
    sets = steps.count(NextStep.OVERTIME)
    whole = rounds + sets * overtime
    lead = abs(score[0] - score[1])
    assert steps[:-1].count(NextStep.OVER) == 0
    assert len(steps) <= whole or steps[-1] is not NextStep.OVER
    if steps[-1] is NextStep.OVER:
        left = whole - len(steps)
        # The trailing team can no longer catch up.
        assert (lead > left if can_clinch and left else left == 0) or max(score) > whole // 2
        assert lead > 0 or overtime == 0
    halves = steps.count(NextStep.HALF)
    assert halves <= 1 + sets


@given(
    st.integers(1, 12).map(lambda half: half * 2),
    st.sampled_from([2, 4, 6]),
    st.integers(0, 3),
    st.sampled_from([1, 2]),
)
def test_level_overtime_is_followed_by_another(rounds: int, overtime: int, sets: int, winner: int) -> None:
    level = [1, 2] * ((rounds + sets * overtime) // 2)
    steps, score = play(Rules(rounds, overtime_rounds=overtime), level + [winner] * overtime)
    assert steps[-1] is NextStep.OVER
    assert steps.count(NextStep.OVERTIME) == sets + 1
    assert steps.count(NextStep.HALF) == 2 + sets
    assert max(score) == rounds // 2 + sets * overtime // 2 + overtime // 2 + 1
