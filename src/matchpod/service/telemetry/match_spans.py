"""Export the life of a match as OpenTelemetry spans: its creation, start, play and callbacks.

They are children of a span named `match`, which belongs to the caller's trace, or else to a trace of its own. Span ids
are derived from the id of the match, so that any process can export the next span.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from matchpod.core.trace_context import TraceContext, context_in, match_context, span_id_of
from matchpod.ports import Delivery, Span, SpanKind
from matchpod.storage.outbox import CallbackRow
from matchpod.storage.servers import ServerRow

Export = Callable[[Span], None]


class MatchSpans:
    """Exports the spans of matches. Without `export`, no spans are exported."""

    def __init__(self, export: Export | None = None, close: Callable[[], None] = lambda: None) -> None:
        """`close` exports the spans that are still buffered, which may take a moment."""
        self._export = export
        self.close = close

    def created(self, row: ServerRow, end_ms: int) -> None:
        """Export a span for the creation of a match. Called after the match was stored."""
        self._add(row, "match create", row.created_at_ms, end_ms, kind=SpanKind.SERVER)

    def running(self, row: ServerRow) -> None:
        """Export a span for the start of a server. Called when the server is running."""
        if row.running_at_ms is not None:
            self._add(row, "match start", row.created_at_ms, row.running_at_ms)

    def ended(self, row: ServerRow) -> None:
        """Export spans for the play of a match and for the whole match. Called after its server was released."""
        if self._export is None or row.ended_at_ms is None:
            return
        failed = None if row.failure is None else row.failure.value
        outcome = {"matchpod.outcome": row.reason.value if row.reason is not None else "match_over"}
        if row.running_at_ms is not None:
            self._add(row, "match play", row.running_at_ms, row.ended_at_ms, more=outcome)
        else:
            self._add(
                row, "match start", row.created_at_ms, row.ended_at_ms, more=outcome, error=failed or "not started"
            )
        caller = context_in(row.settings)
        context = match_context(row.id, caller)
        if context.is_sampled:
            self._export(
                Span(
                    name="match",
                    trace_id=context.trace_id,
                    span_id=context.span_id,
                    parent_id=None if caller is None else caller.span_id,
                    start_ms=row.created_at_ms,
                    end_ms=row.ended_at_ms,
                    attributes={**_about(row), **outcome},
                    error=failed,
                )
            )

    def context_of(self, row: ServerRow) -> TraceContext | None:
        """Return the trace context of a match. If no spans are exported, it is the context that the caller sent."""
        caller = context_in(row.settings)
        return caller if self._export is None else match_context(row.id, caller)

    def callback_context(self, row: CallbackRow, settings: bytes) -> TraceContext | None:
        """Return the trace context to send with a delivery attempt; `settings` are those of the match.

        If no spans are exported, it is the context that the caller sent.
        """
        caller = context_in(settings)
        if self._export is None:
            return caller
        context = match_context(row.server_id, caller)
        span_id = span_id_of(row.server_id, f"callback {row.attempts + 1}")
        return TraceContext(context.trace_id, span_id, is_sampled=context.is_sampled)

    def called_back(self, row: CallbackRow, context: TraceContext | None, delivery: Delivery, began_ms: int) -> None:
        """Export a span for a delivery attempt of a callback; `context` is the trace context that the attempt sent."""
        if self._export is None or context is None or not context.is_sampled:
            return
        attributes: dict[str, str | int] = {
            "matchpod.server_id": row.server_id,
            "matchpod.callback_id": row.id,
            "matchpod.attempt": row.attempts + 1,
            "http.request.method": "POST",
            "server.address": row.host,
        }
        if delivery.status is not None:
            attributes["http.response.status_code"] = delivery.status
        self._export(
            Span(
                name="match callback",
                kind=SpanKind.CLIENT,
                trace_id=context.trace_id,
                span_id=context.span_id,
                parent_id=span_id_of(row.server_id, "match"),
                start_ms=began_ms,
                end_ms=began_ms + delivery.duration_ms,
                attributes=attributes,
                error=None if delivery.is_success else delivery.error or f"status {delivery.status}",
            )
        )

    def _add(
        self,
        row: ServerRow,
        name: str,
        start_ms: int,
        end_ms: int,
        *,
        kind: SpanKind = SpanKind.INTERNAL,
        more: Mapping[str, str] | None = None,
        error: str | None = None,
    ) -> None:
        if self._export is None:
            return
        context = match_context(row.id, context_in(row.settings))
        if context.is_sampled:
            self._export(
                Span(
                    name=name,
                    kind=kind,
                    trace_id=context.trace_id,
                    span_id=span_id_of(row.id, name),
                    parent_id=context.span_id,
                    start_ms=start_ms,
                    end_ms=end_ms,
                    attributes={**_about(row), **(more or {})},
                    error=error,
                )
            )


NO_SPANS = MatchSpans()
"""A `MatchSpans` that exports no spans."""


def _about(row: ServerRow) -> dict[str, str | int]:
    return {"matchpod.server_id": row.id, "matchpod.region": row.region, "matchpod.org_id": row.org_id}
