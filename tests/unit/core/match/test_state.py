"""What is read from the state of a match."""

from __future__ import annotations

from matchpod.core.model import SeriesFormat
from tests.unit.core.match_driver import live_duel


def test_map_number_is_that_of_the_next_map_between_maps_and_of_the_last_one_at_the_end() -> None:
    driver = live_duel(SeriesFormat.BO3)
    assert driver.match.map_number == 1
    driver.end_map()
    assert driver.match.map_number == 2
    driver.live().end_map()
    assert driver.match.map_number == 2
