"""The service drives matches on a fleet that decides itself which match gets a server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from matchpod.core.server_status import ServerPhase
from matchpod.ports import Database, FleetUnavailableError
from matchpod.service.runner.intervals import Intervals
from matchpod.service.runner.start import LOOK_AGAIN_MS
from matchpod.storage.servers import LEASE_MS
from tests.contract import databases
from tests.contract.simulated_cluster import SimulatedCluster
from tests.contract.world import START_MS, Process, World

harness = databases.sqlite_harness


class ClusterWorld(World):
    """A world whose region is a cluster."""

    region: SimulatedCluster


@asynccontextmanager
async def open_cluster(db: Database, total: int) -> AsyncIterator[ClusterWorld]:
    world = ClusterWorld(db, SimulatedCluster(total, start_ms=START_MS))
    try:
        yield world
    finally:
        await world.close()


async def test_waiting_matches_get_servers_in_order_as_soon_as_one_is_ready(db: Database) -> None:
    names = ("srv_1", "srv_2", "srv_3")
    async with open_cluster(db, 0) as world:
        # so that only a report of the fleet wakes a match
        world.start(intervals=Intervals(free_slots_s=3_600.0))
        for number, name in enumerate(names):
            await world.create(name, created_at_ms=world.clock.now_ms() + number)
            await world.until_phase(ServerPhase.PENDING, name)
        assert world.region.orders == []  # the fleet is not asked while it has no server
        for served in range(1, len(names) + 1):
            world.region.total = served
            world.region.changed()
            await world.until_phase(ServerPhase.RUNNING, names[served - 1])
        assert [order.server_id for order in world.region.orders] == [*names]


async def test_server_is_found_again_after_the_answer_of_the_fleet_was_lost(db: Database) -> None:
    async with open_cluster(db, 1) as world:
        world.region.lost_answers = 1
        world.start()
        await world.create()
        assert (await world.outcome()).kind == "match_over"
        assert world.region.running == {}


async def test_server_of_a_process_that_died_after_allocating_it_is_used(db: Database) -> None:
    async with open_cluster(db, 1) as world:
        dead = world.start("dead")
        allocate = world.region.allocate

        async def die(order: object) -> object:
            server = await allocate(order)  # type: ignore[arg-type]
            dead.db.die()
            return server

        world.region.allocate = die  # type: ignore[assignment, method-assign]
        await world.create()

        async def is_started() -> bool:
            return bool(world.region.running)

        await world.until(is_started, "a server is allocated")
        await dead.kill()
        world.region.allocate = allocate  # type: ignore[method-assign]
        assert (await world.row()).slot == ""
        world.clock.at_ms += LEASE_MS
        world.start("successor")
        assert (await world.outcome()).kind == "match_over"
        assert [order.is_repeated for order in world.region.orders] == [False, True]
        assert world.region._started == 1


async def test_match_waits_while_the_fleet_is_unavailable(db: Database) -> None:
    async with open_cluster(db, 1) as world:
        world.region.allocation_errors = [FleetUnavailableError("The cluster does not answer.") for _ in range(2)]
        world.start()
        await world.create()
        await world.until_phase(ServerPhase.PENDING)
        row = await world.row()
        assert (row.tries, row.error) == (0, "The cluster does not answer.")
        await world.until_phase(ServerPhase.RUNNING)


async def test_match_waits_without_an_attempt_while_the_fleet_has_a_fault_and_starts_when_it_has_none(
    db: Database,
) -> None:
    async with open_cluster(db, 1) as world:
        world.region.why_unusable = "The cluster cannot be reached."
        # so that only a report of the fleet wakes a match
        process = world.start(intervals=Intervals(free_slots_s=3_600.0))
        await world.create()
        await world.until_phase(ServerPhase.PENDING)
        world.region.changed()
        row = await world.row()
        assert (row.slot, row.tries, row.error) == (None, 0, "The cluster cannot be reached.")
        assert world.region.orders == []
        pause_region(process, world.clock.now_ms())  # as attempts from before the fault was known may have done
        world.region.why_unusable = None
        world.region.changed()
        await world.until_phase(ServerPhase.RUNNING)
        assert (await world.row()).error is None


def pause_region(process: Process, now_ms: int) -> None:
    """Record failed attempts until the pause of the region is longer than any test."""
    for _ in range(10):
        process.deps.machine_faults.record("eu", now_ms)
        process.deps.machine_faults.may_start("eu", now_ms + 60_000)


async def die_after_allocation(world: ClusterWorld) -> None:
    """Let a process die when it has allocated a server, and its lease expire. The game stands still until it is told."""
    process = world.start("first")
    world.region.is_paused = True
    await world.create()

    async def is_allocated() -> bool:
        return (await world.row()).slot == "pod-1"

    await world.until(is_allocated, "the server is allocated")
    await process.kill()
    world.clock.at_ms += LEASE_MS


async def test_match_keeps_its_server_while_no_other_can_be_started(db: Database) -> None:
    async with open_cluster(db, 2) as world:
        await die_after_allocation(world)
        second = world.start("second")
        pause_region(second, world.clock.now_ms())
        await world.until_phase(ServerPhase.PENDING)
        assert (await world.row()).slot == "pod-1"
        world.region.is_paused = False
        second.deps.machine_faults.clear("eu")
        world.clock.at_ms += LOOK_AGAIN_MS
        assert (await world.outcome()).kind == "match_over"
        assert world.region._started == 1


async def test_match_with_a_server_goes_on_when_the_fault_is_over_although_no_other_server_is_ready(
    db: Database,
) -> None:
    async with open_cluster(db, 1) as world:
        await die_after_allocation(world)
        world.region.why_unusable = "The cluster cannot be reached."
        world.start("second", intervals=Intervals(free_slots_s=3_600.0))
        await world.until_phase(ServerPhase.PENDING)
        world.region.changed()
        assert (await world.row()).slot == "pod-1"
        assert (await world.region.capacity()).ready == 0
        world.region.is_paused = False
        world.region.why_unusable = None
        world.region.changed()
        assert (await world.outcome()).kind == "match_over"
        assert world.region._started == 1


async def test_match_whose_server_is_gone_when_it_goes_on_gets_another_one_and_new_tokens(db: Database) -> None:
    async with open_cluster(db, 1) as world:
        await die_after_allocation(world)
        before = await world.row()
        await world.region.delete("srv_1")
        world.region.total = 0
        world.start("second")
        await world.until_phase(ServerPhase.PENDING)
        assert (await world.row()).log_token != before.log_token
        world.region.is_paused = False
        world.region.total = 1
        world.region.changed()
        await world.until_phase(ServerPhase.RUNNING)
