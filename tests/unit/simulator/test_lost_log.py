"""A match whose log has gaps says so, and in which rounds; a match whose log is whole says that too."""

from __future__ import annotations

from functools import cache

import msgspec
import pytest

from matchpod.core.model import MatchType
from matchpod.core.played_map import PlayedMap
from matchpod.core.result import build_result
from matchpod.core.result_shapes import DeathmatchResult, SeriesResult
from matchpod.core.timeline_items import KillItem
from matchpod.simulator.scenarios import Scenario
from tests.unit.simulator.played_match import PlayedMatch, mode_settings

SEEDS = range(1, 11)
MODES = {MatchType.COMPETITIVE: 12, MatchType.WINGMAN: 8}
each_game = pytest.mark.parametrize(("mode", "seed"), [(mode, seed) for mode in MODES for seed in SEEDS])


@cache
def play(mode: MatchType, seed: int, scenario: Scenario) -> PlayedMatch:
    changes = {"max_rounds": MODES[mode]} if mode in MODES else {}
    played = PlayedMatch(mode_settings(mode, **changes), scenario=scenario, seed=seed)
    assert played.play()
    return played


def played_map(mode: MatchType, seed: int, scenario: Scenario) -> PlayedMap:
    (played,) = play(mode, seed, scenario).reader.match.maps
    return played


def rounds(played: PlayedMap) -> dict[int, bytes]:
    return {
        record.number: msgspec.json.encode((record.winner, record.players, record.weapon_kills))
        for record in played.ledger.rounds
    }


@each_game
def test_rounds_that_differ_from_the_whole_log_are_named(mode: MatchType, seed: int) -> None:
    whole, lossy = (played_map(mode, seed, scenario) for scenario in (Scenario.FULL_MATCH, Scenario.LOG_LOSS))
    expected, found = rounds(whole), rounds(lossy)
    differ = {number for number in {*expected, *found} if expected.get(number) != found.get(number)}
    assert differ, "the scenario loses lines that count"
    assert not lossy.is_complete
    known = lossy.team1_score + lossy.team2_score
    assert {number for number in differ if number <= known} <= set(lossy.missing_rounds)
    assert lossy.winner in (None, whole.winner)
    if lossy.winner is not None:
        assert (lossy.team1_score, lossy.team2_score) == (whole.team1_score, whole.team2_score)
        assert all(number <= known for number in lossy.missing_rounds)


def kills(mode: MatchType, seed: int, scenario: Scenario) -> dict[tuple[str, str, str], int | None]:
    """The round numbers of the kills in the timeline, by time, killer and victim."""
    items = [one.item for one in play(mode, seed, scenario).reader.timeline.waiting]
    return {
        (item.timestamp, str(item.killer.steam_id), str(item.victim.steam_id)): item.round_number
        for item in items
        if isinstance(item, KillItem)
    }


@each_game
def test_no_kill_is_told_under_a_wrong_round(mode: MatchType, seed: int) -> None:
    whole, lossy = (kills(mode, seed, scenario) for scenario in (Scenario.FULL_MATCH, Scenario.LOG_LOSS))
    known = {kill: number for kill, number in lossy.items() if kill in whole}
    assert known, "most kills are in both logs"
    assert {kill: number for kill, number in known.items() if number not in (None, whole[kill])} == {}
    assert None not in whole.values()


@each_game
def test_match_with_a_whole_log_is_complete(mode: MatchType, seed: int) -> None:
    result = build_result(play(mode, seed, Scenario.FULL_MATCH).reader.match)
    assert isinstance(result, SeriesResult)
    assert [(one.complete, one.missing_rounds) for one in result.maps] == [(True, ())]


@pytest.mark.parametrize(("scenario", "is_complete"), [(Scenario.LOG_LOSS, False), (Scenario.FULL_MATCH, True)])
def test_deathmatch_says_whether_its_log_is_whole(scenario: Scenario, *, is_complete: bool) -> None:
    match = play(MatchType.DEATHMATCH, 1, scenario).reader.match
    result = build_result(match)
    assert isinstance(result, DeathmatchResult)
    assert result.complete is is_complete
    assert match.maps[0].missing_rounds == (), "a deathmatch has no rounds"
