"""List all stored matches for recomputation, and check whether their logs are complete."""

from __future__ import annotations

import msgspec

from matchpod.ports import Database
from matchpod.storage.rows import read_all, read_number
from matchpod.storage.servers import ServerRow


async def page_after(db: Database, server_id: str, *, limit: int) -> list[ServerRow]:
    """Return the servers of all organizations whose ids follow the given id, oldest first (ids sort by time)."""
    rest = "FROM servers WHERE id > :id ORDER BY id LIMIT :limit"
    return await read_all(db, ServerRow, rest, {"id": server_id, "limit": limit})


async def count(db: Database) -> int:
    """Return the number of servers that `page_after` lists on all pages together. Each is one match."""
    return await read_number(db, "SELECT COUNT(*) FROM servers")


async def is_log_complete(db: Database, row: ServerRow) -> bool:
    """False if log entries that count for the match were deleted. True also for servers that never sent an entry."""
    # Entries are numbered without gaps, and the head keeps the last number even after all entries were deleted. A block
    # is one row, stored under the number of its last entry. It may also contain entries before `log_from_seq`.
    rows = await db.read(
        "SELECT COALESCE(MAX(raw_log_heads.seq), 0), (SELECT CAST(COALESCE(SUM("
        " CASE WHEN is_compressed >= 0 THEN 1 WHEN seq + is_compressed < :from_seq THEN seq - :from_seq"
        " ELSE -is_compressed END), 0) AS BIGINT) FROM raw_log WHERE server_id = :id AND seq > :from_seq)"
        " FROM raw_log_heads WHERE server_id = :id",
        {"id": row.id, "from_seq": row.log_from_seq},
    )
    newest, kept = msgspec.convert(rows[0], tuple[int, int])
    return kept >= newest - row.log_from_seq
