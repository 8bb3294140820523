"""Describe to callers how a match ended: why, when, and which listed players were missing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import msgspec
from msgspec import Meta

from cs2_protocol.game import PlayerId
from matchpod.core.effects import CancelReason
from matchpod.core.failures import sentence
from matchpod.core.stored.stored_json import StoredReader
from matchpod.ports import Database
from matchpod.service.row_views import time_text
from matchpod.storage import outbox
from matchpod.storage.servers import EndColumns

Reason = Annotated[
    CancelReason | None,
    Meta(description="Why the match was canceled, as in the callback; null while it is in progress and if finished."),
]
EndedAt = Annotated[
    str | None, Meta(description="When the match ended, as in the callback; null while it is in progress.")
]
MissingPlayers = Annotated[
    tuple[PlayerId, ...] | None,
    Meta(description="For `incomplete_roster`: the listed players who never connected. Otherwise null."),
]
ConnectedPlayers = Annotated[
    tuple[PlayerId, ...] | None,
    Meta(description="For `incomplete_roster`: the listed players who connected at least once. Otherwise null."),
]
AbsentPlayers = Annotated[
    tuple[PlayerId, ...] | None,
    Meta(
        description="For `incomplete_roster`: the listed players who were not on the server at the end: those who "
        "never connected, and those who had left. Otherwise null, and for matches of older versions."
    ),
]
LogComplete = Annotated[
    bool | None,
    Meta(
        description="Whether the log of a match that was canceled during play is complete; if it is not, numbers of "
        "its maps may be too low. Null for other matches, whose maps say it, and if it is not known."
    ),
]
ErrorSentence = Annotated[
    str | None, Meta(description="What went wrong, in one sentence, if the match failed; otherwise null.")
]


class Ending(msgspec.Struct, frozen=True, kw_only=True):
    """How a match ended; all None while it is in progress."""

    reason: CancelReason | None = None
    ended_at_ms: int | None = None
    missing_players: tuple[PlayerId, ...] | None = None
    connected_players: tuple[PlayerId, ...] | None = None
    absent_players: tuple[PlayerId, ...] | None = None
    log_complete: bool | None = None
    error: str | None = None

    @property
    def ended_at(self) -> str | None:
        return time_text(self.ended_at_ms)


IN_PROGRESS = Ending()


class _Stored(msgspec.Struct, frozen=True, rename="camel"):
    """What the body of a callback says about a cancellation."""

    missing_players: tuple[PlayerId, ...] | None = None
    connected_players: tuple[PlayerId, ...] | None = None
    absent_players: tuple[PlayerId, ...] | None = None
    log_complete: bool | None = None


_STORED = StoredReader[_Stored](_Stored)


async def ending_of(db: Database, server_id: str, columns: EndColumns) -> Ending:
    """How the match of a server ended."""
    return (await endings_of(db, [(server_id, columns)]))[0]


async def endings_of(db: Database, servers: Sequence[tuple[str, EndColumns]]) -> list[Ending]:
    """How the matches of servers ended, in their order; the details of a cancellation are in its stored callback."""
    canceled = [server_id for server_id, end in servers if end.reason is not None]
    bodies = await outbox.callback_bodies(db, canceled) if canceled else {}
    return [build_ending(columns, bodies.get(server_id)) for server_id, columns in servers]


def build_ending(columns: EndColumns, callback_body: bytes | None) -> Ending:
    """How a match ended. The body of the callback is needed for a cancellation only."""
    if columns.ended_at_ms is None:
        return IN_PROGRESS
    stored = _Stored() if callback_body is None else _STORED.read(callback_body)
    return Ending(
        reason=columns.reason,
        ended_at_ms=columns.ended_at_ms,
        missing_players=stored.missing_players,
        connected_players=stored.connected_players,
        absent_players=stored.absent_players,
        log_complete=stored.log_complete,
        error=sentence(columns.reason, columns.failure),
    )
