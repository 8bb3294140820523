"""Open the database of a contract test. Its kind is decided by the fixture `harness` of the test's module."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from matchpod.ports import Database
from tests.contract.databases import Harness, Replicas


@pytest.fixture
async def db(harness: Harness) -> AsyncIterator[Database]:
    """Provide an empty, migrated database."""
    async with harness.open_migrated() as opened:
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
