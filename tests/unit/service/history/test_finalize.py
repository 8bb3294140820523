"""Missing timeline items are appended after the stored ones, even if those were numbered differently."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from matchpod.core.match.played_map import MapStatus
from matchpod.core.views.timeline_items import MapEndItem, PausedItem
from matchpod.core.views.timeline_writer import MapItem
from matchpod.service.history.finalize import _items_after

END = MapEndItem(seq=1, timestamp="", round_number=None, status=MapStatus.CANCELLED, winner=None, score=None)


def timeline(*words: str) -> list[MapItem]:
    """A timeline with a pause by each of these players; the word `end` is the end of the map."""
    return [
        MapItem(1, msgspec.structs.replace(END, seq=seq) if word == "end" else paused(word, seq))
        for seq, word in enumerate(words, 1)
    ]


def paused(word: str, seq: int) -> PausedItem:
    return PausedItem(seq=seq, timestamp="", round_number=None, by=word)


def stored(word: str, seq: int) -> bytes:
    """The JSON of the last stored item."""
    (one,) = timeline(word)
    return msgspec.json.encode(msgspec.structs.replace(one.item, seq=seq))


def numbered_words(items: Sequence[MapItem]) -> list[tuple[int, str]]:
    return [(one.item.seq, one.item.by if isinstance(one.item, PausedItem) else "end") for one in items]


def test_all_items_are_appended_if_none_is_stored() -> None:
    assert numbered_words(_items_after(timeline("a", "b", "end"), 0, b"")) == [(1, "a"), (2, "b"), (3, "end")]


def test_items_after_the_last_stored_one_are_appended() -> None:
    assert numbered_words(_items_after(timeline("a", "b", "c", "end"), 2, stored("b", 2))) == [(3, "c"), (4, "end")]
    assert numbered_words(_items_after(timeline("a", "b"), 2, stored("b", 2))) == []


def test_item_stored_under_another_number_is_found_by_its_content() -> None:
    # Item 3 of the timeline was stored as number 1.
    assert numbered_words(_items_after(timeline("x", "y", "a", "b", "end"), 1, stored("a", 1))) == [
        (2, "b"),
        (3, "end"),
    ]
    # Item 1 of the timeline was stored as number 7.
    assert numbered_words(_items_after(timeline("a", "b", "end"), 7, stored("a", 7))) == [(8, "b"), (9, "end")]


def test_last_of_several_equal_items_is_used() -> None:
    assert numbered_words(_items_after(timeline("a", "b", "a", "c"), 9, stored("a", 9))) == [(10, "c")]


def test_only_the_end_is_appended_after_an_unknown_item() -> None:
    assert numbered_words(_items_after(timeline("a", "b", "end"), 2, stored("z", 2))) == [(3, "end")]
    assert numbered_words(_items_after(timeline("a", "b", "end"), 9, stored("z", 9))) == [(10, "end")]


def test_end_is_not_appended_twice() -> None:
    other = msgspec.structs.replace(END, seq=5, status=MapStatus.FINISHED)
    assert numbered_words(_items_after(timeline("a", "b", "end"), 5, msgspec.json.encode(other))) == []
    assert numbered_words(_items_after(timeline("a", "b", "end"), 5, stored("end", 5))) == []


def test_nothing_is_appended_to_an_open_map_after_an_unknown_item() -> None:
    assert numbered_words(_items_after(timeline("a", "b"), 2, stored("z", 2))) == []
