"""Supervisors drive matches from creation to release, and each match ends once, regardless of failures.

Servers are simulated in this process at full speed; the timeouts of the service are real.
"""

from __future__ import annotations

import asyncio
import gc
import json
from collections.abc import Sequence
from contextlib import suppress
from itertools import product

import msgspec
import pytest

from matchpod.core.effects import CancelReason
from matchpod.core.model import DmSubMode, GameSettings, MatchType
from matchpod.core.requests.callback_query import CallbackState
from matchpod.core.server_status import ServerPhase, ServerStatus
from matchpod.ports import Database, DatabaseError, FleetError, ListedServer, Row, ServerLease, Statement
from matchpod.service.match_log.fold import Fold
from matchpod.service.regions.regions import Region, Regions
from matchpod.service.runner.intervals import Intervals
from matchpod.service.runner.supervisor import CRASHES, CRASHES_FORGOTTEN_MS, Supervisor
from matchpod.storage import outbox, servers, slots
from matchpod.storage.servers import HANDOVER_MS, LEASE_MS
from tests.clocks import ManualClock
from tests.contract import databases
from tests.contract.ended_matches import store_match
from tests.contract.same_result import assert_same_match
from tests.contract.simulated_region import SimulatedRegion
from tests.contract.test_storage_servers import take_slot
from tests.contract.world import (
    ORPHAN_ORDER,
    PLAYERS,
    SETTINGS,
    START_MS,
    World,
    callback_fields,
    open_world,
    play_undisturbed,
)

harness = databases.sqlite_harness

FAST = 40.0
"""Speed of a region whose players have seven and a half seconds to join."""

# --- from creation to release -----------------------------------------------------------------------------------------


async def test_match_is_driven_from_creation_to_release(db: Database, world: World) -> None:
    process = await world.running_match()
    row = await world.row()
    assert (row.status, row.ip, row.port) == (ServerStatus.RUNNING, "203.0.113.7", 27015)
    assert row.allocated_at_ms is not None
    assert row.running_at_ms is not None
    (order,) = world.region.orders
    assert (order.map_name, order.players, order.rcon_password) == ("de_nuke", PLAYERS, "secret of srv_1")
    outcome = await world.outcome()
    assert (outcome.kind, outcome.reason) == ("match_over", None)
    assert outcome.result is not None
    assert json.loads(outcome.callback_body)["result"] == json.loads(outcome.result)
    row = await world.row()
    assert (row.status, row.rcon_password, row.lease_owner) == (ServerStatus.STOPPED, None, None)
    assert process.matches_ended == 1
    assert process.live.get("srv_1") is None
    callbacks = await outbox.list_callbacks(db, org_id=None, state=CallbackState.WAITING, limit=5)
    assert [one.server_id for one in callbacks] == ["srv_1"]


async def test_stopping_the_task_of_a_match_repeatedly_logs_no_error(db: Database) -> None:
    errors: list[str] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: errors.append(str(context["message"])))
    async with open_world(db) as world:
        process = await world.live_match()
        (drive,) = process.supervisor._drives.values()
        await world.cancel()  # so that releasing the lease is rejected
        while not drive.task.done():
            drive.stop()
            await asyncio.sleep(0)
        await world.outcome()
    gc.collect()
    await asyncio.sleep(0)
    assert errors == []


# --- during a match ---------------------------------------------------------------------------------------------------


async def test_ended_matches_are_freed_without_the_garbage_collector(db: Database) -> None:
    """Nearly all of them: the traceback of a task that is cancelled at a certain moment refers to itself."""
    names = [f"srv_{number}" for number in range(5)]
    async with open_world(db, speed=FAST) as world:
        process = world.start()
        gc.collect()
        before = sum(isinstance(one, Fold) for one in gc.get_objects())
        gc.disable()
        try:
            for name in names:
                await world.create(name, game=msgspec.structs.replace(SETTINGS, max_rounds=2))
                await world.until_phase(ServerPhase.RELEASED, name)
            await world.until(lambda: not len(process.supervisor), "its tasks have ended")
            await asyncio.sleep(0)
            left = sum(isinstance(one, Fold) for one in gc.get_objects()) - before
        finally:
            gc.enable()
        assert left < 3


