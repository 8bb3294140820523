"""The timeline of a match: detections, and which events have items."""

from __future__ import annotations

import msgspec
import pytest

from matchpod.core import events as ev
from matchpod.core.model import SeriesFormat
from matchpod.core.views import timeline_items as items
from matchpod.core.views.result import anti_cheat_entry
from matchpod.core.views.timeline import Timeline
from tests.unit.core.match_driver import ANN
from tests.unit.core.timeline_driver import timeline_duel

# --- detections ---------------------------------------------------------------------------------------------------


def test_detection_adds_one_item_on_its_map() -> None:
    driver = timeline_duel(SeriesFormat.BO3).start_round(2)
    for _ in range(3):
        driver.apply(ev.CheatSuspected(driver.now_ms, ANN, "Aimbot", "41.2", "ak47"))
    driver.end_map()
    driver.apply(ev.CheatSuspected(driver.now_ms, ANN, "Spinbot", "late"))
    first, second = driver.of(items.AntiCheatItem)
    assert (first.round_number, first.detection.type, first.detection.weapon) == (2, "Aimbot", "ak47")
    assert [first.detection, second.detection] == [
        anti_cheat_entry(driver.match, found) for found in driver.match.detections
    ]
    assert (second.detection.type, second.detection.map_number) == ("Spinbot", 1)
    assert driver.types()[3:] == ["round_start", "anti_cheat", "map_end", "anti_cheat"]


@pytest.mark.parametrize("at_ms", [10**17, -(10**17)])
def test_detection_with_an_invalid_time_has_a_clamped_timestamp(at_ms: int) -> None:
    driver = timeline_duel().apply(ev.CheatSuspected(at_ms, ANN, "Aimbot", "41.2"))
    (found,) = driver.of(items.AntiCheatItem)
    assert found.timestamp == found.detection.detected_at


def test_our_own_detections_follow_the_kill_that_triggered_them() -> None:
    driver = timeline_duel()
    for _ in range(60):
        driver.kill().after(5)
    assert len(driver.match.detections) == len(driver.of(items.AntiCheatItem)) > 0
    types = driver.types()
    assert types[types.index("anti_cheat") - 1] == "kill"


# --- the match ---


def test_empty_timeline_can_start_mid_game() -> None:
    driver = timeline_duel().start_round()
    driver.timeline, driver.maps = msgspec.msgpack.decode(b"\x80", type=Timeline), {}
    driver.start_round(2).kill()
    assert driver.types() == ["player_connected", "player_connected", "round_start", "kill"]


def test_no_items_are_added_after_the_end_of_the_match() -> None:
    driver = timeline_duel().end_map().chat().kill().leave(ANN)
    driver.apply(ev.CheatSuspected(driver.now_ms, ANN, "Aimbot", "late"))
    assert driver.types()[-1] == "map_end"
