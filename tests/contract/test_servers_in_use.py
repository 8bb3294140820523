"""A match leaves servers of its static fleet alone that others use: while it waits for one, and when it ends."""

from __future__ import annotations

from typing import cast
from zlib import crc32

import pytest

from cs2_protocol.console_commands import LOG_LISTENERS, REMOVE_LOG_LISTENERS, end_match_command, log_address_command
from matchpod.adapters.fleets.static import StaticFleet, StaticServer
from matchpod.adapters.rcon_client import RconConsoles
from matchpod.core.effects import CancelReason
from matchpod.core.model import CvarSetting
from matchpod.core.server_status import ServerPhase, ServerStatus
from matchpod.ports import Capacity, Database, Statement
from matchpod.service.regions.regions import Region, Regions
from matchpod.service.runner.intervals import Intervals
from matchpod.service.runner.start import LOOK_AGAIN_MS
from matchpod.service.runner.used_slots import UsedSlots
from matchpod.storage import slots
from matchpod.storage.servers import LEASE_MS
from tests.contract import databases
from tests.contract.static_region import FIRST, OURS, SECOND, THEIRS, StaticRegion
from tests.contract.world import World, open_world
from tests.vaults import tokens_of

harness = databases.sqlite_harness

OFTEN = Intervals(free_slots_s=0.05)
HOLD_MS = LEASE_MS - 5_000
"""How long a server is not asked again, where a test sets the clock: no lease expires."""


def names_from(first: int) -> list[str]:
    """Names of matches that try this server of two first."""
    return [name for name in map("srv_{}".format, range(30)) if crc32(name.encode()) % 2 == first]


NAME = names_from(0)[0]


def region_of(world: World) -> StaticRegion:
    return cast(StaticRegion, world.region)


def use_elsewhere(world: World, *addresses: str) -> None:
    """Let another installation play matches on these servers."""
    for address in addresses:
        machine = region_of(world).servers_at[address].machine
        machine.execute(REMOVE_LOG_LISTENERS, "")
        machine.execute(log_address_command(f"http://other.example/ingest/logs/{THEIRS}-{address[-1]}"), "")


def sentence(address: str) -> str:
    return (
        f"the server {address} is used by installation {THEIRS} of Matchpod; if that installation no longer exists, run"
        " logaddress_delall_http on the server"
    )


