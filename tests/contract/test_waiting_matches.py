"""A free server goes to the oldest waiting match of the organization that holds the fewest servers in its region."""

from __future__ import annotations

import asyncio
import random
from collections import Counter

import pytest

from matchpod.core.server_status import ServerPhase, ServerStatus
from matchpod.ports import Database
from matchpod.service.runner.intervals import Intervals
from matchpod.storage import resting_slots, servers, slots, waiting_matches
from matchpod.storage.resting_slots import REST_MS, RestingSlot
from matchpod.storage.servers import ServerRow
from tests.contract import databases
from tests.contract.simulated_region import SimulatedRegion
from tests.contract.test_fleet_without_slots import open_cluster
from tests.contract.test_storage_servers import create, server
from tests.contract.world import START_MS, World

harness = databases.harness
on_sqlite = pytest.mark.parametrize("harness", ["sqlite"], indirect=True)

NOW_MS = 1_800_000_000_000


def waiting(name: str, org_id: str, created_at_ms: int, **fields: object) -> ServerRow:
    """A pending match that looks for a server again in a minute."""
    usual = {"phase": ServerPhase.PENDING, "status": ServerStatus.PENDING, "next_at_ms": NOW_MS + 60_000}
    return server(name, org_id=org_id, created_at_ms=created_at_ms, **(usual | fields))


async def reserve(db: Database, name: str, *wanted: str) -> str | None:
    row = await servers.get(db, name)
    assert row is not None
    return await slots.reserve(db, row, wanted)


async def woken(db: Database, limit: int) -> set[str]:
    """Wake the next matches of the region; return them."""
    (rows,) = await db.write([waiting_matches.wake("eu", NOW_MS, limit=limit)])
    return {str(name) for (name,) in rows}


async def test_matches_that_kept_their_server_are_woken_without_a_free_one(db: Database) -> None:
    await create(
        db,
        waiting("srv_kept", "org_a", 1, slot="a"),
        waiting("srv_none", "org_a", 2),
        waiting("srv_us", "org_a", 3, slot="a", region="us"),
        server("srv_running", org_id="org_a", phase=ServerPhase.RUNNING, slot="b", next_at_ms=NOW_MS + 1),
    )
    (rows,) = await db.write([waiting_matches.wake_with_server("eu", NOW_MS)])
    assert rows == [("srv_kept",)]


async def test_free_server_goes_to_the_organization_that_holds_the_fewest(db: Database) -> None:
    await create(
        db,
        server("srv_running", org_id="org_a", phase=ServerPhase.RUNNING, slot="a"),
        waiting("srv_a1", "org_a", 1),
        waiting("srv_a2", "org_a", 2),
        waiting("srv_b1", "org_b", 3),
        waiting("srv_b2", "org_b", 4),
        waiting("srv_us", "org_c", 0, region="us"),
    )
    assert await waiting_matches.next_matches(db, "eu", 9) == ["srv_b1", "srv_a1", "srv_b2", "srv_a2"]
    assert await waiting_matches.next_matches(db, "eu", 2) == ["srv_b1", "srv_a1"]
    assert await reserve(db, "srv_a1", "b") is None
    assert await reserve(db, "srv_b1", "b") == "b"
    assert (await servers.get(db, "srv_b1")) == waiting("srv_b1", "org_b", 3, slot="b")
    assert await waiting_matches.next_matches(db, "eu", 9) == ["srv_a1", "srv_b2", "srv_a2"]
    assert await slots.taken(db) == {"eu": {"b": "srv_b1"}}


async def test_match_gets_a_server_out_of_turn_if_one_is_left_for_each_match_before_it(db: Database) -> None:
    await create(db, *(waiting(f"srv_{number}", "org_a", number) for number in range(4)))
    assert await reserve(db, "srv_2", "a", "b") is None
    assert await reserve(db, "srv_2", "a", "b", "c") == "a"
    assert await reserve(db, "srv_3", "a", "b", "c") is None
    assert await reserve(db, "srv_0", "a", "b", "c") == "b"


async def test_what_holds_a_server_or_waits_for_one_is_counted(db: Database) -> None:
    """A match that was just created waits too, and a server that is being released is still held."""
    held = {ServerPhase.ALLOCATING: "org_a", ServerPhase.ENDING: "org_a", ServerPhase.RELEASED: "org_b"}
    await create(
        db,
        *(server(f"srv_{phase}", org_id=org, phase=phase, slot=phase.value) for phase, org in held.items()),
        server("srv_ended", org_id="org_b", phase=ServerPhase.ENDING),
        waiting("srv_a", "org_a", 1),
        server("srv_new", org_id="org_c", created_at_ms=5),
        waiting("srv_b", "org_b", 6),
    )
    assert await waiting_matches.next_matches(db, "eu", 9) == ["srv_new", "srv_b", "srv_a"]


async def test_next_matches_that_sleep_are_woken(db: Database) -> None:
    await create(
        db,
        server("srv_running", org_id="org_a", phase=ServerPhase.RUNNING, slot="a"),
        waiting("srv_a1", "org_a", 1),
        waiting("srv_a2", "org_a", 2),
        waiting("srv_b1", "org_b", 3),
        waiting("srv_us", "org_c", 0, region="us"),
    )
    assert await woken(db, 1) == {"srv_b1"}
    assert await woken(db, 1) == {"srv_a1"}, "another server became free before the first match has its own"
    assert await woken(db, 5) == {"srv_a2"}
    assert await woken(db, 5) == set()


