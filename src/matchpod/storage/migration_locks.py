"""Keep PostgreSQL migrations that wait for a lock from blocking running matches.

Dropping an index or adding a column needs an exclusive lock. `pg_dump` locks all tables until it ends. If a migration
waited for it, all later queries would wait behind the migration. So a migration has a short lock timeout, and is
retried until its tables are free. Before it builds an index, it acquires all its locks once and releases them, so that
no work is lost after a timeout.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from matchpod.ports import Database, Statement
from matchpod.storage.schema import MIGRATIONS

LOCK_MS: Final = 500
"""Lock timeout of a migration in ms. A transaction of a running match holds its locks for a much shorter time."""

_INDEX: Final = re.compile(r"\s*CREATE (?:UNIQUE )?INDEX (\w+)\s+ON (\w+)")
_TABLE_OF_INDEX: Final = {found[1]: found[2] for sqls in MIGRATIONS for sql in sqls if (found := _INDEX.match(sql))}
_NEW: Final = re.compile(r"\s*CREATE TABLE (\w+)")
_CHANGED: Final = re.compile(r"\s*(?:ALTER TABLE (?P<table>\w+)|DROP INDEX (?P<index>\w+))")


def locked_tables(migration: Sequence[str]) -> list[str]:
    """Return the tables that this migration locks exclusively, except tables that it creates."""
    changes = (change for sql in migration if (change := _CHANGED.match(sql)))
    tables = dict.fromkeys(change["table"] or _TABLE_OF_INDEX[change["index"]] for change in changes)
    new = {found[1] for sql in migration if (found := _NEW.match(sql))}
    return [table for table in tables if table not in new]


def with_short_waits(migration: Sequence[str], lock_ms: int = LOCK_MS) -> list[Statement]:
    """Return the first statements of a migration's transaction: set the lock timeout, and try to acquire the locks."""
    limit = [Statement(f"SET LOCAL lock_timeout = {lock_ms}")]
    tables = locked_tables(migration)
    if not tables:
        return limit
    probe = ("SAVEPOINT probe", f"LOCK TABLE {', '.join(tables)}", "ROLLBACK TO SAVEPOINT probe")
    return [*limit, *map(Statement, probe)]


async def who_locks(db: Database, migration: Sequence[str]) -> list[str]:
    """Return the names of the programs that hold a lock on one of `locked_tables`, the oldest transaction first."""
    sql = """
    SELECT activity.application_name || ' (process ' || activity.pid || ')' FROM pg_stat_activity AS activity
    WHERE activity.datname = current_database() AND activity.pid <> pg_backend_pid() AND activity.pid IN (
        SELECT pid FROM pg_locks WHERE granted AND relation = ANY(CAST(string_to_array(:tables, ' ') AS REGCLASS[]))
    ) ORDER BY activity.xact_start, activity.pid
    """
    rows = await db.read(sql, {"tables": " ".join(locked_tables(migration))})
    return [str(program) for (program,) in rows]
