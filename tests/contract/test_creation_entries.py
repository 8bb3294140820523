"""Creating a match writes few entries into indexes."""

from __future__ import annotations

from matchpod.ports import Database
from tests.bench.creation import create, entries
from tests.contract import databases
from tests.contract.test_audited_acts import World

harness = databases.harness


async def test_creation_of_a_series_of_three_maps_writes_21_entries_into_indexes(db: Database) -> None:
    world = World(db)
    await create(world, 0, 1)  # its counters are entries too, and only changed by later ones
    before = await entries(db)
    await create(world, 1, 2)
    assert await entries(db) - before == 2 * 21, "one of them lists matches whose words are not stored yet"
