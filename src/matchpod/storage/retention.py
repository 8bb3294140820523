"""How much is stored that is past its time? Counted as the functions that delete it choose it.

Deleted here are only counts that have become 0: nobody reads them, and every map and day leaves some behind.
"""

from __future__ import annotations

from typing import Final

import msgspec

from matchpod.ports import Database, Statement, Value
from matchpod.storage import history_counts

# Not the count of all maps, which transactions of the organization wait for.
_EMPTY: Final = "count = 0 AND NOT (kind = 'map' AND status = '' AND map_name = '' AND day = -1)"


async def old_log_entries(db: Database, before_ms: int) -> int:
    """How many entries `raw_log.prune` would delete."""
    return await _number(
        db,
        "SELECT COUNT(*) FROM raw_log WHERE received_ms < :before_ms AND NOT EXISTS ("
        " SELECT 1 FROM servers WHERE servers.id = raw_log.server_id AND servers.phase <> 'released')",
        {"before_ms": before_ms},
    )


async def old_events(db: Database, before_ms: int) -> int:
    """How many items `map_events.prune` would delete."""
    return await _number(
        db,
        # PostgreSQL adds BIGINTs up to a NUMERIC.
        "SELECT CAST(COALESCE(SUM(map_events.count), 0) AS BIGINT) FROM map_events"
        " WHERE at_ms < :before_ms AND NOT EXISTS ("
        " SELECT 1 FROM maps JOIN servers ON servers.id = maps.server_id"
        " WHERE maps.id = map_events.map_id AND servers.phase <> 'released')",
        {"before_ms": before_ms},
    )


async def old_idempotency_keys(db: Database, before_ms: int) -> int:
    """How many keys `servers.forget_idempotency` would delete."""
    sql = "SELECT COUNT(*) FROM idempotency_keys WHERE created_at_ms < :before_ms"
    return await _number(db, sql, {"before_ms": before_ms})


async def empty_counts(db: Database) -> int:
    """How many counts `forget_empty_counts` would delete."""
    return await _number(db, f"SELECT COUNT(*) FROM history_counts WHERE {_EMPTY}", {})


async def forget_empty_counts(db: Database) -> int:
    """Delete counts that are 0, one organization at a time; answers how many."""
    organizations = await db.read(f"SELECT DISTINCT org_id FROM history_counts WHERE {_EMPTY} ORDER BY org_id")
    deleted = 0
    for (org_id,) in msgspec.convert(organizations, list[tuple[str]]):
        delete = Statement(
            f"DELETE FROM history_counts WHERE org_id = :org_id AND {_EMPTY} RETURNING day", {"org_id": org_id}
        )
        _, rows = await db.write([history_counts.lock(org_id), delete])
        deleted += len(rows)
    return deleted


async def _number(db: Database, sql: str, params: dict[str, Value]) -> int:
    rows = await db.read(sql, params)
    return msgspec.convert(rows[0][0], int)
