"""Store a heartbeat per process that shares a PostgreSQL database. Times are those of the database's clock.

A process whose heartbeat is too old is considered dead. Other processes then delete its heartbeat and end its leases,
in one statement. Processes of versions without heartbeats have no row here, so their leases expire instead. The only
process of an SQLite database stores a row (by its own clock) while servers are silent, so that commands can read which
servers are silent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from matchpod.core.servers.replica_shares import ReplicaLoad
from matchpod.core.servers.server_loss import Silence
from matchpod.ports import Database, Statement
from matchpod.storage.database_checks import DATABASE_MS
from matchpod.storage.rows import write_one

DEAD_MS: Final = 3_500
"""Age in ms at which a heartbeat is too old: three heartbeats were missed. Another process notices this and claims the
matches within 5 s of the failure."""
DELAY_MS: Final = 500
"""Maximum delay in ms of the check for old heartbeats, by the database's clock. After a longer delay, the database has
stalled or its clock was set, so all heartbeats seem too old. Processes then get time to write their next heartbeat."""

IS_ALIVE: Final = f"at_ms >= {DATABASE_MS} - {DEAD_MS}"
"""SQL condition for the heartbeat of a live process."""

_SILENCES: Final = msgspec.json.Decoder(dict[str, Silence])


class Beat(msgspec.Struct, frozen=True):
    """A stored heartbeat."""

    at_ms: int
    """Time by the database's clock."""
    is_new: bool
    """True if no row existed: this is the first heartbeat, or other processes have deleted the row."""
    silences: dict[str, Silence]
    """The silent servers that other live processes have reported, by server id. Times are relative to this
    heartbeat."""


async def beat(
    db: Database, owner: str, *, max_matches: int | None = None, silences: Mapping[str, Silence] | None = None
) -> Beat:
    """Store a heartbeat, with the silent servers of this process and the number of matches that it may drive.

    Times in `silences` are relative to now, so the clocks of the processes need not agree.
    """
    sql = (
        "WITH beat AS (INSERT INTO heartbeats (owner, at_ms, max_matches, silences)"
        f" VALUES (:owner, {DATABASE_MS}, :max_matches, :silences) ON CONFLICT (owner) DO UPDATE SET"
        " at_ms = excluded.at_ms, max_matches = excluded.max_matches, silences = excluded.silences"
        " RETURNING at_ms, xmax = 0 AS is_new)"
        # LEAST is 0 if the difference is positive (the database's clock was set back) or NULL (no other heartbeats).
        " SELECT beat.at_ms, is_new, LEAST(others.at_ms - beat.at_ms, 0), COALESCE(others.silences, '{}') FROM beat"
        " LEFT JOIN heartbeats AS others ON others.owner <> :owner AND others.silences IS NOT NULL"
        f" AND others.at_ms >= beat.at_ms - {DEAD_MS}"
    )
    params = {
        "owner": owner,
        "max_matches": max_matches,
        "silences": msgspec.json.encode(silences) if silences else None,
    }
    (found,) = await db.write([Statement(sql, params, is_urgent=True)])
    rows = msgspec.convert(found, list[tuple[int, bool, int, bytes]])
    remote = {
        server_id: silence.shifted(by_ms) for *_, by_ms, stored in rows for server_id, silence in _read(stored).items()
    }
    at_ms, is_new, *_ = rows[0]
    return Beat(at_ms, is_new, remote)


async def store_silences(db: Database, owner: str, silences: Mapping[str, Silence], now_ms: int) -> None:
    """Replace the silent servers of the database's only process; times in `silences` are relative to now."""
    body = msgspec.json.encode(silences) if silences else None
    sql = "INSERT INTO heartbeats (owner, at_ms, silences) VALUES (:owner, :now_ms, :body)"
    row = Statement(sql, {"owner": owner, "now_ms": now_ms, "body": body})
    await db.write([Statement("DELETE FROM heartbeats"), row])


async def silences(db: Database, now_ms: int) -> dict[str, Silence]:
    """Return the silent servers of live processes, by server id; times are relative to now."""
    now = DATABASE_MS if db.is_postgres else "CAST(:now_ms AS BIGINT)"
    found = await db.read(
        f"SELECT at_ms - now_ms, silences FROM heartbeats, (SELECT {now} AS now_ms) AS clock"
        f" WHERE silences IS NOT NULL AND at_ms >= now_ms - {DEAD_MS}",
        {} if db.is_postgres else {"now_ms": now_ms},
    )
    return {
        server_id: silence.shifted(by_ms)
        for by_ms, stored in msgspec.convert(found, list[tuple[int, bytes]])
        for server_id, silence in _read(stored).items()
    }


def _read(stored: bytes) -> dict[str, Silence]:
    try:
        return _SILENCES.decode(stored)
    except msgspec.MsgspecError:  # written by a later version
        return {}


async def loads(db: Database) -> dict[str, ReplicaLoad]:
    """Return, per live process, how many matches it drives and how many it may drive."""
    found = await db.read(
        "SELECT owner, (SELECT COUNT(*) FROM servers WHERE lease_owner = owner), max_matches FROM heartbeats"
        f" WHERE {IS_ALIVE}"
    )
    return {
        owner: ReplicaLoad(matches, max_matches)
        for owner, matches, max_matches in msgspec.convert(found, list[tuple[str, int, int | None]])
    }


async def has_older_process(db: Database, now_ms: int) -> bool:
    """True if a process of an older version, which writes no heartbeats, drives matches."""
    row = await db.read_one(
        "SELECT 1 FROM servers WHERE lease_owner IS NOT NULL AND lease_until_ms > :now_ms"
        " AND NOT EXISTS (SELECT 1 FROM heartbeats WHERE owner = lease_owner) LIMIT 1",
        {"now_ms": now_ms},
    )
    return row is not None


async def end_dead_leases(db: Database, now_ms: int, *, expected_ms: int) -> list[str]:
    """End the leases of processes whose heartbeat is too old, and make their servers due; return the server ids.

    `expected_ms` is when the statement should run, by the database's clock. If it runs DELAY_MS or more after this, it
    ends no leases. If a process considered dead writes its heartbeat now, it waits for this transaction and then learns
    which leases it has lost.
    """
    freed = await write_one(
        db,
        f"WITH dead AS (DELETE FROM heartbeats WHERE at_ms < {DATABASE_MS} - {DEAD_MS}"
        f" AND {DATABASE_MS} < CAST(:expected_ms AS BIGINT) + {DELAY_MS} RETURNING owner)"
        " UPDATE servers SET lease_owner = NULL, lease_until_ms = NULL, fence = fence + 1,"
        " next_at_ms = GREATEST(next_at_ms, :now_ms) WHERE lease_owner IN (SELECT owner FROM dead) RETURNING id",
        {"now_ms": now_ms, "expected_ms": expected_ms},
    )
    return [id_ for (id_,) in msgspec.convert(freed, list[tuple[str]])]


async def end(db: Database, owner: str) -> None:
    """Delete the heartbeat of a stopping process, unless it holds leases: these end when the heartbeat is too old."""
    sql = (
        "DELETE FROM heartbeats WHERE owner = :owner AND NOT EXISTS (SELECT 1 FROM servers WHERE lease_owner = :owner)"
    )
    await db.write([Statement(sql, {"owner": owner}, is_urgent=True)])
