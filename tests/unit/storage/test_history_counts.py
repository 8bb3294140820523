"""Deep pages of a list skip whole days."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matchpod.storage.history_counts import skip_days

DAYS = [(9, 3), (7, 2), (4, 0), (0, 5)]


@pytest.mark.parametrize(
    ("offset", "expected"),
    [(0, (9, 0)), (2, (9, 2)), (3, (7, 0)), (4, (7, 1)), (5, (0, 0)), (9, (0, 4)), (10, (-1, 0)), (12, (-1, 2))],
)
def test_whole_days_are_skipped_and_the_remainder_within_a_day(offset: int, expected: tuple[int, int]) -> None:
    assert skip_days(DAYS, offset) == expected


def test_list_without_day_counts_is_read_from_its_beginning() -> None:
    assert skip_days([], 5) == (None, 5)


@given(st.dictionaries(st.integers(0, 50), st.integers(0, 4)), st.integers(0, 250))
def test_skipping_days_gives_the_same_items_as_skipping_one_by_one(counts: dict[int, int], offset: int) -> None:
    days = sorted(counts.items(), reverse=True)
    items = [(day, number) for day, count in days for number in range(count)]
    day, rest = skip_days(days, offset)
    remaining = [item for item in items if day is None or item[0] <= day]
    assert remaining[rest:] == items[offset:]
