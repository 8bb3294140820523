"""The id of an installation: made once with its database, whichever replica asks first."""

from __future__ import annotations

import asyncio

from matchpod.adapters.fleets.agones_options import is_label_value
from matchpod.ports import Database
from matchpod.storage.installation_identity import installation_id
from matchpod.storage.rows import write_one
from tests.contract import databases
from tests.contract.databases import Replicas

harness = databases.harness
postgres_url = databases.postgres_url


async def test_replicas_that_start_together_have_the_same_id(replicas: Replicas) -> None:
    ids = await asyncio.gather(*(installation_id(db) for db in replicas * 4))
    assert len(set(ids)) == 1
    assert is_label_value(ids[0])
    assert await installation_id(replicas[1]) == ids[0], "it is kept"


async def test_another_database_has_another_id(db: Database) -> None:
    first = await installation_id(db)
    await write_one(db, "DELETE FROM installation")  # as in a new database
    assert await installation_id(db) != first
