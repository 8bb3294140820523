"""One match per slot and one slot per match, even with concurrent reservations."""

from __future__ import annotations

import asyncio

from matchpod.core.server_status import ServerPhase
from matchpod.ports import Database
from matchpod.storage import slots
from tests.contract import databases
from tests.contract.test_storage_servers import create, server

harness = databases.harness


async def test_match_keeps_its_slot(db: Database) -> None:
    assert await slots.reserve(db, "eu", "srv_1", ["a", "b"]) == "a"
    assert await slots.reserve(db, "eu", "srv_2", ["a", "b"]) == "b"
    assert await slots.reserve(db, "eu", "srv_1", ["b", "a"]) == "a"
    assert await slots.reserve(db, "us", "srv_3", ["a"]) == "a"
    assert await slots.taken(db) == {"eu": {"a": "srv_1", "b": "srv_2"}, "us": {"a": "srv_3"}}


async def test_full_region_has_no_slot_until_one_is_freed(db: Database) -> None:
    assert await slots.reserve(db, "eu", "srv_1", ["a"]) == "a"
    assert await slots.reserve(db, "eu", "srv_2", ["a"]) is None
    await db.write([slots.free("srv_1"), slots.free("srv_1")])
    assert await slots.reserve(db, "eu", "srv_2", ["a"]) == "a"
    assert await slots.reserve(db, "eu", "srv_3", []) is None


async def test_concurrent_reservations_get_different_slots(replicas: databases.Replicas) -> None:
    db, peer = replicas
    names = [f"slot {number}" for number in range(8)]
    reserved = await asyncio.gather(
        *(slots.reserve((db, peer)[number % 2], "eu", f"srv_{number}", names) for number in range(12))
    )
    assert sorted(slot for slot in reserved if slot is not None) == names
    assert reserved.count(None) == 4


async def test_concurrent_reservations_of_one_match_get_one_slot(replicas: databases.Replicas) -> None:
    db, peer = replicas
    reserved = await asyncio.gather(
        *(slots.reserve((db, peer)[number % 2], "eu", "srv_1", ["a", "b", "c"]) for number in range(6))
    )
    assert len(set(reserved)) == 1
    assert await slots.taken(db) == {"eu": {reserved[0]: "srv_1"}}


async def test_slots_of_released_and_unknown_servers_are_freed(db: Database) -> None:
    kept = {}
    for number, phase in enumerate(ServerPhase):
        await create(db, server(f"srv_{phase}", phase=phase))
        await slots.reserve(db, "eu", f"srv_{phase}", [f"slot {number}"])
        if phase is not ServerPhase.RELEASED:
            kept[f"slot {number}"] = f"srv_{phase}"
    await slots.reserve(db, "us", "srv_unknown", ["slot 1"])
    assert await slots.free_orphaned(db) == 2
    assert await slots.taken(db) == {"eu": kept}
    assert await slots.free_orphaned(db) == 0
