"""Fair shares: parties that hold many places leave room for those that hold few."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matchpod.core.fair_shares import FairShares, Receiver

A1, A2, A3 = (Receiver("a", f"host {number}") for number in (1, 2, 3))
B1, C1 = Receiver("b", "host 1"), Receiver("c", "host 1")

ANY_RECEIVER = st.builds(Receiver, st.sampled_from("abcd"), st.sampled_from("xyz"))


def held_by(shares: FairShares, *parties: Receiver) -> Counter[Receiver]:
    """Let the parties take places in turns, until there is no room for any of them."""
    held: Counter[Receiver] = Counter()
    while greedy := [party for party in parties if shares.room(party) > 0]:
        for party in greedy:
            if shares.room(party) > 0:
                shares.hold(party)
                held[party] += 1
    return held


def hold_all(shares: FairShares, wanted: list[Receiver]) -> None:
    """Let each party in this order take a place if there is room for it."""
    for receiver in wanted:
        if shares.room(receiver) > 0:
            shares.hold(receiver)


def same_rank(_: Receiver) -> int:
    return 0


def test_one_host_leaves_room_for_its_organization_and_for_others() -> None:
    shares = FairShares(1200, per_host=1200)
    assert held_by(shares, A1) == {A1: 400}
    assert (shares.room(A2), shares.room(B1)) == (400, 800)


def test_host_never_holds_more_than_its_limit() -> None:
    shares = FairShares(1200, per_host=10)
    assert held_by(shares, A1, B1) == {A1: 10, B1: 10}
    assert shares.room(A2) == 10


def test_organization_with_many_hosts_gets_half_of_the_places() -> None:
    shares = FairShares(1200, per_host=10)
    held = held_by(shares, *(Receiver("a", f"{number}") for number in range(1000)))
    assert sum(held.values()) == 600
    assert shares.room(B1) == 10


def test_organizations_get_equal_shares_and_leave_one_for_the_next() -> None:
    shares = FairShares(1000, per_host=1000)
    hosts = [Receiver(org_id, f"{number}") for number in range(300) for org_id in "abcd"]
    per_org = Counter(receiver.org_id for receiver in held_by(shares, *hosts).elements())
    assert set(per_org.values()) == {200}
    assert shares.free == 200


def test_released_places_can_be_held_again() -> None:
    shares = FairShares(9, per_host=9)
    first = held_by(shares, A1)
    for receiver in first.elements():
        shares.release(receiver)
    assert (shares.free, shares.full_organizations(), shares.full_receivers()) == (9, [], [])
    assert held_by(shares, A1) == first


@given(st.lists(ANY_RECEIVER, max_size=40), st.integers(1, 30), st.integers(1, 6))
def test_lists_of_the_full_contain_exactly_the_parties_without_room(
    wanted: list[Receiver], places: int, per_host: int
) -> None:
    shares = FairShares(places, per_host=per_host)
    hold_all(shares, wanted)
    assert shares.free >= 0
    for receiver in wanted if shares.free else []:
        is_listed = receiver.org_id in shares.full_organizations() or receiver in shares.full_receivers()
        assert is_listed is (shares.room(receiver) <= 0)


@given(st.lists(ANY_RECEIVER, max_size=40), st.lists(ANY_RECEIVER, max_size=60), st.integers(0, 30), st.integers(1, 6))
def test_choice_has_room_for_all_chosen_and_leaves_out_only_what_has_none(
    before: list[Receiver], wanted: list[Receiver], limit: int, per_host: int
) -> None:
    shares = FairShares(40, per_host=per_host)
    hold_all(shares, before)
    free = shares.free
    chosen = shares.choose(wanted, limit, rank=same_rank)
    assert shares.free == free
    assert len(chosen) == len(set(chosen)) <= limit
    for position in chosen:
        assert shares.room(wanted[position]) > 0
        shares.hold(wanted[position])
    if len(chosen) < limit:
        assert {
            wanted[left] for left in set(range(len(wanted))) - set(chosen) if shares.room(wanted[left]) > 0
        } == set()


@pytest.mark.parametrize(
    ("held", "wanted", "chosen"),
    [
        ([], [A1, A1, A1], [0, 1, 2]),
        ([], [A1, A1, A1, B1], [0, 3, 1, 2]),
        ([A1, A2], [A3, A3, B1, B1, C1], [2, 4, 3, 0, 1]),
        ([A1], [A1, A1, A2, A3], [2, 3, 0, 1]),
    ],
    ids=["in order", "organizations in turns", "fewest places first", "hosts with fewest places first"],
)
def test_turns_are_fair(held: list[Receiver], wanted: list[Receiver], chosen: list[int]) -> None:
    shares = FairShares(100, per_host=100)
    hold_all(shares, held)
    assert shares.choose(wanted, 100, rank=same_rank) == chosen


def test_lower_rank_is_first_within_an_organization_only() -> None:
    shares = FairShares(100, per_host=100)
    ranks = {A1: 2, A2: 1, A3: 0, B1: 2}
    assert shares.choose([A1, A2, A3, B1], 100, rank=ranks.__getitem__) == [2, 3, 1, 0]
