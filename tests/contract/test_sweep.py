"""Sweeps release leftovers of their own installation, and leave everything else to an operator."""

from __future__ import annotations

import logging

import msgspec
import pytest

from matchpod.core.server_status import ServerPhase
from matchpod.core.servers.orphaned_servers import UNKNOWN_MS
from matchpod.ports import Database
from matchpod.service.access.audit import Audit
from matchpod.service.region_checks.requests import RegionChecks
from matchpod.service.regions.switch import RegionSwitch
from matchpod.service.runner.sweep import Sweeper
from matchpod.storage import region_checks, slots
from matchpod.storage.region_checks import STALE_MS, CheckRow
from tests.contract import databases
from tests.contract.world import ORPHAN_ORDER, Process, World

harness = databases.sqlite_harness


async def run_servers(world: World, *server_ids: str) -> None:
    """Start servers for matches that this database may not know."""
    for number, server_id in enumerate(server_ids):
        await world.region.allocate(
            msgspec.structs.replace(ORPHAN_ORDER, server_id=server_id, slot=f"{server_id} {number}")
        )


async def stopped_process(world: World) -> Process:
    """Return a process that sweeps only when it is told to."""
    process = world.start()
    await process.end()
    return process


async def sweep_twice(world: World, sweeper: Sweeper) -> None:
    """Sweep, and again minutes later."""
    await sweeper.sweep()
    world.clock.at_ms += UNKNOWN_MS
    await sweeper.sweep()


def switch_of(world: World) -> RegionSwitch:
    return RegionSwitch(db=world.db, audit=Audit(db=world.db, clock=world.clock), codes=["eu"])


async def test_leftover_next_to_a_match_is_released_by_the_second_sweep(world: World) -> None:
    process = await stopped_process(world)
    await world.create("srv_x", phase=ServerPhase.RUNNING)
    await run_servers(world, "srv_a", "srv_x")
    sweeper = Sweeper(process.deps)
    await sweeper.sweep()
    assert world.region.releases == []
    await sweep_twice(world, sweeper)
    assert world.region.releases == ["srv_a"]
    assert process.deps.metrics.swept.value("eu") == 1


async def test_service_on_an_empty_database_releases_nothing_and_says_so(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    process = await stopped_process(world)
    await run_servers(world, "srv_a", "srv_b")
    sweeper = Sweeper(process.deps)
    for _ in range(3):
        await sweep_twice(world, sweeper)
    assert world.region.releases == []
    (said,) = [one for one in caplog.records if one.levelno == logging.ERROR]
    assert "`matchpod regions sweep eu --yes`" in said.message
    assert vars(said)["server_ids"] == ["srv_a", "srv_b"]
    assert process.deps.metrics.withheld.value("eu") == 2
    (state,) = await process.deps.regions.states()
    assert state.withheld == 2


async def test_confirmed_servers_are_released_by_any_process_and_others_are_not(world: World) -> None:
    process = await stopped_process(world)
    await run_servers(world, "srv_a", "srv_b")
    await sweep_twice(world, Sweeper(process.deps))
    confirmed = await switch_of(world).confirm_sweep("eu", actor="test")
    assert [one.server_id for one in confirmed or ()] == ["srv_a", "srv_b"]
    await run_servers(world, "srv_c")
    restarted = Sweeper(process.deps)
    await restarted.sweep()
    assert sorted(world.region.releases) == ["srv_a", "srv_b"]
    await restarted.sweep()
    assert await switch_of(world).withheld("eu") == []
    assert list(world.region.running) == ["srv_c"]


async def test_unknown_region_cannot_be_confirmed(world: World) -> None:
    assert await switch_of(world).confirm_sweep("mars", actor="test") is None


async def test_servers_of_another_installation_are_reported_once_and_left_alone(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    process = await stopped_process(world)
    await world.create("srv_ended", phase=ServerPhase.RELEASED)
    await run_servers(world, "srv_a", "srv_b", "srv_ended")
    world.region.owners = {"srv_a": False, "srv_b": None, "srv_ended": None}
    sweeper = Sweeper(process.deps)
    for _ in range(3):
        await sweep_twice(world, sweeper)
    assert world.region.releases == ["srv_ended"], "an early version started it, but its match is ours"
    (said,) = [one for one in caplog.records if one.message == "servers of another installation are left alone"]
    assert vars(said)["server_ids"] == ["srv_a", "srv_b"]
    assert process.deps.metrics.foreign.value("eu") == 2
    assert process.deps.metrics.withheld.value("eu") == 0


async def test_server_of_a_check_is_released_once_no_process_works_on_it(world: World) -> None:
    process = await stopped_process(world)
    checks = RegionChecks(db=world.db, clock=world.clock, audit=Audit(db=world.db, clock=world.clock), codes=["eu"])
    check = await checks.request("eu", actor="tester")
    await region_checks.begin(world.db, "eu", world.clock.now_ms())
    await run_servers(world, check.id)
    assert await region_checks.hold_slot(world.db, await newest_check(world.db), "a")
    sweeper = Sweeper(process.deps)
    await sweeper.sweep()
    assert (world.region.releases, await slots.taken(world.db)) == ([], {"eu": {"a": check.id}})
    world.clock.at_ms += STALE_MS + 1
    await sweeper.sweep()
    assert (world.region.releases, await slots.taken(world.db)) == ([check.id], {})


async def newest_check(db: Database) -> CheckRow:
    row = await region_checks.newest(db, "eu")
    assert row is not None
    return row
