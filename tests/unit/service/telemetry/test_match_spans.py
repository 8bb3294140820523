"""Spans of a match, and what its callbacks tell their receivers."""

from __future__ import annotations

import msgspec

from matchpod.core.effects import CancelReason
from matchpod.core.failures import Failure
from matchpod.core.trace_context import TraceContext, with_context
from matchpod.ports import Delivery, Span, SpanKind
from matchpod.service.telemetry.match_spans import NO_SPANS, MatchSpans
from matchpod.storage.outbox import CallbackRow
from matchpod.storage.servers import ServerRow
from tests.unit.cli.test_matches import server

CALLER = TraceContext("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331")
SETTINGS = b'{"match_type":"competitive"}'
CALLBACK = CallbackRow(
    id="cb_1", server_id="srv_1", org_id="org_1", host="c:443", url="", body=b"", created_at_ms=0, attempts=1
)


def row_of(caller: TraceContext | None = CALLER, **columns: object) -> ServerRow:
    row = server("srv_1", region="eu")
    return msgspec.structs.replace(row, created_at_ms=1_000, settings=with_context(SETTINGS, caller), **columns)


def spans_of(row: ServerRow) -> dict[str, Span]:
    found: list[Span] = []
    spans = MatchSpans(found.append)
    spans.created(row, 1_010)
    spans.running(row)
    spans.ended(row)
    assert len(found) == len({one.name for one in found}) == len({one.span_id for one in found})
    return {one.name: one for one in found}


def test_finished_match_was_created_started_and_played() -> None:
    found = spans_of(row_of(running_at_ms=3_000, ended_at_ms=9_000))
    assert {name: (one.start_ms, one.end_ms) for name, one in found.items()} == {
        "match create": (1_000, 1_010),
        "match start": (1_000, 3_000),
        "match play": (3_000, 9_000),
        "match": (1_000, 9_000),
    }
    assert found["match"].attributes["matchpod.outcome"] == "match_over"
    assert found["match"].parent_id == CALLER.span_id
    assert {one.trace_id for one in found.values()} == {CALLER.trace_id}
    assert all(one.error is None for one in found.values())


def test_match_that_never_ran_has_a_failed_start_and_no_play() -> None:
    row = row_of(None, ended_at_ms=2_000, reason=CancelReason.SERVER_FAILED, failure=Failure.START_FAILED)
    found = spans_of(row)
    assert sorted(found) == ["match", "match create", "match start"]
    assert (found["match start"].end_ms, found["match start"].error) == (2_000, "start_failed")
    assert (found["match"].parent_id, found["match"].error) == (None, "start_failed")
    assert found["match"].attributes["matchpod.outcome"] == "server_failed"


def test_caller_that_does_not_record_its_trace_gets_no_spans() -> None:
    unsampled = msgspec.structs.replace(CALLER, is_sampled=False)
    assert spans_of(row_of(unsampled, running_at_ms=3_000, ended_at_ms=9_000)) == {}


def test_callback_names_its_own_span_and_without_spans_that_of_the_caller() -> None:
    found: list[Span] = []
    spans = MatchSpans(found.append)
    settings = with_context(SETTINGS, CALLER)
    context = spans.callback_context(CALLBACK, settings)
    spans.called_back(CALLBACK, context, Delivery(status=503, duration_ms=40), 5_000)
    (span,) = found
    assert context == TraceContext(CALLER.trace_id, span.span_id)
    assert (span.kind, span.start_ms, span.end_ms, span.error) == (SpanKind.CLIENT, 5_000, 5_040, "status 503")
    assert (span.attributes["http.response.status_code"], span.attributes["matchpod.attempt"]) == (503, 2)
    assert NO_SPANS.callback_context(CALLBACK, settings) == CALLER
    assert NO_SPANS.callback_context(CALLBACK, SETTINGS) is None
