"""One match a slot, one slot a match, however many ask at once."""

from __future__ import annotations

import asyncio

from matchpod.ports import Database
from matchpod.storage import slots
from tests.contract import databases

home = databases.home


def test_a_match_keeps_the_slot_it_has(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        assert await slots.reserve(db, "eu", "srv_1", ["a", "b"]) == "a"
        assert await slots.reserve(db, "eu", "srv_2", ["a", "b"]) == "b"
        assert await slots.reserve(db, "eu", "srv_1", ["b", "a"]) == "a"
        assert await slots.reserve(db, "us", "srv_3", ["a"]) == "a"
        assert await slots.taken(db) == {"eu": {"a": "srv_1", "b": "srv_2"}, "us": {"a": "srv_3"}}

    home.run(scenario)


def test_a_full_region_has_no_slot_until_one_is_freed(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        assert await slots.reserve(db, "eu", "srv_1", ["a"]) == "a"
        assert await slots.reserve(db, "eu", "srv_2", ["a"]) is None
        await db.write([slots.free("srv_1"), slots.free("srv_1")])
        assert await slots.reserve(db, "eu", "srv_2", ["a"]) == "a"
        assert await slots.reserve(db, "eu", "srv_3", []) is None

    home.run(scenario)


def test_many_matches_that_reserve_at_once_get_different_slots(home: databases.Home) -> None:
    async def scenario(db: Database, peer: Database) -> None:
        places = [f"slot {number}" for number in range(8)]
        got = await asyncio.gather(
            *(slots.reserve((db, peer)[number % 2], "eu", f"srv_{number}", places) for number in range(12))
        )
        assert sorted(slot for slot in got if slot is not None) == places
        assert got.count(None) == 4

    home.run_replicas(scenario)


def test_one_match_that_reserves_twice_at_once_gets_one_slot(home: databases.Home) -> None:
    async def scenario(db: Database, peer: Database) -> None:
        got = await asyncio.gather(
            *(slots.reserve((db, peer)[number % 2], "eu", "srv_1", ["a", "b", "c"]) for number in range(6))
        )
        assert len(set(got)) == 1
        assert await slots.taken(db) == {"eu": {got[0]: "srv_1"}}

    home.run_replicas(scenario)
