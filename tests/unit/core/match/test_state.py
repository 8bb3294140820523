"""What is read from the state of a match."""

from __future__ import annotations

from matchpod.core.match.timers import Alarm
from matchpod.core.model import SeriesFormat
from tests.unit.core.match_driver import ANN, BEN, START_MS, MatchDriver, duel, live_duel


def test_map_number_is_that_of_the_next_map_between_maps_and_of_the_last_one_at_the_end() -> None:
    driver = live_duel(SeriesFormat.BO3)
    assert driver.match.map_number == 1
    driver.end_map()
    assert driver.match.map_number == 2
    driver.live()
    driver.end_map()
    assert driver.match.map_number == 2


def test_alarms_are_those_of_the_current_phase() -> None:
    driver = MatchDriver(duel())
    assert {alarm for _, alarm in driver.match.alarms()} == {Alarm.JOIN, Alarm.MAX_DURATION}
    driver.join(ANN, BEN)
    assert {alarm for _, alarm in driver.match.alarms()} == {Alarm.ASK_AGAIN, Alarm.MAX_DURATION}
    driver.live()
    assert driver.match.next_deadline_ms() == START_MS + 6 * 3_600_000
    driver.end_map()
    assert driver.match.next_deadline_ms() is None
