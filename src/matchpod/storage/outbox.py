"""Store match outcomes and their callbacks (both in one transaction), and implement the delivery queues.

Callbacks and webhook deliveries are two queues. A row is claimed with a lease and sent; then the attempt is recorded.
If the process crashes in between, the row is sent again with the same id and the same bytes. To limit such repeats,
each claim increments the number of unrecorded attempts and postpones the next attempt. Compaction removes the result
from the body of a callback, because the outcome contains it too. Functions that return callbacks insert it again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, TypeVar
from urllib.parse import urlsplit

import msgspec

from cs2_protocol.game import Team
from matchpod.core.effects import CancelReason
from matchpod.core.failures import Failure
from matchpod.core.requests.callback_query import CallbackState
from matchpod.core.server_status import OPEN_PHASES, ServerStatus
from matchpod.ports import Database, Delivery, Statement, Value
from matchpod.storage import packed, rows
from matchpod.storage.servers import HANDOVER_MS, LATEST_REPEAT_MS

CALLBACK_LEASE_MS: Final = 30_000
"""Duration of a callback's lease in ms. An attempt takes at most 15 s."""

REDELIVERY: Final = "redelivery"
"""Replaces the lease owner if a redelivery is requested during an attempt, so that another attempt follows."""

REPEAT_AFTER_MS: Final = (0, 60_000, 120_000, 240_000, 480_000, LATEST_REPEAT_MS)
"""Delay in ms before an unrecorded attempt is repeated, by the number of earlier unrecorded attempts.

The first repeat is due at once, because usually only a single process has died. There are at most 8 repeats per hour.
"""


class OutcomeRow(msgspec.Struct, frozen=True, kw_only=True):
    """How a match ended. A match has one outcome, which never changes."""

    server_id: str
    kind: str
    """`match_over` or `match_canceled`."""
    reason: CancelReason | None = None
    """Why the match was canceled."""
    at_ms: int
    result: bytes | None = None
    callback_body: bytes
    """The callback body of a canceled match, with details of its end; empty if the match has a result."""


class CallbackRow(msgspec.Struct, frozen=True, kw_only=True):
    """A callback to a match's caller, and the state of its delivery."""

    id: str
    server_id: str
    org_id: str
    host: str = ""
    """Host and port of the URL (`host_of`); empty in rows of older versions."""
    url: str
    auth: bytes | None = None
    """The authorization for the callback's receiver, sealed. It is never deleted, because the callback may be sent
    again at any time."""
    body: bytes
    created_at_ms: int
    attempts: int = 0
    next_at_ms: int | None = None
    """Time of the next attempt; None if no further attempt is scheduled."""
    delivered_at_ms: int | None = None
    lease_owner: str | None = None
    lease_until_ms: int | None = None
    unrecorded: int = 0
    """Number of attempts that were begun but not recorded: an attempt in progress, and those whose process died."""


class Queue(msgspec.Struct, frozen=True, kw_only=True):
    """A table of rows to deliver. It has the columns of `CallbackRow` for scheduling, leases and attempts."""

    table: str
    receiver: str
    """Name of the column that identifies the receiver among all receivers of the organization."""
    listed_by: str
    """Name of the column by whose value rows are selected for lists and for redelivery."""


CALLBACKS: Final = Queue(table="callbacks", receiver="host", listed_by="org_id")


class DueCallback(NamedTuple):
    """A row that is due and may be claimed, with its receiver."""

    id: str
    org_id: str
    host: str


class WaitingCallbacks(NamedTuple):
    """Number of callbacks that wait for an attempt, and the creation time of the oldest of them."""

    number: int
    oldest_ms: int | None


class AttemptRow(msgspec.Struct, frozen=True, kw_only=True):
    """An attempt to deliver a callback or a webhook delivery; `status` is None if there was no response."""

    callback_id: str
    number: int
    at_ms: int
    status: int | None = None
    duration_ms: int
    error: str | None = None
    headers: bytes | None = None
    """The request headers as a JSON object, without secrets; None if unsigned, or in rows of older versions."""


_Queued = TypeVar("_Queued", bound=msgspec.Struct)

_IS_DUE: Final = "next_at_ms <= :now_ms AND (lease_until_ms IS NULL OR lease_until_ms <= :now_ms)"

