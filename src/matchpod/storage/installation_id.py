"""Store the id of this installation: made with its database, the same for all replicas, and kept by a restored copy.

Servers are labelled with it, so that an installation releases only servers that it started itself.
"""

from __future__ import annotations

import secrets

import msgspec

from matchpod.ports import Database
from matchpod.storage.rows import write_one

_NAME = "id"


async def installation_id(db: Database) -> str:
    """Return the id of the installation, and make it first if this database has none; it is a valid Kubernetes name."""
    found = await _read(db)
    if found is None:
        insert = "INSERT INTO installation (name, value) VALUES (:name, :value) ON CONFLICT (name) DO NOTHING"
        await write_one(db, insert, {"name": _NAME, "value": f"mp-{secrets.token_hex(8)}"})
        found = await _read(db)  # not what was written: another replica may have been first
    assert found is not None
    return found


async def _read(db: Database) -> str | None:
    row = await db.read_one("SELECT value FROM installation WHERE name = :name", {"name": _NAME})
    return None if row is None else msgspec.convert(row[0], str)
