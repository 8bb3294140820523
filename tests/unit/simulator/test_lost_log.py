"""A match whose log has gaps says so, and in which rounds; a match whose log is whole says that too."""

from __future__ import annotations

from functools import cache

import msgspec
import pytest

from cs2_protocol.log_batches import read_post
from cs2_simulator.scenarios import Scenario
from matchpod.core.match.played_map import PlayedMap
from matchpod.core.model import GameSettings, MatchType
from matchpod.core.views.timeline_items import KillItem
from matchpod.cs2.match_reader import MatchReader
from tests.effort import IS_SOAK, sized
from tests.unit.simulator.played_match import START_MS, PlayedMatch, mode_settings, rostered

SEEDS = range(1, sized(3, 11))
MODES = {MatchType.COMPETITIVE: sized(8, 12), MatchType.WINGMAN: 8}
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
        record.number: msgspec.json.encode((record.winner, record.players, record.weapon_kills()), order="sorted")
        for record in played.ledger.rounds
    }


def different_rounds(mode: MatchType, seed: int) -> set[int]:
    """The rounds that are not the same if lines are lost."""
    whole, lossy = (played_map(mode, seed, scenario) for scenario in (Scenario.FULL_MATCH, Scenario.LOG_LOSS))
    expected, found = rounds(whole), rounds(lossy)
    return {number for number in {*expected, *found} if expected.get(number) != found.get(number)}


def test_scenario_loses_lines_that_count_in_most_matches() -> None:
    changed = [bool(different_rounds(mode, seed)) for mode in MODES for seed in SEEDS]
    assert sum(changed) > len(changed) / 2


@each_game
def test_rounds_that_differ_from_the_whole_log_are_named(mode: MatchType, seed: int) -> None:
    whole, lossy = (played_map(mode, seed, scenario) for scenario in (Scenario.FULL_MATCH, Scenario.LOG_LOSS))
    differ = different_rounds(mode, seed)
    assert not (differ and lossy.is_complete)
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


# --- one long piece of the log is lost, and all reports of the plugin --------------------------------------------


def read_without(played: PlayedMatch, settings: GameSettings, lost: range) -> MatchReader:
    """Read the log again, without the plugin's reports and without some posts."""
    reader = MatchReader.create(settings, START_MS)
    for number, (received_ms, headers, body) in enumerate(played.posts):
        if number not in lost:
            reader.read_post(read_post(headers, body, received_ms=received_ms))
    for seconds in range(0, 180, 5):
        reader.tick(played.posts[-1][0] + seconds * 1000)
    return reader


def winners(reader: MatchReader) -> set[str] | None:
    """The players of the team that won; without a roster the teams have no other name."""
    (played,) = reader.match.maps
    sides = reader.interpreter.flow.sides
    teams = sides.listed or sides.members
    return (
        None
        if played.winner is None
        else {player for player, team in teams.items() if team.value == played.winner.value}
    )


@pytest.mark.parametrize(
    "settings", [rostered(MatchType.COMPETITIVE, 2, max_rounds=4), mode_settings(MatchType.COMPETITIVE, max_rounds=4)]
)
@pytest.mark.parametrize("seed", range(1, sized(2, 21)))
def test_no_lost_piece_gives_a_wrong_winner(settings: GameSettings, seed: int) -> None:
    played = PlayedMatch(settings, seed=seed)
    assert played.play()
    expected = winners(read_without(played, settings, range(0)))
    assert expected is not None
    starts = [number for number, post in enumerate(played.posts) if b"Round_Start" in post[2]]
    (end,) = [number for number, post in enumerate(played.posts) if b"Game Over" in post[2]]
    found = [
        winners(read_without(played, settings, range(start, stop)))
        for start in starts[:4]
        for stop in range(start + 1, end + 1, 7 if IS_SOAK else 29)
    ]
    assert all(one is None or one <= expected for one in found)
    assert sum(one is not None for one in found) > len(found) / 2, "most are known"
