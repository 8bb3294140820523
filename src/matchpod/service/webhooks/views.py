"""The API's views of webhooks and their deliveries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import msgspec
from msgspec import Meta

from matchpod.core.requests.callback_query import CallbackState
from matchpod.core.requests.webhook_request import DeliveriesQuery
from matchpod.core.views.result_shapes import IsoTime
from matchpod.core.webhook_events import WebhookFormat
from matchpod.service.reading.callbacks import CallbackAttempt, attempt_view
from matchpod.service.row_views import time_text, view_of
from matchpod.storage.outbox import AttemptRow
from matchpod.storage.webhook_deliveries import MAX_LISTED, DeliverySummary
from matchpod.storage.webhooks import OffBecause, WebhookRow


class WebhookView(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A webhook."""

    id: Annotated[str, Meta(description="The id of the webhook.")]
    url: Annotated[
        str,
        Meta(
            description="The URL, with user info and query values masked as `***`. For `discord`, the last part of "
            "the path is masked too; for the role `member`, the whole path."
        ),
    ]
    events: Annotated[tuple[str, ...], Meta(description="The types of events that it sends; `*` for all.")]
    format: Annotated[WebhookFormat, Meta(description="`json` or `discord`.")]
    enabled: Annotated[bool, Meta(description="Whether the webhook is on. If it is switched off, it sends nothing.")]
    disabled_at: Annotated[str | None, Meta(description="When the webhook was switched off; null if it is on.")]
    disabled_reason: Annotated[
        OffBecause | None,
        Meta(
            description="`request`, or `failing`: all its attempts failed for three days. Null if it is on. Switch it "
            "on again once its receiver works."
        ),
    ]
    failing_since: Annotated[
        str | None,
        Meta(
            description="When the first attempt after the last successful one failed; null if the last one succeeded."
        ),
    ]
    old_secret_until: Annotated[
        str | None,
        Meta(description="Until when the previous secret signs too; null if it does not, or if none exists."),
    ]
    created_at: IsoTime


class CreatedWebhook(WebhookView, frozen=True, kw_only=True, rename="camel"):
    """A webhook with its secret, which is not shown again."""

    secret: Annotated[
        str, Meta(description="The secret that signs deliveries, as the organization's webhook secret signs callbacks.")
    ]


class WebhookList(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The webhooks of an organization."""

    items: Annotated[tuple[WebhookView, ...], Meta(description="All webhooks, oldest first.")]
    limit: Annotated[int, Meta(description="The maximum number of webhooks of the organization.")]


class DeliveryItem(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """An event for a webhook, and the state of its delivery."""

    id: Annotated[str, Meta(description="The id of the delivery; its `webhook-id`.")]
    webhook_id: Annotated[str, Meta(description="The id of the webhook.")]
    event_type: Annotated[
        str, Meta(description="The type of the event; `webhook.test` for a test, `message` for a message of `discord`.")
    ]
    sequence: Annotated[int, Meta(description="The number of the event in your organization; 0 for a test.")]
    server_id: Annotated[
        str | None, Meta(description="The `serverId` of the match; null for a test, and for a message about several.")
    ]
    state: Annotated[
        CallbackState,
        Meta(
            description="`waiting`: an attempt is under way or scheduled. `delivered`: the last attempt succeeded. "
            "`given_up`: the last attempt failed, and no other is scheduled."
        ),
    ]
    attempt_count: Annotated[int, Meta(description="The number of attempts that were made.")]
    created_at: IsoTime
    delivered_at: Annotated[str | None, Meta(description="When the attempt that succeeded began; null otherwise.")]
    next_attempt_at: Annotated[
        str | None,
        Meta(description="When the next attempt is due, in the past if it is under way; null if none is scheduled."),
    ]
    last_status: Annotated[
        int | None, Meta(description="The HTTP status of the answer to the last attempt; null if it got no answer.")
    ]
    last_error: Annotated[str | None, Meta(description="Why the last attempt got no answer; null if it got one.")]


class DeliveryDetail(DeliveryItem, frozen=True, kw_only=True, rename="camel"):
    """An event for a webhook, with its delivery attempts and its body."""

    attempts: Annotated[
        tuple[CallbackAttempt, ...], Meta(description="The attempts in order; only the last 100 if there are more.")
    ]
    body: Annotated[msgspec.Raw, Meta(description="The body exactly as sent, the same in every attempt.")]


class DeliveriesPage(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One page of the matching deliveries, and their total number."""

    page: Annotated[int, Meta(description="The number of this page, from 1.")]
    page_size: Annotated[int, Meta(description="The maximum number of items per page.")]
    total: Annotated[
        int,
        Meta(
            description=f"The number of items on all pages: the newest {MAX_LISTED} at most. To list older ones, "
            "set `until`."
        ),
    ]
    items: Annotated[tuple[DeliveryItem, ...], Meta(description="The items of this page, newest first.")]


def webhook_view(row: WebhookRow, *, now_ms: int) -> WebhookView:
    return view_of(WebhookView, row, **_shown(row, now_ms))


def created_webhook(row: WebhookRow, secret: str, *, now_ms: int) -> CreatedWebhook:
    return view_of(CreatedWebhook, row, **_shown(row, now_ms), secret=secret)


def delivery_item(row: DeliverySummary) -> DeliveryItem:
    return view_of(DeliveryItem, row, attempt_count=row.attempts, next_attempt_at=time_text(row.next_at_ms))


def delivery_detail(row: DeliverySummary, attempts: Sequence[AttemptRow], body: bytes) -> DeliveryDetail:
    """Build the view of a delivery with its attempts. The stored body is included unchanged."""
    return view_of(
        DeliveryDetail,
        row,
        attempt_count=row.attempts,
        next_attempt_at=time_text(row.next_at_ms),
        attempts=tuple(attempt_view(attempt) for attempt in attempts if attempt.number <= row.attempts),
        body=msgspec.Raw(body),
    )


def deliveries_page(query: DeliveriesQuery, total: int, found: Sequence[DeliverySummary]) -> DeliveriesPage:
    items = tuple(delivery_item(row) for row in found)
    return DeliveriesPage(page=query.page, page_size=query.page_size, total=total, items=items)


def _shown(row: WebhookRow, now_ms: int) -> dict[str, object]:
    until_ms = row.old_secret_until_ms
    return {
        "url": row.shown_url,
        "enabled": row.off_at_ms is None,
        "disabled_at": time_text(row.off_at_ms),
        "disabled_reason": row.off_because,
        "old_secret_until": time_text(None if until_ms is None or until_ms <= now_ms else until_ms),
    }
