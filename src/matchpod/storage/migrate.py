"""Migrate a database to the newest schema, with one transaction per migration.

Replicas may start at the same time. The first replica that inserts the row of a version applies its migration; the
others skip it.

The highest number in `schema_versions` is the version that a process must know to start on the database. Migrations
that only expand the schema are recorded in `applied_migrations` instead, so processes of the previous release can still
start, and run next to processes of this release. See `schema.CONTRACTIONS`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

import msgspec

from matchpod.ports import Database, DuplicateError, NothingChangedError, RowLockedError, Statement
from matchpod.storage.migration_locks import LOCK_MS, who_locks, with_short_waits
from matchpod.storage.rows import read_number, write_one
from matchpod.storage.schema import CONTRACTIONS, HASHED_TOKENS, MIGRATIONS, WITHOUT_EXPANSIONS
from matchpod.storage.token_migration import Seal, hash_tokens

_CONVERSIONS: Final[Mapping[tuple[str, ...], Callable[[Database, Seal], Awaitable[list[Statement]]]]] = {
    HASHED_TOKENS: hash_tokens
}
"""Functions that convert stored rows, by migration. The statements that a function returns run after those of its
migration."""

VERSION_TABLES: Final = ("schema_versions", "applied_migrations")

LOCK_PAUSE_S: Final = 5.0
"""Pause in seconds before a migration whose tables were locked is retried."""
_LOGGED_TRIES: Final = 12
"""Number of attempts per log line of a migration that waits for a lock: one line per minute."""

_SUBJECT: Final = re.compile(
    r"\s*((?:CREATE|DROP|ALTER) [A-Z ]+ \w+(?: (?:ADD|RENAME|DROP) COLUMN \w+)?|UPDATE \w+|INSERT INTO \w+)"
)
_log = logging.getLogger(__name__)


class SchemaVersion(msgspec.Struct, frozen=True, kw_only=True):
    """Schema versions of a database. A version is the number of a migration."""

    applied: int
    """The newest applied migration, recorded in either table; 0 if none was applied."""
    required: int
    """The newest migration that a process must know to use the database."""


class NewerSchemaError(Exception):
    """The schema requires a newer version of Matchpod; this version must not use the database."""

    def __init__(self, required: int, known: int) -> None:
        super().__init__(
            f"the database requires schema version {required}, and this Matchpod knows versions up to {known}"
        )
        self.required = required
        self.known = known


async def migrate(
    db: Database,
    seal: Seal,
    *,
    contractions: Mapping[tuple[str, ...], int] = CONTRACTIONS,
    lock_ms: int = LOCK_MS,
    lock_pause_s: float = LOCK_PAUSE_S,
) -> int:
    """Apply the missing migrations, and return the schema version; NewerSchemaError if it requires a newer Matchpod.

    The returned version may be unknown to this process, if a newer process has expanded the schema. With PostgreSQL, a
    migration that cannot lock its tables is retried. Other processes are not blocked while it waits.
    """
    tries = 0
    for table in VERSION_TABLES:
        if not await _exists(db, table):
            # If two replicas create the table at the same time, PostgreSQL raises an error in one of them; the table
            # exists then.
            with contextlib.suppress(DuplicateError):
                await write_one(db, f"CREATE TABLE IF NOT EXISTS {table} (version BIGINT PRIMARY KEY)")
    version = await current_version(db)
    while version < len(MIGRATIONS):
        migration = MIGRATIONS[version]
        convert = _CONVERSIONS.get(migration)
        converted = await convert(db, seal) if convert else []
        # DuplicateError: another replica has just applied this version, and our transaction was rolled back.
        # NothingChangedError: rows have changed after they were converted, so convert them again. The row of the
        # version is inserted first, so that other replicas wait for it while the migration runs.
        waits = with_short_waits(migration, lock_ms) if db.is_postgres else ()
        changes = (Statement(sql, is_long=True) for sql in migration)
        try:
            await db.write([*_marks(version, contractions), *waits, *changes, *converted])
        except (DuplicateError, NothingChangedError):
            pass
        except RowLockedError:
            if tries % _LOGGED_TRIES == 0:
                used_by = await who_locks(db, migration)
                fields = {"migration": version + 1, "changes": describe(version + 1), "used_by": used_by}
                _log.warning("migration waits: its tables are in use", extra=fields)
            tries += 1
            await asyncio.sleep(lock_pause_s)
        version = await current_version(db)
    if (required := await required_version(db)) > len(MIGRATIONS):
        raise NewerSchemaError(required, len(MIGRATIONS))
    return version


def _marks(version: int, contractions: Mapping[tuple[str, ...], int]) -> list[Statement]:
    """Return the statements that record the migration from this version to the next."""
    table = "schema_versions" if version < WITHOUT_EXPANSIONS else "applied_migrations"
    marks = [Statement(f"INSERT INTO {table} (version) VALUES (:version)", {"version": version + 1})]
    if required := contractions.get(MIGRATIONS[version]):
        insert = "INSERT INTO schema_versions (version) VALUES (:version) ON CONFLICT (version) DO NOTHING"
        marks.append(Statement(insert, {"version": required}))
    return marks


async def current_version(db: Database) -> int:
    """Return the number of the newest applied migration; 0 if none was applied."""
    both = " UNION ALL ".join(f"SELECT version FROM {table}" for table in VERSION_TABLES)
    return await read_number(db, f"SELECT COALESCE(MAX(version), 0) FROM ({both}) AS versions")


async def required_version(db: Database) -> int:
    """Return the number of the newest migration that a process must know to use the database."""
    return await read_number(db, "SELECT COALESCE(MAX(version), 0) FROM schema_versions")


async def read_version(db: Database) -> SchemaVersion:
    """Read the schema version of any database, even a new or empty one, without changing the database."""
    found = {
        table: await read_number(db, f"SELECT COALESCE(MAX(version), 0) FROM {table}")
        for table in VERSION_TABLES
        if await _exists(db, table)
    }
    return SchemaVersion(applied=max(found.values(), default=0), required=found.get("schema_versions", 0))


def describe(version: int) -> str:
    """Describe for operators what the migration to a version changes."""
    found = (_SUBJECT.match(sql) for sql in MIGRATIONS[version - 1])
    return ", ".join(dict.fromkeys(" ".join(subject[1].split()) for subject in found if subject))


async def _exists(db: Database, table: str) -> bool:
    # In PostgreSQL, CREATE TABLE IF NOT EXISTS needs the right to create tables, even if the table exists.
    catalog = "pg_class WHERE oid = to_regclass(:name)" if db.is_postgres else "sqlite_master WHERE name = :name"
    return await read_number(db, f"SELECT COUNT(*) FROM {catalog}", {"name": table}) > 0
