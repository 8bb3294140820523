"""Store webhooks and, per organization, the number of its last event for which deliveries were stored (its position).

The transaction that stores the deliveries also advances the position, and fails if another process has advanced it. So
even if two processes read the same events, their deliveries are stored only once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Final, NamedTuple

import msgspec

from matchpod.core.webhook_events import ALL_EVENTS, FAILING_ATTEMPTS, FAILING_MS, WebhookEvent, WebhookFormat
from matchpod.ports import Database, DuplicateError, Statement, Value
from matchpod.storage import rows

LEASE_MS: Final = 5_000
"""Time in ms for which only the process that last stored deliveries of an organization processes its events."""

_NEWEST: Final = "(SELECT COALESCE(MAX(seq), 0) FROM organization_events WHERE org_id = :org_id)"


class OffBecause(StrEnum):
    """Why a webhook is switched off."""

    REQUEST = "request"
    FAILING = "failing"


class WebhookRow(msgspec.Struct, frozen=True, kw_only=True):
    """A webhook; the fields are the columns."""

    id: str
    org_id: str
    url: bytes
    """The URL, sealed: for many receivers, knowing the URL is enough to send to them."""
    shown_url: str
    """The URL without its secret parts, for display."""
    events: tuple[str, ...]
    format: WebhookFormat
    secret: bytes
    """The secret that signs deliveries, sealed."""
    old_secret: bytes | None = None
    """The previous secret, sealed. Until `old_secret_until_ms`, deliveries are signed with both secrets."""
    old_secret_until_ms: int | None = None
    may_be_private: bool
    """Whether the URL may have a private address. This is decided when the URL is set."""
    created_at_ms: int
    from_seq: int = 0
    """Number of the organization's newest event when the webhook was switched on. Only later events are sent."""
    off_at_ms: int | None = None
    off_because: OffBecause | None = None
    failing_since_ms: int | None = None
    """Time of the first failed attempt after the last successful attempt; None if no attempt has failed since then."""
    next_message_ms: int = 0
    """Earliest time for the next message, if the webhook's format has a rate limit."""


class Behind(NamedTuple):
    """An organization that has webhooks, and events for which no deliveries were stored yet."""

    org_id: str
    seq: int
    """Number of its last event for which deliveries were stored."""


# --- webhooks -----------------------------------------------------------------------------------------------------


async def create(db: Database, row: WebhookRow, *also: Statement, max_webhooks: int) -> bool:
    """Store a new webhook, which is sent events from now on; False if the organization already has `max_webhooks`."""
    fields = rows.to_params(row)
    names = ", ".join(fields)
    values = ", ".join(_NEWEST if name == "from_seq" else f":{name}" for name in fields)
    fields.pop("from_seq")
    insert = Statement(
        f"INSERT INTO webhooks ({names}) SELECT {values}"
        " WHERE (SELECT COUNT(*) FROM webhooks WHERE org_id = :org_id) < :max_webhooks RETURNING id",
        {**fields, "max_webhooks": max_webhooks},
    )
    return bool(await rows.write_if_changed(db, insert, _position(row.org_id, first=row.id), *also))


async def get(db: Database, webhook_id: str) -> WebhookRow | None:
    """Return the webhook with this id, of any organization."""
    return await rows.read_first(db, WebhookRow, "FROM webhooks WHERE id = :id", {"id": webhook_id})


async def of_org(db: Database, org_id: str) -> list[WebhookRow]:
    """Return the webhooks of an organization, oldest first."""
    return await rows.read_all(db, WebhookRow, "FROM webhooks WHERE org_id = :org_id ORDER BY id", {"org_id": org_id})


async def all_of(db: Database, *, org_id: str | None) -> list[WebhookRow]:
    """Return the webhooks of an organization, or of all organizations if `org_id` is None."""
    if org_id is not None:
        return await of_org(db, org_id)
    return await rows.read_all(db, WebhookRow, "FROM webhooks ORDER BY org_id, id")


async def switched_on(db: Database, org_id: str) -> list[WebhookRow]:
    """Return the webhooks of an organization that are switched on."""
    rest = "FROM webhooks WHERE org_id = :org_id AND off_at_ms IS NULL ORDER BY id"
    return await rows.read_all(db, WebhookRow, rest, {"org_id": org_id})


def change(row: WebhookRow, **columns: Value) -> Statement:
    """Change columns of a webhook; NothingChangedError if it does not exist."""
    params = rows.plain(columns)
    changed = ", ".join(f"{name} = :{name}" for name in params)
    return Statement(f"UPDATE webhooks SET {changed} WHERE id = :id", {"id": row.id, **params}, must_change=True)


