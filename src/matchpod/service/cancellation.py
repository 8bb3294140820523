"""Cancel a match on behalf of a caller (API), a person (console) or an operator (command line)."""

from __future__ import annotations

import logging
from collections.abc import Callable

from matchpod.core.effects import CancelReason
from matchpod.core.outcome import Outcome
from matchpod.ports import Clock, Database, NothingChangedError, Statement
from matchpod.service.end_match import end_match
from matchpod.service.identity.identifiers import ID_RANDOM_BYTES, new_callback_id
from matchpod.storage.servers import ServerRow

_log = logging.getLogger(__name__)


class Cancellation:
    """Cancels open matches."""

    def __init__(self, *, db: Database, clock: Clock, random_bytes: Callable[[int], bytes]) -> None:
        self._db = db
        self._clock = clock
        self._random_bytes = random_bytes

    async def cancel(
        self, row: ServerRow, reason: CancelReason, record: Statement, *, is_log_complete: bool | None = None
    ) -> bool:
        """Cancel a match; `record` inserts the audit entry. False if the match has already ended."""
        now_ms = self._clock.now_ms()
        outcome = Outcome(at_ms=now_ms, reason=reason, is_log_complete=is_log_complete)
        callback_id = new_callback_id(now_ms, self._random_bytes(ID_RANDOM_BYTES))
        try:
            await self._db.write([record, *end_match(row, outcome, fence=None, callback_id=callback_id)])
        except NothingChangedError:
            return False
        _log.info("match canceled", extra={"server_id": row.id, "org_id": row.org_id, "region": row.region})
        return True