_POSTPONED: Final = (
    "CASE"
    + "".join(
        f" WHEN unrecorded >= {before} THEN CAST(:now_ms AS BIGINT) + {after_ms}"
        for before, after_ms in reversed([*enumerate(REPEAT_AFTER_MS)][1:])
    )
    + " ELSE next_at_ms END"
)

STATE_CONDITIONS: Final = {
    CallbackState.WAITING: "next_at_ms IS NOT NULL",
    CallbackState.DELIVERED: "delivered_at_ms IS NOT NULL AND next_at_ms IS NULL",
    CallbackState.GIVEN_UP: "delivered_at_ms IS NULL AND next_at_ms IS NULL",
}
"""SQL condition of each callback state; each is also the condition of a partial index."""

_IS_GIVEN_UP: Final = STATE_CONDITIONS[CallbackState.GIVEN_UP]

_MADE_DUE: Final = (
    "SET next_at_ms = :now_ms, delivered_at_ms = NULL,"
    " unrecorded = CASE WHEN lease_owner IS NULL THEN 0 ELSE 1 END,"
    f" lease_owner = CASE WHEN lease_owner IS NULL THEN NULL ELSE '{REDELIVERY}' END"
)


# --- the end of a match -------------------------------------------------------------------------------------------


def end_statements(
    outcome: OutcomeRow,
    callback: CallbackRow | None,
    *,
    status: ServerStatus,
    failure: Failure | None = None,
    forfeited_to: Team | None = None,
    fence: int | None,
) -> list[Statement]:
    """End a match: set its phase, and insert its outcome and its callback, in one transaction.

    NothingChangedError if the match is not open, or if the `fence` is given and outdated. The lease on the server ends,
    so the next write of its runner fails. The server becomes due, so that it is released: immediately, or after
    HANDOVER_MS if no `fence` is given and another process holds the lease.
    """
    columns = {"status": status, "failure": failure, "forfeited_to": forfeited_to}
    statements = [_end_server(outcome, columns, fence), rows.insert("outcomes", outcome)]
    if callback is not None:
        statements.append(rows.insert("callbacks", callback))
    return statements


def _end_server(outcome: OutcomeRow, columns: Mapping[str, Value], fence: int | None) -> Statement:
    params = rows.plain({"id": outcome.server_id, "reason": outcome.reason, "now_ms": outcome.at_ms, **columns})
    due, holds_lease = ":now_ms", " AND fence = :fence"
    if fence is None:
        due, holds_lease = "CASE WHEN lease_until_ms > :now_ms THEN :handover_ms ELSE :now_ms END", ""
        params["handover_ms"] = outcome.at_ms + HANDOVER_MS
    else:
        params["fence"] = fence
    phases = ", ".join(f"'{phase}'" for phase in OPEN_PHASES)
    sql = (
        f"UPDATE servers SET phase = 'ending', match_phase = 'ended', status = :status, ended_at_ms = :now_ms,"
        f" reason = :reason, failure = :failure, forfeited_to = :forfeited_to, next_at_ms = {due},"
        # The callback has its own copy of `callback_auth`, so the server's copy is deleted.
        " is_searchable = 0, callback_auth = NULL, lease_owner = NULL, lease_until_ms = NULL, fence = fence + 1"
        f" WHERE id = :id AND phase IN ({phases}){holds_lease}"
    )
    return Statement(sql, params, must_change=True)


async def outcome_of(db: Database, server_id: str) -> OutcomeRow | None:
    """Return how the match ended; None if it has not ended."""
    rest = "FROM outcomes WHERE server_id = :server_id"
    stored = await rows.read_first(db, OutcomeRow, rest, {"server_id": server_id})
    if stored is None or stored.result is None:
        return stored
    return msgspec.structs.replace(stored, result=packed.unpack(stored.result))


async def callback_bodies(db: Database, server_ids: Sequence[str]) -> dict[str, bytes]:
    """Return, by server id, the callback bodies of canceled matches; they exist even if no callback is sent."""
    listed, params = rows.parameter_list("id", server_ids)
    found = await db.read(f"SELECT server_id, callback_body FROM outcomes WHERE server_id IN {listed}", params)
    return dict(msgspec.convert(found, list[tuple[str, bytes]]))


