"""The clocks of a match whose maps are recorded: no change of ours cuts a recording, and no result waits for it."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from matchpod.core.effects import CancelMatch, CancelReason, EndMatch, LoadMap, StartPlay
from matchpod.core.match.match import MatchPhase
from matchpod.core.match.timers import DEMO_S, MIN_UPLOAD_BEGINS_S, Timers, upload_due_ms
from matchpod.core.model import GameSettings, SeriesFormat
from tests.unit.core.match_driver import ANN, BEN, MAPS, START_MS, MatchDriver, duel

TV_DELAY_S = 90
DEMO = TV_DELAY_S + DEMO_S


def recorded(series_format: SeriesFormat = SeriesFormat.BO3, tv_delay_s: int = TV_DELAY_S) -> GameSettings:
    return msgspec.structs.replace(duel(series_format), record_demo=True, tv_delay_s=tv_delay_s)


def live_map(settings: GameSettings | None = None) -> MatchDriver:
    return MatchDriver(settings or recorded()).join(ANN, BEN).live()


def test_map_change_is_not_requested_again_before_the_recording_is_complete() -> None:
    driver = live_map().end_map()
    assert driver.effects == [LoadMap(2, MAPS[1])]
    assert driver.wait(DEMO + 59.9) == []
    for _ in range(3):
        assert driver.wait(60) == [LoadMap(2, MAPS[1])]


@given(tv_delay_s=st.integers(0, 300), waits=st.lists(st.floats(1, 100), max_size=30))
def test_third_request_which_changes_the_map_comes_two_minutes_after_the_recording(
    tv_delay_s: int, waits: list[float]
) -> None:
    driver, requests = live_map(recorded(tv_delay_s=tv_delay_s)).end_map(), 1
    ended_ms = driver.now_ms
    for wait_s in waits:
        requests += len(driver.wait(wait_s))
        if requests >= 3:
            assert driver.now_ms - ended_ms >= (tv_delay_s + DEMO_S + 120) * 1000
            return


def test_start_on_the_old_map_is_not_requested_again_before_the_recording_is_complete() -> None:
    driver = live_map().end_map().leave(ANN, BEN).join(ANN, BEN)
    assert driver.match.phase is MatchPhase.STARTING
    assert driver.effects == [StartPlay(2)]
    assert driver.wait(DEMO + 59) == []
    assert driver.wait(1) == [StartPlay(2)]
    assert driver.wait(60) == [StartPlay(2)]


def test_players_who_leave_after_a_map_have_more_time_to_return() -> None:
    usual, longer = (live_map(settings).end_map().leave(ANN, BEN) for settings in (duel(SeriesFormat.BO3), recorded()))
    for driver in (usual, longer):
        assert driver.after(119).match.phase is MatchPhase.BETWEEN_MAPS
    assert usual.wait(1) == [CancelMatch(CancelReason.ALL_PLAYERS_LEFT)]
    longer.after(DEMO)
    assert longer.match.phase is MatchPhase.BETWEEN_MAPS
    assert longer.wait(1) == [CancelMatch(CancelReason.ALL_PLAYERS_LEFT)]


def test_players_who_leave_late_after_a_map_have_more_time_to_return_too() -> None:
    driver = live_map().end_map().after(50).leave(ANN, BEN)
    left_ms = driver.now_ms
    while driver.match.phase is MatchPhase.BETWEEN_MAPS:
        driver.after(10)
    assert driver.now_ms - left_ms == (120 + DEMO) * 1000


def test_short_time_to_join_leaves_the_time_of_a_map_change_and_more() -> None:
    driver = live_map(msgspec.structs.replace(recorded(), join_seconds=60)).end_map().leave(BEN)
    assert driver.match.join_deadline_ms() == driver.now_ms + (120 + DEMO) * 1000


def test_time_to_join_is_longer_until_the_next_map_loads_and_as_usual_then() -> None:
    driver = live_map().end_map().after(10).leave(BEN)
    left_ms = driver.now_ms
    assert driver.match.join_deadline_ms() == left_ms + (300 + DEMO) * 1000
    driver.after(50).change_map(MAPS[1], ANN)
    assert driver.match.join_deadline_ms() == driver.now_ms + 300_000


def test_result_does_not_wait_for_a_recording() -> None:
    driver = live_map(recorded(SeriesFormat.BO1)).end_map()
    assert driver.effects == [EndMatch()]


def test_clocks_of_a_match_that_is_not_recorded_are_as_usual() -> None:
    assert Timers.of(duel()) == Timers()
    assert Timers.of(recorded()) == Timers(demo_s=DEMO)


@pytest.mark.parametrize(
    ("tv_delay_s", "speed", "seconds"), [(0, 1, 60), (90, 1, 150), (90, 10, 15), (90, 30, MIN_UPLOAD_BEGINS_S)]
)
def test_upload_begins_within_the_delay_and_a_minute(tv_delay_s: int, speed: float, seconds: float) -> None:
    due_ms = upload_due_ms(recorded(tv_delay_s=tv_delay_s), START_MS, speed=speed)
    assert due_ms == START_MS + seconds * 1000
