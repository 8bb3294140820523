"""How does a database get the tables of this version? Each migration is one transaction, so none is ever half done.

Replicas may start at the same moment: the first to write a version's row makes it, the others see it is there.
"""

from __future__ import annotations

import contextlib

import msgspec

from matchpod.ports import Database, DuplicateError, Statement
from matchpod.storage.schema import MIGRATIONS


class NewerSchema(Exception):  # noqa: N818 - reads as what was found
    """The database was made by a newer version of Matchpod; this one must not touch it."""

    def __init__(self, found: int, known: int) -> None:
        super().__init__(f"the database has version {found}, this Matchpod knows versions up to {known}")
        self.found = found
        self.known = known


async def migrate(db: Database) -> int:
    """Apply the missing migrations and answer the version; NewerSchema when the database is ahead of us."""
    # Two replicas that create the same table at once: PostgreSQL refuses one of them, and the table is there.
    with contextlib.suppress(DuplicateError):
        await db.write([Statement("CREATE TABLE IF NOT EXISTS schema_versions (version BIGINT PRIMARY KEY)")])
    version = await current_version(db)
    while version < len(MIGRATIONS):
        mark = Statement("INSERT INTO schema_versions (version) VALUES (:version)", {"version": version + 1})
        # Refused when another replica has just made this version: then ours was rolled back, and nothing is missing.
        with contextlib.suppress(DuplicateError):
            await db.write([mark, *(Statement(sql) for sql in MIGRATIONS[version])])
        version = await current_version(db)
    if version > len(MIGRATIONS):
        raise NewerSchema(version, len(MIGRATIONS))
    return version


async def current_version(db: Database) -> int:
    """The version of the tables; 0 when there are none yet."""
    rows = await db.read("SELECT COALESCE(MAX(version), 0) FROM schema_versions")
    return msgspec.convert(rows[0][0], int)
