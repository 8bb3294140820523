"""Record, once per installation, that a request arrived through a proxy. The record is never deleted."""

from __future__ import annotations

from typing import Final

import msgspec

from matchpod.ports import Database, Statement

_NAME: Final = "proxy_evidence"


async def find(db: Database) -> str | None:
    """Return the name of the request header that revealed a proxy; None if no proxy was detected."""
    row = await db.read_one("SELECT value FROM installation WHERE name = :name", {"name": _NAME})
    return None if row is None else msgspec.convert(row[0], str)


async def store(db: Database, header: str) -> None:
    """Store the name of the header, unless one is already stored."""
    insert = "INSERT INTO installation (name, value) VALUES (:name, :value) ON CONFLICT (name) DO NOTHING"
    await db.write([Statement(insert, {"name": _NAME, "value": header})])
