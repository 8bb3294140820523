"""A server process that is not the one we configured is lost, also if it was restarted while the service was down."""

from __future__ import annotations

from matchpod.core.effects import CancelReason
from matchpod.core.server_status import ServerPhase
from matchpod.ports import Database
from matchpod.service.match_log.entries import EntryKind
from matchpod.service.runner.intervals import Intervals
from matchpod.storage import outbox, raw_log
from matchpod.storage.servers import LEASE_MS
from tests.contract import databases
from tests.contract.driven_matches import SETTINGS, World, open_world

harness = databases.sqlite_harness

NOTICED_S = 120.0
"""Time limit to notice a loss: a few seconds, on a busy machine."""
QUICK = Intervals(probe_s=0.1, quiet_ms=1_000, log_gap_ms=0)


async def assert_lost(world: World) -> None:
    await world.until_row(lambda row: row.phase is ServerPhase.RELEASED, "the match has ended", within_s=NOTICED_S)
    outcome = await outbox.outcome_of(world.db, "srv_1")
    assert outcome is not None
    assert outcome.reason == CancelReason.SERVER_LOST
    assert world.region.releases == ["srv_1"]


async def test_server_that_is_restarted_during_a_match_is_lost(db: Database) -> None:
    async with open_world(db) as world:
        world.region.use_static_server()
        world.start(intervals=QUICK)
        await world.create(game=SETTINGS)
        await world.until_live()
        await world.region.restart_static_server()
        await assert_lost(world)


async def test_server_that_is_restarted_while_the_service_is_down_is_lost(db: Database) -> None:
    async with open_world(db) as world:
        world.region.use_static_server()
        dead = world.start("dead", intervals=QUICK)
        await world.create(game=SETTINGS)
        await world.until_live()
        await dead.kill()
        await world.region.restart_static_server()
        world.clock.ahead_ms += LEASE_MS
        world.start("successor", intervals=QUICK)
        await assert_lost(world)


async def test_match_goes_on_if_an_operator_ends_its_log(db: Database) -> None:
    async with open_world(db) as world:
        server = world.region.use_static_server()
        world.start(intervals=QUICK)
        await world.create(game=SETTINGS)
        await world.until_live()
        server.is_paused = True
        for command in ("logaddress_delall_http", "log off"):
            server.machine.execute(command, "")
        await world.until(
            lambda: "http" in server.machine.execute("logaddress_list_http", ""), "the log address is registered again"
        )
        server.is_paused = False
        before = await raw_log.newest_seq(db, "srv_1")
        assert (await world.outcome()).reason is None
        later = await raw_log.read_after(db, "srv_1", before, limit=1_000)
        assert any(entry.kind == EntryKind.LOG for entry in later), "its log is on again"
