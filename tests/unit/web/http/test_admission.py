"""Counting connections: places, addresses, and requests that must get through."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matchpod.app.http_server import PRIORITY
from matchpod.web.http.admission import (
    ADDRESS_EXCESS,
    PROBE_BYTES,
    Admission,
    ConnectionLimits,
    Excess,
    Seat,
    address_group,
)
from tests import effort


@pytest.mark.parametrize(
    ("host", "group"),
    [
        ("203.0.113.7", "203.0.113.7"),
        ("::ffff:203.0.113.7", "203.0.113.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::9", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("127.0.0.1", None),
        ("127.9.9.9", None),
        ("::1", None),
        ("::ffff:127.0.0.1", None),
    ],
)
def test_address_is_counted_by_its_network_and_loopback_not_at_all(host: str, group: str | None) -> None:
    assert address_group(host) == group


@pytest.mark.parametrize(
    ("begin", "expected"),
    [
        (b"GET /healthz HTTP/1.1\r\nHost: x", True),
        (b"HEAD /readyz HTTP/1.1\r\n", True),
        (b"GET /readyz?x=1 HTTP/1.1", True),
        (b"GET /readyz ", True),
        (b"GET /readyz", False),  # more may follow
        (b"GET /metrics HTTP/1.1", False),
        (b"GET /healthz/ HTTP/1.1", False),
        (b"GET /healthzz HTTP/1.1", False),
        (b"POST /healthz HTTP/1.1", False),
        (b"GET  /healthz HTTP/1.1", False),
        (b"GET /\xff\x00 HTTP/1.1", False),
        (b"", False),
    ],
)
def test_probe_is_recognized_by_how_it_begins(begin: bytes, expected: bool) -> None:
    assert PRIORITY.is_probe(begin[:PROBE_BYTES]) is expected


def test_longest_probe_fits_into_the_bytes_that_are_looked_at() -> None:
    assert all(PRIORITY.is_probe(f"HEAD {path} HTTP/1.1".encode()[:PROBE_BYTES]) for path in PRIORITY.probes)


def test_limit_of_an_address_is_at_most_half_of_the_ordinary_places() -> None:
    assert ConnectionLimits(total=10_000, per_address=1024).of_address == 1024
    assert ConnectionLimits(total=16, per_address=1024).of_address == 7
    assert ConnectionLimits(total=16, per_address=None).of_address is None


def test_place_above_the_ordinary_ones_becomes_ordinary_when_there_is_room() -> None:
    admission = Admission(ConnectionLimits(total=16))
    ordinary = [admission.enter(None) for _ in range(14)]
    reserved = admission.enter(None)

    assert all(seat.is_ordinary for seat in ordinary)
    assert admission.excess(reserved) is Excess.LIMIT
    admission.leave(ordinary[0])
    assert admission.excess(reserved) is None


def test_address_over_its_limit_is_told_so_and_barred_at_a_multiple() -> None:
    admission = Admission(ConnectionLimits(total=1000, per_address=4))
    seats = [admission.enter("far") for _ in range(4 * ADDRESS_EXCESS - 1)]

    assert [admission.excess(seat) for seat in seats] == [None] * 4 + [Excess.ADDRESS] * 3
    assert not admission.is_barred("far")
    admission.enter("far")
    assert admission.is_barred("far")
    assert not admission.is_barred("other")
    assert not admission.is_barred(None)


def test_connection_of_a_game_server_does_not_count_for_its_address() -> None:
    admission = Admission(ConnectionLimits(total=1000, per_address=4))
    for _ in range(100):
        admission.trust(admission.enter("far"))

    assert not admission.is_barred("far")
    assert admission.enter("far").is_ordinary
    assert admission.open == 101


@given(st.integers(2, 24), st.none() | st.integers(1, 8), st.lists(st.tuples(st.integers(0, 3), st.integers(0, 99))))
@effort.examples(75)
def test_counts_agree_with_the_open_connections(
    total: int, per_address: int | None, steps: list[tuple[int, int]]
) -> None:
    limits = ConnectionLimits(total=total, per_address=per_address)
    admission = Admission(limits)
    seats: list[Seat] = []
    for action, choice in steps:
        address = (None, "a", "b")[choice % 3]
        if action == 0 and not admission.is_full and not admission.is_barred(address):
            seats.append(admission.enter(address))
        elif action == 1 and seats:
            admission.leave(seats.pop(choice % len(seats)))
        elif action == 2 and seats:
            admission.trust(seats[choice % len(seats)])
        elif seats:
            admission.excess(seats[choice % len(seats)])
        counted = Counter(seat.address for seat in seats if seat.address is not None)
        assert admission.open == len(seats) <= total
        assert sum(seat.is_ordinary for seat in seats) <= limits.ordinary
        assert admission._by_address == counted
        if limits.of_address is not None:
            assert max(counted.values(), default=0) <= ADDRESS_EXCESS * limits.of_address
