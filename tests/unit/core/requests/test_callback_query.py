"""Parsing requests about callbacks."""

from __future__ import annotations

import pytest

from matchpod.core.errors import InvalidParamsError
from matchpod.core.requests.callback_query import (
    CallbacksQuery,
    CallbackState,
    read_callback_id,
    read_callbacks_query,
    read_redeliver_request,
    state_of,
)
from tests.unit.core.requests.shown_faults import Shown, shown

DAY_MS = 86_400_000
SEPTEMBER_21_MS = 1_789_948_800_000


def test_all_parameters_of_the_list_have_defaults() -> None:
    assert read_callbacks_query([]) == CallbacksQuery(page=1, page_size=20)


def test_all_parameters_of_the_list_are_read() -> None:
    pairs = [
        ("page", "2"),
        ("pageSize", "100"),
        ("state", "given_up"),
        ("serverId", "srv_1"),
        ("since", "2026-09-21"),
        ("until", "2026-09-21"),
    ]
    assert read_callbacks_query(pairs) == CallbacksQuery(
        page=2,
        page_size=100,
        state=CallbackState.GIVEN_UP,
        server_id="srv_1",
        from_ms=SEPTEMBER_21_MS,
        before_ms=SEPTEMBER_21_MS + DAY_MS,
    )


def test_all_faults_of_the_list_are_reported_at_once() -> None:
    pairs = [
        ("page", "0"),
        ("pageSize", "101"),
        ("state", "pending"),
        ("serverId", "a b"),
        ("since", "today"),
        ("until", "2026-02-30"),
        ("server", "srv_1"),
    ]
    with pytest.raises(InvalidParamsError) as caught:
        read_callbacks_query(pairs)
    faults = dict(shown(caught.value.faults))
    assert faults == {
        "server": "is not a known parameter; did you mean serverId?",
        "page": "must be a whole number from 1 to 1000000000",
        "pageSize": "must be a whole number from 1 to 100",
        "state": "must be one of waiting, delivered, given_up",
        "serverId": "must be 1 to 64 of A-Z a-z 0-9 _ -",
        "since": "must be an ISO 8601 date or date-time such as 2026-09-21 or 2026-09-21T14:30:00Z",
        "until": "must be an ISO 8601 date or date-time such as 2026-09-21 or 2026-09-21T14:30:00Z",
    }


@pytest.mark.parametrize(
    ("since", "at_ms"),
    [
        ("2026-09-21", SEPTEMBER_21_MS),
        ("2026-09-21T02:00:00+02:00", SEPTEMBER_21_MS),
        ("2026-09-21T00:00:00.123Z", SEPTEMBER_21_MS + 123),
    ],
)
def test_since_of_a_redelivery_is_read(since: str, at_ms: int) -> None:
    assert read_redeliver_request({"since": since}) == at_ms


@pytest.mark.parametrize(
    ("body", "faults"),
    [
        ([], [("", "must be a JSON object")]),
        (None, [("", "must be a JSON object")]),
        ({}, [("since", "is required")]),
        ({"since": None}, [("since", "is required")]),
        ({"since": 1}, [("since", "must be a string")]),
        ({"since": "yesterday"}, [("since", "must be an ISO 8601 date or date-time such as 2026-09-21 or 2026-09-21T14:30:00Z")]),
        ({"since": "2026-09-21", "state": "x"}, [("state", "is not a known field")]),
        ({"sinc": "2026-09-21"}, [("sinc", "is not a known field; did you mean since?"), ("since", "is required")]),
    ],
)  # fmt: skip
def test_faults_of_a_redelivery_are_reported(body: object, faults: list[Shown]) -> None:
    with pytest.raises(InvalidParamsError) as caught:
        read_redeliver_request(body)
    assert shown(caught.value.faults) == faults


def test_invalid_callback_id_is_rejected() -> None:
    for text in ["", "a b", "msg_\0", "x" * 65, "msg_é", "../x"]:
        assert read_callback_id(text) is None
        assert read_callback_id("msg_01hf7yat000000000000000000") is not None


def test_callback_with_a_scheduled_attempt_is_waiting_even_if_it_was_delivered_before() -> None:
    assert state_of(next_at_ms=1, delivered_at_ms=None) is CallbackState.WAITING
    assert state_of(next_at_ms=1, delivered_at_ms=1) is CallbackState.WAITING
    assert state_of(next_at_ms=None, delivered_at_ms=1) is CallbackState.DELIVERED
    assert state_of(next_at_ms=None, delivered_at_ms=None) is CallbackState.GIVEN_UP
