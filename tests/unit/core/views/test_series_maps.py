"""Which map of a match is loaded or loading, and how its maps stand."""

from __future__ import annotations

from cs2_protocol.game import Team
from matchpod.core.effects import CancelReason
from matchpod.core.match.played_map import MapStatus
from matchpod.core.model import SeriesFormat, Winner
from matchpod.core.views.result_shapes import MapState, Score, SeriesScore
from matchpod.core.views.series_maps import (
    loaded_map,
    loaded_number,
    map_states,
    map_states_at,
    series_score_at,
    series_score_of,
    state_then,
)
from tests.unit.core.match_driver import ANN, BEN, MAPS, MatchDriver, deathmatch, duel, live_duel, open_match

UPCOMING, LIVE, FINISHED, CANCELLED = MapStatus


def state(number: int, status: MapStatus, score: tuple[int, int] = (0, 0), winner: Winner | None = None) -> MapState:
    return MapState(name=MAPS[number - 1], number=number, status=status, score=Score(*score), winner=winner)


FIRST = state(1, FINISHED, (13, 5), Winner.TEAM1)


def loaded(driver: MatchDriver) -> tuple[int, str, int, int]:
    played = loaded_map(driver.match)
    assert loaded_number(map_states(driver.match)) == played.number  # lists find the same map from its stored state
    return played.number, played.name, played.team1_score, played.team2_score


def test_map_that_was_not_begun_is_not_listed_after_a_forfeit() -> None:
    driver = live_duel(SeriesFormat.BO3).end_map(13, 5).change_map(MAPS[1], ANN, BEN)
    driver.match.forfeit(Team.TEAM2, driver.now_ms)
    assert map_states(driver.match) == (FIRST,)
    driver = MatchDriver(duel())
    driver.match.forfeit(Team.TEAM2, driver.now_ms)
    assert map_states(driver.match) == ()


def test_no_map_follows_the_one_that_a_forfeit_cut() -> None:
    driver = live_duel(SeriesFormat.BO3)
    driver.match.forfeit(Team.TEAM2, driver.now_ms)
    cut = state(1, FINISHED)
    assert map_states_at(driver.match, cut) == map_states(driver.match) == (cut,)


def test_map_that_was_loading_when_the_match_was_canceled_stays() -> None:
    driver = live_duel(SeriesFormat.BO3).end_map(13, 5)
    driver.match.cancel(CancelReason.CANCELED_BY_USER, driver.now_ms)
    assert loaded(driver) == (2, MAPS[1], 0, 0)
    assert map_states(driver.match) == (FIRST, state(2, CANCELLED), state(3, CANCELLED))


def test_match_without_a_series_has_one_map_and_no_series_score() -> None:
    for settings in (open_match(), deathmatch(ANN, BEN)):
        driver = MatchDriver(settings).join(ANN, BEN).live()
        (only,) = map_states(driver.match)
        assert (only.number, only.status, only.score is None) == (1, LIVE, settings.dm_sub_mode is not None)
        assert series_score_of(driver.match) is None
        assert series_score_at(driver.match, only) is None
        driver.end_map()
        assert loaded(driver)[0] == 1


def test_earlier_states_do_not_show_what_followed() -> None:
    driver = live_duel(SeriesFormat.BO3).end_map(13, 5).live(MAPS[1]).end_map(7, 13, MAPS[1]).live(MAPS[2])
    match = driver.match
    live = state_then(match, 2, status=LIVE, score=Score(3, 1))
    assert map_states_at(match, live) == (FIRST, state(2, LIVE, (3, 1)), state(3, UPCOMING))
    assert series_score_at(match, live) == SeriesScore(1, 0)
    ended = state_then(match, 2, status=FINISHED, score=Score(7, 13), winner=Winner.TEAM2)
    second = state(2, FINISHED, (7, 13), Winner.TEAM2)
    assert map_states_at(match, ended) == (FIRST, second, state(3, UPCOMING))
    assert series_score_at(match, ended) == SeriesScore(1, 1)


def test_map_that_decides_the_series_is_the_last_one() -> None:
    driver = live_duel(SeriesFormat.BO3).end_map(13, 5).live(MAPS[1]).end_map(13, 5, MAPS[1])
    ended = state_then(driver.match, 2, status=FINISHED, score=Score(13, 5), winner=Winner.TEAM1)
    assert map_states_at(driver.match, ended) == map_states(driver.match) == (FIRST, ended)
    assert series_score_at(driver.match, ended) == SeriesScore(2, 0)


def test_final_series_score_may_come_from_the_plugin() -> None:
    driver = live_duel(SeriesFormat.BO3).end_map(13, 5).live(MAPS[1])
    driver.match.current_map.end_without_result()
    driver.live(MAPS[2])
    driver.match.reported.score = (2, 1)
    driver.end_map(5, 13, MAPS[2])
    match = driver.match
    assert match.outcome is not None
    ended = state_then(match, 3, status=FINISHED, score=Score(5, 13), winner=Winner.TEAM2)
    assert series_score_at(match, ended) == series_score_of(match) == SeriesScore(2, 1)
