"""A match is told on from what is stored of it, also where whoever stored that had numbered it otherwise."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from matchpod.core.played_map import MapStatus
from matchpod.core.timeline import MapItem
from matchpod.core.timeline_items import MapEndItem, PausedItem
from matchpod.service.history.settling import _after

END = MapEndItem(seq=1, timestamp="", round_number=None, status=MapStatus.CANCELLED, winner=None, score=None)


def told(*words: str) -> list[MapItem]:
    """A timeline of somebody who pauses, and of its end where a word says so."""
    return [
        MapItem(1, msgspec.structs.replace(END, seq=seq) if word == "end" else paused(word, seq))
        for seq, word in enumerate(words, 1)
    ]


def paused(word: str, seq: int) -> PausedItem:
    return PausedItem(seq=seq, timestamp="", round_number=None, by=word)


def stored(word: str, seq: int) -> bytes:
    """The last item that is stored."""
    (one,) = told(word)
    return msgspec.json.encode(msgspec.structs.replace(one.item, seq=seq))


def said(items: Sequence[MapItem]) -> list[tuple[int, str]]:
    return [(one.item.seq, one.item.by if isinstance(one.item, PausedItem) else "end") for one in items]


def test_nothing_is_stored_so_all_is_told() -> None:
    assert said(_after(told("a", "b", "end"), 0, b"")) == [(1, "a"), (2, "b"), (3, "end")]


def test_what_follows_the_stored_item_is_told() -> None:
    assert said(_after(told("a", "b", "c", "end"), 2, stored("b", 2))) == [(3, "c"), (4, "end")]
    assert said(_after(told("a", "b"), 2, stored("b", 2))) == []


def test_an_item_that_is_stored_under_another_number_is_found_by_what_it_says() -> None:
    # Whoever stored it had told less before.
    assert said(_after(told("x", "y", "a", "b", "end"), 1, stored("a", 1))) == [(2, "b"), (3, "end")]
    # Whoever stored it had told more.
    assert said(_after(told("a", "b", "end"), 7, stored("a", 7))) == [(8, "b"), (9, "end")]


def test_the_last_of_several_that_say_the_same_is_meant() -> None:
    assert said(_after(told("a", "b", "a", "c"), 9, stored("a", 9))) == [(10, "c")]


def test_only_the_end_is_told_after_an_item_that_nobody_knows() -> None:
    assert said(_after(told("a", "b", "end"), 2, stored("z", 2))) == [(3, "end")]
    assert said(_after(told("a", "b", "end"), 9, stored("z", 9))) == [(10, "end")]


def test_a_map_ends_once() -> None:
    other = msgspec.structs.replace(END, seq=5, status=MapStatus.FINISHED)
    assert said(_after(told("a", "b", "end"), 5, msgspec.json.encode(other))) == []
    assert said(_after(told("a", "b", "end"), 5, stored("end", 5))) == []


def test_nothing_is_told_of_a_map_that_goes_on_after_an_item_that_nobody_knows() -> None:
    assert said(_after(told("a", "b"), 2, stored("z", 2))) == []
