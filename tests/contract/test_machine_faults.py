"""A match waits while the machine of its region cannot start servers."""

from __future__ import annotations

import errno
import logging

import pytest

from matchpod.core.effects import CancelReason
from matchpod.core.server_status import ServerPhase, ServerStatus
from matchpod.ports import FleetError
from matchpod.service.match_log.fold import MAX_STEP_MS
from matchpod.service.runner import start
from matchpod.service.runner.intervals import Intervals
from matchpod.service.runner.machine_faults import MachineFaults
from tests.contract import databases
from tests.contract.world import PENDING_MS, World

harness = databases.sqlite_harness


def no_space() -> FleetError:
    error = FleetError("the server cannot be started: [Errno 28] No space left on device")
    error.__cause__ = OSError(errno.ENOSPC, "No space left on device")
    return error


async def test_match_waits_for_a_machine_that_cannot_start_servers_without_losing_attempts(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.region.allocation_errors = [no_space() for _ in range(start.TRIES + 2)]
    with caplog.at_level(logging.WARNING):
        world.start(machine_faults=MachineFaults(first_pause_ms=20))
        await world.create(scenario="no_show")
        await world.until_phase(ServerPhase.RUNNING)
    row = await world.row()
    assert (row.tries, row.was_pending, row.error) == (0, True, None)
    assert [one.message for one in caplog.records] == ["servers cannot be started, match waits"] * 5
    assert {vars(one)["error"] for one in caplog.records} == {str(no_space())}


async def test_match_fails_without_capacity_if_the_machine_starts_no_server_in_time(world: World) -> None:
    """A clock that is set forward by an hour is not an hour of waiting."""
    world.region.allocation_errors = [no_space() for _ in range(100)]
    world.start()
    await world.create()
    await world.until_phase(ServerPhase.PENDING)
    row = await world.row()
    assert (row.status, row.tries, row.slot, row.error) == (ServerStatus.PENDING, 0, None, str(no_space()))
    world.clock.at_ms += 3_600_000
    least_ms = PENDING_MS - MAX_STEP_MS - 60_000
    await world.until_row(
        lambda row: (row.pending_until_ms or 0) - world.clock.now_ms() > least_ms,
        "a server was started again, and the match waits",
    )
    await world.until_row(lambda row: row.ended_at_ms is not None, "the match has ended", step_ms=10_000)
    assert (await world.outcome()).reason == CancelReason.NO_CAPACITY
    assert "No space left on device" in str((await world.row()).error)


async def test_only_one_match_tries_a_machine_that_could_not_start_servers(world: World) -> None:
    world.region.allocation_errors = [no_space()]
    process = world.start(intervals=Intervals(free_slots_s=0.05), machine_faults=MachineFaults(first_pause_ms=60_000))
    await world.create("srv_1", scenario="no_show")
    await world.until_phase(ServerPhase.PENDING, "srv_1")
    await world.create("srv_2", scenario="no_show")
    await world.until_phase(ServerPhase.PENDING, "srv_2")
    assert len(world.region.orders) == 1
    assert process.deps.machine_faults.is_paused("eu", world.clock.now_ms())
    world.clock.at_ms += 60_000
    for name in ("srv_1", "srv_2"):
        await world.until_phase(ServerPhase.RUNNING, name)


async def test_match_that_kept_its_server_goes_on_as_soon_as_the_machine_starts_servers_again(world: World) -> None:
    world.region.allocation_errors = [no_space()]
    world.region.release_errors = [no_space()]
    process = world.start(
        intervals=Intervals(free_slots_s=0.05), machine_faults=MachineFaults(first_pause_ms=3_600_000)
    )
    await world.create(scenario="no_show")
    row = await world.until_phase(ServerPhase.PENDING)
    assert row.slot is not None
    process.deps.machine_faults.clear("eu")  # as when the server of another match has started
    row = await world.until_row(lambda row: row.phase is ServerPhase.RUNNING, "the match goes on", within_s=20.0)
    assert row.running_at_ms is not None
    assert len({one.slot for one in world.region.orders}) == 1
