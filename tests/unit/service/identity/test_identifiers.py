"""Ids sort by time and contain all their random bits."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matchpod.service.identity import identifiers

TIMES = st.integers(0, 2**48 - 1)
RANDOM_BYTES = st.binary(min_size=10, max_size=10)


@given(TIMES, RANDOM_BYTES, TIMES, RANDOM_BYTES)
def test_ids_sort_by_time(first: int, random_bytes: bytes, second: int, other: bytes) -> None:
    ids = [identifiers.new_server_id(first, random_bytes), identifiers.new_server_id(second, other)]
    assert (ids[0] < ids[1]) == ((first, random_bytes) < (second, other))


@given(TIMES, RANDOM_BYTES)
def test_ids_are_a_prefix_and_26_readable_characters(now_ms: int, random_bytes: bytes) -> None:
    assert re.fullmatch(r"srv_[0-9a-hjkmnp-tv-z]{26}", identifiers.new_server_id(now_ms, random_bytes))
    assert re.fullmatch(r"msg_[0-9a-hjkmnp-tv-z]{26}", identifiers.new_callback_id(now_ms, random_bytes))


def test_format_of_ids_is_stable() -> None:
    assert identifiers.new_server_id(0, bytes(10)) == "srv_" + "0" * 26
    assert identifiers.new_server_id(2**48 - 1, b"\xff" * 10) == "srv_7" + "z" * 25
    assert identifiers.new_server_id(1_700_000_000_000, bytes(10)) == "srv_01hf7yat00" + "0" * 16


@given(st.binary(min_size=8, max_size=8), st.binary(min_size=8, max_size=8))
def test_request_ids_differ_if_the_random_bytes_differ(one: bytes, other: bytes) -> None:
    first, second = identifiers.new_request_id(one), identifiers.new_request_id(other)
    assert re.fullmatch(r"req_[0-9a-hjkmnp-tv-z]{16}", first)
    assert (first == second) == (one == other)


@given(st.binary(min_size=32, max_size=32))
def test_tokens_fit_a_url_path(random_bytes: bytes) -> None:
    assert re.fullmatch(r"[A-Za-z0-9_-]{43}", identifiers.new_token(random_bytes))


@given(st.binary(min_size=4, max_size=4))
def test_plugin_match_ids_are_positive_32_bit_numbers(random_bytes: bytes) -> None:
    assert 1 <= identifiers.new_plugin_match_id(random_bytes) <= 2**31 - 1


def test_plugin_match_ids_reach_both_bounds() -> None:
    assert identifiers.new_plugin_match_id(bytes(4)) == 1
    assert identifiers.new_plugin_match_id((2**31 - 2).to_bytes(4)) == 2**31 - 1


@pytest.mark.parametrize(
    "make",
    [
        identifiers.new_request_id,
        identifiers.new_token,
        identifiers.new_plugin_match_id,
        lambda random_bytes: identifiers.new_server_id(0, random_bytes),
    ],
)
@pytest.mark.parametrize("size", [0, 3, 9, 31, 33])
def test_wrong_number_of_random_bytes_is_rejected(make: Callable[[bytes], object], size: int) -> None:
    with pytest.raises(ValueError, match=r"expected \d+ random bytes"):
        make(bytes(size))


@pytest.mark.parametrize("now_ms", [-1, 2**48])
def test_times_out_of_range_are_rejected(now_ms: int) -> None:
    with pytest.raises(ValueError, match="does not fit"):
        identifiers.new_server_id(now_ms, bytes(10))


@given(st.uuids(), st.integers(min_value=1, max_value=5))
def test_ids_of_maps_and_series_are_uuids_of_version_5(game_id: uuid.UUID, number: int) -> None:
    assert identifiers.map_id(str(game_id), number) == str(uuid.uuid5(game_id, f"map {number}"))
    assert identifiers.series_uuid(str(game_id)) == str(uuid.uuid5(game_id, "series"))