async def test_matches_that_end_together_are_packed_one_after_the_other(db: Database) -> None:
    names = ["srv_1", "srv_2", "srv_3"]
    for name in names:
        await store_match(db, name, phase=ServerPhase.ENDING)
    steps: list[str] = []

    async def note_read(sql: str, rows: list[Row]) -> None:
        if rows and "FROM map_events" in sql and "is_compressed = 0" in sql:
            steps.append("read")

    async def note_write(statements: Sequence[Statement]) -> None:
        if any("DELETE FROM map_events" in statement.sql for statement in statements):
            steps.append("written")

    async with open_world(databases.HookedDatabase(db, after_read=note_read, after_write=note_write)) as world:
        world.start()
        for name in names:
            await world.until_phase(ServerPhase.RELEASED, name)
    assert steps == ["read", "written"] * 2 * len(names)


async def test_deathmatch_has_its_full_length_and_all_shots_after_a_slow_configuration(world: World) -> None:
    """During configuration, a whole game with the default length of ten minutes is played on the server."""
    game = GameSettings(
        match_type=MatchType.DEATHMATCH,
        maps=("de_nuke",),
        players=PLAYERS,
        dm_sub_mode=DmSubMode.TEAM,
        dm_round_minutes=2,
    )
    world.region.command_ms, world.region.is_paused = 24_000, True
    await world.running_match(game=game)
    world.region.running["srv_1"].command_ms, world.region.is_paused = 0, False
    result = await world.result()
    assert result["gameMode"] == "deathmatch"
    assert abs(result["duration"] - 120) <= 2
    assert {player["steamId"] for player in result["players"]} == set(PLAYERS)
    assert all(player["extraStats"]["shotsFired"] and player["extraStats"]["shotsHit"] for player in result["players"])


async def test_first_round_counts_even_if_the_plugin_starts_before_configuration_returns(world: World) -> None:
    """All players are connected when the plugin loads the match, so it starts before our last commands are answered."""
    world.region.command_ms, world.region.is_paused = 150_000, True
    await world.running_match()
    world.region.running["srv_1"].command_ms, world.region.is_paused = 0, False
    result = await world.result()
    assert {player["steamId"] for player in result["overall"]} == set(PLAYERS)
    (played,) = result["maps"]
    rounds = played["team1Score"] + played["team2Score"]
    assert {player["roundsPlayed"] for player in result["overall"]} == {rounds}


# --- failures and cancellations ---------------------------------------------------------------------------------------


async def test_match_canceled_through_another_process_is_dropped_by_its_lease_holder_before_its_release(
    world: World,
) -> None:
    holder = await world.live_match("holder", intervals=Intervals(watch_s=2.0))
    other = world.start("other", intervals=Intervals(watch_s=2.0))
    await world.cancel(notified=other)
    row = await world.row()
    assert row.next_at_ms > world.clock.now_ms() + HANDOVER_MS / 2
    assert holder.live.get("srv_1") is not None, "it has not noticed yet"
    await world.until(lambda: holder.live.get("srv_1") is None, "the holder has dropped the match", within_s=11.0)
    assert (await world.outcome()).reason == CancelReason.CANCELED_BY_USER
    assert world.clock.now_ms() < row.next_at_ms, "the release does not wait longer than the holder needs"
    assert (holder.matches_ended, other.matches_ended) == (0, 0)


async def test_release_of_a_server_is_retried(world: World) -> None:
    world.region.release_errors = [FleetError("not now")]
    await world.cancel(notified=await world.running_match(scenario="no_show"))
    await world.outcome()
    assert world.region.release_errors == []
    assert world.region.releases == ["srv_1"]


