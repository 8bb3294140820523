"""Show callers their callbacks and delivery attempts, and redeliver callbacks on request.

The web layer has already checked scope, role and query. Callbacks of other organizations are reported as unknown. A
redelivery request makes the callback due and calls `wake`, so that the dispatcher of this process sends it at once.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from matchpod.core.errors import CallbackWaitingError, NotFoundError
from matchpod.core.iso_dates import iso_time
from matchpod.core.requests.callback_query import CallbacksQuery, read_callback_id, read_redeliver_request
from matchpod.core.requests.json_limits import decode_json
from matchpod.ports import Clock, Database
from matchpod.service.access.audit import Action, Audit
from matchpod.service.access.rate_limit import RateLimiter
from matchpod.service.availability import unavailable_on_outage
from matchpod.service.identity.principals import Principal
from matchpod.service.reading import callbacks as callback_views
from matchpod.service.row_views import time_text
from matchpod.storage import callback_lists, outbox
from matchpod.storage.callback_lists import CallbackSummary

MAX_REDELIVERED: Final = 1_000
"""Maximum number of callbacks per redelivery request. For further callbacks, the caller sends another request with the
time in the response (`nextSince`)."""

SINGLE_PER_MINUTE: Final = 120
MANY_PER_MINUTE: Final = 6
"""SINGLE and MANY: maximum number of redelivery requests per organization and minute, for a single callback or for all
that were given up since a time. They are limited because each causes requests to receivers."""

_log = logging.getLogger(__name__)


class CallbackDeliveries:
    """Shows and redelivers callbacks. Each organization can access only its own callbacks."""

    def __init__(
        self,
        *,
        db: Database,
        clock: Clock,
        wake: Callable[[], None],
        audit: Audit,
        max_redelivered: int = MAX_REDELIVERED,
        max_shown_attempts: int = callback_views.MAX_SHOWN_ATTEMPTS,
    ) -> None:
        self._db = db
        self._clock = clock
        self._wake = wake
        self._audit = audit
        self._max_redelivered = max_redelivered
        self._max_shown_attempts = max_shown_attempts
        unit = "requests to send callbacks again"
        self._single = RateLimiter(SINGLE_PER_MINUTE, self._now_s, owner="this organization", unit=unit)
        self._many = RateLimiter(MANY_PER_MINUTE, self._now_s, owner="this organization", unit=f"{unit} since a time")

    def _now_s(self) -> float:
        return self._clock.now_ms() / 1000

    @unavailable_on_outage
    async def list(self, principal: Principal, query: CallbacksQuery) -> callback_views.CallbacksPage:
        """Return a page of the organization's callbacks, newest first."""
        total, found = await callback_lists.list_page(self._db, principal.org_id, query)
        return callback_views.callbacks_page(query, total, found)

    @unavailable_on_outage
    async def get(self, principal: Principal, callback_id: str) -> callback_views.CallbackDetail:
        row = await self._own(principal, callback_id)
        return await callback_views.detail_of(self._db, row, max_attempts=self._max_shown_attempts)

    @unavailable_on_outage
    async def redeliver(self, principal: Principal, callback_id: str) -> callback_views.CallbackItem:
        """Request another delivery attempt; CallbackWaitingError if an attempt is already under way or scheduled."""
        row = await self._own(principal, callback_id)
        self._single.acquire(principal.org_id)
        record = self._audit.act_of(principal, Action.CALLBACK_REDELIVERED, target=row.id)
        if not await outbox.redeliver_finished(self._db, principal.org_id, row.id, self._clock.now_ms(), record):
            raise self._waiting(await self._own(principal, callback_id))
        self._wake()
        _log.info("callback redelivery requested", extra=_log_fields(principal) | {"callback_id": row.id})
        return callback_views.callback_item(await self._own(principal, callback_id))

    @unavailable_on_outage
    async def redeliver_given_up(self, principal: Principal, body: bytes) -> callback_views.Redelivery:
        """Send the oldest given-up callbacks created since the time in the body again, at most MAX_REDELIVERED."""
        from_ms = read_redeliver_request(decode_json(body))
        self._many.acquire(principal.org_id)
        detail = f"all that were given up since {iso_time(from_ms)}"
        record = self._audit.act_of(principal, Action.CALLBACK_REDELIVERED, detail=detail)
        now_ms = self._clock.now_ms()
        created_ms = await outbox.redeliver_given_up(
            self._db, principal.org_id, record, from_ms=from_ms, limit=self._max_redelivered, now_ms=now_ms
        )
        last_ms = created_ms[-1] if created_ms else from_ms
        next_ms = await outbox.oldest_given_up(self._db, principal.org_id, from_ms=last_ms)
        if created_ms:
            self._wake()
            _log.info("callback redelivery requested", extra=_log_fields(principal) | {"count": len(created_ms)})
        return callback_views.Redelivery(count=len(created_ms), next_since=time_text(next_ms))

    async def _own(self, principal: Principal, callback_id: str) -> CallbackSummary:
        key = read_callback_id(callback_id)
        row = None if key is None else await callback_lists.get(self._db, principal.org_id, key)
        if row is None:
            raise NotFoundError("There is no callback with this id.")
        return row

    def _waiting(self, row: CallbackSummary) -> CallbackWaitingError:
        if row.lease_until_ms is not None and row.lease_until_ms > self._clock.now_ms():
            return CallbackWaitingError("An attempt to deliver this callback is under way. Wait for its outcome.")
        at = "now" if row.next_at_ms is None else f"at {iso_time(row.next_at_ms)}"
        return CallbackWaitingError(f"An attempt to deliver this callback is due {at}. Wait for its outcome.")


def _log_fields(principal: Principal) -> dict[str, str | int]:
    return {"org_id": principal.org_id, "key_id": principal.key_id}
