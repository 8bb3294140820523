"""Read the time of a shared database, to compare it with the clock of each process that uses it."""

from __future__ import annotations

from typing import Final

from matchpod.ports import Database
from matchpod.storage.rows import read_number

_NOW: Final = "SELECT CAST(FLOOR(EXTRACT(EPOCH FROM clock_timestamp()) * 1000) AS BIGINT)"
"""PostgreSQL only: SQLite databases are not shared."""


async def database_ms(db: Database) -> int | None:
    """Return the database's time in milliseconds since the epoch; None if the database is not shared."""
    return await read_number(db, _NOW) if db.is_shared else None
