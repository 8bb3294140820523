"""How does a match end? With one outcome, one callback and a new phase, written together or not at all."""

from __future__ import annotations

from typing import Final

import msgspec

from matchpod.core.effects import CancelReason
from matchpod.core.model import PlayerId
from matchpod.core.server_status import OPEN_PHASES, ServerStatus
from matchpod.ports import Statement
from matchpod.service.callback_bodies import CallbackSubject, match_canceled, match_over
from matchpod.service.entries import NO_HEADERS
from matchpod.service.folding import ENDED
from matchpod.storage import history, outbox, raw_log, snapshots
from matchpod.storage.history import MatchHistory
from matchpod.storage.servers import ServerRow

MATCH_OVER: Final = "match_over"
MATCH_CANCELED: Final = "match_canceled"

FAILURES: Final = frozenset({CancelReason.NO_CAPACITY, CancelReason.SERVER_FAILED, CancelReason.SERVER_LOST})
"""Reasons that are our fault or the server's: the match `failed`; after all others it is `stopped`."""


class Ending(msgspec.Struct, frozen=True, kw_only=True):
    """With a result (JSON), or without and for this reason; the lists are of an incomplete roster."""

    result: bytes | None = None
    reason: str | None = None
    missing_players: tuple[PlayerId, ...] = ()
    connected_players: tuple[PlayerId, ...] = ()

    @property
    def status(self) -> ServerStatus:
        """What callers are told of the server afterwards."""
        return ServerStatus.FAILED if self.reason in FAILURES else ServerStatus.STOPPED


def conclude(
    row: ServerRow,
    ending: Ending,
    *,
    fence: int | None,
    now_ms: int,
    callback_id: str,
    final: MatchHistory | None = None,
) -> list[Statement]:
    """The transaction that ends a match; by whoever holds it (with its fence) or by its caller (without).

    Whoever followed the match brings its `final` history; else what is open there is canceled, and settled later.
    """
    body = _body(row, ending, now_ms)
    outcome = outbox.Outcome(
        server_id=row.id,
        kind=MATCH_OVER if ending.result is not None else MATCH_CANCELED,
        reason=ending.reason,
        at_ms=now_ms,
        result=ending.result,
        callback_body=body,
    )
    statements = outbox.conclude(
        server_id=row.id,
        expected_phases=OPEN_PHASES,
        fence=fence,
        status=ending.status,
        outcome=outcome,
        callback=_callback(row, body, callback_id=callback_id, now_ms=now_ms),
        now_ms=now_ms,
    )
    past = history.cancel_open(row.id) if final is None else history.replace(final)
    # What its server says from here on is not part of the match; nobody who reads it again may find more in it.
    ended = raw_log.append(row.id, ENDED, received_ms=now_ms, headers=NO_HEADERS, body=b"")
    return [*statements, snapshots.forget(row.id), *past, *ended]


def _callback(row: ServerRow, body: bytes, *, callback_id: str, now_ms: int) -> outbox.CallbackRow | None:
    if row.callback_url is None:
        return None
    return outbox.CallbackRow(
        id=callback_id,
        server_id=row.id,
        org_id=row.org_id,
        url=row.callback_url,
        auth=row.callback_auth,
        body=body,
        created_at_ms=now_ms,
        next_at_ms=now_ms,
    )


def _body(row: ServerRow, ending: Ending, now_ms: int) -> bytes:
    subject = CallbackSubject(server_id=row.id, session_id=row.game_id, external_match_id=row.external_match_id)
    if ending.result is not None:
        return match_over(subject, at_ms=now_ms, result=ending.result)
    return match_canceled(
        subject,
        at_ms=now_ms,
        reason=ending.reason or "",
        missing_players=ending.missing_players,
        connected_players=ending.connected_players,
    )
