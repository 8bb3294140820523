"""Halves, overtime, early wins."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matchpod.simulator.play.flow.schedule import Next, Rules, follows, rules_of
from matchpod.simulator.scenarios import Scenario
from matchpod.simulator.variables import Variables

MR12 = Rules(24, overtime_rounds=6)


def play(rules: Rules, winners: list[int]) -> tuple[list[Next], tuple[int, int]]:
    """What followed each round until the map was over, and the score then. Winner 0 is a draw."""
    score, course = (0, 0), []
    for number, winner in enumerate(winners, start=1):
        score = (score[0] + (winner == 1), score[1] + (winner == 2))
        course.append(follows(rules, number, score))
        if course[-1] is Next.OVER:
            break
    return course, score


def test_sides_change_after_half_of_the_rounds() -> None:
    course, _ = play(MR12, [1, 2] * 12)
    assert [number for number, what in enumerate(course, 1) if what is Next.HALF] == [12]


def test_thirteen_wins_of_twenty_four_end_the_map() -> None:
    course, score = play(MR12, [1] * 24)
    assert (len(course), score) == (13, (13, 0))


def test_without_clinching_every_round_is_played() -> None:
    course, score = play(Rules(24, can_clinch=False), [1] * 30)
    assert (len(course), score) == (24, (24, 0))


def test_level_score_leads_to_overtime_on_the_same_sides() -> None:
    assert follows(MR12, 24, (12, 12)) is Next.OVERTIME


def test_level_score_without_overtime_is_the_end() -> None:
    assert follows(Rules(24), 24, (12, 12)) is Next.OVER


def test_overtime_changes_sides_in_its_middle_only() -> None:
    course, _ = play(MR12, [1, 2] * 18)
    changes = [number for number, what in enumerate(course, 1) if what is Next.HALF]
    sets = [number for number, what in enumerate(course, 1) if what is Next.OVERTIME]
    assert (changes, sets) == ([12, 27, 33], [24, 30, 36])


def test_four_wins_of_an_overtime_of_six_end_the_map() -> None:
    course, score = play(MR12, [1, 2] * 12 + [2, 2, 2, 2])
    assert (len(course), score) == (28, (12, 16))


def test_second_overtime_needs_the_wins_of_the_first_as_well() -> None:
    course, score = play(MR12, [1, 2] * 15 + [1] * 6)
    assert (len(course), score) == (34, (19, 15))


def test_map_without_a_limit_never_ends_and_has_no_halves() -> None:
    course, _ = play(Rules(0), [1] * 60)
    assert set(course) == {Next.ROUND}


def test_map_without_halves_never_changes_sides() -> None:
    course, _ = play(Rules(15, has_halves=False), [1, 2] * 8)
    assert Next.HALF not in course


def test_drawn_rounds_count_as_played() -> None:
    course, score = play(Rules(4), [0, 1, 0, 0])
    assert (course, score) == ([Next.ROUND, Next.HALF, Next.ROUND, Next.OVER], (1, 0))


def test_rules_come_from_the_variables() -> None:
    variables = Variables()
    for name, value in {"mp_maxrounds": "16", "mp_halftime": "1", "mp_match_can_clinch": "0"}.items():
        variables.set(name, value)
    variables.set("mp_overtime_enable", "1")
    variables.set("mp_overtime_maxrounds", "4")
    assert rules_of(variables, Scenario.FULL_MATCH) == Rules(16, can_clinch=False, overtime_rounds=4)


@pytest.mark.parametrize(("scenario", "is_on"), [(Scenario.TIE, "1"), (Scenario.FULL_MATCH, "0")])
def test_no_overtime_where_it_is_off_and_in_the_story_of_a_tie(scenario: Scenario, is_on: str) -> None:
    variables = Variables()
    variables.set("mp_overtime_enable", is_on)
    assert rules_of(variables, scenario).overtime_rounds == 0


@given(
    st.integers(1, 30),
    st.sampled_from([0, 2, 4, 6]),
    st.booleans(),
    st.lists(st.sampled_from([0, 1, 2]), min_size=90, max_size=90),
)
def test_every_map_ends_as_its_rules_say(rounds: int, overtime: int, can_clinch: bool, winners: list[int]) -> None:
    rules = Rules(rounds, can_clinch=can_clinch, overtime_rounds=overtime)
    course, score = play(rules, winners)
    sets = course.count(Next.OVERTIME)
    whole = rounds + sets * overtime
    lead = abs(score[0] - score[1])
    assert course[:-1].count(Next.OVER) == 0
    assert len(course) <= whole or course[-1] is not Next.OVER
    if course[-1] is Next.OVER:
        left = whole - len(course)
        # Nobody can catch up any more, and before it somebody could.
        assert (lead > left if can_clinch and left else left == 0) or max(score) > whole // 2
        assert lead > 0 or overtime == 0
    halves = course.count(Next.HALF)
    assert halves <= 1 + sets


@given(
    st.integers(1, 12).map(lambda half: half * 2),
    st.sampled_from([2, 4, 6]),
    st.integers(0, 3),
    st.sampled_from([1, 2]),
)
def test_level_maps_go_through_whole_overtimes(rounds: int, overtime: int, sets: int, winner: int) -> None:
    level = [1, 2] * ((rounds + sets * overtime) // 2)
    course, score = play(Rules(rounds, overtime_rounds=overtime), level + [winner] * overtime)
    assert course[-1] is Next.OVER
    assert course.count(Next.OVERTIME) == sets + 1
    assert course.count(Next.HALF) == 2 + sets
    assert max(score) == rounds // 2 + sets * overtime // 2 + overtime // 2 + 1
