"""Who won what, and who stands where."""

from __future__ import annotations

import json

import pytest

from matchpod.core.model import Side, Team
from matchpod.simulator.play.player import Person, Player
from matchpod.simulator.plugin.match_file import MatchFile, read_match
from matchpod.simulator.plugin.series import Series, Standing

from .stand import id64, match


def series(num_maps: int = 1, sides: list[str] | None = None, **changes: object) -> Series:
    maps = tuple(f"de_map{number}" for number in range(num_maps))
    sides = sides or ["team1_ct"] * num_maps
    read = read_match(json.dumps(match(2, maps, map_sides=sides, **changes)).encode())
    assert isinstance(read, MatchFile)
    return Series(read, "http://h/m")


def player(account: int) -> Player:
    return Player(Person("somebody", account), 1)


@pytest.mark.parametrize(
    ("side", "is_first"), [("team1_ct", True), ("team2_t", True), ("team1_t", False), ("team2_ct", False)]
)
def test_team_that_begins_as_ct_is_the_games_first(side: str, is_first: bool) -> None:
    loaded = series(sides=[side])
    loaded.take_sides(Side.CT)
    assert loaded.is_team1_first is is_first
    assert (loaded.first_name == "Team Blue") is is_first
    assert (loaded.second_name == "Team Red") is is_first


def test_before_a_knife_round_teams_stay_where_they_ended() -> None:
    loaded = series(2, ["team1_ct", "knife"])
    loaded.take_sides(Side.CT)
    loaded.map_number = 1
    assert loaded.needs_knife
    loaded.take_sides(Side.T)
    assert not loaded.is_team1_first


def test_scores_and_sides_are_turned_where_team2_is_first() -> None:
    loaded = series(sides=["team1_t"])
    loaded.take_sides(Side.CT)
    assert loaded.by_team((13, 7)) == (7, 13)
    assert loaded.side_of(Team.TEAM1, Side.CT) is Side.T
    assert loaded.side_of(Team.TEAM2, Side.T) is Side.T


def test_place_of_listed_people_follows_the_sides() -> None:
    loaded = series(spectators={"players": {id64(900): "caster"}})
    assert loaded.place_of(player(1), Side.CT) == "CT"
    assert loaded.place_of(player(1), Side.T) == "TERRORIST"
    assert loaded.place_of(player(102), Side.CT) == "TERRORIST"
    assert loaded.place_of(player(900), Side.CT) == "Spectator"
    assert loaded.place_of(player(7), Side.CT) is None


def test_players_can_be_listed_and_struck_off() -> None:
    loaded = series()
    assert loaded.add(id64(7), "team2", "Sub")
    assert not loaded.add(id64(7), "team1", "Sub")
    assert loaded.expected()[1] == [(101, ""), (102, ""), (7, "Sub")]
    assert loaded.remove(id64(7))
    assert not loaded.remove(id64(7))


def test_ids_that_name_nobody_are_not_expected() -> None:
    loaded = series(team1={"name": "A", "players": {"nobody": "", id64(5): ""}})
    assert loaded.expected()[0] == [(5, "")]


WIN1, WIN2, DRAW = (13, 7), (3, 13), (12, 12)


@pytest.mark.parametrize(
    ("num_maps", "scores", "standing", "wins"),
    [
        (1, [WIN1], Standing.DECIDED, [1, 0]),
        (3, [WIN1], Standing.GOES_ON, [1, 0]),
        (3, [WIN1, WIN1], Standing.DECIDED, [2, 0]),
        (3, [WIN1, WIN2], Standing.GOES_ON, [1, 1]),
        (3, [WIN1, WIN2, WIN2], Standing.DECIDED, [1, 2]),
        (2, [WIN1, WIN2], Standing.DECIDED, [1, 1]),
        (3, [DRAW, WIN1], Standing.GOES_ON, [1, 0]),
        (1, [DRAW], Standing.STUCK, [0, 0]),
        (3, [DRAW, WIN1, WIN2], Standing.STUCK, [1, 1]),
    ],
)
def test_series_is_counted_as_the_plugin_counts(
    num_maps: int, scores: list[tuple[int, int]], standing: Standing, wins: list[int]
) -> None:
    loaded = series(num_maps)
    last = [loaded.end_map(score) for score in scores][-1]
    assert (last, loaded.wins) == (standing, wins)


def test_series_without_clinching_is_played_to_its_last_map() -> None:
    loaded = series(3, clinch_series=False)
    assert [loaded.end_map(WIN1) for _ in range(3)] == [Standing.GOES_ON, Standing.GOES_ON, Standing.DECIDED]


def test_backups_are_called_by_match_and_map() -> None:
    loaded = series(2)
    loaded.end_map(WIN1)
    assert loaded.backup_prefix == "matchzy_27_1"


def test_match_without_a_number_has_none_yet() -> None:
    assert series(matchid=None).match_id == -1
