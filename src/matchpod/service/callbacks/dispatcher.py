"""Deliver the callbacks in the outbox that are due.

A callback gets at most two attempts: if the first attempt fails, it is retried after 5 s. The caller or an operator can
request further attempts, which are not retried.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from typing import Final

from matchpod import ports
from matchpod.core.fair_shares import Receiver
from matchpod.core.trace_context import TRACEPARENT
from matchpod.service.access.webhook_signature import attempt_headers, signing_secrets
from matchpod.service.callbacks.private_callbacks import PrivateCallbacks
from matchpod.service.callbacks.queue_dispatcher import (
    LIMITS,
    DispatchLimits,
    Prepared,
    PutOff,
    QueueDispatcher,
    Unsendable,
    outcome_of,
)
from matchpod.service.telemetry.log_context import begin_work
from matchpod.service.telemetry.match_spans import NO_SPANS, MatchSpans
from matchpod.service.telemetry.metrics import Metrics
from matchpod.storage import organizations, outbox, servers
from matchpod.storage.outbox import CallbackRow
from matchpod.storage.servers import CallbackTerms

MAX_ATTEMPTS: Final = 2
"""Maximum number of automatic attempts per callback, as documented for callers."""

RETRY_AFTER_MS: Final = 5_000
"""Delay between a failed attempt and its retry. It is long enough for a receiver to restart."""

_log = logging.getLogger(__name__)


class CallbackDispatcher(QueueDispatcher[CallbackRow]):
    """Delivers callbacks."""

    what = "callback"
    queue = outbox.CALLBACKS

    def __init__(  # noqa: PLR0913 - one argument per collaborator
        self,
        *,
        db: ports.Database,
        clock: ports.Clock,
        vault: ports.Vault,
        sender: ports.CallbackSender,
        private_callbacks: PrivateCallbacks,
        metrics: Metrics,
        owner: str,
        version: str,
        wall_s: Callable[[], float] = time.time,
        retry_after_ms: int = RETRY_AFTER_MS,
        limits: DispatchLimits = LIMITS,
        spans: MatchSpans = NO_SPANS,
    ) -> None:
        """`wall_s` returns the system time, for the timestamp header. `clock` never jumps, unlike the system time."""
        super().__init__(
            db=db, clock=clock, sender=sender, metrics=metrics, owner=owner, places=sender.capacity, limits=limits
        )
        metrics.callback_attempts.preset(("delivered", "refused", "no_answer"))
        self._vault = vault
        self.private_callbacks = private_callbacks
        self._version = version
        self._wall_s = wall_s
        self._retry_after_ms = retry_after_ms
        self._spans = spans

    async def claim(self, ids: Sequence[str], now_ms: int) -> list[CallbackRow]:
        return await outbox.claim_callbacks(self._db, ids, owner=self._owner, now_ms=now_ms)

    def receiver(self, row: CallbackRow) -> Receiver:
        return Receiver(row.org_id, row.host)

    async def prepare(self, row: CallbackRow) -> Prepared | Unsendable | PutOff:
        terms = await servers.callback_terms(self._db, row.server_id)
        context = None if terms is None else self._spans.callback_context(row, terms.settings)
        begin_work(traceparent=None if context is None else context.header)
        organization = await organizations.get(self._db, row.org_id)
        if organization is None:
            return self._unsendable(row, "the organization does not exist")
        try:
            secrets = signing_secrets(
                self._vault,
                organization.webhook_secret,
                organization.old_webhook_secret,
                organization.old_secret_until_ms,
                now_ms=self._clock.now_ms(),
            )
            authorization = None if row.auth is None else self._vault.open(row.auth)
        except ValueError as exc:
            self._unsendable(row, str(exc))
            return PutOff()  # no attempt is counted: the callback is sent once the vault key is correct
        try:
            headers = attempt_headers(
                secrets,
                row.id,
                row.body,
                timestamp_s=int(self._wall_s()),
                attempt=row.attempts + 1,
                version=self._version,
                authorization=authorization,
            )
        except ValueError as exc:
            return self._unsendable(row, str(exc))
        if context is not None:
            headers[TRACEPARENT] = context.header
        return Prepared(request=self._request(row, terms, headers), context=context)

    def retry_at_ms(self, row: CallbackRow, number: int) -> int | None:
        # The number of an attempt on request is at least MAX_ATTEMPTS, so it is not retried.
        return None if number >= MAX_ATTEMPTS else self._clock.now_ms() + self._retry_after_ms

    def was_sent(self, row: CallbackRow, prepared: Prepared, delivery: ports.Delivery, began_ms: int) -> None:
        self._spans.called_back(row, prepared.context, delivery, began_ms)

    def log_fields(self, row: CallbackRow) -> dict[str, str | int | bool | None]:
        return {"callback_id": row.id, "server_id": row.server_id, "attempt": row.attempts + 1}

    def count(self, row: CallbackRow, delivery: ports.Delivery, *, is_given_up: bool) -> None:
        self._metrics.callback_attempts.inc(outcome_of(delivery))
        self._metrics.callback_s.observe(delivery.duration_ms / 1000)
        if is_given_up:
            self._metrics.callbacks_given_up.inc()
        if delivery.is_success and row.attempts < MAX_ATTEMPTS:  # all later attempts were requested
            self._metrics.callback_delay_s.observe(max(0, self._clock.now_ms() - row.created_at_ms) / 1000)

    def _request(self, row: CallbackRow, terms: CallbackTerms | None, headers: dict[str, str]) -> ports.CallbackRequest:
        return ports.CallbackRequest(
            url=row.url,
            headers=headers,
            body=row.body,
            org_id=row.org_id,
            allow_private=self.private_callbacks.may_send(None if terms is None else terms.callback_private),
        )

    def _unsendable(self, row: CallbackRow, why: str) -> Unsendable:
        _log.error("callback cannot be signed", extra=self.log_fields(row) | {"org_id": row.org_id, "error": why})
        return Unsendable(error=f"not sent: {why}")
