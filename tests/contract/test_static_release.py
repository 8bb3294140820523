"""The release of a static server never disturbs the match that is played there next."""

from __future__ import annotations

from typing import cast

import pytest

from cs2_protocol.console_commands import REMOVE_LOG_LISTENERS, end_match_command, log_address_command
from matchpod.core.model import CvarSetting
from matchpod.core.server_status import ServerPhase
from matchpod.ports import Database
from matchpod.service.runner.intervals import Intervals
from matchpod.storage.servers import LEASE_MS
from tests.contract import databases
from tests.contract.static_region import FIRST, OURS, THEIRS, StaticRegion
from tests.contract.world import World, open_world

harness = databases.sqlite_harness

BLIND = Intervals(watch_s=3_600.0, renew_s=3_600.0)
"""A frozen process does not compare its matches with the database."""

CLEANING = (end_match_command(), "kickid", "sv_password", REMOVE_LOG_LISTENERS, "bot_kick", "sv_gravity")


def region_of(world: World) -> StaticRegion:
    return cast(StaticRegion, world.region)


def cleaning(commands: list[str]) -> list[str]:
    return [command for command in commands if command.startswith(CLEANING)]


@pytest.mark.parametrize("frozen_at", [end_match_command(), 'sv_password ""', REMOVE_LOG_LISTENERS])
async def test_process_that_is_frozen_while_it_releases_a_server_sends_nothing_to_the_next_match(
    db: Database, frozen_at: str
) -> None:
    async with open_world(db, (FIRST,), kind=StaticRegion) as world:
        region = region_of(world)
        frozen = world.start("frozen", intervals=BLIND)
        await world.create(scenario="no_show")
        await world.until_phase(ServerPhase.RUNNING)
        region.freezes_at = frozen_at
        await world.cancel(notified=frozen)
        await region.is_frozen.wait()
        frozen.supervisor._is_draining = True  # it acquires no match
        world.clock.at_ms += LEASE_MS
        world.start("successor")
        await world.outcome()
        await world.create("srv_2", scenario="no_show")
        await world.until_phase(ServerPhase.RUNNING, "srv_2")
        before = len(region.servers_at[FIRST].commands)
        region.go_on.set()
        await world.until(lambda: len(frozen.supervisor) == 0, "the frozen process has ended its task")
        assert cleaning(region.servers_at[FIRST].commands[before:]) == []
        assert (await world.row("srv_2")).phase is ServerPhase.RUNNING


@pytest.mark.parametrize("installation", [OURS, THEIRS])
async def test_server_that_has_the_log_address_of_another_match_is_left_as_it_is(
    db: Database, installation: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_world(db, (FIRST,), kind=StaticRegion) as world:
        process, server = world.start(), region_of(world).servers_at[FIRST]
        await world.create(scenario="no_show", cvars=[CvarSetting("sv_gravity", "200")])
        await world.until_phase(ServerPhase.RUNNING)
        server.is_paused = True
        server.machine.execute(REMOVE_LOG_LISTENERS, "")
        other = log_address_command(f"http://other.example/ingest/logs/{installation}-other")
        server.machine.execute(other, "")
        before = len(server.commands)
        await world.cancel(notified=process)
        await world.outcome()
        assert cleaning(server.commands[before:]) == []
        left = [record.message for record in caplog.records]
        assert left == ["server not cleaned up: another match uses it"] * 2, "neither by the runner nor by the fleet"
