"""Create, change and delete webhooks, show their deliveries, and redeliver events.

The web layer has already checked scope and role. Webhooks of other organizations are reported as unknown. The secret of
a webhook is shown once. Secrets in the URL are masked, because some receivers accept any request to their URL.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable
from typing import Final

import msgspec

from matchpod.core.errors import CallbackWaitingError, NotFoundError, RateLimitError
from matchpod.core.iso_dates import iso_time
from matchpod.core.requests.callback_query import read_redeliver_request
from matchpod.core.requests.json_limits import decode_json
from matchpod.core.requests.webhook_request import (
    DeliveriesQuery,
    read_delivery_id,
    read_new_webhook,
    read_webhook_change,
    read_webhook_id,
)
from matchpod.core.secrets import mask_last_part, mask_path, mask_url
from matchpod.core.webhook_events import TEST_EVENT, WebhookFormat
from matchpod.ports import Clock, Database, Statement, Value, Vault
from matchpod.service.access.audit import Action, Audit
from matchpod.service.access.organizations import OLD_SECRET_MS
from matchpod.service.access.rate_limit import RateLimiter
from matchpod.service.access.webhook_signature import SECRET_BYTES, new_secret
from matchpod.service.availability import unavailable_on_outage
from matchpod.service.callbacks.deliveries import MANY_PER_MINUTE, MAX_REDELIVERED, SINGLE_PER_MINUTE
from matchpod.service.callbacks.private_callbacks import PrivateCallbacks
from matchpod.service.identity.identifiers import ID_RANDOM_BYTES, new_callback_id, new_webhook_id
from matchpod.service.identity.principals import Principal
from matchpod.service.reading.callbacks import MAX_SHOWN_ATTEMPTS, Redelivery
from matchpod.service.row_views import time_text
from matchpod.service.webhooks import discord, views
from matchpod.service.webhooks.bodies import test_body
from matchpod.storage import callback_lists, outbox, webhook_deliveries, webhooks
from matchpod.storage.webhook_deliveries import WEBHOOKS, DeliveryRow, DeliverySummary
from matchpod.storage.webhooks import OffBecause, WebhookRow

FULL_RETRY_S: Final = 60
"""`Retry-After` in seconds of the error that an organization has too many webhooks."""

TESTS_PER_MINUTE: Final = 30
"""Maximum number of webhook tests per organization and minute. Each test sends a request to a receiver."""

_log = logging.getLogger(__name__)


class Webhooks:
    """Manages webhooks and their deliveries. Each organization can access only its own."""

    def __init__(
        self,
        *,
        db: Database,
        clock: Clock,
        vault: Vault,
        audit: Audit,
        private_callbacks: PrivateCallbacks,
        max_webhooks: int,
        wake: Callable[[], None] = lambda: None,
        random_bytes: Callable[[int], bytes] = secrets.token_bytes,
    ) -> None:
        """`wake` is called after a delivery has become due."""
        self._db = db
        self._clock = clock
        self._vault = vault
        self._audit = audit
        self._private = private_callbacks
        self._max_webhooks = max_webhooks
        self._wake = wake
        self._random_bytes = random_bytes
        unit = "requests to send deliveries again"
        self._single = RateLimiter(SINGLE_PER_MINUTE, self._now_s, owner="this organization", unit=unit)
        self._many = RateLimiter(MANY_PER_MINUTE, self._now_s, owner="this organization", unit=f"{unit} since a time")
        self._tests = RateLimiter(TESTS_PER_MINUTE, self._now_s, owner="this organization", unit="tests of webhooks")

    def _now_s(self) -> float:
        return self._clock.now_ms() / 1000

    # --- webhooks -------------------------------------------------------------------------------------------------

    @unavailable_on_outage
    async def list(self, principal: Principal) -> views.WebhookList:
        now_ms = self._clock.now_ms()
        found = await webhooks.of_org(self._db, principal.org_id)
        items = tuple(views.webhook_view(_visible(row, principal), now_ms=now_ms) for row in found)
        return views.WebhookList(items=items, limit=self._max_webhooks)

    @unavailable_on_outage
    async def get(self, principal: Principal, webhook_id: str) -> views.WebhookView:
        row = _visible(await self._own(principal, webhook_id), principal)
        return views.webhook_view(row, now_ms=self._clock.now_ms())

    @unavailable_on_outage
    async def create(self, principal: Principal, body: bytes) -> views.CreatedWebhook:
        """Create a webhook, which sends events from now on. RateLimitError if the organization has too many."""
        may_be_private = await self._private.are_allowed()
        request = read_new_webhook(decode_json(body), allow_private=may_be_private)
        now_ms, secret = self._clock.now_ms(), self._new_secret()
        row = WebhookRow(
            id=new_webhook_id(now_ms, self._random_bytes(ID_RANDOM_BYTES)),
            org_id=principal.org_id,
            url=self._vault.seal(request.url),
            shown_url=_shown_url(request.url, request.format),
            events=request.events,
            format=request.format,
            secret=self._vault.seal(secret),
            may_be_private=may_be_private,
            created_at_ms=now_ms,
        )
        detail = f"{mask_path(row.shown_url)} ({' '.join(row.events)})"
        record = self._audit.act_of(principal, Action.WEBHOOK_CREATED, target=row.id, detail=detail)
        if not await webhooks.create(self._db, row, record, max_webhooks=self._max_webhooks):
            raise RateLimitError(
                f"This organization has {self._max_webhooks} webhooks, which is its limit. Delete a webhook first.",
                retry_after_s=FULL_RETRY_S,
            )
        _log.info("webhook created", extra=_log_fields(principal, row))
        return views.created_webhook(row, secret, now_ms=now_ms)

    @unavailable_on_outage
    async def change(self, principal: Principal, webhook_id: str, body: bytes) -> views.WebhookView:
        """Change the URL or the events of a webhook, or switch it on or off."""
        row = await self._own(principal, webhook_id)
        may_be_private = await self._private.are_allowed()
        request = read_webhook_change(decode_json(body), format=row.format, allow_private=may_be_private)
        columns: dict[str, Value] = {}
        words = []
        if request.url is not None:
            shown = _shown_url(request.url, row.format)
            columns |= {"url": self._vault.seal(request.url), "shown_url": shown, "may_be_private": may_be_private}
            columns["failing_since_ms"] = None  # the failures were of the previous receiver
            words.append(f"URL {mask_path(shown)}")
        if request.events is not None:
            events = " ".join(request.events)
            columns["events"] = events
            words.append(f"events {events}")
        statements: list[Statement] = [webhooks.change(row, **columns)] if columns else []
        if request.enabled is not None:
            words.append("switched on" if request.enabled else "switched off")
            on, off = webhooks.switch_on(row), webhooks.switch_off(row.id, OffBecause.REQUEST, self._clock.now_ms())
            statements += on if request.enabled else off
        if statements:
            record = self._audit.act_of(principal, Action.WEBHOOK_CHANGED, target=row.id, detail=", ".join(words))
            await self._db.write([*statements, record])
            _log.info("webhook changed", extra=_log_fields(principal, row))
        return await self.get(principal, webhook_id)

    @unavailable_on_outage
    async def delete(self, principal: Principal, webhook_id: str) -> None:
        """Delete a webhook with its deliveries."""
        row = await self._own(principal, webhook_id)
        record = self._audit.act_of(principal, Action.WEBHOOK_DELETED, target=row.id, detail=mask_path(row.shown_url))
        await self._db.write([*webhooks.delete(row.id), record])
        _log.info("webhook deleted", extra=_log_fields(principal, row))

    @unavailable_on_outage
    async def rotate_secret(self, principal: Principal, webhook_id: str) -> views.CreatedWebhook:
        """Replace the secret. For OLD_SECRET_MS, delivery attempts are signed with both secrets."""
        row = await self._own(principal, webhook_id)
        now_ms, secret = self._clock.now_ms(), self._new_secret()
        until_ms = now_ms + OLD_SECRET_MS
        record = self._audit.act_of(principal, Action.WEBHOOK_SECRET_REPLACED, target=row.id)
        sealed = self._vault.seal(secret)
        change = webhooks.change(row, secret=sealed, old_secret=row.secret, old_secret_until_ms=until_ms)
        await self._db.write([change, record])
        _log.info("webhook secret replaced", extra=_log_fields(principal, row))
        return views.created_webhook(msgspec.structs.replace(row, old_secret_until_ms=until_ms), secret, now_ms=now_ms)

    @unavailable_on_outage
    async def test(self, principal: Principal, webhook_id: str) -> views.DeliveryItem:
        """Create a delivery with a test event, which is sent even if the webhook is switched off."""
        row = await self._own(principal, webhook_id)
        self._tests.acquire(principal.org_id)
        now_ms = self._clock.now_ms()
        is_discord = row.format is WebhookFormat.DISCORD
        delivery = DeliveryRow(
            id=new_callback_id(now_ms, self._random_bytes(ID_RANDOM_BYTES)),
            org_id=row.org_id,
            webhook_id=row.id,
            server_id=None,
            event_type=TEST_EVENT,
            seq=0,
            body=discord.message("A test from Matchpod.") if is_discord else test_body(iso_time(now_ms)),
            created_at_ms=now_ms,
            next_at_ms=now_ms,
        )
        record = self._audit.act_of(principal, Action.WEBHOOK_TESTED, target=row.id)
        await self._db.write([webhook_deliveries.insert(delivery), record])
        self._wake()
        return views.delivery_item(await self._own_delivery(row, delivery.id))

    # --- deliveries -----------------------------------------------------------------------------------------------

    @unavailable_on_outage
    async def deliveries(self, principal: Principal, webhook_id: str, query: DeliveriesQuery) -> views.DeliveriesPage:
        """Return a page of the webhook's deliveries (delivered, waiting and given up), newest first."""
        row = await self._own(principal, webhook_id)
        total, found = await webhook_deliveries.list_page(self._db, row.id, query)
        return views.deliveries_page(query, total, found)

    @unavailable_on_outage
    async def delivery(self, principal: Principal, webhook_id: str, delivery_id: str) -> views.DeliveryDetail:
        row = await self._own(principal, webhook_id)
        found = await self._own_delivery(row, delivery_id)
        attempts = await callback_lists.newest_attempts(self._db, found.id, MAX_SHOWN_ATTEMPTS)
        return views.delivery_detail(found, attempts, await webhook_deliveries.body_of(self._db, found.id))

    @unavailable_on_outage
    async def redeliver(self, principal: Principal, webhook_id: str, delivery_id: str) -> views.DeliveryItem:
        """Request another delivery attempt; CallbackWaitingError if an attempt is already under way or scheduled."""
        row = await self._own(principal, webhook_id)
        found = await self._own_delivery(row, delivery_id)
        self._single.acquire(principal.org_id)
        now_ms = self._clock.now_ms()
        record = self._audit.act_of(principal, Action.WEBHOOK_REDELIVERED, target=row.id, detail=found.id)
        if not await outbox.redeliver_finished(self._db, row.org_id, found.id, now_ms, record, queue=WEBHOOKS):
            raise CallbackWaitingError("An attempt of this delivery is under way or scheduled. Wait for its outcome.")
        self._wake()
        return views.delivery_item(await self._own_delivery(row, found.id))

    @unavailable_on_outage
    async def redeliver_given_up(self, principal: Principal, webhook_id: str, body: bytes) -> Redelivery:
        """Send the oldest given-up deliveries created since the time in the body again, at most MAX_REDELIVERED."""
        row = await self._own(principal, webhook_id)
        from_ms = read_redeliver_request(decode_json(body))
        self._many.acquire(principal.org_id)
        detail = f"all that were given up since {iso_time(from_ms)}"
        record = self._audit.act_of(principal, Action.WEBHOOK_REDELIVERED, target=row.id, detail=detail)
        created_ms = await outbox.redeliver_given_up(
            self._db,
            row.id,
            record,
            from_ms=from_ms,
            limit=MAX_REDELIVERED,
            now_ms=self._clock.now_ms(),
            queue=WEBHOOKS,
        )
        last_ms = created_ms[-1] if created_ms else from_ms
        next_ms = await outbox.oldest_given_up(self._db, row.id, from_ms=last_ms, queue=WEBHOOKS)
        if created_ms:
            self._wake()
        return Redelivery(count=len(created_ms), next_since=time_text(next_ms))

    async def _own(self, principal: Principal, webhook_id: str) -> WebhookRow:
        key = read_webhook_id(webhook_id)
        row = None if key is None else await webhooks.get(self._db, key)
        if row is None or row.org_id != principal.org_id:
            raise NotFoundError("There is no webhook with this id.")
        return row

    async def _own_delivery(self, row: WebhookRow, delivery_id: str) -> DeliverySummary:
        key = read_delivery_id(delivery_id)
        found = None if key is None else await webhook_deliveries.get(self._db, row.id, key)
        if found is None:
            raise NotFoundError("This webhook has no delivery with this id.")
        return found

    def _new_secret(self) -> str:
        return new_secret(self._random_bytes(SECRET_BYTES))


def _shown_url(url: str, format: WebhookFormat) -> str:
    return mask_last_part(url) if format is WebhookFormat.DISCORD else mask_url(url)


def _visible(row: WebhookRow, principal: Principal) -> WebhookRow:
    """Return the row without what this principal may not see: the path of the URL may be a secret."""
    if principal.audience.sees_creator:
        return row
    return msgspec.structs.replace(row, shown_url=mask_path(row.shown_url))


def _log_fields(principal: Principal, row: WebhookRow) -> dict[str, str]:
    return {"org_id": principal.org_id, "key_id": principal.key_id, "webhook_id": row.id}