async def test_unexpected_error_does_not_end_a_match(world: World) -> None:
    world.region.console_errors = [RuntimeError("a bug")]
    process = await world.driven_match(scenario="no_show")
    assert len(world.region.orders) == 2, "the second order finds the same server"
    assert process.deps.metrics.takeovers.value("eu") == 0, "its own match"


async def test_failures_that_are_far_apart_do_not_add_up(world: World) -> None:
    process = world.start()
    counted = [process.supervisor._count_crash("srv_1") for _ in range(CRASHES - 1)]
    world.clock.at_ms += CRASHES_FORGOTTEN_MS + 1
    counted.append(process.supervisor._count_crash("srv_1"))
    assert counted == [*range(1, CRASHES), 1]


async def test_lease_that_cannot_be_released_does_not_block_draining(world: World) -> None:
    process = await world.running_match(scenario="no_show")

    async def reject(statements: Sequence[Statement]) -> None:
        if "lease_owner = :lease_owner" in statements[0].sql:
            raise DatabaseError("statement rejected")

    process.db.before_write = reject
    await process.supervisor.drain()
    assert len(process.supervisor) == 0
    assert (await world.row()).lease_owner == "one", "it expires"


async def test_match_whose_lease_expired_in_a_stall_is_acquired_again_at_once(world: World) -> None:
    """Even if the leases are renewed after the stall, before the task of the match notices it."""
    process = await world.running_match(intervals=Intervals(probe_s=0.1, quiet_ms=0, log_gap_ms=0), scenario="no_show")
    await world.until_driven()
    (drive,) = process.supervisor._drives.values()
    drive.lease.until_ms = 0

    def is_driven_again() -> bool:
        drives = process.supervisor._drives.values()
        return all(one is not drive for one in drives) and process.live.get("srv_1") is not None

    await world.until(is_driven_again, "the match is driven again", within_s=Intervals().renew_s * 1.5)


