"""Parsing the query strings of lists, timelines and leaderboards."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matchpod.core.errors import InvalidParamsError
from matchpod.core.iso_dates import iso_time
from matchpod.core.match.played_map import MapStatus
from matchpod.core.requests.history_query import (
    MAX_EVENTS,
    MAX_PAGE,
    MAX_SEQ,
    EventsQuery,
    LeaderboardQuery,
    ListQuery,
    read_events_query,
    read_leaderboard_query,
    read_map_id,
    read_maps_query,
    read_series_id,
    read_series_query,
    read_server_id,
)
from matchpod.core.views.leaderboard import LeaderboardSort
from tests.unit.core.requests.shown_faults import Shown, shown

Pairs = list[tuple[str, str]]
ListReader = Callable[[Pairs], ListQuery]
READERS = [read_series_query, read_maps_query]
UUID = "3f1c0a52-6c1e-5b7a-9d3e-0123456789ab"
DAY_MS = 86_400_000


def faults(read: Callable[[Pairs], object], *pairs: tuple[str, str]) -> list[Shown]:
    with pytest.raises(InvalidParamsError) as caught:
        read(list(pairs))
    return shown(caught.value.faults)


# --- lists --------------------------------------------------------------------------------------------------------


def test_all_list_parameters_have_defaults() -> None:
    for read in READERS:
        assert read([]) == ListQuery(page=1, page_size=20)


@pytest.mark.parametrize("size", [1, 100])
def test_limit_parameter_of_the_maps_list_is_an_alias_of_page_size(size: int) -> None:
    assert read_maps_query([("limit", str(size))]) == ListQuery(page_size=size)
    assert read_maps_query([("limit", str(size)), ("pageSize", str(size))]) == ListQuery(page_size=size)


def test_limit_and_page_size_must_not_differ() -> None:
    assert faults(read_maps_query, ("pageSize", "10"), ("limit", "11")) == [
        ("limit", "is an alias of pageSize and must not differ from it")
    ]


def test_invalid_map_name_is_rejected() -> None:
    for name, message in [
        ("x" * 129, "must be 1 to 128 characters"),
        ("a\x00", "must not contain control characters (found U+0000)"),
        ("a\n", "must not contain control characters (found U+000A)"),
        ("\x85", "must not contain control characters (found U+0085)"),
        ("\udcff", "must be percent-encoded UTF-8"),
    ]:
        assert faults(read_maps_query, ("map", name)) == [("map", message)]


def test_date_time_bounds_are_inclusive() -> None:
    for read in READERS:
        query = read([("dateFrom", "1970-01-02T00:00:00.5Z"), ("dateTo", "1970-01-02T01:00:00 01:00")])
        assert query == ListQuery(from_ms=DAY_MS + 500, before_ms=DAY_MS + 1)


# --- timeline -----------------------------------------------------------------------------------------------------


def test_limit_of_events_is_reduced_to_the_maximum() -> None:
    for limit, served in [("1", 1), ("999", 999), ("1000", MAX_EVENTS), ("1001", MAX_EVENTS), ("9" * 300, MAX_EVENTS)]:
        assert read_events_query([("limit", limit)]) == EventsQuery(limit=served)


@pytest.mark.parametrize("limit", ["0", "-1", "all"])
def test_limit_of_events_is_at_least_one(limit: str) -> None:
    assert faults(read_events_query, ("limit", limit)) == [("limit", "must be a whole number of at least 1")]


# --- leaderboard --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sort_by", list(LeaderboardSort))
@pytest.mark.parametrize("limit", [1, 32])
def test_leaderboard_sort_key_and_limit_are_read(sort_by: LeaderboardSort, limit: int) -> None:
    pairs = [("sortBy", sort_by.value), ("limit", str(limit))]
    assert read_leaderboard_query(pairs) == LeaderboardQuery(sort_by=sort_by, limit=limit)


def test_all_faults_of_a_leaderboard_query_are_reported() -> None:
    reported = faults(read_leaderboard_query, ("sortBy", "deaths"), ("limit", "33"), ("sort", "kills"))
    assert set(reported) == {
        ("sort", "is not a known parameter; did you mean sortBy?"),
        ("sortBy", "must be one of kills, damage, headshots, accuracy, utility, plants, defuses"),
        ("limit", "must be a whole number from 1 to 32"),
    }
    assert faults(read_leaderboard_query, ("limit", "0"))


# --- ids ----------------------------------------------------------------------------------------------------------


def test_map_id_is_a_uuid_in_any_case() -> None:
    assert read_map_id(UUID) == read_map_id(UUID.upper()) == UUID


@pytest.mark.parametrize(
    "text", ["", "x", UUID[:-1], UUID + "0", UUID.replace("-", ""), f"{{{UUID}}}", f"urn:uuid:{UUID}", UUID + "\n",
             UUID.replace("a", "g"), UUID.replace("0", "０"), "ser_1", "\x00"]
)  # fmt: skip
def test_other_text_is_not_a_map_id(text: str) -> None:
    assert read_map_id(text) is None


def test_series_id_may_be_a_uuid_or_a_prefixed_id() -> None:
    assert read_series_id(UUID.upper()) == UUID
    assert read_series_id("ser_01hf7yat000000000000000000") == "ser_01hf7yat000000000000000000"


def test_other_text_is_not_a_series_id() -> None:
    for text in ["", "ser_", "ser", "srv_1", "SER_1", "ser_" + "x" * 61, "ser_a b", "ser_\x00", "ser_é"]:
        assert read_series_id(text) is None


def test_server_id_has_a_restricted_length_and_character_set() -> None:
    assert read_server_id("srv_1") == "srv_1"
    assert [read_server_id(text) for text in ("", "x" * 65, "a\x00", "é", "a/b")] == [None] * 5


# --- laws ---------------------------------------------------------------------------------------------------------

# `iso_time` does not clamp times in this range.
TIMES = st.none() | st.integers(min_value=1, max_value=4_102_444_800_000)
QUERIES = st.builds(
    ListQuery,
    page=st.integers(min_value=1, max_value=MAX_PAGE),
    page_size=st.integers(min_value=1, max_value=100),
    status=st.none() | st.sampled_from(MapStatus),
    server_id=st.none() | st.from_regex(r"[0-9A-Za-z_-]{1,64}", fullmatch=True),
    map_name=st.none() | st.text(st.characters(exclude_categories=["Cc", "Cs"]), min_size=1, max_size=128),
    from_ms=TIMES,
    before_ms=TIMES,
)


def to_pairs(query: ListQuery) -> Pairs:
    written = {
        "page": str(query.page),
        "pageSize": str(query.page_size),
        "status": query.status,
        "serverId": query.server_id,
        "map": query.map_name,
        "dateFrom": None if query.from_ms is None else iso_time(query.from_ms),
        "dateTo": None if query.before_ms is None else iso_time(query.before_ms - 1),
    }
    return [(name, value) for name, value in written.items() if value is not None]


@given(QUERIES)
def test_list_query_round_trips(query: ListQuery) -> None:
    pairs = to_pairs(query)
    assert read_maps_query(pairs) == query
    assert read_maps_query(pairs[::-1]) == query


@given(st.integers(min_value=0, max_value=MAX_SEQ), st.integers(min_value=1, max_value=MAX_EVENTS))
def test_events_query_round_trips(after_seq: int, limit: int) -> None:
    query = EventsQuery(after_seq=after_seq, limit=limit)
    assert read_events_query([("afterSeq", str(after_seq)), ("limit", str(limit))]) == query


@given(st.lists(st.tuples(st.sampled_from(["page", "limit", "map", "dateTo", "sortBy"]) | st.text(), st.text())))
def test_any_query_is_accepted_or_rejected_without_other_errors(pairs: Pairs) -> None:
    for read in (read_series_query, read_maps_query, read_events_query, read_leaderboard_query):
        with suppress(InvalidParamsError):
            read(pairs)
