"""Tests of the HTTP response parser."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cs2_simulator.wire.http_response import MAX_BODY_BYTES, MAX_HEAD_BYTES, ResponseError, ResponseReader

PLAIN = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX: y\r\n\r\nhello"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\n\r\n"


def read(*pieces: bytes) -> ResponseReader:
    reader = ResponseReader()
    for piece in pieces:
        reader.feed(piece)
    return reader


@pytest.mark.parametrize("response", [PLAIN, CHUNKED])
def test_complete_response_is_parsed(response: bytes) -> None:
    reader = read(response)
    assert (reader.status, reader.body, reader.is_done, reader.is_reusable) == (200, b"hello", True, True)


@given(st.sampled_from([PLAIN, CHUNKED]), st.lists(st.integers(0, 90), max_size=8))
def test_response_is_parsed_from_any_pieces(response: bytes, cuts: list[int]) -> None:
    positions = [0, *sorted(cuts), len(response)]
    reader = read(*(response[begin:end] for begin, end in itertools.pairwise(positions)))
    assert (reader.status, reader.body, reader.is_done) == (200, b"hello", True)


def test_response_without_length_ends_with_the_connection() -> None:
    reader = read(b"HTTP/1.1 200 OK\r\n\r\nhel", b"lo")
    assert not reader.is_done
    reader.finish()
    assert (reader.body, reader.is_done, reader.is_reusable) == (b"hello", True, False)


@pytest.mark.parametrize("status", [204, 205, 304])
def test_response_with_status_204_205_or_304_has_no_body(status: int) -> None:
    reader = read(b"HTTP/1.1 %d Nothing\r\n\r\n" % status)
    assert (reader.status, reader.body, reader.is_done) == (status, b"", True)


def test_interim_response_is_skipped() -> None:
    reader = read(b"HTTP/1.1 100 Continue\r\n\r\n" + PLAIN)
    assert (reader.status, reader.body) == (200, b"hello")


@pytest.mark.parametrize(
    ("response", "is_reusable"),
    [
        (b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", False),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", False),
        (b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n", True),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\nleft over", False),
        (b"HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", True),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nTrailer: x\r\n\r\n", True),
    ],
)
def test_reuse_of_the_connection_depends_on_version_headers_and_extra_bytes(response: bytes, is_reusable: bool) -> None:
    reader = read(response)
    assert reader.is_done
    assert reader.is_reusable is is_reusable


@pytest.mark.parametrize(
    ("response", "fault"),
    [
        (b"220 smtp.example ESMTP\r\n\r\n", "is not valid HTTP"),
        (b"HTTP/1.1 abc OK\r\n\r\n", "is not valid HTTP"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"x" * MAX_HEAD_BYTES, "headers too long"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"x" * MAX_HEAD_BYTES + b"\r\n\r\n", "headers too long"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "is not valid HTTP: Invalid character in Content-Length"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (MAX_BODY_BYTES + 1), "body too long"),
        (b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * (MAX_BODY_BYTES + 1), "body too long"),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffff\r\n" + b"x" * (MAX_BODY_BYTES + 1),
            "body too long",
        ),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nhello\r\n", "is not valid HTTP: "),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1" * 2000, "is not valid HTTP: "),
    ],
)
def test_invalid_response_is_rejected(response: bytes, fault: str) -> None:
    with pytest.raises(ResponseError, match=fault):
        read(response)