async def test_match_waits_until_another_installation_no_longer_uses_all_servers(
    db: Database, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_world(db, (FIRST, SECOND), kind=StaticRegion) as world:
        region = region_of(world)
        use_elsewhere(world, FIRST, SECOND)
        world.start(intervals=OFTEN, installation=OURS, used_slots=UsedSlots(ask_again_ms=HOLD_MS))
        await world.create(NAME, scenario="no_show")
        row = await world.until_phase(ServerPhase.PENDING, NAME)
        assert (row.status, row.tries, row.slot, row.allocated_at_ms) == (ServerStatus.PENDING, 0, None, None)
        assert row.error == f"{sentence(FIRST)} (the same applies to 1 more)"
        assert await slots.taken(db) == {}
        for asked in (4, 6):
            world.clock.at_ms += HOLD_MS
            await world.until(lambda asked=asked: len(region.opened) == asked, "it has asked again")  # type: ignore[misc]
            await world.until_phase(ServerPhase.PENDING, NAME)
        assert [region.servers_at[one].commands for one in (FIRST, SECOND)] == [[LOG_LISTENERS] * 3] * 2
        warned = [
            vars(one)["slot"] for one in caplog.records if one.message == "server used by another installation or match"
        ]
        assert sorted(warned) == [FIRST, SECOND], "each is reported once"
        region.servers_at[SECOND].machine.execute(REMOVE_LOG_LISTENERS, "")
        world.clock.at_ms += HOLD_MS
        row = await world.until_phase(ServerPhase.RUNNING, NAME)
        assert (row.slot, row.tries, row.error) == (SECOND, 0, None)
        assert set(region.servers_at[FIRST].commands) == {LOG_LISTENERS}


async def test_repeated_attempt_leaves_a_server_alone_that_another_installation_uses_by_now(db: Database) -> None:
    async with open_world(db, (FIRST, SECOND), kind=StaticRegion) as world:
        server = region_of(world).servers_at[FIRST]
        dead = world.start("dead", installation=OURS)
        dead.db.crashes_after = "changed_cvars = "  # while it configures the server
        await world.create(NAME, scenario="no_show")
        await world.until(dead.has_died, "the process is dead")
        await dead.kill()
        before = await world.row(NAME)
        assert before.slot == FIRST
        use_elsewhere(world, FIRST)
        sent = len(server.commands)
        world.clock.at_ms += LEASE_MS
        world.start("successor", installation=OURS)
        row = await world.until_phase(ServerPhase.RUNNING, NAME)
        assert row.slot == SECOND
        assert server.commands[sent:] == [LOG_LISTENERS]
        assert tokens_of(row).log != tokens_of(before).log, "posts of the first server are no longer accepted"


async def test_servers_in_use_are_not_asked_again_for_each_match_that_waits(db: Database) -> None:
    names = [f"srv_{number}" for number in range(4)]
    async with open_world(db, (FIRST, SECOND), kind=StaticRegion) as world:
        use_elsewhere(world, FIRST, SECOND)
        world.start(intervals=OFTEN, installation=OURS, used_slots=UsedSlots(ask_again_ms=10**9))
        for name in names:
            await world.create(name, scenario="no_show")
            row = await world.until_phase(ServerPhase.PENDING, name)
            assert row.error == f"{sentence(FIRST)} (the same applies to 1 more)"
        await world.until_row(lambda row: row.fence > 5, "a match was woken again and again", names[0])
        assert sorted(region_of(world).opened) == [FIRST, SECOND]


async def test_match_fails_for_want_of_capacity_if_the_servers_stay_in_use(db: Database) -> None:
    async with open_world(db, (FIRST,), kind=StaticRegion) as world:
        use_elsewhere(world, FIRST)
        world.start(installation=OURS)
        await world.create(scenario="no_show")
        await world.until_phase(ServerPhase.PENDING)
        await world.until_row(lambda row: row.ended_at_ms is not None, "it has ended", step_ms=LOOK_AGAIN_MS)
        assert (await world.outcome()).reason == CancelReason.NO_CAPACITY
        assert (await world.row()).error == f"no server became free in time; last error: {sentence(FIRST)}"
        assert set(region_of(world).servers_at[FIRST].commands) == {LOG_LISTENERS}


async def test_match_leaves_a_server_that_another_installation_began_to_use_while_its_map_was_loaded(
    db: Database,
) -> None:
    async with open_world(db, (FIRST, SECOND), kind=StaticRegion) as world:
        region = region_of(world)
        region.freezes_at = "changelevel de_nuke"
        world.start(intervals=OFTEN, installation=OURS)
        await world.create(NAME, scenario="no_show")
        await region.is_frozen.wait()
        use_elsewhere(world, FIRST)
        sent = len(region.servers_at[FIRST].commands)
        region.go_on.set()
        row = await world.until_phase(ServerPhase.RUNNING, NAME)
        assert (row.slot, row.tries) == (SECOND, 0)
        asked = {command.split()[0] for command in region.servers_at[FIRST].commands[sent:]}
        assert asked <= {"status", "status_json", LOG_LISTENERS}, "nothing was changed on it"


async def test_match_leaves_a_server_alone_that_another_match_uses_under_another_address(db: Database) -> None:
    async with open_world(db, (FIRST, SECOND), kind=StaticRegion) as world:
        region = region_of(world)
        world.start(intervals=OFTEN, installation=OURS)
        await world.create(NAME, scenario="no_show")
        assert (await world.until_phase(ServerPhase.RUNNING, NAME)).slot == FIRST
        region.servers_at[SECOND] = region.servers_at[FIRST]
        sent = len(region.servers_at[FIRST].commands)
        other = names_from(1)[0]
        await world.create(other, scenario="no_show")
        row = await world.until_phase(ServerPhase.PENDING, other)
        assert row.error == f"the server {SECOND} is used by another match; list it once only, under one address"
        assert LOG_LISTENERS in region.servers_at[FIRST].commands[sent:]
        assert not {REMOVE_LOG_LISTENERS, end_match_command()} & {*region.servers_at[FIRST].commands[sent:]}


async def test_of_two_matches_that_begin_on_a_server_listed_twice_one_gets_it(db: Database) -> None:
    again = "192.0.513:27015"  # the address of FIRST in another notation
    async with open_world(db, (FIRST, again), kind=StaticRegion) as world:
        region = region_of(world)
        region.servers_at[again] = region.servers_at[FIRST]
        region.freezes_at = "changelevel de_nuke"
        world.start(intervals=OFTEN, installation=OURS)
        await world.create(NAME, scenario="no_show")
        await region.is_frozen.wait()  # its log address is not on the server yet
        assert (await world.row(NAME)).slot == FIRST
        other = names_from(1)[0]
        await world.create(other, scenario="no_show")
        row = await world.until_phase(ServerPhase.PENDING, other)
        assert row.error == f"the server {again} is used by another match; list it once only, under one address"
        assert (row.ip, row.port) == (None, None)
        region.go_on.set()
        row = await world.until_phase(ServerPhase.RUNNING, NAME)
        assert (row.ip, row.port, row.tries) == ("192.0.2.1", 27015, 0)


async def test_match_on_a_server_that_left_the_list_takes_the_place_of_no_other(db: Database) -> None:
    fleet = StaticFleet([StaticServer(SECOND, "a password")], RconConsoles())
    region = Region(code="eu", name="Europe", location="Bonn", fleet=fleet)
    sql = "INSERT INTO slots (region, slot, server_id) VALUES ('eu', :slot, 'srv_x')"
    await db.write([Statement(sql, {"slot": FIRST})])
    ((_, capacity),) = await Regions([region], db).capacities()
    assert capacity == Capacity(ready=1, allocated=1, total=1)


# --- release ----------------------------------------------------------------------------------------------------------


BLIND = Intervals(watch_s=3_600.0, renew_s=3_600.0)
"""A frozen process does not compare its matches with the database."""

CLEANING = (end_match_command(), "kickid", "sv_password", REMOVE_LOG_LISTENERS, "bot_kick", "sv_gravity")


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
