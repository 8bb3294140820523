"""Deliver webhook events in the same way as callbacks, but with separate limits, and with retries for a day."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Sequence
from typing import Final

from matchpod import ports
from matchpod.core.fair_shares import Receiver
from matchpod.core.secrets import mask_path
from matchpod.core.webhook_events import FAILING_ATTEMPTS, WebhookFormat, retry_at_ms, shows_failing
from matchpod.service.access.webhook_signature import attempt_headers, signing_secrets
from matchpod.service.callbacks.private_callbacks import PrivateCallbacks
from matchpod.service.callbacks.queue_dispatcher import (
    DispatchLimits,
    Prepared,
    PutOff,
    QueueDispatcher,
    Unsendable,
    outcome_of,
)
from matchpod.service.telemetry.log_context import begin_work
from matchpod.service.telemetry.metrics import Metrics
from matchpod.service.webhooks.discord import PAUSE_MS
from matchpod.storage import outbox, webhooks
from matchpod.storage.webhook_deliveries import WEBHOOKS, DeliveryRow
from matchpod.storage.webhooks import OffBecause

MAX_PLACES: Final = 512
"""Maximum number of concurrent attempts for all webhooks together."""
PER_WEBHOOK: Final = 64
"""Maximum number of concurrent attempts per webhook. If its receiver never answers, it gets six attempts per second."""

LIMITS: Final = DispatchLimits(max_per_host=PER_WEBHOOK)

_log = logging.getLogger(__name__)


class WebhookDispatcher(QueueDispatcher[DeliveryRow]):
    """Delivers the events of webhooks."""

    what = "webhook delivery"
    part = "webhooks"
    queue = WEBHOOKS

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
        spread: Callable[[], float] = random.random,
        limits: DispatchLimits = LIMITS,
    ) -> None:
        """`spread` returns random numbers from 0 to 1, which vary the time of a retry."""
        places = min(MAX_PLACES, sender.capacity)
        super().__init__(db=db, clock=clock, sender=sender, metrics=metrics, owner=owner, places=places, limits=limits)
        metrics.webhook_attempts.preset(("delivered", "refused", "no_answer"))
        self._vault = vault
        self._private = private_callbacks
        self._version = version
        self._wall_s = wall_s
        self._spread = spread

    async def claim(self, ids: Sequence[str], now_ms: int) -> list[DeliveryRow]:
        return await outbox.claim(self._db, WEBHOOKS, DeliveryRow, ids, owner=self._owner, now_ms=now_ms)

    def receiver(self, row: DeliveryRow) -> Receiver:
        return Receiver(row.org_id, row.webhook_id)

    async def prepare(self, row: DeliveryRow) -> Prepared | Unsendable | PutOff:
        begin_work()
        webhook = await webhooks.get(self._db, row.webhook_id)
        if webhook is None:
            return Unsendable(error="not sent: the webhook was deleted", is_final=True)
        try:
            url = self._vault.open(webhook.url)
            secrets = signing_secrets(
                self._vault,
                webhook.secret,
                webhook.old_secret,
                webhook.old_secret_until_ms,
                now_ms=self._clock.now_ms(),
            )
        except ValueError as exc:
            self._report_sealed(row, str(exc))
            return PutOff()  # no attempt is counted: the event is sent once the vault key is correct
        if webhook.format is WebhookFormat.DISCORD:
            now_ms = self._clock.now_ms()
            if not await webhooks.begin_message(self._db, webhook.id, now_ms=now_ms, pause_ms=PAUSE_MS):
                return PutOff(until_ms=max(now_ms, webhook.next_message_ms))
        headers = attempt_headers(
            secrets,
            row.id,
            row.body,
            timestamp_s=int(self._wall_s()),
            attempt=row.attempts + 1,
            version=self._version,
        )
        request = ports.CallbackRequest(
            url=url,
            headers=headers,
            body=row.body,
            org_id=row.org_id,
            allow_private=self._private.may_send(webhook.may_be_private),
        )
        return Prepared(request=request)

    def retry_at_ms(self, row: DeliveryRow, number: int) -> int | None:
        now_ms = self._clock.now_ms()
        created_at_ms, spread = row.created_at_ms, self._spread()
        return retry_at_ms(row.event_type, attempts=number, created_at_ms=created_at_ms, now_ms=now_ms, spread=spread)

    def also_recorded(self, row: DeliveryRow, delivery: ports.Delivery, number: int) -> list[ports.Statement]:
        if delivery.is_success:
            return webhooks.note_success(row.webhook_id)
        now_ms = self._clock.now_ms()
        shows = shows_failing(row.event_type, attempts=number, created_at_ms=row.created_at_ms, now_ms=now_ms)
        return webhooks.note_failure(row.webhook_id, row.id, attempts=number if shows else 0, now_ms=now_ms)

    async def after_recording(self, row: DeliveryRow, number: int, delivery: ports.Delivery) -> None:
        if delivery.is_success or number < FAILING_ATTEMPTS:
            return
        webhook = await self._retry_while_unavailable(lambda: webhooks.get(self._db, row.webhook_id))
        if webhook is not None and webhook.off_because is OffBecause.FAILING:
            _log.warning(
                "webhook switched off, all its deliveries failed for three days",
                extra={"webhook_id": webhook.id, "org_id": webhook.org_id, "url": mask_path(webhook.shown_url)},
            )

    def log_fields(self, row: DeliveryRow) -> dict[str, str | int | bool | None]:
        return {
            "delivery_id": row.id,
            "webhook_id": row.webhook_id,
            "server_id": row.server_id,
            "attempt": row.attempts + 1,
        }

    def count(self, row: DeliveryRow, delivery: ports.Delivery, *, is_given_up: bool) -> None:
        self._metrics.webhook_attempts.inc(outcome_of(delivery))
        if is_given_up:
            self._metrics.webhooks_given_up.inc()
        if delivery.is_success and row.attempts == 0:
            self._metrics.webhook_delay_s.observe(max(0, self._clock.now_ms() - row.created_at_ms) / 1000)

    def _report_sealed(self, row: DeliveryRow, why: str) -> None:
        fields = self.log_fields(row) | {"org_id": row.org_id, "error": why}
        _log.error("webhook delivery cannot be signed", extra=fields)
