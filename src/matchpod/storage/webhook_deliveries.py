"""Store webhook deliveries: one row per event (or group of events) and webhook. `outbox` implements their queue."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from matchpod.core.requests.callback_query import CallbackState, state_of
from matchpod.core.requests.webhook_request import DeliveriesQuery
from matchpod.ports import Database, Statement, Value
from matchpod.storage import rows
from matchpod.storage.outbox import STATE_CONDITIONS, Queue

WEBHOOKS: Final = Queue(table="webhook_deliveries", receiver="webhook_id", listed_by="webhook_id")

MAX_LISTED: Final = 10_000
"""Maximum number of deliveries in a list. Older deliveries can be found with a narrower time range."""

PRUNED: Final = 1_000
"""Maximum number of deliveries deleted per transaction, few enough that other writers hardly wait."""


class DeliveryRow(msgspec.Struct, frozen=True, kw_only=True):
    """The delivery of one event, or of several grouped events, to a webhook; the fields are the columns."""

    id: str
    org_id: str
    webhook_id: str
    server_id: str | None
    event_type: str
    seq: int
    """The event's number among the organization's events; 0 for a test event."""
    body: bytes
    created_at_ms: int
    attempts: int = 0
    next_at_ms: int | None = None
    """Time of the next attempt; None if no further attempt is scheduled."""
    delivered_at_ms: int | None = None
    lease_owner: str | None = None
    lease_until_ms: int | None = None
    unrecorded: int = 0


class DeliverySummary(msgspec.Struct, frozen=True, kw_only=True):
    """A delivery without its body; `last_status` and `last_error` describe its newest attempt."""

    id: str
    webhook_id: str
    server_id: str | None
    event_type: str
    sequence: int
    created_at_ms: int
    attempts: int
    next_at_ms: int | None
    delivered_at_ms: int | None
    lease_until_ms: int | None
    last_status: int | None
    last_error: str | None

    @property
    def state(self) -> CallbackState:
        return state_of(next_at_ms=self.next_at_ms, delivered_at_ms=self.delivered_at_ms)


_COLUMNS: Final = (
    "webhook_deliveries.id, webhook_deliveries.webhook_id, webhook_deliveries.server_id,"
    " webhook_deliveries.event_type, webhook_deliveries.seq, webhook_deliveries.created_at_ms,"
    " webhook_deliveries.attempts, webhook_deliveries.next_at_ms, webhook_deliveries.delivered_at_ms,"
    " webhook_deliveries.lease_until_ms, newest.status, newest.error"
)
_JOIN: Final = (
    " LEFT JOIN callback_attempts AS newest"
    " ON newest.callback_id = webhook_deliveries.id AND newest.number = webhook_deliveries.attempts"
)


def insert(row: DeliveryRow) -> Statement:
    """Store a new delivery."""
    return rows.insert(WEBHOOKS.table, row)


async def waiting_of(db: Database, webhook_id: str, *, at_most: int) -> int:
    """Return how many deliveries of a webhook wait for an attempt; counting stops at `at_most`."""
    is_waiting = STATE_CONDITIONS[CallbackState.WAITING]
    counted = f"SELECT 1 FROM webhook_deliveries WHERE webhook_id = :id AND {is_waiting} LIMIT :at_most"
    sql = f"SELECT COUNT(*) FROM ({counted}) AS waiting"
    return await rows.read_number(db, sql, {"id": webhook_id, "at_most": at_most})


# --- messages with several events ---------------------------------------------------------------------------------


async def open_message(db: Database, webhook_id: str, event_type: str, *, until_ms: int) -> DeliveryRow | None:
    """Return the newest delivery with this event type to which further events can be added; None if there is none.

    No attempt of it is in progress, and its next attempt is due by `until_ms`.
    """
    rest = (
        f"FROM webhook_deliveries WHERE webhook_id = :id AND event_type = :event_type AND {_IS_OPEN}"
        " AND next_at_ms <= :until_ms ORDER BY created_at_ms DESC, id DESC LIMIT 1"
    )
    params: dict[str, Value] = {"id": webhook_id, "event_type": event_type, "until_ms": until_ms}
    return await rows.read_first(db, DeliveryRow, rest, params)


def replace_body(row: DeliveryRow, body: bytes) -> Statement:
    """Replace the body of an open message; NothingChangedError once an attempt has begun or was recorded."""
    return Statement(
        f"UPDATE webhook_deliveries SET body = :body WHERE id = :id AND attempts = :attempts AND {_IS_OPEN}",
        {"id": row.id, "body": body, "attempts": row.attempts},
        must_change=True,
    )


_IS_OPEN: Final = "next_at_ms IS NOT NULL AND lease_owner IS NULL"


# --- lists --------------------------------------------------------------------------------------------------------


async def list_page(
    db: Database, webhook_id: str, query: DeliveriesQuery, *, max_listed: int = MAX_LISTED
) -> tuple[int, list[DeliverySummary]]:
    """Return the total number of deliveries that the query selects, and the requested page of them, newest first."""
    conditions, params = _conditions(webhook_id, query)
    counted = f"SELECT 1 FROM webhook_deliveries WHERE {conditions} LIMIT :max_listed"
    total = await rows.read_number(
        db, f"SELECT COUNT(*) FROM ({counted}) AS page", {**params, "max_listed": max_listed}
    )
    start = (query.page - 1) * query.page_size
    if start >= total:
        return total, []
    page = (
        f"SELECT id AS page_id FROM webhook_deliveries WHERE {conditions}"
        " ORDER BY created_at_ms DESC, id DESC LIMIT :page_size OFFSET :start"
    )
    found = await db.read(
        f"SELECT {_COLUMNS} FROM webhook_deliveries JOIN ({page}) AS page ON webhook_deliveries.id = page_id{_JOIN}"
        " ORDER BY webhook_deliveries.created_at_ms DESC, webhook_deliveries.id DESC",
        {**params, "page_size": min(query.page_size, total - start), "start": start},
    )
    return total, [rows.from_row(DeliverySummary, row) for row in found]


async def get(db: Database, webhook_id: str, delivery_id: str) -> DeliverySummary | None:
    """Return the delivery with this id; None if the webhook has no such delivery."""
    sql = f"SELECT {_COLUMNS} FROM webhook_deliveries{_JOIN} WHERE webhook_deliveries.id = :id AND webhook_id = :of"
    row = await db.read_one(sql, {"id": delivery_id, "of": webhook_id})
    return None if row is None else rows.from_row(DeliverySummary, row)


async def body_of(db: Database, delivery_id: str) -> bytes:
    found = await db.read("SELECT body FROM webhook_deliveries WHERE id = :id", {"id": delivery_id})
    return msgspec.convert(found[0][0], bytes)


async def webhook_of(db: Database, delivery_id: str) -> str | None:
    """Return the id of the webhook that a delivery belongs to; None if the delivery does not exist."""
    found = await db.read_one("SELECT webhook_id FROM webhook_deliveries WHERE id = :id", {"id": delivery_id})
    return None if found is None else msgspec.convert(found[0], str)


def _conditions(webhook_id: str, query: DeliveriesQuery) -> tuple[str, dict[str, Value]]:
    conditions = ["webhook_id = :webhook_id"]
    params: dict[str, Value] = {"webhook_id": webhook_id}
    if query.state is not None:
        conditions.append(STATE_CONDITIONS[query.state])
    for condition, name, value in (
        ("created_at_ms >= :from_ms", "from_ms", query.from_ms),
        ("created_at_ms < :before_ms", "before_ms", query.before_ms),
    ):
        if value is not None:
            conditions.append(condition)
            params[name] = value
    return " AND ".join(conditions), params


# --- upkeep -------------------------------------------------------------------------------------------------------


_IS_OLD: Final = "created_at_ms < :before_ms AND next_at_ms IS NULL"
_HAS_NO_WEBHOOK: Final = "webhook_id NOT IN (SELECT id FROM webhooks)"


async def prune(db: Database, before_ms: int) -> int:
    """Delete deliveries of deleted webhooks, and old deliveries without a scheduled attempt; return how many.

    The attempts of these deliveries are deleted too.
    """
    deleted = 0
    for (webhook_id,) in await db.read(f"SELECT DISTINCT webhook_id FROM webhook_deliveries WHERE {_HAS_NO_WEBHOOK}"):
        deleted += await _delete(db, "webhook_id = :webhook_id", {"webhook_id": webhook_id})
    return deleted + await _delete(db, _IS_OLD, {"before_ms": before_ms})


async def _delete(db: Database, condition: str, values: Mapping[str, Value]) -> int:
    chosen = f"SELECT id FROM webhook_deliveries WHERE {condition} ORDER BY created_at_ms LIMIT :limit"
    params: dict[str, Value] = {**values, "limit": PRUNED}
    deleted = 0
    while True:
        _, rows_ = await db.write(
            [
                Statement(f"DELETE FROM callback_attempts WHERE callback_id IN ({chosen})", params),
                Statement(f"DELETE FROM webhook_deliveries WHERE id IN ({chosen}) RETURNING id", params),
            ]
        )
        deleted += len(rows_)
        if len(rows_) < PRUNED:
            return deleted


async def count_prunable(db: Database, before_ms: int) -> int:
    """Return the number of deliveries that `prune` would delete."""
    sql = f"SELECT COUNT(*) FROM webhook_deliveries WHERE {_IS_OLD} OR {_HAS_NO_WEBHOOK}"
    return await rows.read_number(db, sql, {"before_ms": before_ms})