def switch_on(row: WebhookRow) -> list[Statement]:
    """Switch a webhook on. Events from now on are sent, and its earlier failures no longer count."""
    on = Statement(
        "UPDATE webhooks SET off_at_ms = NULL, off_because = NULL, failing_since_ms = NULL,"
        f" from_seq = {_NEWEST} WHERE id = :id AND off_at_ms IS NOT NULL",
        {"id": row.id, "org_id": row.org_id},
    )
    return [_position(row.org_id), on]


def switch_off(webhook_id: str, because: OffBecause, now_ms: int) -> list[Statement]:
    """Switch a webhook off, and give up its waiting deliveries."""
    return [
        Statement(
            "UPDATE webhooks SET off_at_ms = :now_ms, off_because = :because WHERE id = :id AND off_at_ms IS NULL",
            {"id": webhook_id, "now_ms": now_ms, "because": because.value},
        ),
        _give_up_waiting(webhook_id),
    ]


def delete(webhook_id: str) -> list[Statement]:
    """Delete a webhook, and give up its waiting deliveries. Pruning deletes the deliveries, which may be many."""
    gone = Statement("DELETE FROM webhooks WHERE id = :id", {"id": webhook_id}, must_change=True)
    return [gone, _give_up_waiting(webhook_id)]


def _give_up_waiting(webhook_id: str) -> Statement:
    return Statement(
        "UPDATE webhook_deliveries SET next_at_ms = NULL WHERE webhook_id = :id AND next_at_ms IS NOT NULL",
        {"id": webhook_id},
    )


# --- failures -----------------------------------------------------------------------------------------------------


def note_success(webhook_id: str) -> list[Statement]:
    """Record that an attempt to deliver to a webhook succeeded."""
    sql = "UPDATE webhooks SET failing_since_ms = NULL WHERE id = :id AND failing_since_ms IS NOT NULL"
    return [Statement(sql, {"id": webhook_id})]


def note_failure(webhook_id: str, delivery_id: str, *, attempts: int, now_ms: int) -> list[Statement]:
    """Record that an attempt failed, and switch the webhook off if all attempts have failed for too long.

    `attempts` is the number of attempts of this delivery, or 0 for a test or a requested attempt, which does not count
    as a failure. Run the statements after those that record the attempt: if the webhook is off or deleted, they cancel
    the next attempt that was scheduled.
    """
    since = Statement(
        "UPDATE webhooks SET failing_since_ms = :now_ms WHERE id = :id AND failing_since_ms IS NULL",
        {"id": webhook_id, "now_ms": now_ms},
    )
    ended = Statement(
        "UPDATE webhook_deliveries SET next_at_ms = NULL WHERE id = :delivery_id AND next_at_ms IS NOT NULL"
        " AND NOT EXISTS (SELECT 1 FROM webhooks WHERE id = :id AND off_at_ms IS NULL)",
        {"id": webhook_id, "delivery_id": delivery_id},
    )
    if attempts == 0:
        return [ended]
    if attempts < FAILING_ATTEMPTS:
        return [since, ended]
    off = Statement(
        "UPDATE webhooks SET off_at_ms = :now_ms, off_because = :because"
        " WHERE id = :id AND off_at_ms IS NULL AND failing_since_ms <= :before_ms",
        {"id": webhook_id, "now_ms": now_ms, "because": OffBecause.FAILING.value, "before_ms": now_ms - FAILING_MS},
    )
    given_up = Statement(
        "UPDATE webhook_deliveries SET next_at_ms = NULL WHERE webhook_id = :id AND next_at_ms IS NOT NULL"
        " AND EXISTS (SELECT 1 FROM webhooks WHERE id = :id AND off_at_ms = :now_ms)",
        {"id": webhook_id, "now_ms": now_ms},
    )
    return [since, off, given_up, ended]


async def count_failing_off(db: Database) -> int:
    """Return the number of webhooks, of all organizations, that are switched off because of failures."""
    sql = "SELECT COUNT(*) FROM webhooks WHERE off_because = :because"
    return await rows.read_number(db, sql, {"because": OffBecause.FAILING.value})


async def begin_message(db: Database, webhook_id: str, *, now_ms: int, pause_ms: int) -> bool:
    """Record that a message is about to be sent; False if less than `pause_ms` has passed since the last message."""
    sql = (
        "UPDATE webhooks SET next_message_ms = CAST(:now_ms AS BIGINT) + :pause_ms"
        " WHERE id = :id AND next_message_ms <= :now_ms RETURNING id"
    )
    return bool(await rows.write_one(db, sql, {"id": webhook_id, "now_ms": now_ms, "pause_ms": pause_ms}))


# --- positions ----------------------------------------------------------------------------------------------------


