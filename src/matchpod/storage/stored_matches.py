"""Which matches are there to be read again, and is all that their servers said still stored?"""

from __future__ import annotations

from typing import Final

import msgspec

from matchpod.ports import Database
from matchpod.storage.rows import column_list, from_row
from matchpod.storage.servers import ServerRow

_COLUMNS: Final = column_list(ServerRow)


async def page_after(db: Database, server_id: str, *, limit: int) -> list[ServerRow]:
    """The next servers of all organizations after an id, the oldest first; an id begins with its time."""
    rows = await db.read(
        f"SELECT {_COLUMNS} FROM servers WHERE id > :id ORDER BY id LIMIT :limit", {"id": server_id, "limit": limit}
    )
    return [from_row(ServerRow, row) for row in rows]


async def count(db: Database) -> int:
    """How many servers there are."""
    rows = await db.read("SELECT COUNT(*) FROM servers")
    return msgspec.convert(rows[0][0], int)


async def is_log_whole(db: Database, row: ServerRow) -> bool:
    """False when entries that count for the match were deleted; True as well when its server never said anything."""
    # What was stored is numbered without gaps, and the head keeps the last number when all else is deleted.
    rows = await db.read(
        "SELECT COALESCE(MAX(raw_log_heads.seq), 0),"
        " (SELECT COUNT(*) FROM raw_log WHERE server_id = :id AND seq > :from_seq)"
        " FROM raw_log_heads WHERE server_id = :id",
        {"id": row.id, "from_seq": row.log_from_seq},
    )
    newest, kept = msgspec.convert(rows[0], tuple[int, int])
    return kept >= newest - row.log_from_seq
