"""Check that the database can be written."""

from __future__ import annotations

from typing import Final

from matchpod.ports import Database, Statement

_BYTES: Final = 16_384
"""Size of the row: more than a page, so that a database without free pages has to grow."""


async def check_write(db: Database) -> None:
    """Write a row and delete it in one transaction; DatabaseUnavailableError if the disk is full or read-only."""
    await db.write(
        [
            Statement("INSERT INTO write_checks (id, body) VALUES ('check', :body)", {"body": bytes(_BYTES)}),
            Statement("DELETE FROM write_checks WHERE id = 'check'"),
        ]
    )
