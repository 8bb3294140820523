"""Check that the database accepts writes, and read the clock of a shared database."""

from __future__ import annotations

from typing import Final

from matchpod.ports import Database, Statement
from matchpod.storage.rows import read_number

_BYTES: Final = 16_384
"""Bytes in the row that `check_write` writes: more than a database page, so that a full database has to grow."""

DATABASE_MS: Final = "CAST(FLOOR(EXTRACT(EPOCH FROM clock_timestamp()) * 1000) AS BIGINT)"
"""The current time on the PostgreSQL server, in milliseconds since the epoch."""


async def check_write(db: Database) -> None:
    """Write a row and delete it in one transaction; DatabaseUnavailableError if the disk is full or read-only."""
    await db.write(
        [
            Statement("INSERT INTO write_checks (id, body) VALUES ('check', :body)", {"body": bytes(_BYTES)}),
            Statement("DELETE FROM write_checks WHERE id = 'check'"),
        ]
    )


async def database_ms(db: Database) -> int | None:
    """Return the database's time in milliseconds since the epoch; None if the database is not shared."""
    return await read_number(db, f"SELECT {DATABASE_MS}") if db.is_shared else None
