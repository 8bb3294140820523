"""Store servers and the leases on them. Each match has one row, which is kept after its server is released.

A process that claims a row gets a lease and a fencing token (`fence`). Each claim increments the token. Writes are
conditional on it, so a process that has lost its lease cannot write (NothingChangedError).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final

import msgspec

from cs2_protocol.game import Team
from matchpod.core.effects import CancelReason
from matchpod.core.failures import Failure
from matchpod.core.labels import Label
from matchpod.core.server_status import OPEN_PHASES, ServerPhase, ServerStatus
from matchpod.core.views.progress import PublicPhase
from matchpod.ports import Database, NothingChangedError, Row, Statement, Value
from matchpod.storage import history_counts, organization_events, rows, server_labels

LEASE_MS: Final = 50_000
"""Duration of a lease in ms in a shared database, unless it is renewed. Processes of earlier versions wait until a
lease expires; other processes end it when the heartbeat of its owner is too old."""
RENEW_MS: Final = 20_000
"""Interval in ms at which leases are renewed; two renewals in a row may fail. It is long, because each renewal writes
the rows of all matches."""
SOLE_LEASE_MS: Final = 10 * 365 * 24 * 60 * 60 * 1000
"""Duration of a lease in ms in a database with a single process. It is not renewed. When the next process starts, it
ends all leases."""
HANDOVER_MS: Final = 12_000
"""Time in ms within which a lease holder notices that another process has ended its match, and stops driving it.
Earlier versions need up to 10 s."""
LATEST_RETRY_MS: Final = 60_000
"""Upper bound in ms for the delay until a server or a callback is retried."""
LATEST_LEASE_MS: Final = LEASE_MS + 60_000
"""Upper bound in ms for the remaining time of a lease, if the owner's clock is at most a minute ahead."""
LATEST_REPEAT_MS: Final = 15 * 60_000
"""Upper bound in ms for the delay until a callback is repeated, however many processes died while sending it."""
ATTEMPT_CHARS: Final = 12
"""Length of an attempt id. Its 48 bits of a hash are enough to distinguish the few servers of a match."""
IDEMPOTENCY_MS: Final = 24 * 60 * 60 * 1000
"""Time in ms for which an idempotency key returns the same server. Afterwards, the key can be used again."""


class EndColumns(msgspec.Struct, frozen=True, kw_only=True):
    """How the match of a server ended. All fields are None while the match is in progress."""

    ended_at_ms: int | None = None
    reason: CancelReason | None = None
    """Why the match was canceled; None if it has a result."""
    failure: Failure | None = None
    """Kind of failure; None if `reason` is specific enough."""
    forfeited_to: Team | None = None
    """The team that won because the other team forfeited; None if the match was decided by play, or was canceled."""
    ruling: bytes | None = None
    """The current ruling, as JSON; None if there is none."""


class ServerSummary(EndColumns, frozen=True, kw_only=True):
    """The columns of a server that callers see. They are read far more often than the other columns."""

    id: str
    game_id: str
    org_id: str
    region: str
    phase: ServerPhase
    status: ServerStatus
    match_phase: PublicPhase = PublicPhase.ALLOCATING
    """The match's phase as shown in lists. While a match is running, the column is updated within seconds of a
    change."""
    external_match_id: str | None = None
    callback_url: str | None = None
    rcon_password: bytes | None = None
    """RCON password, sealed (encrypted) like all secrets in this table."""
    is_password_ours: bool = True
    """False if the operator of the server chose the RCON password. Callers do not see such a password."""
    ip: str | None = None
    port: int | None = None
    created_at_ms: int
    running_at_ms: int | None = None
    settings: bytes
    """The game settings as JSON, without the server password."""
    server_password: bytes | None = None
    pending_until_ms: int | None = None
    """Deadline for getting a slot; the match fails if it gets none. None if the match has never waited for a slot."""
    created_by: str | None = None
    """Id of the API key that created the match; if the session was started with a link, the session's id. None for
    matches of earlier versions."""
    marks: bytes | None = None
    """`Marks` as JSON; None if the match has none, or was created by an earlier version."""

    @property
    def has_ended(self) -> bool:
        """True once the match has an outcome, even if its server has not been released yet."""
        return self.phase not in OPEN_PHASES

    @property
    def public_phase(self) -> PublicPhase:
        """The stored phase of the match, which may be a few seconds older than the actual phase."""
        return PublicPhase.ENDED if self.has_ended else self.match_phase


