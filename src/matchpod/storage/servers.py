"""Store servers and the leases on them: one row per match, kept after its release.

A process that claims a row gets a lease and a fencing token (`fence`). Every claim increments the fence, so a write by
a process that lost its lease matches no row and is rejected (NothingChangedError).
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
"""How long a lease in a shared database lasts unless renewed. Processes of earlier versions wait until it expires;
others end it when the heartbeat of its owner is too old."""
RENEW_MS: Final = 20_000
"""Time between two renewals of leases. Two renewals may fail. They are rare, because each writes the rows of all
matches."""
SOLE_LEASE_MS: Final = 10 * 365 * 24 * 60 * 60 * 1000
"""How long a lease lasts in a database with a single process. It is not renewed; the next process drops all leases at
its start."""
HANDOVER_MS: Final = 12_000
"""After this time, a lease holder has noticed that another process has ended its match, and has stopped driving it.
Earlier versions need up to 10 s."""
LATEST_RETRY_MS: Final = 60_000
"""Upper bound for the time until a retry of a server or a callback."""
LATEST_LEASE_MS: Final = LEASE_MS + 60_000
"""Upper bound for the remaining time of a lease, if its owner's clock is at most a minute ahead."""
LATEST_REPEAT_MS: Final = 15 * 60_000
"""Upper bound for the time until a callback is repeated, however often processes died while they sent it."""
ATTEMPT_CHARS: Final = 12
"""Length of an attempt id: 48 bits of a hash are enough to distinguish the few servers of a match."""
IDEMPOTENCY_MS: Final = 24 * 60 * 60 * 1000
"""How long an idempotency key returns the same server. After that, the key may be reused."""


class EndColumns(msgspec.Struct, frozen=True, kw_only=True):
    """How the match of a server ended; all None while it is in progress."""

    ended_at_ms: int | None = None
    reason: CancelReason | None = None
    """Why the match was canceled; None if it finished."""
    failure: Failure | None = None
    """The kind of failure, if the reason alone is not specific."""
    forfeited_to: Team | None = None
    """The team that won because the other team forfeited; None if play decided the match, or if it was canceled."""
    ruling: bytes | None = None
    """The current ruling, as JSON; None if there is none."""


class ServerSummary(EndColumns, frozen=True, kw_only=True):
    """The columns of a server that callers see. They are read far more often than the rest."""

    id: str
    game_id: str
    org_id: str
    region: str
    phase: ServerPhase
    status: ServerStatus
    match_phase: PublicPhase = PublicPhase.ALLOCATING
    """The phase shown in lists. While a match is running, it is updated within seconds."""
    external_match_id: str | None = None
    callback_url: str | None = None
    rcon_password: bytes | None = None
    """Sealed, as are all secrets in this table."""
    is_password_ours: bool = True
    """False if the server's operator chose the console password. Then callers do not see it."""
    ip: str | None = None
    port: int | None = None
    created_at_ms: int
    running_at_ms: int | None = None
    settings: bytes
    """JSON of the game settings, without the server password."""
    server_password: bytes | None = None
    pending_until_ms: int | None = None
    """The deadline for getting a slot, after which the match fails; None if the match never waited for a slot."""
    created_by: str | None = None
    """The key that created the match, or the session if a link started it; None for matches of earlier versions."""
    marks: bytes | None = None
    """JSON of `Marks`; None if the match has none, and for matches of earlier versions."""

    @property
    def has_ended(self) -> bool:
        """True once the match has an outcome, even if its server is not released yet."""
        return self.phase not in OPEN_PHASES

    @property
    def public_phase(self) -> PublicPhase:
        """The stored phase of the match; the match itself may be a few seconds ahead."""
        return PublicPhase.ENDED if self.has_ended else self.match_phase


class ServerRow(ServerSummary, frozen=True, kw_only=True):
    """One server and the match played on it; the fields are the columns."""

    callback_auth: bytes | None = None
    callback_private: bool | None = None
    """Whether the callback may go to a private address; None without a callback, or if an earlier version stored it."""
    log_token_hash: str
    """The `token_hash` of the token in the server's log URL."""
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
    """Only log entries after this number count; earlier entries are of an abandoned server."""
    log_from_bytes: int = 0
    """The bytes in the log up to `log_from_seq`; they do not count toward the quota."""
    changed_cvars: bytes | None = None
    """The original values, as JSON, of console variables that this match changed on a server that is reused."""
    error: str | None = None

    @property
    def attempt(self) -> str:
        """Identifies the match's current server among all its servers, because each server gets new tokens."""
        return self.log_token_hash[:ATTEMPT_CHARS]


class CallbackTerms(msgspec.Struct, frozen=True, kw_only=True):
    """The columns of a match that determine its callback; they do not change after its creation."""

    settings: bytes
    callback_private: bool | None