async def results_of(db: Database, server_ids: Sequence[str]) -> dict[str, bytes]:
    """Return the results of matches as JSON, by server id. Matches without a result are left out."""
    listed, params = rows.parameter_list("id", server_ids)
    found = await db.read(
        f"SELECT server_id, result FROM outcomes WHERE result IS NOT NULL AND server_id IN {listed}", params
    )
    return {server_id: packed.unpack(result) for server_id, result in msgspec.convert(found, list[tuple[str, bytes]])}


# --- callbacks ----------------------------------------------------------------------------------------------------


def host_of(url: str) -> str:
    """Return the host and port of a valid URL, such as `caller.example:443`."""
    parts = urlsplit(url)
    return f"{(parts.hostname or '').removesuffix('.')}:{parts.port or (443 if parts.scheme == 'https' else 80)}"


async def due_callbacks(
    db: Database,
    *,
    now_ms: int,
    limit: int,
    without_orgs: Sequence[str] = (),
    without_hosts: Sequence[tuple[str, str]] = (),
    queue: Queue = CALLBACKS,
) -> list[DueCallback]:
    """Return the due rows of a queue that have no valid lease, the longest overdue first.

    Rows are skipped if their organization is in `without_orgs`, or their organization and host are a pair in
    `without_hosts`.
    """
    orgs, org_params = rows.parameter_list("org", without_orgs)
    hosts, host_params = rows.parameter_list("host", [f"{org_id} {host}" for org_id, host in without_hosts])
    sql = (
        f"SELECT id, org_id, {queue.receiver} FROM {queue.table} WHERE {_IS_DUE} AND org_id NOT IN {orgs}"
        f" AND org_id || ' ' || {queue.receiver} NOT IN {hosts} ORDER BY next_at_ms, id LIMIT :limit"
    )
    params = {"now_ms": now_ms, "limit": limit, **org_params, **host_params}
    return msgspec.convert(await db.read(sql, params), list[DueCallback])


async def claim_callbacks(db: Database, ids: Sequence[str], *, owner: str, now_ms: int) -> list[CallbackRow]:
    """Claim callbacks, as `claim` does, and insert the results into their bodies."""
    return await _with_results(db, await claim(db, CALLBACKS, CallbackRow, ids, owner=owner, now_ms=now_ms))


async def claim(
    db: Database, queue: Queue, struct: type[_Queued], ids: Sequence[str], *, owner: str, now_ms: int
) -> list[_Queued]:
    """Claim those of the rows that are due and have no valid lease, and return them in the order of `ids`.

    No two processes claim the same row at the same time.
    """
    listed, params = rows.parameter_list("id", ids)
    claimed = await rows.write_one(
        db,
        f"UPDATE {queue.table} SET lease_owner = :owner, lease_until_ms = :until_ms, unrecorded = unrecorded + 1,"
        f" next_at_ms = {_POSTPONED} WHERE id IN {listed} AND {_IS_DUE}"
        f" RETURNING id, {rows.column_list(struct)}",
        {"owner": owner, "now_ms": now_ms, "until_ms": now_ms + CALLBACK_LEASE_MS, **params},
    )
    by_id = {values[0]: rows.from_row(struct, values[1:]) for values in claimed}
    return [by_id[row_id] for row_id in ids if row_id in by_id]


def extend_leases(ids: Sequence[str], now_ms: int, queue: Queue = CALLBACKS) -> Statement:
    """Extend leases that expired before their attempt was recorded, so that no other process repeats the attempt."""
    listed, params = rows.parameter_list("id", ids)
    return Statement(
        f"UPDATE {queue.table} SET lease_until_ms = :until_ms WHERE id IN {listed} AND {_IS_DUE}",
        {"now_ms": now_ms, "until_ms": now_ms + CALLBACK_LEASE_MS, **params},
    )


async def _with_results(db: Database, callbacks: Sequence[CallbackRow]) -> list[CallbackRow]:
    """Insert the results into the bodies from which compaction removed them."""
    lacking = [row.server_id for row in callbacks if packed.lacks_result(row.body)]
    if not lacking:
        return [*callbacks]
    listed, params = rows.parameter_list("id", lacking)
    stored = await db.read(f"SELECT server_id, result FROM outcomes WHERE server_id IN {listed}", params)
    results = dict(msgspec.convert(stored, list[tuple[str, bytes]]))
    return [
        msgspec.structs.replace(row, body=packed.insert_result(row.body, packed.unpack(results[row.server_id])))
        if row.server_id in results
        else row
        for row in callbacks
    ]


