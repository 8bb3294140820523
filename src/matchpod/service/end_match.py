"""Build the transaction that ends a match: phase, outcome, callback, history, event and last log entry."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from matchpod.core.failures import FAILURE_REASONS
from matchpod.core.match.match_actions import AT_END
from matchpod.core.outcome import Outcome
from matchpod.core.server_status import ServerStatus
from matchpod.ports import Statement
from matchpod.service.callback_bodies import callback_body
from matchpod.service.match_log import entries
from matchpod.service.match_log.entries import EntryKind
from matchpod.service.streams import organization_event_lines
from matchpod.storage import history, history_counts, match_actions, outbox, snapshots
from matchpod.storage import organization_events as stored_events
from matchpod.storage.history import MatchHistory
from matchpod.storage.servers import ServerRow

MATCH_OVER: Final = "match_over"
MATCH_CANCELED: Final = "match_canceled"


def end_match(
    row: ServerRow,
    outcome: Outcome,
    *,
    result: bytes | None = None,
    fence: int | None,
    callback_id: str,
    final: MatchHistory | None = None,
    earlier_events: Sequence[bytes] = (),
) -> list[Statement]:
    """Return the statements that end a match; `result` is its result (JSON) if it has finished.

    The process that holds the lease passes its fencing token as `fence`; a cancellation without a lease passes None. A
    runner passes the `final` history. Without it, open maps are canceled here, and the history is finalized when the
    server is released. `earlier_events` are stored in the organization's stream right before the event of the end.
    """
    if outcome.is_finished != (result is not None):
        raise ValueError("a finished match needs a result, a canceled match must have none")
    body, kind, status = callback_body(row, outcome, result), _kind(outcome), final_status(outcome)
    stored = outbox.OutcomeRow(
        server_id=row.id,
        kind=kind,
        reason=outcome.reason,
        at_ms=outcome.at_ms,
        result=result,
        callback_body=body if result is None else b"",
    )
    callback = _callback(row, body, callback_id=callback_id, now_ms=outcome.at_ms)
    statements = outbox.end_statements(
        stored, callback, status=status, failure=outcome.failure, forfeited_to=outcome.forfeited_to, fence=fence
    )
    closed = history.cancel_open(row.id) if final is None else history.replace(final)
    # All code that reads the log stops at this entry, because later entries are not part of the match.
    ended = entries.mark(row.id, EntryKind.ENDED, outcome.at_ms)
    lines = [*earlier_events, organization_event_lines.match_ended(row, outcome, kind=kind, status=status)]
    events = stored_events.append(row.org_id, lines, at_ms=outcome.at_ms)
    counts = history_counts.end_server(row.id)
    actions = match_actions.fail_open(row.id, AT_END, outcome.at_ms)
    return [*statements, snapshots.delete(row.id), *closed, *counts, *ended, actions, *events]


def final_status(outcome: Outcome) -> ServerStatus:
    return ServerStatus.FAILED if outcome.reason in FAILURE_REASONS else ServerStatus.STOPPED


def _kind(outcome: Outcome) -> str:
    return MATCH_OVER if outcome.is_finished else MATCH_CANCELED


def _callback(row: ServerRow, body: bytes, *, callback_id: str, now_ms: int) -> outbox.CallbackRow | None:
    if row.callback_url is None:
        return None
    return outbox.CallbackRow(
        id=callback_id,
        server_id=row.id,
        org_id=row.org_id,
        host=outbox.host_of(row.callback_url),
        url=row.callback_url,
        auth=row.callback_auth,
        body=body,
        created_at_ms=now_ms,
        next_at_ms=now_ms,
    )
