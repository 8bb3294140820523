"""Read an organization's callbacks: one page of the list, or a single callback.

The ids of a page come from an index that begins with the filtered columns; then only the rows with these ids are read.
A list is limited to the newest MAX_LISTED callbacks, so counting them and skipping pages takes a few milliseconds at
most.
"""

from __future__ import annotations

from typing import Final

import msgspec

from matchpod.core.requests.callback_query import CallbacksQuery, CallbackState, state_of
from matchpod.ports import Database, Value
from matchpod.storage.outbox import STATE_CONDITIONS, AttemptRow
from matchpod.storage.packed import insert_result, unpack
from matchpod.storage.rows import from_row, read_all, read_number

MAX_LISTED: Final = 10_000
"""Maximum number of callbacks in a list. Older callbacks can be found with a narrower time range."""


class CallbackSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A callback without its body; `last_status` and `last_error` describe its newest attempt."""

    id: str
    server_id: str
    external_match_id: str | None
    event_type: str
    url: str
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
    "callbacks.id, callbacks.server_id, servers.external_match_id, outcomes.kind, callbacks.url,"
    " callbacks.created_at_ms, callbacks.attempts, callbacks.next_at_ms, callbacks.delivered_at_ms,"
    " callbacks.lease_until_ms, newest.status, newest.error"
)
_JOINS: Final = (
    " JOIN servers ON servers.id = callbacks.server_id JOIN outcomes ON outcomes.server_id = callbacks.server_id"
    " LEFT JOIN callback_attempts AS newest"
    " ON newest.callback_id = callbacks.id AND newest.number = callbacks.attempts"
)


async def list_page(
    db: Database, org_id: str, query: CallbacksQuery, *, max_listed: int = MAX_LISTED
) -> tuple[int, list[CallbackSummary]]:
    """Return the number of callbacks that match the query, and the requested page, newest first."""
    conditions, params = _conditions(org_id, query)
    counted = f"SELECT 1 FROM callbacks WHERE {conditions} LIMIT :max_listed"
    total = await read_number(db, f"SELECT COUNT(*) FROM ({counted}) AS page", {**params, "max_listed": max_listed})
    start = (query.page - 1) * query.page_size
    if start >= total:
        return total, []
    page = (
        f"SELECT id AS page_id FROM callbacks WHERE {conditions}"
        " ORDER BY created_at_ms DESC, id DESC LIMIT :page_size OFFSET :start"
    )
    found = await db.read(
        f"SELECT {_COLUMNS} FROM callbacks JOIN ({page}) AS page ON callbacks.id = page_id{_JOINS}"
        " ORDER BY callbacks.created_at_ms DESC, callbacks.id DESC",
        {**params, "page_size": min(query.page_size, total - start), "start": start},
    )
    return total, [from_row(CallbackSummary, row) for row in found]


async def get(db: Database, org_id: str, callback_id: str) -> CallbackSummary | None:
    """Return the organization's callback with this id; None if it does not exist."""
    row = await db.read_one(
        f"SELECT {_COLUMNS} FROM callbacks{_JOINS} WHERE callbacks.id = :id AND callbacks.org_id = :org_id",
        {"id": callback_id, "org_id": org_id},
    )
    return None if row is None else from_row(CallbackSummary, row)


async def body_of(db: Database, callback_id: str) -> bytes:
    found = await db.read(
        "SELECT body, result FROM callbacks LEFT JOIN outcomes ON outcomes.server_id = callbacks.server_id"
        " WHERE callbacks.id = :id",
        {"id": callback_id},
    )
    ((body, result),) = msgspec.convert(found, list[tuple[bytes, bytes | None]])
    return body if result is None else insert_result(body, unpack(result))


async def newest_attempts(db: Database, callback_id: str, limit: int) -> list[AttemptRow]:
    """Return the newest `limit` attempts to deliver a callback, in order of time."""
    rest = "FROM callback_attempts WHERE callback_id = :id ORDER BY number DESC LIMIT :limit"
    return (await read_all(db, AttemptRow, rest, {"id": callback_id, "limit": limit}))[::-1]


def _conditions(org_id: str, query: CallbacksQuery) -> tuple[str, dict[str, Value]]:
    conditions = ["org_id = :org_id"]
    params: dict[str, Value] = {"org_id": org_id}
    if query.state is not None:
        conditions.append(STATE_CONDITIONS[query.state])
    for condition, name, value in (
        ("server_id = :server_id", "server_id", query.server_id),
        ("created_at_ms >= :from_ms", "from_ms", query.from_ms),
        ("created_at_ms < :before_ms", "before_ms", query.before_ms),
    ):
        if value is not None:
            conditions.append(condition)
            params[name] = value
    return " AND ".join(conditions), params
