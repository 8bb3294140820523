"""Migrations are applied once, even by concurrent processes."""

from __future__ import annotations

import asyncio

import pytest

from matchpod.ports import Database, Statement
from matchpod.storage.migrate import NewerSchemaError, current_version, migrate
from matchpod.storage.schema import MIGRATIONS
from tests.contract import databases

harness = databases.harness


async def test_migrating_again_changes_nothing(db: Database) -> None:
    assert await migrate(db) == await current_version(db) == len(MIGRATIONS)


async def test_concurrent_migrations_all_succeed(harness: databases.Harness) -> None:
    handles = [await harness.open() for _ in range(1 if harness.is_sqlite else 4)]
    try:
        versions = await asyncio.gather(*(migrate(db) for db in handles * 2))
    finally:
        for db in handles:
            await db.close()
    assert set(versions) == {len(MIGRATIONS)}


async def test_newer_schema_is_rejected(db: Database) -> None:
    await db.write([Statement("INSERT INTO schema_versions (version) VALUES (:version)", {"version": 99})])
    with pytest.raises(NewerSchemaError) as caught:
        await migrate(db)
    assert (caught.value.found, caught.value.known) == (99, len(MIGRATIONS))
