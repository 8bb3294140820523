"""Numbers, times and people of timeline items."""

from __future__ import annotations

import msgspec
import pytest

from matchpod.core.iso_dates import LAST_MS
from matchpod.core.match.detail_limits import MIN_ITEMS
from matchpod.core.views.timeline import Timeline
from matchpod.core.views.timeline_writer import MAX_PEOPLE, Stamp
from tests.unit.core.match_driver import open_match
from tests.unit.core.timeline_driver import TimelineDriver, seqs, timeline_duel


def test_only_the_end_of_a_map_is_added_after_the_item_limit() -> None:
    driver = timeline_duel()
    driver.timeline.renumber(1, MIN_ITEMS - 5)
    for _ in range(10):
        driver.kill()
    driver.end_map()
    assert driver.types()[3:] == ["kill", "kill", "map_end"]
    assert seqs(driver)[3:] == [MIN_ITEMS - 1, MIN_ITEMS, MIN_ITEMS + 1]


@pytest.mark.parametrize(
    ("at_ms", "text"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (59_999, "1970-01-01T00:00:59.999Z"),
        (60_001, "1970-01-01T00:01:00.001Z"),
        (1_768_900_059_007, "2026-01-20T09:07:39.007Z"),
        (LAST_MS, "9999-12-31T23:59:59.999Z"),
        (LAST_MS + 1, "9999-12-31T23:59:59.999Z"),
        (10**30, "9999-12-31T23:59:59.999Z"),
        (-1, "1970-01-01T00:00:00.000Z"),
    ],
)
def test_timestamps_are_utc_with_milliseconds_and_clamped(at_ms: int, text: str) -> None:
    stamp = Stamp()
    for before in (0, LAST_MS, 1_768_900_059_007):
        stamp.text(before)
        assert stamp.text(at_ms) == text


def test_cache_of_persons_is_limited() -> None:
    driver = TimelineDriver(open_match()).live()
    for number in range(MAX_PEOPLE + 10):
        driver.kill(f"BOT:{number}", f"BOT:{number + 1}")
    assert len(driver.timeline.people) <= MAX_PEOPLE


def test_drained_items_are_not_returned_again_after_a_snapshot() -> None:
    driver = timeline_duel()
    driver.timeline = msgspec.msgpack.decode(msgspec.msgpack.encode(driver.timeline), type=Timeline)
    driver.kill()
    assert seqs(driver) == [1, 2, 3, 4]
    assert driver.timeline.drain() == []
