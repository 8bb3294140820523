"""Periodic jobs: gauges, clock checks and pruning; each continues after errors."""

from __future__ import annotations

import asyncio
import logging
import zlib
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from functools import partial
from pathlib import Path

import msgspec
import pytest

from matchpod.adapters import sqlite_space
from matchpod.adapters.demo_storage.folder import FolderStorage
from matchpod.adapters.sqlite import SqliteDatabase
from matchpod.app.composition import compose
from matchpod.app.resources import open_resources
from matchpod.app.upkeep import UPKEEP_INTERVALS, Upkeep, UpkeepIntervals
from matchpod.core.demos import STALE_MS, DemoState, MissingReason
from matchpod.core.server_status import ServerPhase, ServerStatus
from matchpod.core.servers.server_loss import Silence
from matchpod.ports import Database, DatabaseError, DatabaseUnavailableError, Row, Statement, Value
from matchpod.service.access.audit import Audit
from matchpod.service.access.console_sessions import LINK_MS, ConsoleSessions
from matchpod.service.access.organizations import Access
from matchpod.service.operations.disk_space import DiskSpace
from matchpod.service.operations.pruning import Pruned, Retention
from matchpod.service.regions.regions import Regions
from matchpod.service.runner.deps import Deps
from matchpod.service.telemetry.prometheus import Registry
from matchpod.settings import load_settings
from matchpod.storage import demos, raw_log, rows, servers
from matchpod.storage.demos import DemoRow, Upload, UploadEnd
from matchpod.storage.outbox import CallbackRow, OutcomeRow
from tests.clocks import ManualClock
from tests.contract.databases import DelegatingDatabase
from tests.contract.simulated_cluster import SimulatedCluster
from tests.contract.test_storage_servers import take_slot
from tests.migrated import create_migrated
from tests.operations import new_readiness
from tests.unit.cli.test_matches import server

DAY_MS = 24 * 60 * 60 * 1000


@pytest.fixture
async def deps(tmp_path: Path) -> AsyncIterator[Deps]:
    create_migrated(tmp_path / "matchpod.sqlite3")
    resources = await open_resources(load_settings({"MATCHPOD_DATA_DIR": str(tmp_path)}, lambda _: None))
    timed = msgspec.structs.replace(resources, clock=ManualClock(100 * DAY_MS))
    yield compose(timed, owner="me", ingest_base="http://127.0.0.1:1").deps
    await resources.close()


AT_ONCE = UpkeepIntervals(gauge_s=0, clock_s=0, first_sweep_s=0, retry_s=0)


def upkeep_of(
    deps: Deps, intervals: UpkeepIntervals = UPKEEP_INTERVALS, file: Path | None = None, *, folder: Path | None = None
) -> Upkeep:
    return Upkeep(
        deps,
        readiness=new_readiness(deps.db, deps.clock),
        disk=DiskSpace(
            {"data": Path("/")}, min_free_mb=1, free_bytes=lambda _: 7_000_000, clock=deps.clock, metrics=Registry()
        ),
        retention=Retention(raw_log_days=30, event_days=60),
        sessions=sessions_of(deps),
        demo_storage=FolderStorage(Path("/nowhere") if folder is None else folder),
        give_back=None if file is None else partial(sqlite_space.give_back, file, pause_s=0),
        intervals=intervals,
    )


def sessions_of(deps: Deps) -> ConsoleSessions:
    access = Access(db=deps.db, clock=deps.clock, vault=deps.vault)
    audit = Audit(db=deps.db, clock=deps.clock)
    return ConsoleSessions(db=deps.db, clock=deps.clock, access=access, audit=audit)


async def test_servers_slots_and_silent_servers_are_counted(deps: Deps) -> None:
    for name in ("srv_1", "srv_2"):
        await servers.create(deps.db, server(name, region="sandbox"), idempotency=None)
    deps.regions.silent.report("srv_1", Silence(region="sandbox", host="127.0.0.1", since_ms=0))
    await take_slot(deps.db, "sandbox", "27100", "srv_1")
    await upkeep_of(deps).set_gauges()
    assert deps.metrics.servers.value("sandbox", "allocating") == 2
    assert deps.metrics.slots.value("sandbox", "all") == 100
    assert deps.metrics.slots.value("sandbox", "taken") == 1
    assert deps.metrics.silent_servers.value("sandbox") == 1
    deps.regions.silent.forget("srv_1")
    await upkeep_of(deps).set_gauges()
    assert deps.metrics.silent_servers.value("sandbox") == 0