class ServerRow(ServerSummary, frozen=True, kw_only=True):
    """A server and the match played on it; the fields are the columns."""

    callback_auth: bytes | None = None
    callback_private: bool | None = None
    """Whether the callback may be sent to a private address; None without a callback, or if an earlier version stored
    the row."""
    log_token_hash: str
    """`token_hash` of the token in the server's log URL."""
    report_token_hash: str
    log_token: bytes | None = None
    report_token: bytes | None = None
    plugin_match_id: int
    slot: str | None = None
    rcon_host: str | None = None
    rcon_port: int | None = None
    allocated_at_ms: int | None = None
    was_pending: bool = False
    next_at_ms: int
    lease_owner: str | None = None
    lease_until_ms: int | None = None
    fence: int = 0
    tries: int = 0
    log_from_seq: int = 0
    """Only log entries after this number count for the match; an abandoned server sent the earlier entries."""
    log_from_bytes: int = 0
    """Number of bytes in the log up to `log_from_seq`. They do not count toward the match's quota."""
    changed_cvars: bytes | None = None
    """JSON of the original values of console variables that this match has changed, on a server that other matches will
    use."""
    error: str | None = None

    @property
    def attempt(self) -> str:
        """Identifies the match's current server among all servers that it had: each gets new tokens."""
        return self.log_token_hash[:ATTEMPT_CHARS]


class CallbackTerms(msgspec.Struct, frozen=True, kw_only=True):
    """The columns of a match that define its callback. They do not change after the match was created."""

    settings: bytes
    callback_private: bool | None


class Idempotency(msgspec.Struct, frozen=True, kw_only=True):
    """The idempotency key of a request that creates a match, and the hash of the request's body."""

    org_id: str
    key: str
    body_hash: str
    created_at_ms: int


class TooManyLiveError(Exception):
    """The organization has reached its maximum number of live matches, so no server was created."""


_SUMMARY: Final = f"SELECT {rows.column_list(ServerSummary)} FROM servers WHERE id = :id"
_CHANGEABLE: Final = frozenset(ServerRow.__struct_fields__) - {"id", "fence"}
IS_OPEN: Final = "phase <> 'released' AND phase <> 'ending'"
"""SQL condition for servers whose match has no outcome; also the condition of the partial index `servers_open`."""
_OPEN_PHASES: Final = ", ".join(f"'{phase}'" for phase in OPEN_PHASES)
IS_OPEN_ONLY: Final = f"phase IN ({_OPEN_PHASES}) AND {IS_OPEN}"
"""`IS_OPEN`, and an equivalent condition before it, which makes databases prefer the partial index to other indexes."""
HAS_FEWER_LIVE: Final = (
    f"NOT EXISTS (SELECT 1 FROM servers WHERE org_id = :org_id AND {IS_OPEN} LIMIT 1 OFFSET :others)"
)
"""SQL condition that an organization has at most `:others` matches without an outcome."""


# --- creation -----------------------------------------------------------------------------------------------------


