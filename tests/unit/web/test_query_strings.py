"""Splitting query strings into names and values."""

from __future__ import annotations

from urllib.parse import quote, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matchpod.core.errors import InvalidParamsError
from matchpod.core.iso_dates import iso_time
from matchpod.core.requests.history_query import ListQuery, read_maps_query
from matchpod.web.endpoint import Call
from matchpod.web.http.asgi import Message
from matchpod.web.query_strings import MAX_QUERY_BYTES, query_of

TEXT = st.text(max_size=20)
MAP_NAMES = st.text(st.characters(exclude_categories=["Cc", "Cs"]), min_size=1, max_size=128)


async def no_body() -> Message:
    raise AssertionError("the body was read")


def read(query: bytes) -> list[tuple[str, str]]:
    return query_of(Call(scope={"query_string": query}, receive=no_body, params=()))


@pytest.mark.parametrize(
    ("query", "pairs"),
    [
        (b"", []),
        (b"a=1", [("a", "1")]),
        (b"a=1&b=2&a=3", [("a", "1"), ("b", "2"), ("a", "3")]),
        (b"a", [("a", "")]),
        (b"a=", [("a", "")]),
        (b"=1", [("", "1")]),
        (b"&&a=1&", [("a", "1")]),
        (b"a=b=c", [("a", "b=c")]),
        (b"a=1+2%2B3%203", [("a", "1 2+3 3")]),
        (b"%61%3D=%26", [("a=", "&")]),
        (b"a=%C3%A9&b=\xc3\xa9", [("a", "é"), ("b", "é")]),
        (b"a=%ff", [("a", "\udcff")]),
        (b"a=%zz%4", [("a", "%zz%4")]),
        (b"a;b=1", [("a;b", "1")]),
    ],
)
def test_query_is_split_into_pairs(query: bytes, pairs: list[tuple[str, str]]) -> None:
    assert read(query) == pairs


def test_request_without_a_query_has_no_pairs() -> None:
    assert query_of(Call(scope={}, receive=no_body, params=())) == []


def test_query_length_is_limited() -> None:
    assert read(b"&" * MAX_QUERY_BYTES) == []
    with pytest.raises(InvalidParamsError, match="12288 bytes"):
        read(b"&" * (MAX_QUERY_BYTES + 1))


@given(st.lists(st.tuples(TEXT, TEXT).filter(lambda pair: pair[0] or pair[1]), max_size=5))
def test_encoded_pairs_are_read_back(pairs: list[tuple[str, str]]) -> None:
    assert read(urlencode(pairs).encode()) == pairs
    assert read(urlencode(pairs, quote_via=quote).encode()) == pairs


@given(st.binary(max_size=200))
def test_any_bytes_can_be_split(query: bytes) -> None:
    for name, value in read(query):
        assert isinstance(name + value, str)


@given(MAP_NAMES, st.integers(min_value=1, max_value=4_102_444_800_000), st.sampled_from(["Z", "+00:00", "-00"]))
def test_encoded_filters_are_read_back(name: str, from_ms: int, zone: str) -> None:
    date = iso_time(from_ms).replace("Z", zone)
    expected = ListQuery(map_name=name, from_ms=from_ms)
    assert read_maps_query(read(urlencode({"map": name, "dateFrom": date}).encode())) == expected
    assert read_maps_query(read(urlencode({"map": name}).encode() + f"&dateFrom={date}".encode())) == expected