def _position(org_id: str, *, first: str = "") -> Statement:
    """Set the position to the newest event, unless a webhook other than `first` is on: it may need earlier events."""
    return Statement(
        f"INSERT INTO webhook_positions (org_id, seq) SELECT :org_id, {_NEWEST} WHERE 1 = 1"
        " ON CONFLICT (org_id) DO UPDATE SET seq = excluded.seq WHERE webhook_positions.seq < excluded.seq"
        " AND NOT EXISTS (SELECT 1 FROM webhooks WHERE org_id = :org_id AND off_at_ms IS NULL AND id <> :first)",
        {"org_id": org_id, "first": first},
    )


async def behind(db: Database, *, owner: str, now_ms: int) -> list[Behind]:
    """Return the organizations that have new events and a webhook that is on, unless another process leases them."""
    found = await db.read(
        "SELECT org_id, seq FROM webhook_positions"
        " WHERE EXISTS (SELECT 1 FROM webhooks WHERE webhooks.org_id = webhook_positions.org_id AND off_at_ms IS NULL)"
        " AND (lease_until_ms IS NULL OR lease_until_ms <= :now_ms OR lease_owner = :owner)"
        " AND seq < (SELECT MAX(seq) FROM organization_events"
        " WHERE organization_events.org_id = webhook_positions.org_id)",
        {"now_ms": now_ms, "owner": owner},
    )
    return msgspec.convert(found, list[Behind])


async def organizations_with(db: Database, event: WebhookEvent) -> list[str]:
    """Return the ids of the organizations that have a switched-on webhook for events of this type."""
    found = await db.read(
        "SELECT DISTINCT org_id FROM webhooks"
        " WHERE off_at_ms IS NULL AND (events = :every OR ' ' || events || ' ' LIKE :listed) ORDER BY org_id",
        {"every": ALL_EVENTS, "listed": f"% {event.value} %"},
    )
    return [org_id for (org_id,) in msgspec.convert(found, list[tuple[str]])]


async def have_any(db: Database) -> bool:
    """Return whether any webhook of any organization is on."""
    return bool(await db.read("SELECT 1 FROM webhooks WHERE off_at_ms IS NULL LIMIT 1"))


def advance(position: Behind, seq: int, *, owner: str, now_ms: int) -> Statement:
    """Advance an organization's position; NothingChangedError if another process has advanced it."""
    return Statement(
        "UPDATE webhook_positions SET seq = :seq, lease_owner = :owner, lease_until_ms = :until_ms"
        " WHERE org_id = :org_id AND seq = :before",
        {
            "org_id": position.org_id,
            "before": position.seq,
            "seq": seq,
            "owner": owner,
            "until_ms": now_ms + LEASE_MS,
        },
        must_change=True,
    )


# --- attention ----------------------------------------------------------------------------------------------------


async def raised_of(db: Database, org_ids: Sequence[str]) -> set[tuple[str, str]]:
    """Return the attention raised for these organizations' matches, as pairs of server id and kind."""
    listed, params = rows.parameter_list("org", org_ids)
    found = await db.read(f"SELECT server_id, kind FROM raised_attention WHERE org_id IN {listed}", params)
    return set(msgspec.convert(found, list[tuple[str, str]]))


async def raise_attention(db: Database, values: Mapping[str, Value], *also: Statement) -> bool:
    """Record that attention was raised for a match, with the statements in `also`; False if it is already recorded.

    All statements run in one transaction.
    """
    insert = Statement(
        "INSERT INTO raised_attention (server_id, kind, org_id, raised_at_ms)"
        " VALUES (:server_id, :kind, :org_id, :raised_at_ms)",
        values,
    )
    try:
        await db.write([insert, *also])
    except DuplicateError:
        return False
    return True


async def end_unwatched_attention(db: Database, watched: Sequence[str]) -> None:
    """Delete attention raised for organizations not in `watched`, so that it is raised again once they are watched."""
    found = msgspec.convert(await db.read("SELECT DISTINCT org_id FROM raised_attention"), list[tuple[str]])
    gone = sorted({org_id for (org_id,) in found} - set(watched))
    if gone:
        sql = "DELETE FROM raised_attention WHERE org_id = :org_id"
        await db.write([Statement(sql, {"org_id": org_id}) for org_id in gone])


async def end_attention(db: Database, ended: Sequence[tuple[str, str]]) -> None:
    """Delete the raised attention whose cause is gone. If the cause occurs again, attention is raised again."""
    sql = "DELETE FROM raised_attention WHERE server_id = :server_id AND kind = :kind"
    await db.write([Statement(sql, {"server_id": server_id, "kind": kind}) for server_id, kind in ended])
