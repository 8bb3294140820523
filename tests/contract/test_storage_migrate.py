"""A database gets the tables of this version, once, whoever comes first."""

from __future__ import annotations

import asyncio

import pytest

from matchpod.ports import Database, Statement
from matchpod.storage.migrate import NewerSchema, current_version, migrate
from matchpod.storage.schema import MIGRATIONS
from tests.contract import databases

home = databases.home


def test_migrating_again_changes_nothing(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        assert await migrate(db) == await current_version(db) == len(MIGRATIONS)

    home.run(scenario)


def test_replicas_that_migrate_at_the_same_moment_all_succeed(home: databases.Home) -> None:
    async def main() -> None:
        handles = [await home.open() for _ in range(1 if home.is_sqlite else 4)]
        try:
            versions = await asyncio.gather(*(migrate(db) for db in handles * 2))
        finally:
            for db in handles:
                await db.close()
        assert set(versions) == {len(MIGRATIONS)}

    asyncio.run(main())


def test_a_newer_database_is_refused(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        await db.write([Statement("INSERT INTO schema_versions (version) VALUES (:version)", {"version": 99})])
        with pytest.raises(NewerSchema) as caught:
            await migrate(db)
        assert (caught.value.found, caught.value.known) == (99, len(MIGRATIONS))

    home.run(scenario)
