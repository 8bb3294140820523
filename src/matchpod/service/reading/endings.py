"""Read how a match ended: why and when, which listed players were missing, and the current ruling."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from matchpod.core.failures import sentence
from matchpod.core.iso_dates import iso_time
from matchpod.core.rulings import Ruling
from matchpod.core.stored.stored_json import StoredReader
from matchpod.ports import Database
from matchpod.service.reading.match_head import IN_PROGRESS, Ending, MatchView, match_view
from matchpod.storage import outbox
from matchpod.storage.rulings import RulingRow
from matchpod.storage.servers import EndColumns, ServerSummary

_STORED = StoredReader[Ending](Ending)
"""Reads the details of a cancellation from the body of its callback."""
_RULINGS = StoredReader[Ruling](Ruling)


async def match_of(db: Database, row: ServerSummary) -> MatchView:
    """Build the view of a match from what is stored, with its result if it has finished."""
    outcome = await outbox.outcome_of(db, row.id) if row.has_ended else None
    if outcome is None:
        return match_view(row, result=None)
    ending = build_ending(row, outcome.callback_body if outcome.result is None else None)
    return match_view(row, result=outcome.result, ending=ending)


async def ending_of(db: Database, server_id: str, columns: EndColumns) -> Ending:
    """Return how the match of a server ended."""
    return (await endings_of(db, [(server_id, columns)]))[0]


async def endings_of(db: Database, servers: Sequence[tuple[str, EndColumns]]) -> list[Ending]:
    """Return how the matches of servers ended, in the same order.

    Details of a cancellation are read from the body of its callback.
    """
    canceled = [server_id for server_id, end in servers if end.reason is not None]
    bodies = await outbox.callback_bodies(db, canceled) if canceled else {}
    return [build_ending(columns, bodies.get(server_id)) for server_id, columns in servers]


def build_ending(columns: EndColumns, callback_body: bytes | None) -> Ending:
    """Return how a match ended. `callback_body` is needed only if the match was canceled."""
    if columns.ended_at_ms is None:
        return IN_PROGRESS
    stored = IN_PROGRESS if callback_body is None else _STORED.read(callback_body)
    return replace(
        stored,
        reason=columns.reason,
        ended_at_ms=columns.ended_at_ms,
        error=sentence(columns.reason, columns.failure),
        forfeited_to=columns.forfeited_to,
        ruling=read_ruling(columns.ruling),
    )


def read_ruling(stored: bytes | None) -> Ruling | None:
    """Decode the current ruling, which any version may have stored; None if there is no ruling."""
    return None if stored is None else _RULINGS.read(stored)


def ruling_of(row: RulingRow) -> Ruling:
    """Return a stored ruling as callers see it."""
    return Ruling(id=row.id, winner=row.winner, reason=row.reason, by=row.person, ruled_at=iso_time(row.ruled_at_ms))