async def test_task_that_does_not_stop_holds_up_no_match(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    is_hanging, is_over = asyncio.Event(), asyncio.Event()

    class HangingRegion(SimulatedRegion):
        async def release(self, server_id: str, slot: str, lease: ServerLease | None = None) -> None:
            while server_id == "srv_1" and not is_over.is_set() and not caplog.records:
                is_hanging.set()
                with suppress(asyncio.CancelledError):
                    await is_over.wait()
            await super().release(server_id, slot, lease)

    world.region = HangingRegion(start_ms=START_MS)
    world.start(intervals=Intervals(stop_s=1.0))
    await world.create("srv_1")
    await is_hanging.wait()
    world.clock.at_ms += LEASE_MS  # the process acquires the match again, and stops its task
    try:
        await world.create("srv_2")
        await world.until_phase(ServerPhase.RUNNING, "srv_2")
        await world.outcome("srv_1")
        assert [one.message for one in caplog.records] == ["task of a match does not stop"]
    finally:
        is_over.set()


ENDED_ORDER = msgspec.structs.replace(ORPHAN_ORDER, server_id="srv_old")


async def until_swept(world: World) -> None:
    async def is_swept() -> bool:
        return not world.region.running and not await slots.taken(world.db)

    await world.until(is_swept, "the sweep is complete")


class _UnlistableRegion(SimulatedRegion):
    async def servers(self) -> Sequence[ListedServer]:
        raise FleetError("not now")


async def test_failed_sweep_of_a_region_does_not_affect_others(
    db: Database, world: World, caplog: pytest.LogCaptureFixture
) -> None:
    process = world.start()
    await process.end()
    unlistable = Region(code="broken", name="Broken", location="there", fleet=_UnlistableRegion(start_ms=0))
    regions = Regions([unlistable, *process.deps.regions.all()], db)
    await world.create("srv_old", phase=ServerPhase.RELEASED)
    await take_slot(db, "eu", "a", "srv_old")
    await take_slot(db, "eu", "b", "srv_unknown")
    await world.region.allocate(ENDED_ORDER)
    sweeping = Supervisor(msgspec.structs.replace(process.deps, regions=regions), owner="sweeping")
    task = asyncio.create_task(sweeping.run())
    await until_swept(world)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert world.region.releases == ["srv_old"]
    assert process.deps.metrics.crashes.value("sweep") == 0
    failed = [vars(one)["region"] for one in caplog.records if one.message == "region sweep failed"]
    assert failed == ["broken"]


# --- other processes --------------------------------------------------------------------------------------------------


async def test_match_of_a_dead_process_continues_in_another(db: Database, world: World) -> None:
    expected = await play_undisturbed(db, 5)
    dead = await world.live_match("dead", seed=5)
    await dead.kill()
    holder = await world.row()
    assert (holder.phase, holder.lease_owner) == (ServerPhase.RUNNING, "dead")
    successor = world.start("successor")
    await world.create("srv_2", scenario="no_show")
    await world.until_phase(ServerPhase.RUNNING, "srv_2")
    assert (await world.row()).lease_owner == "dead", "its lease has not expired"
    world.clock.at_ms += LEASE_MS
    assert_same_match(callback_fields(await world.outcome()), expected)
    assert (dead.matches_ended, successor.matches_ended) == (0, 1)
    assert (await world.row()).fence > holder.fence
    assert [one.deps.metrics.takeovers.value("eu") for one in (dead, successor)] == [0, 1]


async def test_log_is_redirected_to_the_process_that_drives_the_match(world: World) -> None:
    dead = await world.live_match("dead")
    await dead.kill()
    world.region.is_paused = True
    server = world.region.running["srv_1"]
    world.clock.at_ms += LEASE_MS
    world.start("successor")

    def is_moved() -> bool:
        listed = server.machine.execute("logaddress_list_http", "")
        return "http://successor.example/" in listed and "http://dead.example/" not in listed

    await world.until(is_moved, "the log is sent only to the successor")


async def test_draining_process_releases_its_matches_at_once(db: Database, world: World) -> None:
    expected = await play_undisturbed(db, 5)
    first = await world.live_match("first", seed=5)
    await first.supervisor.drain()
    assert (await world.row()).lease_owner is None
    assert len(first.supervisor) == 0
    await first.kill()
    second = world.start("second")
    assert_same_match(callback_fields(await world.outcome()), expected)
    assert second.matches_ended == 1


async def test_process_with_an_expired_lease_changes_nothing(db: Database, world: World) -> None:
    expected = await play_undisturbed(db, 5)
    slow = await world.live_match("slow", seed=5)
    # By the clock of the successor the lease has expired; the slow process does not know yet.
    successor = world.start("successor", clock=ManualClock(world.clock.at_ms + LEASE_MS, runs=True))
    assert_same_match(callback_fields(await world.outcome()), expected)
    assert slow.matches_ended + successor.matches_ended == 1


WRITES = (
    "INSERT INTO slots",
    "rcon_host = ",
    "log_from_seq = ",
    "running_at_ms = ",
    "INSERT INTO outcomes",
    "DELETE FROM slots",
    "rcon_password = ",
)
"""Texts of the writes during a match, from the reservation of its slot to its release."""


async def test_match_survives_a_crash_before_and_after_each_write(db: Database, world: World) -> None:
    expected = await play_undisturbed(db, 5)
    await world.create(seed=5)
    for number, (text, is_written) in enumerate(product(WRITES, (False, True))):
        process = world.start(f"process-{number}")
        process.db.crashes_before, process.db.crashes_after = ("", text) if is_written else (text, "")
        await world.until(process.has_died, f"the process of {text!r} is dead")
        await process.kill()
        await servers.drop_leases(db, world.clock.now_ms())
    world.start("survivor")
    outcome = await world.outcome()
    assert_same_match(callback_fields(outcome), expected)
    callbacks = await outbox.list_callbacks(db, org_id=None, state=CallbackState.WAITING, limit=99)
    assert [one.server_id for one in callbacks].count("srv_1") == 1