class Idempotency(msgspec.Struct, frozen=True, kw_only=True):
    """The idempotency key of a create request, and the hash of its body."""

    org_id: str
    key: str
    body_hash: str
    created_at_ms: int


class TooManyLiveError(Exception):
    """The organization has reached its limit of live matches; no server was created."""


_SUMMARY: Final = f"SELECT {rows.column_list(ServerSummary)} FROM servers WHERE id = :id"
_CHANGEABLE: Final = frozenset(ServerRow.__struct_fields__) - {"id", "fence"}
IS_OPEN: Final = "phase <> 'released' AND phase <> 'ending'"
"""SQL condition for servers whose match has no outcome; also the condition of the partial index `servers_open`."""
_OPEN_PHASES: Final = ", ".join(f"'{phase}'" for phase in OPEN_PHASES)
IS_OPEN_ONLY: Final = f"phase IN ({_OPEN_PHASES}) AND {IS_OPEN}"
"""The same condition, written twice. The first part makes databases prefer the partial index to others."""
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

    `event` (JSON) is appended to the organization's events. `counts` counts the server with its maps. With `event` and
    `max_live`, TooManyLiveError if the organization already has `max_live` matches without an outcome.
    """
    keys = [] if idempotency is None else insert_key(idempotency, row.id)
    if counts is None:
        counts = history_counts.add_new(row.org_id, region=row.region, created_at_ms=row.created_at_ms)
    first = [counts]  # acquires a lock, so that concurrent transactions see each other's matches and events
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
    """Store a key with the id of what its request created; DuplicateError if it was used within IDEMPOTENCY_MS."""
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
    """Return the body hash of a key that was used at or after `since_ms`, and the id of what its request created."""
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
    """Return the columns of a summary, which are cheap to compare: if they are equal, the server has not changed."""
    return await db.read_one(_SUMMARY, {"id": server_id})


def to_summary(columns: Row) -> ServerSummary:
    return rows.from_row(ServerSummary, columns)


async def marks_of(db: Database, server_ids: Sequence[str]) -> dict[str, bytes]:
    """Return the marks (JSON) by server id; servers without marks are left out."""
    if not server_ids:
        return {}
    listed, params = rows.parameter_list("id", server_ids)
    found = await db.read(f"SELECT id, marks FROM servers WHERE id IN {listed} AND marks IS NOT NULL", params)
    return dict(msgspec.convert(found, list[tuple[str, bytes]]))


async def callback_terms(db: Database, server_id: str) -> CallbackTerms | None:
    """Return the callback terms of a match; None if the match does not exist."""
    return await rows.read_first(db, CallbackTerms, "FROM servers WHERE id = :id", {"id": server_id})


async def newest_by_external_id(db: Database, org_id: str, external_id: str) -> ServerRow | None:
    """Return the organization's newest server with this external match id."""
    rest = (
        "FROM servers WHERE org_id = :org_id AND external_match_id = :external_id"
        " ORDER BY created_at_ms DESC, id DESC LIMIT 1"
    )
    return await rows.read_first(db, ServerRow, rest, {"org_id": org_id, "external_id": external_id})


