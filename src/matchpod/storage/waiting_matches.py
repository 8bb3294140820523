"""Order the matches that wait for a server in a region.

The next match is the oldest waiting match of the organization that holds the fewest servers in the region. If several
organizations hold equally few, their oldest match is next. Giving a server to a match does not change the order of the
other matches, whichever process decides it.
"""

from __future__ import annotations

from typing import Final

import msgspec

from matchpod.ports import Database, Statement, Value
from matchpod.storage.servers import IS_OPEN

QUEUE: Final = f"""(
    SELECT id, phase, next_at_ms, created_at_ms,
        COALESCE(held.servers, 0)
            + ROW_NUMBER() OVER (PARTITION BY waiting.org_id ORDER BY created_at_ms, id) AS turn
    FROM servers AS waiting LEFT JOIN (
        SELECT org_id, COUNT(*) AS servers FROM servers
        WHERE region = :region AND slot IS NOT NULL AND phase <> 'released' GROUP BY org_id
    ) AS held ON held.org_id = waiting.org_id
    WHERE region = :region AND slot IS NULL AND phase IN ('allocating', 'pending') AND {IS_OPEN}
) AS queue"""
"""SQL of the matches without a server in `:region`. `turn` is the number of servers that the organization would hold if
this match and all its earlier waiting matches had a server."""

ORDER: Final = "turn, created_at_ms, id"
"""ORDER BY expression of the queue."""


async def next_matches(db: Database, region: str, limit: int) -> list[str]:
    """Return the ids of the matches that get the next servers in a region, at most `limit`, in order."""
    sql = f"SELECT id FROM {QUEUE} ORDER BY {ORDER} LIMIT :limit"
    found = await db.read(sql, {"region": region, "limit": limit})
    return [server_id for (server_id,) in msgspec.convert(found, list[tuple[str]])]


async def has_pending_match(db: Database, region: str) -> bool:
    sql = "SELECT id FROM servers WHERE phase = 'pending' AND region = :region LIMIT 1"
    return await db.read_one(sql, {"region": region}) is not None


async def oldest_pending(db: Database) -> dict[str, int]:
    """Return, by region, the creation time of the oldest match that waits for a server."""
    found = await db.read("SELECT region, MIN(created_at_ms) FROM servers WHERE phase = 'pending' GROUP BY region")
    return dict(msgspec.convert(found, list[tuple[str, int]]))


def wake(region: str, now_ms: int, *, limit: int) -> Statement:
    """Make due now the next waiting matches of a region that are not due yet, at most `limit`."""
    params: dict[str, Value] = {"region": region, "now_ms": now_ms, "limit": limit}
    return Statement(
        "UPDATE servers SET next_at_ms = :now_ms WHERE next_at_ms > :now_ms AND phase = 'pending' AND id IN ("
        f"SELECT id FROM {QUEUE} WHERE phase = 'pending' AND next_at_ms > :now_ms ORDER BY {ORDER} LIMIT :limit)"
        " RETURNING id",
        params,
    )


def wake_with_server(region: str, now_ms: int) -> Statement:
    """Make due now those waiting matches of a region that already have a server: they need no free slot."""
    return Statement(
        "UPDATE servers SET next_at_ms = :now_ms"
        " WHERE next_at_ms > :now_ms AND phase = 'pending' AND region = :region AND slot IS NOT NULL RETURNING id",
        {"region": region, "now_ms": now_ms},
    )
