"""Migrate a database to the newest schema, one transaction per migration.

Replicas may start at the same time: the first one to insert the row of a version applies it, the others skip it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from matchpod.ports import Database, DuplicateError, NothingChangedError, Statement
from matchpod.storage.rows import read_number, write_one
from matchpod.storage.schema import HASHED_TOKENS, MIGRATIONS
from matchpod.storage.token_migration import Seal, hash_tokens

_CONVERSIONS: Final[Mapping[tuple[str, ...], Callable[[Database, Seal], Awaitable[list[Statement]]]]] = {
    HASHED_TOKENS: hash_tokens
}
"""By migration: what has to be computed from stored rows, and written after its statements."""


class NewerSchemaError(Exception):
    """The database has the schema of a newer version of Matchpod; this version must not touch it."""

    def __init__(self, found: int, known: int) -> None:
        super().__init__(f"the database has version {found}, this Matchpod knows versions up to {known}")
        self.found = found
        self.known = known


async def migrate(db: Database, seal: Seal) -> int:
    """Apply the missing migrations and return the version; NewerSchemaError if the database is newer."""
    # If two replicas create the table at once, PostgreSQL rejects one of them; the table exists then.
    with contextlib.suppress(DuplicateError):
        await write_one(db, "CREATE TABLE IF NOT EXISTS schema_versions (version BIGINT PRIMARY KEY)")
    version = await current_version(db)
    while version < len(MIGRATIONS):
        mark = Statement("INSERT INTO schema_versions (version) VALUES (:version)", {"version": version + 1})
        convert = _CONVERSIONS.get(MIGRATIONS[version])
        converted = await convert(db, seal) if convert else []
        # A duplicate means that another replica has just applied this version, and ours was rolled back. Nothing
        # changed means that rows have changed since they were converted: convert them again.
        with contextlib.suppress(DuplicateError, NothingChangedError):
            await db.write([mark, *(Statement(sql, is_long=True) for sql in MIGRATIONS[version]), *converted])
        version = await current_version(db)
    if version > len(MIGRATIONS):
        raise NewerSchemaError(version, len(MIGRATIONS))
    return version


async def current_version(db: Database) -> int:
    """Return the schema version; 0 if no migration is applied yet."""
    return await read_number(db, "SELECT COALESCE(MAX(version), 0) FROM schema_versions")
