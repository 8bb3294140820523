"""Open the database and the world of a contract test. The fixture `harness` of a module decides the kind of database."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from matchpod.ports import Database
from tests.contract.databases import Harness, Replicas
from tests.contract.world import World, open_world


@pytest.fixture
async def db(harness: Harness) -> AsyncIterator[Database]:
    """Provide an empty, migrated database."""
    async with harness.open_migrated() as opened:
        yield opened


@pytest.fixture
async def world(db: Database) -> AsyncIterator[World]:
    """Provide a region on that database, and no process yet."""
    async with open_world(db) as opened:
        yield opened


@pytest.fixture
async def replicas(harness: Harness, db: Database) -> AsyncIterator[Replicas]:
    """Provide two handles to the database, like those of two replicas; the same handle twice if it is not shared."""
    if not db.is_shared:
        yield db, db
        return
    other = await harness.open()
    try:
        yield db, other
    finally:
        await other.close()