async def test_fleet_that_cannot_be_used_is_shown_with_its_reason(deps: Deps) -> None:
    cluster = SimulatedCluster(1, start_ms=0)
    cluster.why_unusable = "The cluster cannot be reached."
    sandbox, *_ = deps.regions.all()
    regions = Regions([sandbox, msgspec.structs.replace(sandbox, code="pods", fleet=cluster)], deps.db)
    await upkeep_of(msgspec.structs.replace(deps, regions=regions)).set_gauges()
    assert [deps.metrics.fleet_faults.value(code) for code in ("sandbox", "pods")] == [0, 1]
    assert deps.metrics.fleet_fault_reasons.value("pods", "The cluster cannot be reached.") == 1


async def test_age_of_pending_matches_and_waiting_callbacks_is_measured(deps: Deps) -> None:
    clock, metrics = deps.clock, deps.metrics
    assert isinstance(clock, ManualClock)
    await upkeep_of(deps).set_gauges()
    assert (metrics.oldest_pending_s.value("sandbox"), metrics.oldest_callback_s.value()) == (0, 0)
    for name, age_s in (("srv_1", 90), ("srv_2", 30)):
        at_ms, pending = clock.at_ms - age_s * 1000, {"phase": ServerPhase.PENDING, "status": ServerStatus.PENDING}
        row = msgspec.structs.replace(server(name, region="sandbox"), created_at_ms=at_ms, **pending)
        await servers.create(deps.db, row, idempotency=None)
        callback = CallbackRow(
            id=f"cb_{name}", server_id=name, org_id=row.org_id, url="", body=b"", created_at_ms=at_ms, next_at_ms=1
        )
        await deps.db.write([rows.insert("callbacks", callback)])
    await upkeep_of(deps).set_gauges()
    assert metrics.servers.value("sandbox", "pending") == metrics.callbacks_waiting.value() == 2
    assert metrics.oldest_pending_s.value("sandbox") == metrics.oldest_callback_s.value() == 90
    await deps.db.write([Statement("UPDATE callbacks SET next_at_ms = NULL"), Statement("DELETE FROM servers")])
    await upkeep_of(deps).set_gauges()
    assert (metrics.oldest_pending_s.value("sandbox"), metrics.oldest_callback_s.value()) == (0, 0)
    assert 'status="pending"} 0' in "\n".join(metrics.servers.lines()), "the series stays, at 0"


async def test_links_that_expired_are_deleted(deps: Deps) -> None:
    clock = deps.clock
    assert isinstance(clock, ManualClock)
    await sessions_of(deps).create_link(None)
    for passed_ms, left in ((LINK_MS - 1, 1), (1, 0)):
        clock.at_ms += passed_ms
        await upkeep_of(deps).sweep()
        assert len(await deps.db.read("SELECT token_hash FROM console_links")) == left


