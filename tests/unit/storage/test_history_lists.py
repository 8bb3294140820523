"""A time is whole days and the pieces at its edges."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matchpod.storage.history_counts import DAY_MS, DaySpan
from matchpod.storage.history_lists import split_days

HOUR_MS = DAY_MS // 24


def test_a_time_of_whole_days_has_no_pieces() -> None:
    assert split_days(2 * DAY_MS, 5 * DAY_MS) == (DaySpan(2, 5), [])


def test_pieces_of_days_are_at_the_edges() -> None:
    span, edges = split_days(2 * DAY_MS + HOUR_MS, 5 * DAY_MS + HOUR_MS)
    assert span == DaySpan(3, 5)
    assert edges == [(2 * DAY_MS + HOUR_MS, 3 * DAY_MS), (5 * DAY_MS, 5 * DAY_MS + HOUR_MS)]


def test_an_open_time_has_a_piece_at_its_beginning_only() -> None:
    assert split_days(1, None) == (DaySpan(1, None), [(1, DAY_MS)])


def test_a_part_of_one_day_is_one_piece() -> None:
    assert split_days(DAY_MS + 1, DAY_MS + 2)[1] == [(DAY_MS + 1, DAY_MS + 2)]


@pytest.mark.parametrize(("from_ms", "before_ms"), [(5, 5), (DAY_MS + 1, 3), (1, -DAY_MS)])
def test_a_time_that_ends_before_it_begins_is_empty(from_ms: int, before_ms: int) -> None:
    span, edges = split_days(from_ms, before_ms)
    assert span.end == span.first
    assert edges == []


@given(st.integers(0, 4 * 24), st.integers(0, 4 * 24))
def test_days_and_pieces_cover_every_hour_once(first_hour: int, end_hour: int) -> None:
    span, edges = split_days(first_hour * HOUR_MS, end_hour * HOUR_MS)
    assert span.end is not None
    whole = range(span.first * 24, span.end * 24)
    pieces = [hour for lower, upper in edges for hour in range(lower // HOUR_MS, upper // HOUR_MS)]
    assert sorted([*whole, *pieces]) == list(range(first_hour, end_hour))
