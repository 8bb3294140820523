"""Create the databases of the history benchmark, a SQLite file and a real PostgreSQL, and load rows in bulk.

Bulk loading bypasses the service's own adapters, because they wait for the disk and have timeouts. All measured reads
go through them.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import asyncpg  # type: ignore[import-untyped]

from matchpod.adapters.postgres import PostgresDatabase
from matchpod.adapters.sql_text import number_parameters
from matchpod.adapters.sqlite import SqliteDatabase
from matchpod.ports import Database, Statement
from tests.chaos.stores import PostgresServer

_LOAD_S: Final = 600.0
_CACHE_KB: Final = 512 * 1024
_FUNCTIONS: Final = (
    "CREATE OR REPLACE FUNCTION uuid_of(seed TEXT) RETURNS TEXT LANGUAGE SQL IMMUTABLE"
    " AS 'SELECT CAST(CAST(md5(seed) AS UUID) AS TEXT)'",
    "CREATE OR REPLACE FUNCTION bytes_of(word TEXT) RETURNS BYTEA LANGUAGE SQL IMMUTABLE"
    " AS 'SELECT convert_to(word, ''UTF8'')'",
)


class SqliteHome:
    """A SQLite file in a folder."""

    def __init__(self, folder: Path, name: str) -> None:
        self._path = folder / f"{name}.sqlite"

    async def open(self) -> Database:
        return await SqliteDatabase.open(self._path)

    def load(self, statements: Iterator[str]) -> None:
        """Run the statements one by one. ANALYZE is not run, because the service never runs it."""
        with contextlib.closing(sqlite3.connect(self._path, isolation_level=None)) as connection:
            connection.create_function("uuid_of", 1, _uuid_of, deterministic=True)
            connection.create_function("bytes_of", 1, str.encode, deterministic=True)
            for setting in (f"cache_size = -{_CACHE_KB}", "synchronous = OFF", "temp_store = MEMORY"):
                connection.execute(f"PRAGMA {setting}")
            for statement in statements:
                connection.execute(statement)
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _uuid_of(text: str) -> str:
    digits = hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


class PostgresHome:
    """A schema in a PostgreSQL server that was started for the benchmark."""

    def __init__(self, server: str, name: str) -> None:
        self._url = f"{server}&search_path={name}"
        self._name = name

    async def open(self) -> Database:
        db = await PostgresDatabase.open(self._url)
        await db.write([Statement(f"CREATE SCHEMA IF NOT EXISTS {self._name}")])
        return db

    def load(self, statements: Iterator[str]) -> None:
        """Run the statements one by one, then VACUUM ANALYZE, as autovacuum does after a while."""
        asyncio.run(self._load(statements))

    async def _load(self, statements: Iterator[str]) -> None:
        connection = await asyncpg.connect(self._url, command_timeout=_LOAD_S)
        try:
            for setting in ("work_mem", "maintenance_work_mem"):
                await connection.execute(f"SET {setting} = '{_CACHE_KB}kB'")
            for function in _FUNCTIONS:
                await connection.execute(function)
            for statement in statements:
                await connection.execute(number_parameters(statement).text)
            await connection.execute("VACUUM ANALYZE")
        finally:
            await connection.close()


Home = SqliteHome | PostgresHome


@contextlib.contextmanager
def running_postgres(folder: Path) -> Iterator[str]:
    """Start a PostgreSQL server with default settings in a folder, yield its URL, and stop it at the end."""
    with contextlib.closing(PostgresServer(folder / "postgres")) as server:
        yield server.url
