"""Filters of a list, from the parameters of its page."""

from __future__ import annotations

import pytest

from matchpod.console.filters import is_day, read_filters, storable
from matchpod.console.pages.deliveries import LABELS
from matchpod.core.requests.callback_query import CallbackState, read_callbacks_query


def test_valid_parameters_are_parsed_by_the_reader_of_the_api() -> None:
    filters = read_filters({"state": "waiting", "page": "2"}, read_callbacks_query, LABELS)
    assert filters.query is not None
    assert (filters.query.state, filters.query.page) == (CallbackState.WAITING, 2)
    assert filters.given == {"state": "waiting", "page": "2"}
    assert filters.faults == {}
    assert filters.is_narrowed


def test_faults_are_kept_by_parameter() -> None:
    filters = read_filters({"state": "x", "since": "y", "colour": "red"}, read_callbacks_query, LABELS)
    assert filters.query is None
    assert sorted(filters.faults) == ["colour", "since", "state"]
    assert [name for name, _ in filters.other_faults] == ["colour", "state"]
    assert [(name, label) for name, label, _ in filters.wrong_fields] == [("since", "Created from")]
    assert filters.value("state") == "x"
    assert filters.value("until") == ""


def test_links_keep_the_other_filters_and_begin_with_the_first_page() -> None:
    filters = read_filters({"state": "waiting", "since": "2026-01-01", "page": "3"}, read_callbacks_query, LABELS)
    assert filters.link(state="given_up") == "state=given_up&since=2026-01-01"
    assert filters.link(state="") == "since=2026-01-01"
    assert not read_filters({"page": "3", "pageSize": "5"}, read_callbacks_query, LABELS).is_narrowed


def test_undecodable_bytes_can_be_shown_and_linked() -> None:
    filters = read_filters({"serverId": "a\udcff"}, read_callbacks_query, LABELS)
    assert filters.value("serverId") == "a?"
    assert filters.link() == "serverId=a%3F"
    assert storable("é\ud800") == "é?"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", True),
        ("2026-09-21", True),
        ("2026-09-21T10:00", False),
        ("26-09-21", False),
        ("x", False),
        ("a-b-c", False),
    ],
)
def test_field_for_a_day_shows_days_only(text: str, expected: bool) -> None:
    assert is_day(text) is expected
