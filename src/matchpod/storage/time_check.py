"""What time does the database have? Processes that share one should have the same."""

from __future__ import annotations

from typing import Final

import msgspec

from matchpod.ports import Database

_NOW: Final = "SELECT CAST(FLOOR(EXTRACT(EPOCH FROM clock_timestamp()) * 1000) AS BIGINT)"
"""Only PostgreSQL understands it; only that is shared."""


async def database_ms(db: Database) -> int | None:
    """Milliseconds since the epoch; None for a database of one process, whose time is that of the machine."""
    if not db.is_shared:
        return None
    rows = await db.read(_NOW)
    return msgspec.convert(rows[0][0], int)