async def create(
    db: Database,
    row: ServerRow,
    *,
    idempotency: Idempotency | None,
    event: bytes | None = None,
    counts: Statement | None = None,
    also: Sequence[Statement] = (),
    max_live: int | None = None,
) -> None:
    """Insert a server and its idempotency key; DuplicateError if the key was used within IDEMPOTENCY_MS.

    `event` (JSON) is appended to the organization's events. `counts` is the statement that counts the server and its
    maps. With `event` and `max_live`, TooManyLiveError if the organization already has `max_live` matches without an
    outcome.
    """
    keys = [] if idempotency is None else insert_key(idempotency, row.id)
    if counts is None:
        counts = history_counts.add_new(row.org_id, region=row.region, created_at_ms=row.created_at_ms)
    first = [counts]  # runs first: it acquires a lock, so that concurrent transactions wait for each other
    if event is not None:
        limit = "" if max_live is None else HAS_FEWER_LIVE
        others = {} if max_live is None else {"others": max_live - 1}
        at_ms = row.created_at_ms
        first.append(organization_events.insert(row.org_id, event, at_ms=at_ms, only_if=limit, **others))
    try:
        await db.write([*first, rows.insert("servers", row), *keys, *also])
    except NothingChangedError as exc:
        raise TooManyLiveError from exc


def insert_key(used: Idempotency, made_id: str) -> list[Statement]:
    """Store a key with the id of the object that its request created; DuplicateError if used within IDEMPOTENCY_MS."""
    key: dict[str, Value] = {"org_id": used.org_id, "idempotency_key": used.key}
    return [
        Statement(
            "DELETE FROM idempotency_keys"
            " WHERE org_id = :org_id AND idempotency_key = :idempotency_key AND created_at_ms < :expired_ms",
            {**key, "expired_ms": used.created_at_ms - IDEMPOTENCY_MS},
        ),
        Statement(
            "INSERT INTO idempotency_keys (org_id, idempotency_key, body_hash, server_id, created_at_ms)"
            " VALUES (:org_id, :idempotency_key, :body_hash, :server_id, :created_at_ms)",
            {**key, "body_hash": used.body_hash, "server_id": made_id, "created_at_ms": used.created_at_ms},
        ),
    ]


async def find_idempotent(db: Database, org_id: str, key: str, since_ms: int) -> tuple[str, str] | None:
    """Return the body hash of a key used since `since_ms`, and the id of the object that its request created."""
    row = await db.read_one(
        "SELECT body_hash, server_id FROM idempotency_keys"
        " WHERE org_id = :org_id AND idempotency_key = :idempotency_key AND created_at_ms >= :since_ms",
        {"org_id": org_id, "idempotency_key": key, "since_ms": since_ms},
    )
    return None if row is None else msgspec.convert(row, tuple[str, str])


# --- reading ------------------------------------------------------------------------------------------------------


async def get(db: Database, server_id: str) -> ServerRow | None:
    """Return the server with this id, of any organization."""
    return await rows.read_first(db, ServerRow, "FROM servers WHERE id = :id", {"id": server_id})


async def summary(db: Database, server_id: str) -> ServerSummary | None:
    """Return the summary of the server with this id, of any organization."""
    found = await summary_columns(db, server_id)
    return None if found is None else to_summary(found)


async def summary_columns(db: Database, server_id: str) -> Row | None:
    """Return the columns of a summary as stored. Comparing them is a cheap way to detect changes of a server."""
    return await db.read_one(_SUMMARY, {"id": server_id})


def to_summary(columns: Row) -> ServerSummary:
    return rows.from_row(ServerSummary, columns)


async def marks_of(db: Database, server_ids: Sequence[str]) -> dict[str, bytes]:
    """Return, by server id, the marks as JSON; servers without marks are left out."""
    if not server_ids:
        return {}
    listed, params = rows.parameter_list("id", server_ids)
    found = await db.read(f"SELECT id, marks FROM servers WHERE id IN {listed} AND marks IS NOT NULL", params)
    return dict(msgspec.convert(found, list[tuple[str, bytes]]))


async def callback_terms(db: Database, server_id: str) -> CallbackTerms | None:
    """Return the columns of a match that define its callback; None if the match does not exist."""
    return await rows.read_first(db, CallbackTerms, "FROM servers WHERE id = :id", {"id": server_id})


