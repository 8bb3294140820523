"""Store region checks: per region, its newest check with the report so far, and the log posts that the check expects.

While a process runs a check, it renews the check's row every few seconds. If a row was not renewed for STALE_MS, that
process has died or no service is running.
"""

from __future__ import annotations

from typing import Final

import msgspec

from matchpod.ports import Database, DuplicateError, NothingChangedError, Statement, Value
from matchpod.storage import rows
from matchpod.storage.servers import token_hash

STALE_MS: Final = 20_000

REQUESTED, RUNNING, DONE = "requested", "running", "done"

_OPEN: Final = f"state IN ('{REQUESTED}', '{RUNNING}')"


class CheckRow(msgspec.Struct, frozen=True, kw_only=True):
    """The newest check of a region."""

    region: str
    id: str
    state: str
    may_allocate: bool
    """True if the check may allocate a waiting game server (a pod of the cluster)."""
    requested_at_ms: int
    requested_by: str
    updated_at_ms: int
    report: bytes | None = None
    """The report so far, as JSON."""

    def is_stale(self, now_ms: int) -> bool:
        """True if the check is not done but its row was not renewed for STALE_MS (or the clock was set back)."""
        return self.state != DONE and not -STALE_MS <= now_ms - self.updated_at_ms <= STALE_MS


class CheckPost(msgspec.Struct, frozen=True):
    """The first log post with the token of a check."""

    received_ms: int
    source: str
    stamp: str | None


async def newest(db: Database, region: str) -> CheckRow | None:
    return await rows.read_first(db, CheckRow, "FROM region_checks WHERE region = :region", {"region": region})


async def all_newest(db: Database) -> list[CheckRow]:
    """Return the newest check of every region that was ever checked."""
    return await rows.read_all(db, CheckRow, "FROM region_checks ORDER BY region")


async def request(db: Database, row: CheckRow, *also: Statement, pause_ms: int) -> bool:
    """Request a check, in one transaction with the statements in `also`.

    False if a check of the region is open, or was requested less than `pause_ms` ago.
    """
    columns = rows.column_list(CheckRow)
    statement = Statement(
        f"INSERT INTO region_checks ({columns}) VALUES ({', '.join(f':{name}' for name in CheckRow.__struct_fields__)})"
        f" ON CONFLICT (region) DO UPDATE SET {', '.join(f'{name} = excluded.{name}' for name in _CHANGED)}"
        f" WHERE (NOT region_checks.{_OPEN} OR region_checks.updated_at_ms NOT BETWEEN :stale_ms AND :future_ms)"
        " AND region_checks.requested_at_ms NOT BETWEEN :earliest_ms AND :now_ms RETURNING id",
        {
            **rows.to_params(row),
            "stale_ms": row.requested_at_ms - STALE_MS,
            "future_ms": row.requested_at_ms + STALE_MS,
            "earliest_ms": row.requested_at_ms - pause_ms + 1,
            "now_ms": row.requested_at_ms,
        },
        must_change=True,
    )
    try:
        await db.write([statement, *also])
    except NothingChangedError:
        return False
    return True


_CHANGED: Final = tuple(name for name in CheckRow.__struct_fields__ if name != "region")


async def begin(db: Database, region: str, now_ms: int) -> CheckRow | None:
    """Begin the requested check of a region; None if no check is requested, or if another process has begun it."""
    found = await rows.write_one(
        db,
        f"UPDATE region_checks SET state = '{RUNNING}', updated_at_ms = :now_ms"
        f" WHERE region = :region AND state = '{REQUESTED}' RETURNING {rows.column_list(CheckRow)}",
        {"region": region, "now_ms": now_ms},
    )
    return rows.from_row(CheckRow, found[0]) if found else None


async def renew(
    db: Database, check_id: str, now_ms: int, *, report: bytes | None = None, is_done: bool = False
) -> bool:
    """Renew the row of a check, with its report if that has changed; False if another check has replaced it."""
    changes = ["updated_at_ms = :now_ms", *(["report = :report"] if report is not None else [])]
    changes += [f"state = '{DONE}'"] if is_done else []
    params: dict[str, Value] = {"id": check_id, "now_ms": now_ms}
    if report is not None:
        params["report"] = report
    sql = f"UPDATE region_checks SET {', '.join(changes)} WHERE id = :id AND state = '{RUNNING}' RETURNING id"
    return bool(await rows.write_one(db, sql, params))


async def running_ids(db: Database, now_ms: int) -> set[str]:
    """Return the ids of the checks that live processes are running."""
    return {row.id for row in await all_newest(db) if row.state == RUNNING and not row.is_stale(now_ms)}


async def hold_slot(db: Database, row: CheckRow, slot: str) -> bool:
    """Reserve a slot for a check; False if it is in use, if matches wait in the region, or the check was replaced."""
    statement = Statement(
        "INSERT INTO slots (region, slot, server_id) SELECT region, :slot, id FROM region_checks"
        f" WHERE id = :id AND state = '{RUNNING}'"
        " AND NOT EXISTS (SELECT 1 FROM slots WHERE slots.region = :region AND slots.slot = :slot)"
        " AND NOT EXISTS (SELECT 1 FROM servers WHERE phase = 'pending' AND servers.region = :region) RETURNING slot",
        {"id": row.id, "region": row.region, "slot": slot},
        must_change=True,
    )
    try:
        await db.write([statement])
    except (NothingChangedError, DuplicateError):  # another process may reserve it for a match at the same time
        return False
    return True


async def holds_slot(db: Database, check_id: str) -> bool:
    found = await db.read_one("SELECT slot FROM slots WHERE server_id = :id", {"id": check_id})
    return found is not None


# --- log posts ----------------------------------------------------------------------------------------------------


def expect_post(check_id: str, token: str, now_ms: int) -> Statement:
    """Accept log posts that have this token."""
    return Statement(
        "INSERT INTO check_posts (token_hash, check_id, created_at_ms) VALUES (:hash, :check_id, :now_ms)",
        {"hash": token_hash(token), "check_id": check_id, "now_ms": now_ms},
    )


async def record_post(db: Database, token: str, post: CheckPost) -> bool:
    """Record the first log post with a token; False if no check expects the token."""
    hashed = token_hash(token)
    found = await db.read_one("SELECT received_ms FROM check_posts WHERE token_hash = :hash", {"hash": hashed})
    if found == (None,):  # read first: anyone may send any token, and a write costs more
        await db.write(
            [
                Statement(
                    "UPDATE check_posts SET received_ms = :received_ms, source = :source, stamp = :stamp"
                    " WHERE token_hash = :hash AND received_ms IS NULL",
                    {"hash": hashed, **rows.to_params(post)},
                )
            ]
        )
    return found is not None


async def post_of(db: Database, token: str) -> CheckPost | None:
    """Return the first log post with a token; None if none has arrived."""
    rest = "FROM check_posts WHERE token_hash = :hash AND received_ms IS NOT NULL"
    return await rows.read_first(db, CheckPost, rest, {"hash": token_hash(token)})


def forget_posts(check_id: str) -> Statement:
    """Reject further log posts of a check. A game server stops sending to an address that rejects its posts."""
    return Statement("DELETE FROM check_posts WHERE check_id = :id", {"id": check_id})
