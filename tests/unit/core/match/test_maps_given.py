"""Series of which a team has won maps before they begin: they count, and fewer maps are played."""

from __future__ import annotations

import msgspec
import pytest

from cs2_protocol.game import Team
from matchpod.core import events as ev
from matchpod.core.effects import Effect, EndMatch, LoadMap
from matchpod.core.match.match import MatchPhase
from matchpod.core.match.series import SeriesRules
from matchpod.core.match.start_sides import with_sides
from matchpod.core.model import GameSettings, MapsWon, SeriesFormat, StartSides, Winner
from matchpod.core.views.result import build_result
from matchpod.core.views.result_shapes import SeriesResult, SeriesScore
from matchpod.core.views.series_maps import map_states, series_score_of
from tests.unit.core.match_driver import ANN, BEN, MAPS, MatchDriver, duel

ONE, TWO, TIE = Winner.TEAM1, Winner.TEAM2, Winner.TIE
BO3, BO5 = SeriesFormat.BO3, SeriesFormat.BO5
CT, T, KNIFE = StartSides.TEAM1_CT, StartSides.TEAM1_T, StartSides.KNIFE


def given(series_format: SeriesFormat, team1: int, team2: int) -> GameSettings:
    settings = msgspec.structs.replace(duel(series_format), maps_won=MapsWon(team1, team2))
    return msgspec.structs.replace(settings, maps=MAPS[: settings.map_count])


def play(settings: GameSettings, *winners: Team) -> MatchDriver:
    """Play maps with these winners; only the effects of the last end are kept."""
    driver = MatchDriver(settings).join(ANN, BEN)
    for number, winner in enumerate(winners):
        if number:
            driver.change_map(settings.maps[number], ANN, BEN)
        name = settings.maps[number]
        driver.live(name).end_map(*((13, 5) if winner is Team.TEAM1 else (5, 13)), map_name=name)
    return driver


@pytest.mark.parametrize(
    ("series_format", "before", "winners", "score"),
    [
        (BO3, (1, 0), [ONE], (2, 0)),
        (BO3, (1, 0), [TWO, TWO], (1, 2)),
        (BO3, (1, 0), [TWO, ONE], (2, 1)),
        (BO3, (1, 1), [TWO], (1, 2)),
        (BO3, (1, 1), [TIE], (1, 1)),
        (BO5, (2, 0), [TWO, TWO, TWO], (2, 3)),
        (BO5, (2, 0), [TWO, TWO, ONE], (3, 2)),
        (BO5, (2, 2), [ONE], (3, 2)),
        (BO5, (0, 1), [TIE, TIE, TIE, TIE], (0, 1)),
    ],
)
def test_given_maps_count_in_the_score_of_the_series(
    series_format: SeriesFormat, before: tuple[int, int], winners: list[Winner], score: tuple[int, int]
) -> None:
    rules = SeriesRules(series_format, MapsWon(*before))
    assert [rules.is_decided(winners[:played]) for played in range(len(winners) + 1)] == [False] * len(winners) + [True]
    assert rules.score(winners) == score


def test_first_map_is_number_one_and_only_played_maps_are_listed() -> None:
    driver = play(given(BO3, 1, 0), Team.TEAM1)
    assert driver.effects == [EndMatch()]
    result = build_result(driver.match)
    assert isinstance(result, SeriesResult)
    assert (result.winner, result.team1.series_score, result.team2.series_score) == (ONE, 2, 0)
    assert [(played.map_number, played.map_name) for played in result.maps] == [(1, MAPS[0])]
    assert [state.number for state in map_states(driver.match)] == [1]


def test_score_begins_with_the_given_maps() -> None:
    match = MatchDriver(given(BO5, 0, 2)).match
    assert (match.series_score, series_score_of(match)) == ((0, 2), SeriesScore(0, 2))
    assert [state.number for state in map_states(match)] == [1, 2, 3]


def test_series_goes_on_until_it_is_won() -> None:
    driver = play(given(BO5, 2, 0), Team.TEAM2, Team.TEAM2)
    assert (driver.effects, driver.match.phase) == ([LoadMap(3, MAPS[2])], MatchPhase.BETWEEN_MAPS)
    driver = play(given(BO5, 2, 0), Team.TEAM2, Team.TEAM2, Team.TEAM1)
    assert (driver.effects, driver.match.winner) == ([EndMatch()], ONE)


@pytest.mark.parametrize(
    ("reported", "effects", "score"),
    [
        ((1, 2), [EndMatch()], (3, 2)),
        ((0, 3), [EndMatch()], (2, 3)),
        ((0, 2), [], (2, 2)),
    ],
)
def test_plugin_reports_the_series_without_the_given_maps(
    reported: tuple[int, int], effects: list[Effect], score: tuple[int, int]
) -> None:
    driver = play(given(BO5, 2, 0), Team.TEAM2, Team.TEAM2).change_map(MAPS[2], ANN, BEN).live(MAPS[2])
    driver.apply(ev.MapEnded(driver.now_ms, MAPS[2], 5, 5, is_complete=False, is_winner_known=False))
    assert driver.match.winner is None
    driver.apply(ev.SeriesReported(driver.now_ms, *reported))
    assert (driver.effects, driver.match.series_score) == (effects, score)


@pytest.mark.parametrize(
    ("series_format", "before", "sides"),
    [(BO3, (1, 0), (CT, KNIFE)), (BO3, (1, 1), (KNIFE,)), (BO5, (1, 0), (CT, T, CT, KNIFE))],
)
def test_last_map_that_may_be_played_decides_the_series(
    series_format: SeriesFormat, before: tuple[int, int], sides: tuple[StartSides, ...]
) -> None:
    assert with_sides(given(series_format, *before), "srv_1").sides == sides