async def newest_by_external_id(db: Database, org_id: str, external_id: str) -> ServerRow | None:
    """Return the newest server of the organization with this external match id."""
    rest = (
        "FROM servers WHERE org_id = :org_id AND external_match_id = :external_id"
        " ORDER BY created_at_ms DESC, id DESC LIMIT 1"
    )
    return await rows.read_first(db, ServerRow, rest, {"org_id": org_id, "external_id": external_id})


async def newest(
    db: Database, *, status: ServerStatus | None, labels: Sequence[Label] = (), limit: int
) -> list[ServerRow]:
    """Return the newest servers of all organizations that have all of these labels and, if given, this status.

    Newest first: they are ordered by id, and ids begin with the creation time.
    """
    conditions, params = server_labels.conditions_of(
        labels, server_id="servers.id", created_at_ms="servers.created_at_ms", org_id="servers.org_id"
    )
    params["limit"] = limit
    if status is not None:
        conditions.append("status = :status")
        params["status"] = status.value
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    return await rows.read_all(db, ServerRow, f"FROM servers{where} ORDER BY id DESC LIMIT :limit", params)


async def external_id_exists(db: Database, external_id: str) -> bool:
    """True if a server of any organization has this external match id."""
    sql = "SELECT id FROM servers WHERE external_match_id = :external_id LIMIT 1"
    return await db.read_one(sql, {"external_id": external_id}) is not None


def token_hash(token: str) -> str:
    """Return the hash of a token. Only the hash is stored, and servers are found by it."""
    return hashlib.sha256(token.encode()).hexdigest()


async def by_log_token(db: Database, token: str) -> ServerRow | None:
    """Return the server whose log URL has this token, even if its match has ended."""
    sql = "FROM servers WHERE log_token_hash = :token_hash"
    return await rows.read_first(db, ServerRow, sql, {"token_hash": token_hash(token)})


async def by_report_token(db: Database, token: str) -> ServerRow | None:
    """Return the server whose plugin reports with this token, even if its match has ended."""
    sql = "FROM servers WHERE report_token_hash = :token_hash"
    return await rows.read_first(db, ServerRow, sql, {"token_hash": token_hash(token)})


async def open_ids(db: Database) -> set[str]:
    """Return the ids of the servers that are not released yet."""
    found = await db.read("SELECT id FROM servers WHERE phase <> 'released'")
    return {server_id for (server_id,) in msgspec.convert(found, list[tuple[str]])}


async def newest_id(db: Database) -> str:
    """Return the id of the newest server (ids sort by creation time), or an empty string if there are no servers."""
    found = await db.read_one("SELECT MAX(id) FROM servers", {})
    return msgspec.convert(found[0] if found else None, str | None) or ""


async def count_by_status(db: Database) -> dict[tuple[str, str], int]:
    """Return the number of servers that are not released, by region and status."""
    sql = "SELECT region, status, COUNT(*) FROM servers WHERE phase <> 'released' GROUP BY region, status"
    counted = msgspec.convert(await db.read(sql), list[tuple[str, str, int]])
    return {(region, status): count for region, status, count in counted}


async def prune_idempotency_keys(db: Database, before_ms: int) -> int:
    """Delete idempotency keys that were used before a time; return how many."""
    delete = "DELETE FROM idempotency_keys WHERE created_at_ms < :before_ms RETURNING server_id"
    return len(await rows.write_one(db, delete, {"before_ms": before_ms}))


async def count_prunable_idempotency_keys(db: Database, before_ms: int) -> int:
    """Return the number of keys that `prune_idempotency_keys` would delete."""
    sql = "SELECT COUNT(*) FROM idempotency_keys WHERE created_at_ms < :before_ms"
    return await rows.read_number(db, sql, {"before_ms": before_ms})


# --- leases -------------------------------------------------------------------------------------------------------