async def newest(
    db: Database, *, status: ServerStatus | None, labels: Sequence[Label] = (), limit: int
) -> list[ServerRow]:
    """Return servers of all organizations, newest first, with all of these labels, and with the status if one is given.

    They are ordered by id, because ids begin with the creation time.
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
    """True if any organization has a server with this external match id."""
    sql = "SELECT id FROM servers WHERE external_match_id = :external_id LIMIT 1"
    return await db.read_one(sql, {"external_id": external_id}) is not None


def token_hash(token: str) -> str:
    """Return the hash under which a token is stored and looked up."""
    return hashlib.sha256(token.encode()).hexdigest()


async def by_log_token(db: Database, token: str) -> ServerRow | None:
    """Return the server that posts its log with this token, even if its match has ended."""
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
    """Return the newest server id (ids sort by time), or an empty string if there are no servers."""
    found = await db.read_one("SELECT MAX(id) FROM servers", {})
    return msgspec.convert(found[0] if found else None, str | None) or ""


async def count_by_status(db: Database) -> dict[tuple[str, str], int]:
    """Return the number of unreleased servers by region and status."""
    sql = "SELECT region, status, COUNT(*) FROM servers WHERE phase <> 'released' GROUP BY region, status"
    counted = msgspec.convert(await db.read(sql), list[tuple[str, str, int]])
    return {(region, status): count for region, status, count in counted}


async def prune_idempotency_keys(db: Database, before_ms: int) -> int:
    """Delete idempotency keys that were used before a time; return how many."""
    delete = "DELETE FROM idempotency_keys WHERE created_at_ms < :before_ms RETURNING server_id"
    return len(await rows.write_one(db, delete, {"before_ms": before_ms}))


async def count_prunable_idempotency_keys(db: Database, before_ms: int) -> int:
    """Return how many keys `prune_idempotency_keys` would delete."""
    sql = "SELECT COUNT(*) FROM idempotency_keys WHERE created_at_ms < :before_ms"
    return await rows.read_number(db, sql, {"before_ms": before_ms})


# --- leases -------------------------------------------------------------------------------------------------------


_IS_DUE: Final = (
    "phase <> 'released' AND next_at_ms <= :now_ms AND (lease_until_ms IS NULL OR lease_until_ms <= :now_ms)"
)
_IS_ENDING: Final = {None: "", True: " AND phase = 'ending'", False: " AND phase <> 'ending'"}


class DueCount(msgspec.Struct, frozen=True):
    """How many servers are due."""

    ending: int
    """Due servers whose match has ended."""
    others: int
    late: int
    """The number of `others` that have been due for a while."""


async def count_due(db: Database, *, now_ms: int, late_ms: int) -> DueCount:
    """Count the due servers without a valid lease; they are late if due since `late_ms`. PostgreSQL only."""
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
    """Claim due servers without a valid lease, longest overdue first; no two processes get the same server.

    If `is_ending` is given, only servers whose match has ended (True) or has not (False).
    """
    # The outer conditions repeat the inner ones. If another process has changed a row meanwhile, PostgreSQL checks the
    # outer conditions again, but does not run the subquery again.
    is_due = _IS_DUE + _IS_ENDING[is_ending]
    skip = " FOR UPDATE SKIP LOCKED" if db.is_postgres else ""  # another process is claiming the locked rows
    claimed = await rows.write_one(
        db,
        # With `id IN (SELECT …)`, PostgreSQL may run the subquery once per row, and then claims more than `limit`.
        f"WITH due AS (SELECT id AS due_id FROM servers WHERE {is_due} ORDER BY next_at_ms, id LIMIT :limit{skip})"
        " UPDATE servers SET lease_owner = :owner, lease_until_ms = :until_ms, fence = fence + 1"
        f" FROM due WHERE id = due_id AND {is_due}"
        f" RETURNING {rows.column_list(ServerRow)}",
        {"owner": owner, "now_ms": now_ms, "until_ms": now_ms + lease_ms, "limit": limit},
    )
    return sorted((rows.from_row(ServerRow, row) for row in claimed), key=lambda row: (row.next_at_ms, row.id))


async def renew(db: Database, *, owner: str, until_ms: int) -> dict[str, int]:
    """Renew all leases of an owner; return the fence of each server it still holds."""
    renewal = "UPDATE servers SET lease_until_ms = :until_ms WHERE lease_owner = :owner RETURNING id, fence"
    held = await rows.write_one(db, renewal, {"owner": owner, "until_ms": until_ms})
    return dict(msgspec.convert(held, list[tuple[str, int]]))


async def held(db: Database, owner: str) -> dict[str, tuple[int, int]]:
    """Return, for each server that an owner holds, its fence and the number of its newest log entry."""
    rows_held = await db.read(
        "SELECT id, fence, COALESCE(raw_log_heads.seq, 0) FROM servers"
        " LEFT JOIN raw_log_heads ON raw_log_heads.server_id = servers.id WHERE lease_owner = :owner",
        {"owner": owner},
    )
    return {id_: (fence, seq) for id_, fence, seq in msgspec.convert(rows_held, list[tuple[str, int, int]])}


async def drop_leases(db: Database, now_ms: int) -> None:
    """End all leases and repair times. Only for the start of a process that uses the database alone."""
    for table in ("servers", "callbacks"):
        drop = f"UPDATE {table} SET lease_owner = NULL, lease_until_ms = NULL WHERE lease_owner IS NOT NULL"
        await rows.write_one(db, drop)
    await repair_times(db, now_ms)


async def repair_times(db: Database, now_ms: int) -> None:
    """Repair due times and leases that are too far in the future, because the clock was set back."""
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
    """Set columns of a claimed server; ValueError if a column does not exist or is read-only."""
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
    """End the lease early; the server is due again at `next_at_ms`."""
    return change(server_id, fence, lease_owner=None, lease_until_ms=None, next_at_ms=next_at_ms)


def mark_released(server_id: str, fence: int) -> Statement:
    """Mark a server as released and delete its secrets. This is the last write to its row."""
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
    """Make all matches due now that wait for a server, or for its release, in a region that is available again."""
    return Statement(
        "UPDATE servers SET next_at_ms = :now_ms"
        " WHERE next_at_ms > :now_ms AND region = :region AND phase IN ('pending', 'ending')",
        {"region": region, "now_ms": now_ms},
    )


async def wake(db: Database, server_id: str, now_ms: int) -> None:
    """Make a server due now; its lease stays valid."""
    update = "UPDATE servers SET next_at_ms = :now_ms WHERE id = :id"
    await rows.write_one(db, update, {"id": server_id, "now_ms": now_ms})