def unclaim(row: CallbackRow, now_ms: int) -> Statement:
    """Record that no attempt was made under this lease. The callback is due again when the lease expires."""
    return put_back(CALLBACKS, row.id, lease_until_ms=row.lease_until_ms, due_ms=now_ms)


def put_back(queue: Queue, row_id: str, *, lease_until_ms: int | None, due_ms: int) -> Statement:
    """Record that no attempt was made under this lease. The row is due at `due_ms`, but not before the lease expires.

    A row whose delivery was given up in the meantime stays given up.
    """
    return Statement(
        f"UPDATE {queue.table} SET unrecorded = unrecorded - 1, lease_owner = NULL,"
        " next_at_ms = CASE WHEN next_at_ms IS NULL THEN NULL ELSE CAST(:due_ms AS BIGINT) END"
        " WHERE id = :id AND lease_until_ms = :until_ms",  # unique, because each lease ends later than the previous
        {"id": row_id, "until_ms": lease_until_ms, "due_ms": due_ms},
    )


def record_attempt(
    callback_id: str,
    delivery: Delivery,
    *,
    number: int,
    at_ms: int,
    next_at_ms: int | None,
    headers: Mapping[str, str] | None = None,
    queue: Queue = CALLBACKS,
) -> list[Statement]:
    """Record attempt `number` and end the lease; NothingChangedError if this number is already recorded.

    If the attempt succeeded or `next_at_ms` is None, no further attempt is scheduled, unless a redelivery was requested
    during the attempt. The `headers` must not contain secrets.
    """
    attempt = AttemptRow(
        callback_id=callback_id,
        number=number,
        at_ms=at_ms,
        status=delivery.status,
        duration_ms=delivery.duration_ms,
        error=delivery.error,
        headers=None if headers is None else msgspec.json.encode(headers),
    )
    update = Statement(
        f"UPDATE {queue.table} SET attempts = :number,"
        f" next_at_ms = CASE WHEN lease_owner = '{REDELIVERY}' THEN next_at_ms ELSE :next_at_ms END,"
        f" delivered_at_ms = CASE WHEN lease_owner = '{REDELIVERY}' THEN delivered_at_ms ELSE :delivered_at_ms END,"
        " lease_owner = NULL, lease_until_ms = NULL,"
        " unrecorded = CASE WHEN unrecorded > 0 THEN unrecorded - 1 ELSE 0 END"
        " WHERE id = :id AND attempts = :attempts_before",
        {
            "id": callback_id,
            "number": number,
            "attempts_before": number - 1,
            "next_at_ms": None if delivery.is_success else next_at_ms,
            "delivered_at_ms": at_ms if delivery.is_success else None,
        },
        must_change=True,
    )
    return [update, rows.insert("callback_attempts", attempt)]


async def count_waiting(db: Database, queue: Queue = CALLBACKS) -> WaitingCallbacks:
    """Count the rows of a queue, of all organizations, that wait for an attempt."""
    is_waiting = STATE_CONDITIONS[CallbackState.WAITING]
    found = await db.read(f"SELECT COUNT(*), MIN(created_at_ms) FROM {queue.table} WHERE {is_waiting}")
    return msgspec.convert(found[0], WaitingCallbacks)


async def attempts_of(db: Database, callback_id: str) -> list[AttemptRow]:
    """Return all attempts of a callback, in order."""
    rest = "FROM callback_attempts WHERE callback_id = :id ORDER BY number"
    return await rows.read_all(db, AttemptRow, rest, {"id": callback_id})


async def callback_of(db: Database, server_id: str) -> CallbackRow | None:
    """Return the callback of a match; None while the match is in progress, or if the caller requested no callback."""
    rest = "FROM callbacks WHERE server_id = :server_id"
    found = await rows.read_first(db, CallbackRow, rest, {"server_id": server_id})
    return None if found is None else (await _with_results(db, [found]))[0]