async def test_two_replicas_share_servers_evenly_between_organizations(replicas: databases.Replicas) -> None:
    """Whatever the order in which matches look: none gets a server before another that comes first."""
    db, peer = replicas
    names = [f"slot {number}" for number in range(10)]
    matches = [waiting(f"srv_a{number}", "org_a", number) for number in range(14)]
    matches += [waiting(f"srv_b{number}", "org_b", 100 + number) for number in range(4)]
    matches += [waiting("srv_c", "org_c", 200)]
    await create(db, *matches)
    random.Random(5).shuffle(matches)
    while len((await slots.taken(db)).get("eu", {})) < len(names):
        looks = (slots.reserve((db, peer)[number % 2], row, names) for number, row in enumerate(matches))
        found = await asyncio.gather(*looks)
        matches = [row for row, slot in zip(matches, found, strict=True) if slot is None]
    got = (await slots.taken(db))["eu"].values()
    assert Counter(name[:5] for name in got) == {"srv_a": 5, "srv_b": 4, "srv_c": 1}
    assert {"srv_a0", "srv_a1", "srv_a2", "srv_a3", "srv_a4"} < set(got)


async def test_process_without_the_lease_reserves_nothing(db: Database) -> None:
    row = waiting("srv_1", "org_a", 1, fence=3)
    await create(db, row)
    assert await slots.reserve(db, server("srv_1", fence=2), ["a"]) is None
    assert await slots.taken(db) == {}
    assert await slots.reserve(db, row, ["a"]) == "a"


# --- driven matches ---------------------------------------------------------------------------------------------------


@on_sqlite
async def test_organization_without_a_server_gets_the_next_one_although_others_have_waited_longer(world: World) -> None:
    world.region = SimulatedRegion(("a", "b"), start_ms=START_MS)
    process = world.start()
    for name in ("srv_0", "srv_1"):
        await world.create(name, scenario="no_show")
        await world.until_phase(ServerPhase.RUNNING, name)
    for number, org_id in ((2, "org_1"), (3, "org_1"), (4, "org_2")):
        name = f"srv_{number}"
        await world.create(name, scenario="no_show", org_id=org_id, created_at_ms=world.clock.now_ms() + number)
        await world.until_phase(ServerPhase.PENDING, name)
    await world.cancel("srv_1", notified=process)
    await world.until(lambda: len(world.region.orders) == 3, "another match has the server")
    assert world.region.orders[2].server_id == "srv_4"
    assert (await world.row("srv_4")).was_pending
    await world.until_phase(ServerPhase.RUNNING, "srv_4")
    await world.cancel("srv_4", notified=process)
    await world.until_phase(ServerPhase.RUNNING, "srv_2")


@on_sqlite
async def test_fleet_without_slots_is_asked_in_the_same_order(db: Database) -> None:
    async with open_cluster(db, 0) as world:
        world.start(intervals=Intervals(free_slots_s=3_600.0))  # so that only a report of the fleet wakes a match
        for number, org_id in ((1, "org_1"), (2, "org_1"), (3, "org_2")):
            name = f"srv_{number}"
            await world.create(name, scenario="no_show", org_id=org_id, created_at_ms=world.clock.now_ms() + number)
            await world.until_phase(ServerPhase.PENDING, name)
        for served, name in ((1, "srv_1"), (2, "srv_3"), (3, "srv_2")):
            world.region.total = served
            world.region.changed()
            await world.until_phase(ServerPhase.RUNNING, name)
        assert [order.server_id for order in world.region.orders] == ["srv_1", "srv_3", "srv_2"]


# --- servers that rest ------------------------------------------------------------------------------------------------


async def test_server_that_rests_gets_no_other_match(db: Database) -> None:
    await create(db, waiting("srv_1", "org_a", 1), waiting("srv_2", "org_a", 2))
    await db.write([resting_slots.rest("eu", "a", "srv_1", NOW_MS), resting_slots.rest("us", "b", "srv_3", NOW_MS)])
    assert await reserve(db, "srv_2", "a", "b") is None, "the only other server is for the match before it"
    assert await reserve(db, "srv_1", "a", "b") == "a", "its own match may try it again"
    await db.write([slots.free("srv_1")])
    assert (await resting_slots.resting(db))["eu"] == [RestingSlot("a", "srv_1", NOW_MS + REST_MS)]


async def test_server_that_has_rested_gets_the_next_match(db: Database) -> None:
    await create(db, waiting("srv_1", "org_a", 1))
    await db.write([resting_slots.rest("eu", "a", "srv_0", NOW_MS)])
    await resting_slots.end_rests(db, NOW_MS + REST_MS - 1)
    assert await reserve(db, "srv_1", "a") is None
    await resting_slots.end_rests(db, NOW_MS + REST_MS)
    assert await reserve(db, "srv_1", "a") == "a"


async def test_rest_is_over_if_the_clock_was_set_back_and_not_if_another_clock_is_behind(db: Database) -> None:
    await db.write([resting_slots.rest("eu", "a", "srv_0", NOW_MS)])
    await resting_slots.end_rests(db, NOW_MS - 5_000)
    assert "eu" in await resting_slots.resting(db)
    await resting_slots.end_rests(db, NOW_MS - 120_000)
    assert await resting_slots.resting(db) == {}


async def test_server_that_is_at_fault_again_rests_from_then_on(db: Database) -> None:
    for name, at_ms in (("srv_1", NOW_MS - 1_000), ("srv_2", NOW_MS)):
        await db.write([resting_slots.rest("eu", "a", name, at_ms)])
    assert await resting_slots.resting(db) == {"eu": [RestingSlot("a", "srv_2", NOW_MS + REST_MS)]}
