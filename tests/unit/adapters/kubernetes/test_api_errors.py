"""Answers of the Kubernetes API that are no success become typed errors with a readable message."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from matchpod.adapters.kubernetes.api_errors import (
    ApiError,
    ApiForbiddenError,
    ApiGoneError,
    ApiNotFoundError,
    ApiUnauthorizedError,
    ConflictError,
    InvalidError,
    RejectedError,
    error_of,
    error_of_event,
    read_retry_after,
)

STATUS = b'{"kind":"Status","apiVersion":"v1","status":"Failure","message":"it is so","reason":"Because","code":422}'


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, RejectedError),
        (401, ApiUnauthorizedError),
        (403, ApiForbiddenError),
        (404, ApiNotFoundError),
        (405, RejectedError),
        (408, ApiError),
        (409, ConflictError),
        (410, ApiGoneError),
        (422, InvalidError),
        (429, ApiError),
        (500, ApiError),
        (503, ApiError),
    ],
)
def test_status_decides_the_type(status: int, kind: type[ApiError]) -> None:
    error = error_of(status, STATUS)
    assert type(error) is kind
    assert (error.status, error.reason) == (status, "Because")
    assert str(error) == f"it is so (HTTP {status})"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            b"error trying to reach service: dial tcp 10.0.0.1:443\n",
            "error trying to reach service: dial tcp 10.0.0.1:443",
        ),
        (b"", "no message"),
        (b"\xff\x00\r\nodd", "\ufffd odd"),
        (b'{"kind":"GameServer"}', "no message"),
        (b"x" * 5000, "x" * 300),
    ],
)
def test_plain_text_is_the_message(body: bytes, message: str) -> None:
    error = error_of(503, body)
    assert error.reason == ""
    assert str(error) == f"{message} (HTTP 503)"


def test_error_event_of_a_watch_has_its_own_code() -> None:
    gone = b'{"kind":"Status","message":"too old resource version: 1 (9)","reason":"Expired","code":410}'
    assert isinstance(error_of_event(gone), ApiGoneError)
    assert error_of_event(b"[]").status == 500


@pytest.mark.parametrize(("status", "wait_s"), [(429, 3.0), (503, 3.0), (500, None), (409, None)])
def test_busy_server_says_how_long_to_wait(status: int, wait_s: float | None) -> None:
    assert error_of(status, b"busy", "3").retry_after_s == wait_s


@pytest.mark.parametrize(
    ("text", "wait_s"),
    [
        ("0", 0.0),
        ("5", 5.0),
        ("3600", 60.0),
        ("Sun, 15 Nov 2026 00:00:07 GMT", 7.0),
        ("Sun, 15 Nov 2026 10:00:00 GMT", 60.0),
        ("Sat, 14 Nov 2026 00:00:00 GMT", 0.0),
        ("Sun, 15 Nov 2026 00:00:07", None),
        ("", None),
        ("-1", None),
        ("1.5", None),
        ("soon", None),
        ("\u0663", None),
    ],
)
def test_wait_is_a_number_of_seconds_or_a_date_within_a_limit(text: str, wait_s: float | None) -> None:
    assert read_retry_after(text, datetime(2026, 11, 15, tzinfo=UTC)) == wait_s
