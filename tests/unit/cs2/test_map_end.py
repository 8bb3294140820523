"""Tests of the scores that end a map."""

from __future__ import annotations

import msgspec
import pytest

from matchpod.core.model import CvarSetting, GameSettings, MatchType, Overtime
from matchpod.cs2.map_end import EndRules
from tests.unit.cs2.server_log import competitive

COMPETITIVE = EndRules(max_rounds=24)
RETAKES = EndRules(max_rounds=8, has_overtime=False)


def test_score_wins_a_map_of_24_rounds() -> None:
    for score in [(13, 0), (11, 13), (16, 12), (14, 16), (19, 17)]:
        assert COMPETITIVE.is_end(score)
        assert COMPETITIVE.is_end(score[::-1])
        assert not EndRules().is_end(score)


def test_overtime_may_have_fewer_rounds() -> None:
    wingman = EndRules(max_rounds=16, overtime_rounds=4)
    assert [score for score in [(9, 7), (10, 8), (11, 8), (11, 9), (12, 10), (13, 11)] if wingman.is_end(score)] == [
        (9, 7), (11, 8), (11, 9), (13, 11),
    ]  # fmt: skip


def test_score_does_not_end_a_map_of_24_rounds() -> None:
    for score in [(0, 0), (12, 0), (12, 12), (13, 12), (15, 15), (16, 15)]:
        assert not COMPETITIVE.is_end(score)


@pytest.mark.parametrize(("score", "is_end"), [((5, 0), True), ((4, 3), False), ((4, 4), True), ((5, 3), True)])
def test_map_without_overtime_ends_with_its_last_round(score: tuple[int, int], *, is_end: bool) -> None:
    assert RETAKES.is_end(score) is is_end


@pytest.mark.parametrize(("score", "is_end"), [((5, 0), False), ((6, 1), False), ((8, 0), True), ((4, 4), True)])
def test_map_whose_rounds_are_all_played_does_not_end_early(score: tuple[int, int], *, is_end: bool) -> None:
    assert EndRules(max_rounds=8, can_clinch=False, has_overtime=False).is_end(score) is is_end


def test_rules_are_requested_or_those_of_the_mode() -> None:
    for match_type, max_rounds, cvars, rules in [
        (MatchType.COMPETITIVE, None, {}, EndRules(max_rounds=24, can_tie=True)),
        (MatchType.COMPETITIVE, None, {"mp_overtime_enable": "1"}, EndRules(max_rounds=24)),
        (MatchType.WINGMAN, None, {}, EndRules(max_rounds=16, overtime_rounds=4, can_tie=True)),
        (
            MatchType.WINGMAN,
            4,
            {"mp_overtime_maxrounds": "10"},
            EndRules(max_rounds=4, overtime_rounds=10, can_tie=True),
        ),
        (MatchType.COMPETITIVE, 4, {"mp_overtime_maxrounds": "0"}, EndRules(max_rounds=4, can_tie=True)),
        (MatchType.COMPETITIVE, 4, {"mp_maxrounds": "30"}, EndRules(max_rounds=4, can_tie=True)),
        (MatchType.CASUAL, None, {}, EndRules(max_rounds=15, has_overtime=False)),
        (MatchType.RETAKES, None, {}, RETAKES),
        (MatchType.RETAKES, None, {"mp_maxrounds": "12"}, EndRules(max_rounds=12, has_overtime=False)),
        (
            MatchType.CASUAL,
            4,
            {"mp_match_can_clinch": "0"},
            EndRules(max_rounds=4, can_clinch=False, has_overtime=False),
        ),
        (MatchType.CASUAL, 4, {"mp_overtime_enable": "1"}, EndRules(max_rounds=4)),
        (MatchType.CUSTOM, None, {}, EndRules(has_overtime=False)),
        (MatchType.CUSTOM, None, {"mp_maxrounds": "0"}, EndRules(has_overtime=False)),
        (MatchType.DEATHMATCH, 10, {}, EndRules()),
    ]:
        custom = tuple(CvarSetting(name, value) for name, value in cvars.items())
        settings = GameSettings(match_type=match_type, maps=("de_nuke",), max_rounds=max_rounds, custom_cvars=custom)
        assert EndRules.of(settings) == rules


def test_requested_overtime_is_played() -> None:
    asked, off = Overtime(max_rounds=4), Overtime(enabled=False)
    rules = [EndRules.of(msgspec.structs.replace(competitive(), overtime=overtime)) for overtime in (asked, off)]
    assert rules == [EndRules(max_rounds=24, overtime_rounds=4), EndRules(max_rounds=24, can_tie=True)]


def test_plugin_plays_overtime_unless_it_is_switched_off() -> None:
    assert EndRules.of(competitive()) == EndRules(max_rounds=24)
    off = msgspec.structs.replace(competitive(), custom_cvars=(CvarSetting("mp_overtime_enable", "0"),))
    assert EndRules.of(off) == EndRules(max_rounds=24, can_tie=True)


@pytest.mark.parametrize(
    ("score", "ends"),
    [
        ((11, 11), []),
        ((12, 5), [(13, 5)]),
        ((12, 11), [(13, 11)]),
        ((15, 14), [(16, 14)]),
        ((13, 12), []),
    ],
)
def test_scores_with_which_the_next_round_may_end_a_map(score: tuple[int, int], ends: list[tuple[int, int]]) -> None:
    assert COMPETITIVE.ends_after(score) == ends


def test_last_round_may_end_a_map_in_a_tie_if_overtime_is_not_known() -> None:
    rules = EndRules(max_rounds=24, can_tie=True)
    assert rules.ends_after((12, 11)) == [(13, 11), (12, 12)]
    assert rules.ends_after((15, 14)) == [(16, 14), (15, 15)]
    assert rules.ends_after((12, 10)) == [(13, 10)]
    assert RETAKES.ends_after((3, 4)) == [(4, 4), (3, 5)]


@pytest.mark.parametrize(
    ("score", "may_end"),
    [((0, 0), False), ((11, 11), False), ((12, 5), True), ((5, 12), True), ((12, 12), True), ((13, 12), True)],
)
def test_map_may_end_at_map_point_and_in_overtime(score: tuple[int, int], *, may_end: bool) -> None:
    assert COMPETITIVE.may_end(score) is may_end


def test_map_may_end_at_any_time_if_its_rules_are_not_known_or_a_limit_is_set() -> None:
    assert EndRules().may_end((0, 0))
    limited = GameSettings(
        match_type=MatchType.CASUAL, maps=("de_dust2",), custom_cvars=(CvarSetting("mp_timelimit", "20"),)
    )
    assert EndRules.of(limited).may_end((0, 0))
    assert not EndRules.of(msgspec.structs.replace(limited, custom_cvars=())).may_end((0, 0))
