"""Matches that are due are divided so that all processes drive equally many."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matchpod.core.servers.replica_shares import ReplicaLoad, share_of


@pytest.mark.parametrize(
    ("due", "own", "others", "share"),
    [
        (0, 0, (0, 0), 0),
        (5, 3, (), 5),
        (1, 0, (0, 0), 1),
        (1, 1, (0, 0), 0),
        (3, 1, (0, 0), 1),
        (60, 0, (0, 0), 20),
        (20, 20, (20,), 10),
        (21, 20, (20,), 11),
        (10, 100, (0,), 0),
        (120, 100, (0,), 10),
    ],
)
def test_each_match_goes_to_the_least_loaded_process(due: int, own: int, others: tuple[int, ...], share: int) -> None:
    assert share_of(due, own, [ReplicaLoad(load) for load in others]) == share


def test_process_that_is_full_gets_nothing_and_leaves_it_to_the_others() -> None:
    assert share_of(10, 50, [ReplicaLoad(5, 5)]) == 10
    assert share_of(10, 50, [ReplicaLoad(5, 8)]) == 7


@given(due=st.integers(0, 200), loads=st.lists(st.integers(0, 50), min_size=1, max_size=6))
def test_shares_add_up_to_all_that_is_due_and_no_two_processes_leave_one_to_each_other(
    due: int, loads: list[int]
) -> None:
    shares = [
        share_of(due, own, [ReplicaLoad(other) for place, other in enumerate(loads) if place != number])
        for number, own in enumerate(loads)
    ]
    assert due <= sum(shares) <= due + len(loads) - 1, "ties are offered to several"
    levels = [own + share for own, share in zip(loads, shares, strict=True) if share]
    assert not levels or max(levels) - min(levels) <= 1