_IS_DUE: Final = (
    "phase <> 'released' AND next_at_ms <= :now_ms AND (lease_until_ms IS NULL OR lease_until_ms <= :now_ms)"
)
_IS_ENDING: Final = {None: "", True: " AND phase = 'ending'", False: " AND phase <> 'ending'"}


class DueCount(msgspec.Struct, frozen=True):
    """Number of servers that are due, split by whether their match has ended."""

    ending: int
    """Number of due servers whose match has ended."""
    others: int
    late: int
    """Number of servers in `others` that have been due for a while."""


async def count_due(db: Database, *, now_ms: int, late_ms: int) -> DueCount:
    """Count the due servers that have no valid lease; `late` are those due since before `late_ms`. PostgreSQL only."""
    is_late = "GREATEST(next_at_ms, lease_until_ms) <= :late_ms"
    row = await db.read_one(
        "SELECT COUNT(*) FILTER (WHERE phase = 'ending'), COUNT(*) FILTER (WHERE phase <> 'ending'),"
        f" COUNT(*) FILTER (WHERE phase <> 'ending' AND {is_late}) FROM servers WHERE {_IS_DUE}",
        {"now_ms": now_ms, "late_ms": late_ms},
    )
    return DueCount(*msgspec.convert(row, tuple[int, int, int]))


async def claim_due(
    db: Database,
    *,
    owner: str,
    now_ms: int,
    limit: int,
    lease_ms: int = LEASE_MS,
    is_ending: bool | None = None,
) -> list[ServerRow]:
    """Claim due servers that have no valid lease, the longest overdue first. No two processes claim the same server.

    If `is_ending` is given, claim only servers whose match has ended (True) or has not ended (False).
    """
    # The outer conditions repeat the inner ones. If another process has changed a row in the meantime, PostgreSQL
    # checks the outer conditions again, but does not run the subquery again.
    is_due = _IS_DUE + _IS_ENDING[is_ending]
    skip = " FOR UPDATE SKIP LOCKED" if db.is_postgres else ""  # skip rows that another process is claiming
    claimed = await rows.write_one(
        db,
        # With `id IN (SELECT …)`, PostgreSQL may run the subquery once per row, and would then claim more than `limit`
        # rows.
        f"WITH due AS (SELECT id AS due_id FROM servers WHERE {is_due} ORDER BY next_at_ms, id LIMIT :limit{skip})"
        " UPDATE servers SET lease_owner = :owner, lease_until_ms = :until_ms, fence = fence + 1"
        f" FROM due WHERE id = due_id AND {is_due}"
        f" RETURNING {rows.column_list(ServerRow)}",
        {"owner": owner, "now_ms": now_ms, "until_ms": now_ms + lease_ms, "limit": limit},
    )
    return sorted((rows.from_row(ServerRow, row) for row in claimed), key=lambda row: (row.next_at_ms, row.id))


async def renew(db: Database, *, owner: str, until_ms: int) -> dict[str, int]:
    """Renew all leases of an owner; return the fencing token of each server that it still holds."""
    renewal = "UPDATE servers SET lease_until_ms = :until_ms WHERE lease_owner = :owner RETURNING id, fence"
    held = await rows.write_one(db, renewal, {"owner": owner, "until_ms": until_ms})
    return dict(msgspec.convert(held, list[tuple[str, int]]))


async def held(db: Database, owner: str) -> dict[str, tuple[int, int]]:
    """Return, per server that an owner has leased, the fencing token and the number of the newest log entry."""
    rows_held = await db.read(
        "SELECT id, fence, COALESCE(raw_log_heads.seq, 0) FROM servers"
        " LEFT JOIN raw_log_heads ON raw_log_heads.server_id = servers.id WHERE lease_owner = :owner",
        {"owner": owner},
    )
    return {id_: (fence, seq) for id_, fence, seq in msgspec.convert(rows_held, list[tuple[str, int, int]])}


