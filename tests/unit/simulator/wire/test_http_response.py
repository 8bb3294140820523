"""Answers are read whole, in any pieces, and what is no answer is told."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matchpod.simulator.wire.http_response import MAX_BODY_BYTES, MAX_HEAD_BYTES, ResponseError, ResponseReader

PLAIN = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX: y\r\n\r\nhello"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\n\r\n"


def read(*pieces: bytes) -> ResponseReader:
    reader = ResponseReader()
    for piece in pieces:
        reader.feed(piece)
    return reader


@pytest.mark.parametrize("answer", [PLAIN, CHUNKED])
def test_whole_answer(answer: bytes) -> None:
    reader = read(answer)
    assert (reader.status, reader.body, reader.is_done, reader.is_reusable) == (200, b"hello", True, True)


@given(st.sampled_from([PLAIN, CHUNKED]), st.lists(st.integers(0, 90), max_size=8))
def test_pieces_do_not_matter(answer: bytes, cuts: list[int]) -> None:
    places = [0, *sorted(cuts), len(answer)]
    reader = read(*(answer[begin:end] for begin, end in itertools.pairwise(places)))
    assert (reader.status, reader.body, reader.is_done) == (200, b"hello", True)


def test_answer_without_length_ends_with_the_connection() -> None:
    reader = read(b"HTTP/1.1 200 OK\r\n\r\nhel", b"lo")
    assert not reader.is_done
    reader.finish()
    assert (reader.body, reader.is_done, reader.is_reusable) == (b"hello", True, False)


@pytest.mark.parametrize("status", [204, 205, 304])
def test_some_answers_have_no_body(status: int) -> None:
    reader = read(b"HTTP/1.1 %d Nothing\r\n\r\n" % status)
    assert (reader.status, reader.is_done, reader.is_reusable) == (status, True, True)


def test_interim_answer_is_passed_over() -> None:
    reader = read(b"HTTP/1.1 100 Continue\r\n\r\n" + PLAIN)
    assert (reader.status, reader.body) == (200, b"hello")


@pytest.mark.parametrize(
    ("answer", "is_reusable"),
    [
        (b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", False),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", False),
        (b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n", True),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\nleft over", False),
        (b"HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", True),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nTrailer: x\r\n\r\n", False),
    ],
)
def test_connection_is_kept_where_both_know_its_state(answer: bytes, is_reusable: bool) -> None:
    reader = read(answer)
    assert reader.is_done
    assert reader.is_reusable is is_reusable


@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        (b"220 smtp.example ESMTP\r\n\r\n", "is not HTTP"),
        (b"HTTP/1.1 abc OK\r\n\r\n", "is not HTTP"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"x" * MAX_HEAD_BYTES, "headers of the answer are too long"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"x" * MAX_HEAD_BYTES + b"\r\n\r\n", "headers of the answer are too long"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "length of the answer is no number"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (MAX_BODY_BYTES + 1), "answer is too long"),
        (b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * (MAX_BODY_BYTES + 1), "answer is too long"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffff\r\n", "answer is too long"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nhello\r\n", "chunk of the answer has no size"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1" * 2000, "chunk of the answer has no size"),
    ],
)
def test_what_is_no_answer_is_told(answer: bytes, fault: str) -> None:
    with pytest.raises(ResponseError, match=fault):
        read(answer)


@pytest.mark.parametrize("answer", [b"", PLAIN[:10], PLAIN[:-1], CHUNKED[:-5]])
def test_answer_cut_short_is_told(answer: bytes) -> None:
    reader = read(answer)
    assert reader.has_begun is bool(answer)
    with pytest.raises(ResponseError, match="ended before the answer did"):
        reader.finish()


def test_whole_answer_needs_no_end_of_the_connection() -> None:
    reader = read(PLAIN)
    reader.finish()
    assert reader.body == b"hello"