async def test_space_of_deleted_entries_is_returned_to_the_disk(
    deps: Deps, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await deps.db.write(raw_log.append("srv_1", "log", received_ms=1, headers=b"{}", body=bytes(4_000_000)))
    before = sqlite_space.read_pages(tmp_path / "matchpod.sqlite3")
    with caplog.at_level(logging.INFO):
        await upkeep_of(deps, file=tmp_path / "matchpod.sqlite3").sweep()
    assert sqlite_space.read_pages(tmp_path / "matchpod.sqlite3").count < before.count / 2
    assert "free space of the database returned to the disk" in caplog.text


async def test_matches_that_ended_more_than_a_day_ago_are_compressed(
    deps: Deps, caplog: pytest.LogCaptureFixture
) -> None:
    result = b'{"winner":"team1"}' * 9
    for name, days in (("srv_1", 2), ("srv_2", 0)):
        outcome = OutcomeRow(
            server_id=name,
            kind="match_over",
            at_ms=deps.clock.now_ms() - days * DAY_MS,
            result=result,
            callback_body=b"",
        )
        await deps.db.write([rows.insert("outcomes", outcome)])
    with caplog.at_level(logging.INFO):
        await upkeep_of(deps).sweep()
    stored = await deps.db.read("SELECT result FROM outcomes ORDER BY server_id")
    assert stored == [(zlib.compress(result, 9),), (result,)]
    assert "ended matches compressed" in caplog.text


async def test_old_entries_are_deleted(deps: Deps, caplog: pytest.LogCaptureFixture) -> None:
    for days in (31, 29):
        at_ms = deps.clock.now_ms() - days * DAY_MS
        await deps.db.write(raw_log.append("srv_gone", "log", received_ms=at_ms, headers=b"{}", body=b""))
    with caplog.at_level(logging.INFO):
        for _ in range(2):
            await upkeep_of(deps).sweep()
    assert len(await raw_log.read_after(deps.db, "srv_gone", 0, limit=10)) == 1
    (record,) = [one for one in caplog.records if one.message == "old entries deleted"]
    assert [getattr(record, name) for name in Pruned.__struct_fields__] == [1, 0, 0, 0, 0, 0, 0]


async def test_failed_job_is_retried(tmp_path: Path, deps: Deps, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        empty = await SqliteDatabase.open(tmp_path / "empty")  # without tables
        jobs = upkeep_of(msgspec.structs.replace(deps, db=empty), AT_ONCE)
        crashes = deps.metrics.crashes
        try:
            await _run_until(jobs.run_gauges, lambda: crashes.value("gauges") >= 3)
            await _run_until(jobs.run_sweeps, lambda: crashes.value("sweep") >= 3)
        finally:
            await empty.close()
    assert [one.message for one in caplog.records].count("gauge update failed") == 1
    assert [one.message for one in caplog.records].count("pruning failed") >= 3


async def test_unavailable_database_is_not_counted_as_a_crash(
    tmp_path: Path, deps: Deps, caplog: pytest.LogCaptureFixture
) -> None:
    closed = await SqliteDatabase.open(tmp_path / "closed")
    await closed.close()
    jobs = upkeep_of(msgspec.structs.replace(deps, db=closed), AT_ONCE)
    turns = iter(range(20))
    await _run_until(jobs.run_gauges, lambda: next(turns, None) is None)
    await _run_until(jobs.run_sweeps, lambda: len(caplog.records) >= 2)
    assert deps.metrics.crashes.value("gauges") == deps.metrics.crashes.value("sweep") == 0
    assert {one.message for one in caplog.records} == {"pruning postponed: database unavailable"}


async def _run_until(job: Callable[[], Coroutine[object, object, None]], is_enough: Callable[[], bool]) -> None:
    running = asyncio.create_task(job())
    async with asyncio.timeout(30):
        while not is_enough():
            await asyncio.sleep(0)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert running.cancelled()


async def test_jobs_run_until_cancelled(deps: Deps, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    jobs = upkeep_of(deps, UpkeepIntervals(first_sweep_s=0))
    await servers.create(deps.db, server("srv_1", region="sandbox"), idempotency=None)
    await deps.db.write(raw_log.append("srv_gone", "log", received_ms=1, headers=b"{}", body=b""))
    await _run_until(jobs.run_gauges, lambda: deps.metrics.servers.value("sandbox", "allocating") == 1)
    await _run_until(jobs.run_sweeps, lambda: "old entries deleted" in caplog.messages)


class SharedDatabase(DelegatingDatabase):
    """A database that is marked as shared and returns scripted rows or errors."""

    def __init__(self, db: Database) -> None:
        super().__init__(db)
        self.results: list[list[Row] | DatabaseError] = []

    @property
    def is_shared(self) -> bool:
        return True

    async def read(self, sql: str, params: Mapping[str, Value] | None = None) -> list[Row]:
        result = self.results.pop(0) if len(self.results) > 1 else self.results[0]
        if isinstance(result, DatabaseError):
            raise result
        return result


async def test_clocks_are_compared_again_after_errors(deps: Deps, caplog: pytest.LogCaptureFixture) -> None:
    db = SharedDatabase(deps.db)
    db.results = [
        DatabaseUnavailableError("unavailable"),
        DatabaseError("failed"),
        [(deps.clock.now_ms() + 6_000,)],
    ]
    jobs = upkeep_of(msgspec.structs.replace(deps, db=db), AT_ONCE)
    await _run_until(jobs.run_clock_checks, lambda: len(caplog.records) >= 3)
    assert deps.metrics.crashes.value("clocks") == 1
    first, *later = [one.message for one in caplog.records]
    assert first == "clock comparison failed"
    assert set(later) == {"clock differs from the database clock"}


def demo_of(name: str, upload_id: str) -> tuple[DemoRow, Upload]:
    row = server(name, region="sandbox")
    demo = DemoRow(
        id="",
        org_id=row.org_id,
        server_id=row.id,
        map_id=f"map of {name}",
        map_number=1,
        attempt=row.attempt,
        token_hash=row.report_token_hash,
        state=DemoState.UPLOADING,
        created_at_ms=1,
    )
    upload = Upload(upload_id=upload_id, owner="me", file_name="a.dem", announced_bytes=3, storage_key=f"o/{upload_id}")
    return demo, upload


async def test_demos_that_are_overdue_or_whose_process_is_gone_are_given_up(deps: Deps) -> None:
    now_ms = deps.clock.now_ms()
    await deps.db.write(
        [
            demos.expect(server("srv_1", region="sandbox"), map_id="map_1", map_number=1, now_ms=now_ms),
            demos.await_upload("map_1", now_ms),
            demos.expect(server("srv_2", region="sandbox"), map_id="map_2", map_number=1, now_ms=now_ms),
        ]
    )
    await demos.begin(deps.db, *demo_of("srv_3", "gone"), now_ms - STALE_MS)
    await demos.begin(deps.db, *demo_of("srv_4", "alive"), now_ms)
    await upkeep_of(deps).set_gauges()
    found = [(await demos.of_server(deps.db, f"srv_{number}"))[0] for number in (1, 2, 3, 4)]
    assert [(row.state, row.reason) for row in found] == [
        (DemoState.MISSING, MissingReason.NOT_UPLOADED),
        (DemoState.RECORDING, None),
        (DemoState.MISSING, MissingReason.INTERRUPTED),
        (DemoState.UPLOADING, None),
    ]
    assert [deps.metrics.demos.states.value(state) for state in ("recording", "uploading")] == [1, 1]


async def test_sweep_deletes_demos_past_their_retention(deps: Deps, tmp_path: Path) -> None:
    folder, now_ms = tmp_path / "demos", deps.clock.now_ms()
    storage = FolderStorage(folder)
    days = {"stuck": 32, "old": 31, "new": 29}
    for name, ended_ms in ((name, now_ms - ago * DAY_MS) for name, ago in days.items()):
        demo, upload = demo_of(f"srv_{name}", name)
        writer = await storage.create(upload.storage_key)
        await writer.write(b"abc")
        await writer.commit()
        begun = await demos.begin(deps.db, demo, upload, ended_ms)
        ended = UploadEnd(received_bytes=3, stored_bytes=3, sha256="ab", storage_key=upload.storage_key)
        await demos.end(deps.db, begun.id, ended, upload_id=name, now_ms=ended_ms)
    stuck = next(path for path in folder.rglob("*") if path.name == "stuck")
    stuck.unlink()
    stuck.mkdir()  # cannot be deleted like a file
    await upkeep_of(deps, folder=folder).sweep()
    assert [path.name for path in folder.rglob("*") if path.is_file()] == ["new"]
    assert [row.storage_key for row in await demos.of_server(deps.db, "srv_stuck")] == ["o/stuck"]
    (row,) = await demos.of_server(deps.db, "srv_old")
    assert (row.state, row.reason) == (DemoState.MISSING, MissingReason.DELETED)