async def org_of(db: Database, callback_id: str) -> str | None:
    """Return the organization of a callback; None if it does not exist."""
    found = await db.read_one("SELECT org_id FROM callbacks WHERE id = :id", {"id": callback_id})
    return None if found is None else msgspec.convert(found[0], str)


async def list_callbacks(
    db: Database, *, org_id: str | None, state: CallbackState | None, limit: int
) -> list[CallbackRow]:
    """Return callbacks, newest first, optionally only those of one organization or in one state."""
    conditions: list[str] = []
    params: dict[str, Value] = {"limit": limit}
    if org_id is not None:
        conditions.append("org_id = :org_id")
        params["org_id"] = org_id
    if state is not None:
        conditions.append(STATE_CONDITIONS[state])
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    rest = f"FROM callbacks{where} ORDER BY created_at_ms DESC, id DESC LIMIT :limit"
    return await _with_results(db, await rows.read_all(db, CallbackRow, rest, params))


# The following functions run the statements in `also` only if at least one row becomes due.


async def redeliver(db: Database, callback_id: str, now_ms: int, *also: Statement) -> bool:
    """Make a callback due again in any state, even if its next attempt was postponed; False if it does not exist."""
    update = Statement(
        f"UPDATE callbacks {_MADE_DUE} WHERE id = :id RETURNING id", {"id": callback_id, "now_ms": now_ms}
    )
    return bool(await rows.write_if_changed(db, update, *also))


async def redeliver_finished(
    db: Database, org_id: str, callback_id: str, now_ms: int, *also: Statement, queue: Queue = CALLBACKS
) -> bool:
    """Make a delivered or given-up row due again; False if the organization has no such row with this id."""
    sql = f"UPDATE {queue.table} {_MADE_DUE} WHERE id = :id AND org_id = :org_id AND next_at_ms IS NULL RETURNING id"
    update = Statement(sql, {"id": callback_id, "org_id": org_id, "now_ms": now_ms})
    return bool(await rows.write_if_changed(db, update, *also))


async def redeliver_given_up(
    db: Database, owner: str, *also: Statement, from_ms: int, limit: int, now_ms: int, queue: Queue = CALLBACKS
) -> list[int]:
    """Make given-up rows that were created since `from_ms` due again: at most `limit`, oldest first.

    `owner` is the value of the column `queue.listed_by`; for callbacks, it is the organization's id. Return the
    creation times of the rows, in order.
    """
    chosen = given_up_ids(owner, from_ms=from_ms, limit=limit, queue=queue)
    # The outer condition repeats a part of the inner condition, because PostgreSQL checks only the outer condition
    # again after waiting for a concurrent transaction.
    update = Statement(
        f"UPDATE {queue.table} {_MADE_DUE} WHERE id IN ({chosen.sql}) AND {_IS_GIVEN_UP} RETURNING created_at_ms",
        {**chosen.params, "now_ms": now_ms},
    )
    updated = await rows.write_if_changed(db, update, *also)
    return sorted(created_at_ms for (created_at_ms,) in msgspec.convert(updated, list[tuple[int]]))


def given_up_ids(owner: str, *, from_ms: int, limit: int, queue: Queue = CALLBACKS) -> Statement:
    """Return the query for the ids of the rows that `redeliver_given_up` makes due."""
    return Statement(
        f"SELECT id FROM {queue.table} WHERE {queue.listed_by} = :owner AND {_IS_GIVEN_UP}"
        " AND created_at_ms >= :from_ms ORDER BY created_at_ms, id LIMIT :limit",
        {"owner": owner, "from_ms": from_ms, "limit": limit},
    )


async def oldest_given_up(db: Database, owner: str, *, from_ms: int, queue: Queue = CALLBACKS) -> int | None:
    """Return the creation time of the oldest given-up row that was created since `from_ms`; None if there is none."""
    row = await db.read_one(
        f"SELECT created_at_ms FROM {queue.table} WHERE {queue.listed_by} = :owner AND {_IS_GIVEN_UP}"
        " AND created_at_ms >= :from_ms ORDER BY created_at_ms LIMIT 1",
        {"owner": owner, "from_ms": from_ms},
    )
    return None if row is None else msgspec.convert(row[0], int)
