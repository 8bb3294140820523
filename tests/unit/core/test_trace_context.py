"""The trace that a match belongs to: from the header of its caller, and stored with its settings."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from matchpod.core.model import GameSettings, MatchType
from matchpod.core.stored.stored_settings import read_settings
from matchpod.core.trace_context import (
    MAX_CHARS,
    TraceContext,
    context_in,
    match_context,
    read_traceparent,
    span_id_of,
    with_context,
)

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
HEADER = f"00-{TRACE}-{SPAN}-01"
CALLER = TraceContext(TRACE, SPAN)


@pytest.mark.parametrize(
    ("header", "is_sampled"),
    [(HEADER, True), (f"00-{TRACE}-{SPAN}-00", False), (f"00-{TRACE}-{SPAN}-03", True), (f" {HEADER}\t", True)],
)
def test_valid_header_is_read(header: str, is_sampled: bool) -> None:
    assert read_traceparent(header) == TraceContext(TRACE, SPAN, is_sampled=is_sampled)


def test_header_of_a_later_version_is_read_as_far_as_it_is_known() -> None:
    assert read_traceparent(f"cc-{TRACE}-{SPAN}-01-what-is-new") == CALLER


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "00",
        HEADER.upper(),
        f"ff-{TRACE}-{SPAN}-01",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"{HEADER}-more",
        f"{HEADER}\n",
        f"00-{TRACE}-{SPAN}-1",
        f"00-{TRACE[:-1]}g-{SPAN}-01",
        f"cc-{TRACE}-{SPAN}-01-" + "x" * MAX_CHARS,
        f'{HEADER[:-2]}"}}',
    ],
)
def test_invalid_header_is_ignored(header: str | None) -> None:
    assert read_traceparent(header) is None


@given(st.text(max_size=80))
def test_no_text_raises(header: str) -> None:
    found = read_traceparent(header)
    assert found is None or read_traceparent(found.header) == found


def test_stored_context_does_not_change_the_settings() -> None:
    settings = GameSettings(match_type=MatchType.COMPETITIVE, maps=("de_mirage",))
    plain = msgspec.json.encode(settings)
    stored = with_context(plain, CALLER)
    assert context_in(stored) == CALLER
    assert read_settings(stored) == settings, "versions that do not know it ignore it"
    assert with_context(plain, None) == plain
    assert context_in(plain) is context_in(b"{") is None


def test_match_is_in_the_trace_of_its_caller_or_in_its_own() -> None:
    joined, own = match_context("srv_1", CALLER), match_context("srv_1", None)
    assert (joined.trace_id, joined.span_id) == (TRACE, own.span_id)
    assert read_traceparent(own.header) == own
    assert own == match_context("srv_1", None), "any process finds the same ids"
    assert own.trace_id != match_context("srv_2", None).trace_id
    assert len({own.span_id, span_id_of("srv_1", "match start"), span_id_of("srv_2", "match")}) == 3
    assert not match_context("srv_1", TraceContext(TRACE, SPAN, is_sampled=False)).is_sampled
