"""Open the database of a contract test. Its kind is decided by the fixture `harness` of the test's module."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from matchpod.ports import Database
from tests.contract.databases import Harness, Replicas


@pytest.fixture
async def replicas(harness: Harness) -> AsyncIterator[Replicas]:
    """Provide two handles to an empty, migrated database."""
    async with harness.open_replicas() as handles:
        yield handles


@pytest.fixture
def db(replicas: Replicas) -> Database:
    """Provide an empty, migrated database."""
    return replicas[0]
