"""A time range is split into whole days and the partial days at its ends."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matchpod.storage.history_counts import DAY_MS, DaySpan
from matchpod.storage.history_lists import split_days

HOUR_MS = DAY_MS // 24


def test_open_range_has_a_partial_day_only_at_its_beginning() -> None:
    assert split_days(1, None) == (DaySpan(1, None), [(1, DAY_MS)])


@pytest.mark.parametrize(("from_ms", "before_ms"), [(5, 5), (DAY_MS + 1, 3), (1, -DAY_MS)])
def test_range_that_ends_before_it_begins_is_empty(from_ms: int, before_ms: int) -> None:
    span, edges = split_days(from_ms, before_ms)
    assert span.end == span.first
    assert edges == []


@given(st.integers(0, 4 * 24), st.integers(0, 4 * 24))
def test_whole_and_partial_days_cover_every_hour_once(first_hour: int, end_hour: int) -> None:
    span, edges = split_days(first_hour * HOUR_MS, end_hour * HOUR_MS)
    assert span.end is not None
    whole = range(span.first * 24, span.end * 24)
    partial = [hour for lower, upper in edges for hour in range(lower // HOUR_MS, upper // HOUR_MS)]
    assert sorted([*whole, *partial]) == list(range(first_hour, end_hour))
