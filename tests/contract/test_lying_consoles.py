"""Servers that send over their console what they may not, in each phase of a match: the match fails, or ends as usual."""

from __future__ import annotations

import pytest

from matchpod.core.effects import CancelReason
from matchpod.core.failures import Failure
from matchpod.core.server_status import ServerPhase, ServerStatus
from matchpod.ports import ConsoleFaultError, Database, FleetError
from matchpod.service.runner.release import MATCH_CANCELED_TEXT
from matchpod.service.runner.start import TRIES
from matchpod.storage import resting_slots
from tests.contract import databases
from tests.contract.static_region import FIRST, OURS, SECOND, StaticRegion
from tests.contract.test_servers_in_use import OFTEN
from tests.contract.world import World, open_world

harness = databases.sqlite_harness


async def assert_failed(world: World) -> None:
    """The match fails because of the console of its server, which may still post its log at that moment."""
    await world.until_phase(ServerPhase.RELEASED)
    row = await world.row()
    assert (row.status, row.reason, row.failure) == (
        ServerStatus.FAILED,
        CancelReason.SERVER_FAILED,
        Failure.CONSOLE_FAULT,
    )


@pytest.mark.parametrize("command", ["status_json", "mp_maxrounds"])
async def test_match_fails_after_three_servers_that_lie_while_they_are_configured(world: World, command: str) -> None:
    world.region.faulty_commands = {command}
    world.start()
    await world.create(scenario="no_show")
    await assert_failed(world)
    row = await world.row()
    assert (row.tries, row.error) == (TRIES, "an answer of 8 MiB")
    assert len(world.region.faults_asked) <= TRIES, "a server that lies is not asked again"
    assert await resting_slots.resting(world.db) == {}, "the next one in its slot is another"


async def test_match_fails_if_its_fleet_gets_no_valid_answer_from_the_console(world: World) -> None:
    for _ in range(TRIES):
        error = FleetError("GameServer x: packet size")
        error.__cause__ = FleetError("packet size")
        error.__cause__.__cause__ = ConsoleFaultError("packet size")
        world.region.allocation_errors.append(error)
    world.start()
    await world.create()
    await assert_failed(world)


async def test_running_match_fails_if_its_server_lies(world: World) -> None:
    world.region.faulty_commands = {"css_start"}
    world.start()
    await world.create()
    await world.until_phase(ServerPhase.RUNNING)
    await assert_failed(world)
    asked = [one for one in world.region.faults_asked if MATCH_CANCELED_TEXT not in one]
    assert len(asked) == 1, "the console is not used again"


# --- servers of a static fleet, which get the next match ----------------------------------------------------------------


def resting(*slots: str, after: str = "srv_1") -> list[tuple[str, str]]:
    return [(slot, after) for slot in slots]


async def slots_that_rest(db: Database) -> list[tuple[str, str]]:
    return [(one.slot, one.server_id) for one in (await resting_slots.resting(db)).get("eu", ())]


async def test_static_server_that_lied_rests_before_it_gets_the_next_match(
    db: Database, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_world(db, (FIRST,), kind=StaticRegion) as world:
        world.region.faulty_commands = {"kickid"}
        process = world.start(intervals=OFTEN, installation=OURS)
        await world.create(scenario="stranger")
        await world.until_phase(ServerPhase.RUNNING)
        await assert_failed(world)
        assert await slots_that_rest(db) == resting(FIRST)
        world.region.faulty_commands.clear()
        await world.create("srv_2", scenario="no_show")
        row = await world.until_phase(ServerPhase.PENDING, "srv_2")
        (state,) = await process.deps.regions.states()
        assert (row.error,) == state.resting
        assert row.error is not None
        assert row.error.startswith(f"The server {FIRST} gets no other match until ")
        assert row.error.endswith(": it sent invalid data or too much data over its console in srv_1.")
        assert (state.view.ready, state.view.allocated, state.view.capacity) == (0, 0, 1)
        (record,) = (one for one in caplog.records if one.message == "server gets no matches after a console fault")
        assert (vars(record)["slot"], vars(record)["server_id"], vars(record)["rest_s"]) == (FIRST, "srv_1", 300)
        assert len(world.region.orders) == 1
        world.clock.at_ms += resting_slots.REST_MS
        row = await world.until_phase(ServerPhase.RUNNING, "srv_2")
        assert (row.slot, row.error) == (FIRST, None)
        assert await slots_that_rest(db) == []


async def test_match_tries_servers_that_lie_and_all_of_them_rest(db: Database) -> None:
    async with open_world(db, (FIRST, SECOND), kind=StaticRegion) as world:
        world.region.faulty_commands = {"mp_maxrounds"}
        world.start(installation=OURS)
        await world.create(scenario="no_show")
        await assert_failed(world)
        assert len(world.region.orders) == TRIES, "its own match tries a server again that rests"
        assert await slots_that_rest(db) == resting(FIRST, SECOND)


async def test_static_server_rests_that_lies_only_when_its_match_is_over(db: Database) -> None:
    async with open_world(db, (FIRST,), kind=StaticRegion) as world:
        process = world.start(installation=OURS)
        await world.create(scenario="no_show")
        await world.until_phase(ServerPhase.RUNNING)
        world.region.faulty_commands = {"status"}
        await world.cancel(notified=process)
        assert (await world.outcome()).reason == CancelReason.CANCELED_BY_USER
        assert await slots_that_rest(db) == resting(FIRST)