async def drop_leases(db: Database, now_ms: int) -> None:
    """End all leases on servers and callbacks; run `repair_times`. Only for the start of a database's only process."""
    for table in ("servers", "callbacks"):
        drop = f"UPDATE {table} SET lease_owner = NULL, lease_until_ms = NULL WHERE lease_owner IS NOT NULL"
        await rows.write_one(db, drop)
    await repair_times(db, now_ms)


async def repair_times(db: Database, now_ms: int) -> None:
    """If the clock was set back, end leases and make rows due whose times are therefore too far in the future."""
    params = {
        "now_ms": now_ms,
        "latest_ms": now_ms + LATEST_RETRY_MS,
        "latest_lease_ms": now_ms + LATEST_LEASE_MS,
        "latest_repeat_ms": now_ms + LATEST_REPEAT_MS,
    }
    is_no_repeat = " AND (unrecorded <= 1 OR next_at_ms > :latest_repeat_ms)"
    for table, condition in (("servers", ""), ("callbacks", is_no_repeat)):
        drop = (
            f"UPDATE {table} SET lease_owner = NULL, lease_until_ms = NULL"
            " WHERE lease_owner IS NOT NULL AND lease_until_ms > :latest_lease_ms"
        )
        await rows.write_one(db, drop, params)
        wake = f"UPDATE {table} SET next_at_ms = :now_ms WHERE next_at_ms > :latest_ms{condition}"
        await rows.write_one(db, wake, params)


# --- writes of the lease holder -----------------------------------------------------------------------------------


def change(server_id: str, fence: int, **columns: Value) -> Statement:
    """Set columns of a claimed server. ValueError if a column does not exist or must not be changed."""
    unknown = sorted(columns.keys() - _CHANGEABLE)
    if unknown or not columns:
        raise ValueError(f"unknown or read-only columns: {', '.join(unknown)}" if unknown else "no columns to change")
    assignments = ", ".join(f"{name} = :{name}" for name in columns)
    return Statement(
        f"UPDATE servers SET {assignments} WHERE id = :claimed_id AND fence = :claimed_fence",
        {**rows.plain(columns), "claimed_id": server_id, "claimed_fence": fence},
        must_change=True,
    )


def check_fence(server_id: str, fence: int) -> Statement:
    """Lock a server's row until the transaction ends; NothingChangedError if the lease was lost."""
    return Statement(
        "UPDATE servers SET fence = fence WHERE id = :id AND fence = :fence",
        {"id": server_id, "fence": fence},
        must_change=True,
    )


def release_lease(server_id: str, fence: int, next_at_ms: int) -> Statement:
    """End the lease before it expires; the server is due again at `next_at_ms`."""
    return change(server_id, fence, lease_owner=None, lease_until_ms=None, next_at_ms=next_at_ms)


def mark_released(server_id: str, fence: int) -> Statement:
    """Mark a server as released and delete its secrets. No lease holder writes to the row after this."""
    return change(
        server_id,
        fence,
        phase=ServerPhase.RELEASED,
        lease_owner=None,
        lease_until_ms=None,
        callback_auth=None,
        rcon_password=None,
        server_password=None,
        log_token=None,
        report_token=None,
    )


def wake_region(region: str, now_ms: int) -> Statement:
    """Make due now, in a region available again, the matches that wait for a server or for their server's release."""
    return Statement(
        "UPDATE servers SET next_at_ms = :now_ms"
        " WHERE next_at_ms > :now_ms AND region = :region AND phase IN ('pending', 'ending')",
        {"region": region, "now_ms": now_ms},
    )


async def wake(db: Database, server_id: str, now_ms: int) -> None:
    """Make a server due now without ending its lease."""
    update = "UPDATE servers SET next_at_ms = :now_ms WHERE id = :id"
    await rows.write_one(db, update, {"id": server_id, "now_ms": now_ms})
