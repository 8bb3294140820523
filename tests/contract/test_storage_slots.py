"""One match per slot and one slot per match, even with concurrent reservations."""

from __future__ import annotations

import asyncio

from matchpod.core.server_status import ServerPhase
from matchpod.ports import Database
from matchpod.storage import servers, slots
from tests.contract import databases
from tests.contract.test_storage_servers import create, server, take_slot

harness = databases.harness


async def reserve(db: Database, name: str, *wanted: str) -> str | None:
    """Reserve a slot for a match of a region whose name begins with its own; create the match if there is none."""
    row = await servers.get(db, name)
    if row is None:
        row = server(name, region=name.partition("_")[0], org_id=f"org of {name}")
        await create(db, row)
    return await slots.reserve(db, row, wanted)


async def test_each_match_gets_the_first_of_its_slots_that_is_free(db: Database) -> None:
    assert await reserve(db, "eu_1", "a", "b") == "a"
    assert await reserve(db, "eu_2", "a", "b") == "b"
    assert await reserve(db, "us_1", "c", "a") == "c"
    assert await slots.taken(db) == {"eu": {"a": "eu_1", "b": "eu_2"}, "us": {"c": "us_1"}}
    assert [row.slot for name in ("eu_1", "eu_2", "us_1") if (row := await servers.get(db, name))] == ["a", "b", "c"]


async def test_full_region_has_no_slot_until_one_is_freed(db: Database) -> None:
    assert await reserve(db, "eu_1", "a") == "a"
    assert await reserve(db, "eu_2", "a") is None
    await db.write([slots.free("eu_1"), slots.free("eu_1")])
    assert await reserve(db, "eu_2", "a") == "a"
    assert await reserve(db, "eu_3") is None


async def test_slot_that_an_earlier_version_reserved_and_did_not_use_is_freed(db: Database) -> None:
    """It set the slot in the row of the match afterwards, so its process may have died in between."""
    await take_slot(db, "eu", "a", "eu_1")
    assert await reserve(db, "eu_1", "b", "a") == "b"
    assert await slots.taken(db) == {"eu": {"b": "eu_1"}}


async def test_concurrent_reservations_get_different_slots(replicas: databases.Replicas) -> None:
    db, peer = replicas
    await create(db, *(server(f"srv_{number}") for number in range(8)))
    rows = [row for number in range(8) if (row := await servers.get(db, f"srv_{number}"))]
    names = [f"slot {number}" for number in range(8)]
    found = (slots.reserve((db, peer)[number % 2], row, names) for number, row in enumerate(rows))
    assert sorted(filter(None, await asyncio.gather(*found))) == names


async def test_of_matches_that_claim_an_address_at_once_one_gets_it(replicas: databases.Replicas) -> None:
    await create(replicas[0], *(server(f"srv_{number}") for number in range(8)))
    rows = [row for number in range(8) if (row := await servers.get(replicas[0], f"srv_{number}"))]
    for number, row in enumerate(rows):
        assert await slots.reserve(replicas[0], row, [f"slot {number}"])

    async def claims(port: int) -> list[bool]:
        found = (slots.claim_address(replicas[n % 2], row, "192.0.2.1", port) for n, row in enumerate(rows))
        return sorted(await asyncio.gather(*found))

    for port in range(5):
        assert await claims(port) == [False] * 7 + [True], port


async def test_address_may_be_claimed_again_and_after_the_slot_was_freed(db: Database) -> None:
    for name in ("eu_1", "us_1"):
        await reserve(db, name, "a")
    first, second = [row for name in ("eu_1", "us_1") if (row := await servers.get(db, name))]
    assert await slots.claim_address(db, first, "192.0.2.1", 1)
    assert await slots.claim_address(db, first, "192.0.2.1", 1)
    assert not await slots.claim_address(db, second, "192.0.2.1", 1)
    assert await slots.claim_address(db, second, "192.0.2.1", 2)
    await db.write([slots.free("eu_1")])
    assert await slots.claim_address(db, second, "192.0.2.1", 1)


async def test_slots_of_released_and_unknown_servers_are_freed(db: Database) -> None:
    kept = {}
    for number, phase in enumerate(ServerPhase):
        await create(db, server(f"srv_{phase}", phase=phase))
        await take_slot(db, "eu", f"slot {number}", f"srv_{phase}")
        if phase is not ServerPhase.RELEASED:
            kept[f"slot {number}"] = f"srv_{phase}"
    await take_slot(db, "us", "slot 1", "srv_unknown")
    assert await slots.free_orphaned(db) == 2
    assert await slots.taken(db) == {"eu": kept}
    assert await slots.free_orphaned(db) == 0
