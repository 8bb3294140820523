"""A simulated match that runs faster than our clock: callers see its times in our time, and its durations in game time."""

from __future__ import annotations

from functools import cache
from uuid import UUID

import msgspec
import pytest

from matchpod.core.iso_dates import iso_time
from matchpod.core.model import CvarSetting
from matchpod.core.views.result import build_result
from matchpod.core.views.round_shapes import RoundEntry
from matchpod.core.views.rounds import build_rounds
from matchpod.core.views.timeline_items import AssistItem, KillItem, RoundStartItem, TimelineItem
from matchpod.service.history.rows import history_of
from matchpod.service.match_log.entries import EntryKind
from matchpod.service.match_log.fold import Fold
from matchpod.storage.history import MatchHistory
from matchpod.storage.raw_log import RawEntry
from tests.unit.service.match_log.test_fold import entry, fold_all, recorded, row_of
from tests.unit.simulator.played_match import START_MS

SPEED = 30
DETECTION = b'{"steamId": "76561198000000001", "type": "Aimbot", "reason": "x", "weapon": "ak47"}'


def fast_entries() -> list[RawEntry]:
    """The entries of a recorded match as they would have been received at SPEED."""
    return [
        msgspec.structs.replace(one, received_ms=START_MS + (one.received_ms - START_MS) // SPEED)
        for one in recorded().entries
    ]


class Seen(msgspec.Struct):
    """What callers see of a match."""

    history: MatchHistory
    items: dict[int, list[TimelineItem]]
    rounds: list[tuple[RoundEntry, ...]]


def seen(fold: Fold) -> Seen:
    match, items = fold.match, dict[int, list[TimelineItem]]()
    for one in fold.drain_timeline():
        items.setdefault(one.map_number, []).append(one.item)
    rounds = [build_rounds(match, played) for played in match.maps]
    row = row_of(match.settings, game_id=str(UUID(int=1)))
    return Seen(history_of(row, match, server_name="x"), items, rounds)


@cache
def fast() -> Seen:
    fold = Fold.begin(row_of(recorded().settings), SPEED)
    fold_all(fold, fast_entries())
    return seen(fold)


@cache
def usual() -> Seen:
    fold = Fold.begin(row_of(recorded().settings), 1.0)
    fold_all(fold, recorded().entries)
    return seen(fold)


def test_times_of_maps_and_series_are_in_order_between_creation_and_the_last_post() -> None:
    series = fast().history.series
    assert series is not None
    played = [one for one in fast().history.maps if one.started_at_ms is not None]
    times = [time for one in played for time in (one.started_at_ms, one.finished_at_ms)]
    ordered = [time for time in times if time is not None]
    assert len(ordered) == len(times) >= 4
    assert ordered[0] > START_MS
    assert ordered == sorted(ordered)
    assert ordered[-1] <= fast_entries()[-1].received_ms
    assert (series.started_at_ms, series.finished_at_ms) == (ordered[0], ordered[-1])
    assert series.sort_ms == series.started_at_ms
    assert [one.sort_ms for one in played] == [one.started_at_ms for one in played]


def test_timestamps_of_the_timeline_are_in_order_and_not_later_than_their_posts() -> None:
    for number, items in fast().items.items():
        stamps = [item.timestamp for item in items]
        assert stamps == sorted(stamps), number
        assert iso_time(START_MS) < stamps[0]
        assert stamps[-1] <= iso_time(fast_entries()[-1].received_ms)


def test_no_item_is_in_the_future_when_it_is_added() -> None:
    fold = Fold.begin(row_of(recorded().settings), SPEED)
    for one in fast_entries():
        fold.apply(one)
        assert all(item.item.timestamp <= iso_time(one.received_ms) for item in fold.drain_timeline())


def test_durations_are_those_of_the_game() -> None:
    expected, series = usual(), fast().history.series
    assert [one.duration_s for one in fast().history.maps] == [one.duration_s for one in expected.history.maps]
    assert series is not None
    assert expected.history.series is not None
    assert series.duration_s == expected.history.series.duration_s
    for mine, theirs in zip(fast().rounds, expected.rounds, strict=True):
        assert [one.duration for one in mine] == [one.duration for one in theirs]


def test_rounds_and_timeline_show_the_same_time() -> None:
    for number, rounds in enumerate(fast().rounds, start=1):
        starts = {
            item.round_number: item.timestamp for item in fast().items[number] if isinstance(item, RoundStartItem)
        }
        assert {one.number: one.started_at for one in rounds} == starts


def test_snapshot_after_every_entry_changes_nothing() -> None:
    whole, again = (Fold.begin(row_of(recorded().settings), SPEED) for _ in range(2))
    for one in fast_entries():
        assert again.apply(one) == whole.apply(one)
        again = Fold.load(again.dump())
    assert again == whole


def test_real_time_is_not_changed() -> None:
    fold = Fold.begin(row_of(recorded().settings), 1.0)
    fold_all(fold, recorded().entries)
    played = recorded().reader.match
    assert fold.match.times.stretches == []
    assert usual().history.maps[0].started_at_ms == played.maps[0].started_at_ms
    assert usual().history.maps[0].finished_at_ms == played.maps[0].finished_at_ms


@pytest.mark.parametrize("name", ["sim_speed", "SIM_SPEED", "sim_lockstep"])
def test_match_that_sets_its_own_speed_is_shown_in_our_time(name: str) -> None:
    settings = msgspec.structs.replace(recorded().settings, custom_cvars=(CvarSetting(name, "30"),))
    fold = Fold.begin(row_of(settings), 1.0)
    fold_all(fold, fast_entries())
    assert seen(fold).history.maps == fast().history.maps


def test_detection_of_a_plugin_is_shown_when_it_was_received() -> None:
    fold = Fold.begin(row_of(recorded().settings), SPEED)
    entries = fast_entries()
    middle = len(entries) // 2
    fold_all(fold, entries[:middle])
    received_ms = entries[middle].received_ms
    fold.apply(entry(EntryKind.DETECTION, received_ms, DETECTION))
    (found,) = build_result(fold.match).anti_cheat
    assert iso_time(received_ms - 1_000) <= found.detected_at <= iso_time(received_ms)


def test_timeline_stored_with_the_times_of_the_game_is_continued() -> None:
    """An earlier version numbered other types of items, and stored the times of the game."""
    fold = Fold.begin(row_of(recorded().settings), SPEED)
    fold_all(fold, fast_entries())
    before = fold.pending_items(1)
    kept = [item for item in before[:60] if not isinstance(item, AssistItem)]
    assert len(kept) < 60
    stored = [
        msgspec.structs.replace(item, seq=seq, timestamp="2036-01-01T00:00:00.000Z")
        for seq, item in enumerate(kept, start=1)
    ]
    last = max(seq for seq, item in enumerate(kept, start=1) if isinstance(item, KillItem))
    fold.align_timeline(1, [(item.seq, msgspec.json.encode(item)) for item in stored])
    after = {item.seq: item for item in fold.pending_items(1)}
    assert after[last].timestamp == kept[last - 1].timestamp
    assert isinstance(after[last], KillItem)
