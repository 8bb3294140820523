"""Matches survive a clock that is set, while the service runs or while it is down, and timeouts still end them."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from matchpod.adapters.clock import SystemClock
from matchpod.app import open_resources
from matchpod.core.effects import CancelReason
from matchpod.core.server_status import ServerPhase, ServerStatus
from matchpod.ports import Database
from matchpod.service.match_log.fold import CATCH_UP_MS, MAX_STEP_MS
from matchpod.service.operations.readiness import MAX_DIFFERENCE_MS
from matchpod.service.runner.start import LOOK_AGAIN_MS
from matchpod.settings import load_settings
from matchpod.storage import outbox, servers
from matchpod.storage.database_checks import database_ms
from tests.contract import databases
from tests.contract.databases import postgres_url as postgres_url
from tests.contract.world import PENDING_MS, World, open_world

harness = databases.sqlite_harness

JUMP_MS = 7 * 3_600_000
"""Longer than a match may last."""
JUMPS = pytest.mark.parametrize("jump_ms", [JUMP_MS, -JUMP_MS], ids=["ahead", "back"])
RESTARTS = pytest.mark.parametrize(
    ("prepare", "jump_ms"),
    [(servers.drop_leases, JUMP_MS), (servers.drop_leases, -JUMP_MS), (servers.repair_times, -JUMP_MS)],
    ids=["own database, ahead", "own database, back", "shared database, back"],
)
"""What a process does at its start. On a shared database, its clock is the database's."""
Prepare = Callable[[Database, int], Awaitable[None]]
SOON_S = 30.0
"""Far longer than a process needs to acquire what is due, and far shorter than the jump of the clock."""


async def restart(world: World, prepare: Prepare, jump_ms: int) -> None:
    """Kill the process, set the clock, and start another one."""
    await world.processes[-1].kill()
    world.clock.at_ms += jump_ms
    await prepare(world.db, world.clock.now_ms())
    world.start("restarted")


@RESTARTS
async def test_running_match_goes_on_at_once_after_a_restart_with_another_time(
    db: Database, prepare: Prepare, jump_ms: int
) -> None:
    async with open_world(db) as world:
        world.start("dead")
        await world.create(seed=5)
        await world.until_live()
        world.region.is_paused = True
        await restart(world, prepare, jump_ms)
        restarted = world.processes[-1]
        await world.until(lambda: restarted.live.get("srv_1") is not None, "it is resumed", within_s=SOON_S)
        await pass_catch_up(world)
        assert (await world.outcome()).kind == "match_over"


async def pass_catch_up(world: World) -> None:
    """Let the time pass in which timeouts wait, then let the game go on."""
    over_ms = world.clock.now_ms() + CATCH_UP_MS
    await world.until(lambda: world.clock.now_ms() > over_ms, "the time to catch up is over", step_ms=200)
    assert await outbox.outcome_of(world.db, "srv_1") is None
    world.region.is_paused = False


@JUMPS
async def test_running_match_goes_on_if_the_clock_is_set_meanwhile(db: Database, jump_ms: int) -> None:
    """The clock of a process ignores that the system's is set, but a machine may be suspended for hours."""
    async with open_world(db) as world:
        world.start()
        await world.create(seed=5)
        await world.until_live()
        world.region.is_paused = True
        world.clock.at_ms += jump_ms
        await servers.repair_times(db, world.clock.now_ms())
        await pass_catch_up(world)
        assert (await world.outcome()).kind == "match_over"


@JUMPS
async def test_players_have_time_to_join_after_a_restart_with_another_time_but_not_forever(
    db: Database, jump_ms: int
) -> None:
    async with open_world(db, speed=1.0) as world:
        world.start("dead")
        await world.create(scenario="no_show")
        await world.until_phase(ServerPhase.RUNNING)
        await world.until_driven()
        await restart(world, servers.drop_leases, jump_ms)
        live = await world.until_driven()
        least_ms = 300_000 - MAX_STEP_MS - 60_000
        await world.until(
            lambda: least_ms < (live.fold.due_ms() or 0) - world.clock.now_ms() <= 300_000, "players have time to join"
        )
        # The server posts meanwhile.
        await world.until_row(lambda row: row.ended_at_ms is not None, "the match has ended", step_ms=2_000)
        assert (await world.outcome()).reason == CancelReason.NO_PLAYERS_JOINED


@RESTARTS
async def test_pending_match_waits_its_time_after_a_restart_with_another_time(
    db: Database, prepare: Prepare, jump_ms: int
) -> None:
    async with open_world(db, ()) as world:
        world.start("dead")
        await world.create()
        await world.until_phase(ServerPhase.PENDING)
        await restart(world, prepare, jump_ms)
        world.processes[-1].supervisor.notify("srv_1")
        row = await world.until_row(
            lambda row: world.clock.now_ms() < row.next_at_ms <= world.clock.now_ms() + LOOK_AGAIN_MS,
            "a slot is looked for",
            within_s=SOON_S,
        )
        assert row.phase is ServerPhase.PENDING
        assert row.pending_until_ms is not None
        left_ms = row.pending_until_ms - world.clock.now_ms()
        assert PENDING_MS - MAX_STEP_MS - 60_000 < left_ms <= PENDING_MS
        await world.until_row(lambda row: row.phase is not ServerPhase.PENDING, "it has ended", step_ms=4_000)
        assert (await world.outcome()).reason == CancelReason.NO_CAPACITY
        assert (await world.row()).status is ServerStatus.FAILED


async def test_process_starts_with_the_time_of_a_shared_database(
    postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    ahead_ns = JUMP_MS * 1_000_000
    defaults = SystemClock.__init__.__kwdefaults__
    assert defaults is not None
    monkeypatch.setitem(defaults, "wall_ns", lambda: time.time_ns() + ahead_ns)
    key = "A" * 43 + "="
    variables = {"MATCHPOD_DATA_DIR": str(tmp_path), "MATCHPOD_DATABASE_URL": postgres_url, "MATCHPOD_SECRET_KEY": key}
    resources = await open_resources(load_settings(variables, lambda _: None))
    try:
        theirs_ms = await database_ms(resources.db)
        assert theirs_ms is not None
        assert abs(resources.clock.now_ms() - theirs_ms) < MAX_DIFFERENCE_MS
    finally:
        await resources.db.close()
    assert [one.message for one in caplog.records] == [
        "clock of this machine differs from the database clock: using the database clock"
    ]
