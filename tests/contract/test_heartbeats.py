"""A process without a heartbeat loses its matches within seconds; a process that lives never does."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence

import msgspec
import pytest

from matchpod.adapters.postgres import CONNECTIONS
from matchpod.core.server_status import ServerPhase
from matchpod.core.servers.server_loss import Silence
from matchpod.ports import Database, DatabaseUnavailableError, Statement
from matchpod.service.regions.silence import SilentServers
from matchpod.service.runner.heartbeat import CONFIRMED_MS, FRESH_MS, STEADY_MS, Heartbeat
from matchpod.service.runner.intervals import Intervals
from matchpod.service.runner.lease import Lease, LeaseLostError
from matchpod.storage import database_checks, heartbeats, servers
from matchpod.storage.announcements import announce_due
from matchpod.storage.heartbeats import DEAD_MS
from tests.clocks import ManualClock
from tests.contract import databases
from tests.contract.databases import HookedDatabase, once
from tests.contract.simulated_region import SimulatedRegion
from tests.contract.test_storage_servers import create, server
from tests.contract.world import START_MS, Process, World

harness = databases.mostly_sqlite_harness
on_postgres = pytest.mark.parametrize("harness", ["postgres"], indirect=True)


async def age(db: Database, owner: str, by_ms: int) -> None:
    await db.write(
        [
            Statement(
                "UPDATE heartbeats SET at_ms = at_ms - :by_ms WHERE owner = :owner", {"owner": owner, "by_ms": by_ms}
            )
        ]
    )


async def check_nothing() -> None:
    pass


async def steady(db: Database, owner: str = "me") -> tuple[Heartbeat, ManualClock]:
    """A heartbeat that has been regular for long enough to judge others."""
    clock = ManualClock(1_000_000)
    heartbeat = Heartbeat(
        db, clock, owner, silent=SilentServers(), monotonic_s=lambda: time.monotonic() + clock.at_ms / 1000
    )
    await heartbeat.beat(check_nothing)
    heartbeat._steady_since_ms -= STEADY_MS
    return heartbeat, clock


@on_postgres
async def test_leases_of_a_dead_process_are_ended_and_its_matches_are_due(db: Database) -> None:
    await create(db, *(server(name, next_at_ms=500) for name in ("srv_1", "srv_2")))
    (mine,) = await servers.claim_due(db, owner="dead", now_ms=1_000, limit=1)
    await heartbeats.beat(db, "dead")
    heartbeat, clock = await steady(db)
    assert not await heartbeat.end_dead_leases()
    await age(db, "dead", DEAD_MS + 1)
    assert await heartbeat.end_dead_leases()
    row = await servers.get(db, mine.id)
    assert row is not None
    assert (row.lease_owner, row.fence, row.next_at_ms) == (None, mine.fence + 1, clock.at_ms)
    assert not await heartbeat.end_dead_leases(), "once"


@on_postgres
async def test_leases_of_a_version_without_heartbeats_are_not_ended(db: Database) -> None:
    await create(db, server("srv_1", next_at_ms=500))
    await servers.claim_due(db, owner="earlier version", now_ms=1_000, limit=1)
    heartbeat, _ = await steady(db)
    assert not await heartbeat.end_dead_leases()
    row = await servers.get(db, "srv_1")
    assert row is not None
    assert row.lease_owner == "earlier version"


@on_postgres
async def test_process_judges_no_other_until_its_own_heartbeat_is_regular(db: Database) -> None:
    """After an outage of the database all heartbeats are old."""
    await create(db, server("srv_1", next_at_ms=500))
    await servers.claim_due(db, owner="other", now_ms=1_000, limit=1)
    await heartbeats.beat(db, "other")
    heartbeat, clock = await steady(db)
    clock.at_ms += 60_000  # its own is late
    await age(db, "other", 60_000)
    assert not await heartbeat.end_dead_leases(), "its own heartbeat is not confirmed"
    await heartbeat.beat(check_nothing)
    assert not await heartbeat.end_dead_leases(), "the other one must have the chance to write one"
    for _ in range(STEADY_MS // 1_000 + 1):
        clock.at_ms += 1_000
        heartbeat._ahead_ms -= 1_000  # the clock of the database is real
        await heartbeat.beat(check_nothing)
    assert await heartbeat.end_dead_leases()


@on_postgres
@pytest.mark.parametrize("beats_after", [True, False])
async def test_clock_of_the_database_that_was_set_ends_no_lease(db: Database, beats_after: bool) -> None:
    heartbeat, clock = await steady(db)
    await heartbeats.beat(db, "other")
    await age(db, "other", 3_600_000)
    heartbeat._ahead_ms -= 3_600_000  # as if it had been set by an hour since the last heartbeat
    if beats_after:
        clock.at_ms += 1_000
        await heartbeat.beat(check_nothing)
    await heartbeat.end_dead_leases()
    assert ("other",) in await db.read("SELECT owner FROM heartbeats")


@on_postgres
async def test_no_lease_is_ended_by_a_statement_that_runs_after_a_stall_of_the_database(db: Database) -> None:
    """It was sent before, when the own heartbeat was confirmed."""

    async def stall(statements: Sequence[Statement]) -> None:
        if "WITH dead" in statements[0].sql:
            await asyncio.sleep(DEAD_MS / 1_000)

    heartbeat, _ = await steady(HookedDatabase(db, before_write=stall))
    await heartbeats.beat(db, "other")
    await heartbeat.end_dead_leases()
    assert ("other",) in await db.read("SELECT owner FROM heartbeats")


@on_postgres
async def test_no_lease_is_ended_while_the_database_does_not_answer_the_own_heartbeat(db: Database) -> None:
    heartbeat, clock = await steady(db)
    await heartbeats.beat(db, "other")
    await age(db, "other", DEAD_MS + 1)
    clock.at_ms += FRESH_MS
    heartbeat._ahead_ms -= FRESH_MS
    assert heartbeat.is_confirmed()
    await heartbeat.end_dead_leases()
    assert ("other",) in await db.read("SELECT owner FROM heartbeats")


@on_postgres
async def test_unconfirmed_process_acts_no_longer_and_checks_its_leases_before_it_acts_again(db: Database) -> None:
    heartbeat, clock = await steady(db)
    held = msgspec.structs.replace(server("srv_1"), lease_until_ms=clock.at_ms + 3_600_000)
    lease = Lease(held, db, clock, heartbeat)
    lease.check()
    clock.at_ms += CONFIRMED_MS
    with pytest.raises(LeaseLostError):
        lease.check()
    checks: list[bool] = []

    async def check_leases() -> None:
        checks.append(heartbeat.is_confirmed())

    assert await heartbeat.beat(check_leases)
    assert checks == [False], "it is not confirmed before"
    lease.check()
    assert not await heartbeat.beat(check_leases)
    assert len(checks) == 1


@on_postgres
async def test_process_whose_heartbeat_was_deleted_checks_its_leases_at_its_next_one(db: Database) -> None:
    """Its own clock may have stood still meanwhile."""
    heartbeat, _ = await steady(db)
    await heartbeats.end(db, "me")
    assert heartbeat.is_confirmed()
    checks: list[bool] = []

    async def check_leases() -> None:
        checks.append(heartbeat.is_confirmed())

    assert await heartbeat.beat(check_leases)
    assert checks == [False]
    assert heartbeat.is_confirmed()


@on_postgres
async def test_leases_are_checked_after_a_heartbeat_whose_answer_was_lost(db: Database) -> None:
    """It may have been the one that found no row."""

    async def fail() -> None:
        raise DatabaseUnavailableError("the connection was lost")

    checks: list[bool] = []

    async def check_leases() -> None:
        checks.append(True)

    forgetful = HookedDatabase(db)
    heartbeat, _ = await steady(forgetful)
    await heartbeats.end(db, "me")
    forgetful.after_write = once(fail)
    with pytest.raises(DatabaseUnavailableError):
        await heartbeat.beat(check_leases)
    assert await heartbeat.beat(check_leases)
    assert not await heartbeat.beat(check_leases)
    assert checks == [True]


@on_postgres
async def test_check_that_hangs_neither_stops_heartbeats_nor_confirms_them(db: Database) -> None:
    async def hang() -> None:
        await asyncio.Event().wait()

    heartbeat, clock = await steady(db)
    clock.at_ms += CONFIRMED_MS
    for _ in range(2):
        with pytest.raises(DatabaseUnavailableError):
            async with asyncio.timeout(60):
                await heartbeat.beat(hang)
        assert not heartbeat.is_confirmed()
    assert await heartbeat.beat(check_nothing), "it is checked again"
    assert heartbeat.is_confirmed()


@on_postgres
async def test_silences_of_live_processes_come_with_the_heartbeat_in_one_statement(db: Database) -> None:
    written: list[Statement] = []

    async def record(statements: Sequence[Statement]) -> None:
        written.extend(statements)

    eu, us = (Silence(region=region, host="10.0.0.1", since_ms=-12_000) for region in ("eu", "us"))
    await heartbeats.beat(db, "none")
    await heartbeats.beat(db, "eu", silences={"srv_1": eu, "srv_2": eu})
    await heartbeats.beat(db, "us", silences={"srv_3": us})
    await heartbeats.beat(db, "dead", silences={"srv_4": us})
    for owner, by_ms in (("eu", -60_000), ("us", -60_000), ("dead", DEAD_MS + 1)):
        await age(db, owner, by_ms)
    stored = await heartbeats.beat(HookedDatabase(db, before_write=record), "me", silences={"srv_5": us})
    assert stored.is_new
    assert stored.silences == {"srv_1": eu, "srv_2": eu, "srv_3": us}
    assert [one.is_urgent for one in written] == [True]
    await heartbeats.beat(db, "eu")
    assert list((await heartbeats.beat(db, "me")).silences) == ["srv_3"], "those of the other one are heard again"


@databases.on_both
async def test_commands_learn_which_servers_are_silent_while_their_process_lives(db: Database) -> None:
    now_ms = await database_checks.database_ms(db) or 1_000_000
    silence = Silence(region="eu", host="10.0.0.1", since_ms=-12_000)
    assert await heartbeats.silences(db, now_ms) == {}
    if db.is_postgres:
        await heartbeats.beat(db, "one", silences={"srv_1": silence})
        await age(db, "one", -60_000)
        (found,) = (await heartbeats.silences(db, now_ms)).values()
        assert found.since_ms > -12_000 + 50_000
        await age(db, "one", 60_000 + DEAD_MS + 1)
        assert await heartbeats.silences(db, now_ms) == {}
        return
    clock, silent = ManualClock(1_000_000), SilentServers()
    heartbeat = Heartbeat(db, clock, "one", silent=silent)
    await heartbeats.store_silences(db, "killed", {"srv_2": silence}, clock.at_ms)
    silent.report("srv_1", silence.shifted(clock.at_ms))
    await heartbeat.store_silences()
    assert await heartbeats.silences(db, clock.at_ms + 1_000) == {"srv_1": silence.shifted(-1_000)}
    assert await heartbeats.silences(db, clock.at_ms + DEAD_MS + 1) == {}
    silent.forget("srv_1")
    await heartbeat.store_silences()
    assert await heartbeats.silences(db, clock.at_ms) == {}


async def test_process_without_silent_servers_writes_nothing(db: Database) -> None:
    if db.is_postgres:
        pytest.skip("it writes heartbeats")
    await Heartbeat(db, ManualClock(1_000_000), "one", silent=SilentServers()).store_silences()
    assert await db.read("SELECT * FROM heartbeats") == []


@on_postgres
async def test_silences_of_unknown_form_do_not_stop_heartbeats(db: Database) -> None:
    await heartbeats.beat(db, "later version")
    await db.write([Statement("UPDATE heartbeats SET silences = :stored", {"stored": b'{"srv_1": 5}'})])
    await age(db, "later version", -60_000)
    assert (await heartbeats.beat(db, "me")).silences == {}


@on_postgres
async def test_silences_have_the_right_times_although_clocks_of_processes_differ(db: Database) -> None:
    ours, theirs = SilentServers(), SilentServers()
    clock, other_clock = ManualClock(1_000_000), ManualClock(1_000_000)
    other_clock.at_ms += 3_600_000
    heartbeat = Heartbeat(db, clock, "me", silent=ours)
    other = Heartbeat(db, other_clock, "other", silent=theirs)
    await heartbeat.beat(check_nothing)
    ours.report("srv_1", Silence(region="eu", host="10.0.0.1", since_ms=clock.at_ms - 15_000))
    theirs.report("srv_2", Silence(region="eu", host="10.0.0.1", since_ms=other_clock.at_ms - 12_000))
    async with asyncio.timeout(60):
        while "together" not in (ours.notice("eu") or ""):  # at once, unless the machine is busy
            await other.beat(check_nothing)
            await age(db, "other", 1_000)
            await heartbeat.beat(check_nothing)
    (found,) = ours._remote.values()
    assert 13_000 <= clock.at_ms - found.since_ms <= 12_000 + DEAD_MS


@on_postgres
async def test_heartbeats_go_on_while_all_connections_are_in_use(db: Database) -> None:
    busy = [asyncio.create_task(db.write([Statement("SELECT pg_sleep(60)", is_long=True)])) for _ in range(CONNECTIONS)]
    try:
        await asyncio.sleep(1)
        heartbeat, _ = await steady(db)
        assert heartbeat.is_confirmed()
        assert not any(task.done() for task in busy)
    finally:
        for task in busy:
            task.cancel()
        await asyncio.gather(*busy, return_exceptions=True)


@on_postgres
@pytest.mark.skipif(not hasattr(time, "CLOCK_BOOTTIME"), reason="this system has no boot time clock")
async def test_process_is_not_confirmed_after_a_suspend(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """The monotonic clock stands still meanwhile."""
    heartbeat, read_clock = Heartbeat(db, ManualClock(1_000_000), "me", silent=SilentServers()), time.clock_gettime
    await heartbeat.beat(check_nothing)
    assert heartbeat.is_confirmed()
    monkeypatch.setattr(time, "clock_gettime", lambda clock: read_clock(clock) + 60 * (clock == time.CLOCK_BOOTTIME))
    assert not heartbeat.is_confirmed()


async def test_database_of_one_process_needs_no_heartbeat_and_no_renewal(db: Database, world: World) -> None:
    if db.is_postgres:
        pytest.skip("it is shared")
    process = world.start("sole", intervals=Intervals(renew_s=0.05))
    process.db.is_shared = False
    await world.create(scenario="no_show")
    await world.until_driven()
    row = await world.row()
    world.clock.at_ms += 10 * 60_000
    process.supervisor.notify("srv_1")
    await asyncio.sleep(1)
    assert (await world.row()).lease_until_ms == row.lease_until_ms
    assert (await world.row()).fence == row.fence


@on_postgres
async def test_frozen_process_has_lost_its_match_when_it_goes_on(world: World) -> None:
    frozen = await world.driven_match("frozen", intervals=Intervals(watch_s=3_600.0), scenario="no_show")
    (drive,) = frozen.supervisor._drives.values()
    gate = asyncio.Event()

    async def hold_heartbeats(statements: Sequence[Statement]) -> None:
        if "INSERT INTO heartbeats" in statements[0].sql:
            await gate.wait()

    frozen.db.before_write = hold_heartbeats
    other = world.start("other")
    await world.until(lambda: other.live.get("srv_1") is not None, "another process drives the match", within_s=60)
    with pytest.raises(LeaseLostError):
        drive.lease.check()
    gate.set()
    await world.until(lambda: frozen.live.get("srv_1") is None, "the first one notices it", within_s=60)
    await world.until(lambda: len(frozen.supervisor) == 0, "and has stopped", within_s=60)
    assert (await world.row()).lease_owner == "other"


@on_postgres
async def test_stopped_process_hands_its_matches_over_at_once(db: Database, world: World) -> None:
    stopped = world.start("stopped")
    for name in ("srv_1", "srv_2"):
        await world.create(name, scenario="no_show")
    await world.until(lambda: len(stopped.live) == 2, "all are driven")
    other = world.start("other", intervals=Intervals(poll_s=3_600.0))
    await world.until(other.supervisor._heartbeat.is_confirmed, "the other one is alive")
    polls: list[str] = []

    async def is_listening() -> bool:
        await announce_due(db)
        return bool(polls)

    async def record(sql: str) -> None:
        polls.extend([sql] * ("FILTER" in sql))

    other.db.before_read = record
    await world.until(is_listening, "it learns of announcements")
    await stopped.supervisor.drain()
    await world.until(lambda: len(other.live) == 2, "the other one drives them, told by an announcement", within_s=60)
    assert await db.read("SELECT owner FROM heartbeats") == [("other",)]


@on_postgres
async def test_heartbeats_go_on_while_matches_are_saved_and_released(db: Database, world: World) -> None:
    stopped = await world.driven_match("stopped", scenario="no_show")
    gate = asyncio.Event()
    hold_release(stopped, gate)
    draining = asyncio.create_task(stopped.supervisor.drain())
    for _ in range(3):
        await world.until(await next_heartbeat(db), "a heartbeat was stored", within_s=60)
    assert not draining.done()
    gate.set()
    await draining
    assert await db.read("SELECT owner FROM heartbeats") == []
    assert (await world.row()).lease_owner is None


@on_postgres
async def test_matches_that_are_not_released_in_time_are_acquired_by_others(world: World) -> None:
    stopped = await world.driven_match("stopped", scenario="no_show")
    gate = asyncio.Event()
    hold_release(stopped, gate)
    try:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1):
                await stopped.supervisor.drain()
        other = world.start("other")
        await world.until(lambda: other.live.get("srv_1") is not None, "another process drives it", within_s=60)
    finally:
        gate.set()


@on_postgres
async def test_heartbeat_of_a_process_that_holds_leases_is_not_deleted(db: Database) -> None:
    """Otherwise these would only expire."""
    await create(db, server("srv_1", next_at_ms=500))
    (row,) = await servers.claim_due(db, owner="me", now_ms=1_000, limit=1)
    await heartbeats.beat(db, "me")
    await heartbeats.end(db, "me")
    assert await db.read("SELECT owner FROM heartbeats") == [("me",)]
    await db.write([servers.release_lease(row.id, row.fence, 1_000)])
    await heartbeats.end(db, "me")
    assert await db.read("SELECT owner FROM heartbeats") == []


def hold_release(process: Process, gate: asyncio.Event) -> None:
    """Let a process save and release its matches only when the gate is open."""

    async def hold(statements: Sequence[Statement]) -> None:
        if process.supervisor._is_draining and not any("heartbeats" in one.sql for one in statements):
            await gate.wait()

    process.db.before_write = hold


async def next_heartbeat(db: Database) -> Callable[[], Awaitable[bool]]:
    """Return a condition that is true once a newer heartbeat is stored."""
    before = await db.read("SELECT at_ms FROM heartbeats")

    async def is_stored() -> bool:
        return await db.read("SELECT at_ms FROM heartbeats") != before

    return is_stored


# --- shares -----------------------------------------------------------------------------------------------------------


@on_postgres
async def test_matches_are_spread_over_all_processes_and_again_within_seconds_when_one_dies(world: World) -> None:
    world.region = SimulatedRegion([f"slot_{number}" for number in range(12)], start_ms=START_MS)
    processes = [world.start(name) for name in ("first", "second", "third")]
    await world.until(lambda: all(one.supervisor._heartbeat.is_confirmed() for one in processes), "all are alive")
    for number in range(12):
        await world.create(f"srv_{number:02}", scenario="no_show", notified=processes[0])

    def driven() -> list[int]:
        return [len(one.live) for one in processes]

    await world.until(lambda: sum(driven()) == 12, "all matches are driven")
    assert all(2 <= count <= 7 for count in driven()), driven()  # 4 each, if the machine is not busy
    for one in processes:
        one.supervisor._heartbeat._steady_since_ms -= STEADY_MS
    await processes[0].kill()
    began_s = asyncio.get_running_loop().time()
    await world.until(lambda: sum(driven()[1:]) == 12, "the others drive all", within_s=120)
    assert asyncio.get_running_loop().time() - began_s < 15, "less than 5 s, unless the machine is busy"
    assert (await world.row("srv_00")).phase is ServerPhase.RUNNING
    assert all(3 <= count <= 9 for count in driven()[1:]), driven()


@on_postgres
async def test_match_that_no_other_process_acquires_is_not_left_waiting(db: Database, world: World) -> None:
    """A process may live and still acquire nothing."""
    await heartbeats.beat(db, "idle")
    beating = asyncio.create_task(keep_beating(db, "idle"))
    try:
        process = world.start("loaded")
        await world.create("srv_1", scenario="no_show")
        await world.until(lambda: len(process.live) == 1, "the first match is driven")
        await world.create("srv_2", scenario="no_show")
        await world.until(lambda: len(process.live) == 2, "the second too, although the other drives none")
    finally:
        beating.cancel()


async def keep_beating(db: Database, owner: str) -> None:
    while True:
        await heartbeats.beat(db, owner)
        await asyncio.sleep(0.5)


@databases.on_both
async def test_process_drives_no_more_matches_than_it_may(world: World) -> None:
    small = world.start("small", max_matches=1)
    for number in range(3):
        await world.create(f"srv_{number}", scenario="no_show")
    await world.until(lambda: len(small.live) == 1, "one is driven")
    await asyncio.sleep(2.5)
    assert len(small.supervisor) == 1
    large = world.start("large")
    await world.until(lambda: len(large.live) == 2, "another process drives the others")
    driven = next(iter(small.supervisor._drives))
    await world.cancel(driven, notified=small)
    await world.outcome(driven)
