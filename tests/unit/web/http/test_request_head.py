"""The head of a request: what is collected, and what is rejected."""

from __future__ import annotations

import pytest

from matchpod.web.http.errors import HttpError
from matchpod.web.http.request_head import MAX_HEAD_BYTES, RequestHead


def test_target_and_headers_are_collected_with_names_in_lower_case() -> None:
    head = RequestHead()
    for part in (b"/a", b"bc"):
        head.add_url(part)
    head.add_header(b"Host", b"x")
    head.add_header(b"Expect", b"100-Continue")
    head.complete("1.1")

    assert (head.url, head.headers) == (b"/abc", [(b"host", b"x"), (b"expect", b"100-Continue")])
    assert head.expects_continue


def test_next_request_starts_empty() -> None:
    head = RequestHead()
    for _ in range(2):
        head.begin()
        head.add_url(b"/")
        head.add_header(b"Host", b"x")
        head.complete("1.1")

    assert (head.url, head.headers, head.expects_continue) == (b"/", [(b"host", b"x")], False)


def test_trailers_are_dropped_but_count_toward_the_size() -> None:
    head = RequestHead()
    head.add_header(b"Host", b"x")
    head.complete("1.1")
    for name in (b"Authorization", b"Host"):
        head.add_header(name, b"y")

    assert head.headers == [(b"host", b"x")]
    with pytest.raises(HttpError, match=f"exceeds the limit of {MAX_HEAD_BYTES} bytes"):
        head.add_header(b"X", b"a" * MAX_HEAD_BYTES)


@pytest.mark.parametrize("name", [b"Host", b"AUTHORIZATION"])
def test_repeated_header_is_rejected_even_with_the_same_value(name: bytes) -> None:
    head = RequestHead()
    head.add_header(name, b"x")

    with pytest.raises(HttpError, match="more than one"):
        head.add_header(name.lower(), b"x")


def test_other_headers_may_be_repeated() -> None:
    head = RequestHead()
    for value in (b"a", b"b"):
        head.add_header(b"Accept", value)

    assert head.headers == [(b"accept", b"a"), (b"accept", b"b")]


@pytest.mark.parametrize("version", ["1.1", "2.0"])
def test_host_is_required(version: str) -> None:
    with pytest.raises(HttpError, match="no Host header"):
        RequestHead().complete(version)


@pytest.mark.parametrize("version", ["0.9", "1.0"])
def test_host_is_optional_in_old_versions(version: str) -> None:
    RequestHead().complete(version)
