"""Read the stored result of a match, and the stored log of its server, byte for byte."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

from matchpod.core.errors import MatchNotEndedError, NotFoundError
from matchpod.core.requests.history_query import read_server_id
from matchpod.ports import Database
from matchpod.service.availability import unavailable_on_outage
from matchpod.service.identity.principals import Principal, require_own
from matchpod.service.match_log.entries import EntryKind
from matchpod.storage import outbox, raw_log, servers
from matchpod.storage.servers import ServerRow

PAGE: Final = 4
"""Number of log entries per database read. An entry usually has a few kilobytes, and at most 16 KiB."""


class MatchRecords:
    """Reads the results and logs of matches. Each organization can read only its own."""

    def __init__(self, *, db: Database) -> None:
        self._db = db

    @unavailable_on_outage
    async def result(self, principal: Principal, server_id: str) -> bytes:
        """Return the result of a finished match as JSON, with the same bytes as in its callback.

        Raise MatchNotEndedError while the match is in progress, NotFoundError if it was canceled.
        """
        row = await self._own_row(principal, server_id)
        outcome = await outbox.outcome_of(self._db, row.id)
        if outcome is None:
            raise MatchNotEndedError("The match has no result yet: it has not ended. Retry after its callback.")
        if outcome.result is None:
            raise NotFoundError(f"The match has no result: it was canceled ({outcome.reason}).")
        return outcome.result

    @unavailable_on_outage
    async def log(self, principal: Principal, server_id: str) -> AsyncIterator[bytes]:
        """Return, in chunks, the log lines that the server has posted so far, in the order of their arrival.

        Secrets were overwritten before the lines were stored. Lines past their retention time are missing.
        """
        return log_parts(self._db, await self._own_row(principal, server_id))

    async def _own_row(self, principal: Principal, server_id: str) -> ServerRow:
        found = await servers.get(self._db, server_id) if read_server_id(server_id) else None
        return require_own(principal, found, "server")


async def log_parts(db: Database, row: ServerRow) -> AsyncIterator[bytes]:
    """Yield the log of a match, without posts of servers that were replaced."""
    seq, own = 0, ("", row.attempt)
    while entries := await raw_log.read_after(db, row.id, seq, limit=PAGE):
        seq = entries[-1].seq
        part = b"".join(entry.body for entry in entries if entry.kind == EntryKind.LOG and entry.attempt in own)
        del entries  # free the memory, because the reader may be slow
        yield part
