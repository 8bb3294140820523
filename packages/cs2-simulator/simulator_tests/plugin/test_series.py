"""Tests of the series: wins, sides and rosters."""

from __future__ import annotations

import json

import pytest

from cs2_protocol.game import Side
from cs2_simulator.play.player import Participant, Player
from cs2_simulator.plugin.match_file import MatchFile, read_match
from cs2_simulator.plugin.series import Series, SeriesStanding
from simulator_tests.plugin.plugin_harness import match


def series(num_maps: int = 1, sides: list[str] | None = None, **changes: object) -> Series:
    maps = tuple(f"de_map{number}" for number in range(num_maps))
    sides = sides or ["team1_ct"] * num_maps
    read = read_match(json.dumps(match(2, maps, map_sides=sides, **changes)).encode())
    assert isinstance(read, MatchFile)
    return Series(read, "http://h/m")


def player(account: int) -> Player:
    return Player(Participant("Ann", account), 1)


@pytest.mark.parametrize(
    ("side", "is_first"), [("team1_ct", True), ("team2_t", True), ("team1_t", False), ("team2_ct", False)]
)
def test_team_that_begins_as_ct_is_the_first_team_of_the_game(side: str, is_first: bool) -> None:
    loaded = series(sides=[side])
    loaded.assign_sides(Side.CT)
    assert loaded.is_team1_first is is_first
    assert (loaded.names == ("Team Blue", "Team Red")) is is_first


def test_teams_keep_their_sides_before_a_knife_round() -> None:
    loaded = series(2, ["team1_ct", "knife"])
    loaded.assign_sides(Side.CT)
    loaded.map_number = 1
    assert loaded.needs_knife
    loaded.assign_sides(Side.T)
    assert not loaded.is_team1_first


def test_required_team_of_a_listed_player_depends_on_the_sides() -> None:
    loaded = series()
    assert loaded.required_team(player(1), Side.CT) == "CT"
    assert loaded.required_team(player(1), Side.T) == "TERRORIST"
    assert loaded.required_team(player(102), Side.CT) == "TERRORIST"
    assert loaded.required_team(player(7), Side.CT) is None


WIN1, WIN2, DRAW = (13, 7), (3, 13), (12, 12)


@pytest.mark.parametrize(
    ("num_maps", "scores", "standing", "wins"),
    [
        (1, [WIN1], SeriesStanding.DECIDED, [1, 0]),
        (3, [WIN1], SeriesStanding.GOES_ON, [1, 0]),
        (3, [WIN1, WIN1], SeriesStanding.DECIDED, [2, 0]),
        (3, [WIN1, WIN2], SeriesStanding.GOES_ON, [1, 1]),
        (3, [WIN1, WIN2, WIN2], SeriesStanding.DECIDED, [1, 2]),
        (2, [WIN1, WIN2], SeriesStanding.DECIDED, [1, 1]),
        (3, [DRAW, WIN1], SeriesStanding.GOES_ON, [1, 0]),
        (1, [DRAW], SeriesStanding.STUCK, [0, 0]),
        (3, [DRAW, WIN1, WIN2], SeriesStanding.STUCK, [1, 1]),
    ],
)
def test_series_standing_is_computed_as_in_the_real_plugin(
    num_maps: int, scores: list[tuple[int, int]], standing: SeriesStanding, wins: list[int]
) -> None:
    loaded = series(num_maps)
    last = [loaded.end_map(score) for score in scores][-1]
    assert (last, loaded.wins) == (standing, wins)


def test_backup_prefix_contains_match_and_map() -> None:
    loaded = series(2)
    loaded.end_map(WIN1)
    assert loaded.backup_prefix == "matchzy_27_1"
