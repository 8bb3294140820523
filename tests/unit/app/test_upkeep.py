"""Gauges and deletions, and that nothing ends them."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from pathlib import Path

import msgspec
import pytest

from matchpod.adapters.rcon_client import RconConsoles
from matchpod.adapters.sqlite import SqliteDatabase
from matchpod.adapters.vault import KEY_BYTES, KeyFileVault
from matchpod.app import upkeep
from matchpod.app.composition import compose_regions
from matchpod.app.upkeep import Upkeep
from matchpod.ports import Database, DatabaseAwayError, DatabaseError, Row, Value
from matchpod.service.history.streams import Streams
from matchpod.service.live import LiveMatches
from matchpod.service.measures import Measures
from matchpod.service.metrics import Metrics
from matchpod.service.pruning import Pruned
from matchpod.service.readiness import Readiness
from matchpod.service.regions import Regions
from matchpod.service.runner.surroundings import Surroundings
from matchpod.settings import load_settings
from matchpod.storage import map_events, raw_log, servers, slots
from matchpod.storage.migrate import migrate
from matchpod.storage.servers import Idempotency
from tests.contract.databases import PassedOn
from tests.unit.cli.test_matches import server

DAY_MS = 24 * 60 * 60 * 1000


class ManualClock:
    """Stands still until it is set."""

    def __init__(self) -> None:
        self.at_ms = 100 * DAY_MS

    def now_ms(self) -> int:
        return self.at_ms


def run(folder: Path, scenario: Callable[[Surroundings], Awaitable[None]]) -> None:
    async def main() -> None:
        settings = load_settings({"MATCHPOD_DATA_DIR": str(folder)}, lambda _: None)
        db = await SqliteDatabase.open(folder / "db")
        live = LiveMatches()
        try:
            await migrate(db)
            await scenario(
                Surroundings(
                    db=db,
                    clock=ManualClock(),
                    vault=KeyFileVault(bytes(KEY_BYTES)),
                    regions=Regions(compose_regions(settings, RconConsoles()), db),
                    live=live,
                    streams=Streams(db=db, live=live),
                    consoles=RconConsoles(),
                    measures=Measures(Metrics()),
                    ingest_base="http://127.0.0.1:1",
                    pending_ms=0,
                    random_bytes=secrets.token_bytes,
                    on_concluded=lambda: None,
                )
            )
        finally:
            await db.close()

    asyncio.run(main())


def upkeep_of(around: Surroundings) -> Upkeep:
    return Upkeep(around, readiness=Readiness(db=around.db, clock=around.clock), raw_log_days=30, event_days=60)


def test_servers_and_places_are_counted(tmp_path: Path) -> None:
    async def scenario(around: Surroundings) -> None:
        for name in ("srv_1", "srv_2"):
            await servers.create(around.db, server(name, region="sandbox"), idempotency=None)
        await slots.reserve(around.db, "sandbox", "srv_1", ["27100"])
        await upkeep_of(around).set_gauges()
        assert around.measures.servers.value("sandbox", "allocating") == 2
        assert around.measures.slots.value("sandbox", "all") == 100
        assert around.measures.slots.value("sandbox", "taken") == 1

    run(tmp_path, scenario)


async def _entries(db: Database, server_id: str) -> int:
    return len(await raw_log.read_after(db, server_id, 0, limit=10))


def test_what_is_old_is_deleted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(around: Surroundings) -> None:
        db, now_ms = around.db, around.clock.now_ms()
        for days, key in ((31, "old"), (29, "new")):
            at_ms = now_ms - days * DAY_MS
            await db.write(raw_log.append("srv_gone", "log", received_ms=at_ms, headers=b"{}", body=key.encode()))
        for days, first_seq in ((61, 1), (59, 2)):
            await db.write([map_events.append("map_1", first_seq, [b"{}"], at_ms=now_ms - days * DAY_MS)])
        for hours, key in ((25, "old"), (23, "new")):
            used = Idempotency(org_id="org_1", key=key, body_hash="x", created_at_ms=now_ms - hours * 3_600_000)
            await servers.create(db, server(f"srv_{key}"), idempotency=used)
        await upkeep_of(around).sweep()
        assert await _entries(db, "srv_gone") == 1
        assert await map_events.read_after(db, "map_1", 0, limit=10) == [(2, b"{}")]
        assert await servers.find_idempotent(db, "org_1", "old", 0) is None
        assert await servers.find_idempotent(db, "org_1", "new", 0) is not None
        await upkeep_of(around).sweep()

    with caplog.at_level(logging.INFO):
        run(tmp_path, scenario)
    (said,) = [one for one in caplog.records if one.message == "old entries deleted"]
    assert [getattr(said, name) for name in Pruned.__struct_fields__] == [1, 1, 1, 0]


def test_a_job_that_fails_is_done_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("GAUGE_S", "CLOCK_S", "FIRST_SWEEP_S", "RETRY_S"):
        monkeypatch.setattr(upkeep, name, 0)

    async def scenario(around: Surroundings) -> None:
        empty = await SqliteDatabase.open(tmp_path / "empty")  # not even tables
        jobs = upkeep_of(msgspec.structs.replace(around, db=empty))
        crashes = around.measures.crashes
        try:
            await _run_until(jobs.keep_gauges, lambda: crashes.value("gauges") >= 3)
            await _run_until(jobs.keep_sweeping, lambda: crashes.value("sweep") >= 3)
        finally:
            await empty.close()

    with caplog.at_level(logging.ERROR):
        run(tmp_path, scenario)
    assert [one.message for one in caplog.records].count("gauges were not set") == 1
    assert [one.message for one in caplog.records].count("old entries were not deleted") >= 3


def test_a_database_that_is_away_is_no_crash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("GAUGE_S", "CLOCK_S", "FIRST_SWEEP_S", "RETRY_S"):
        monkeypatch.setattr(upkeep, name, 0)

    async def scenario(around: Surroundings) -> None:
        closed = await SqliteDatabase.open(tmp_path / "closed")
        await closed.close()
        jobs = upkeep_of(msgspec.structs.replace(around, db=closed))
        turns = iter(range(20))
        await _run_until(jobs.keep_gauges, lambda: next(turns, None) is None)
        await _run_until(jobs.keep_sweeping, lambda: len(caplog.records) >= 2)
        assert around.measures.crashes.value("gauges") == around.measures.crashes.value("sweep") == 0

    run(tmp_path, scenario)
    assert {one.message for one in caplog.records} == {"old entries wait for the database"}


async def _run_until(job: Callable[[], Coroutine[object, object, None]], is_enough: Callable[[], bool]) -> None:
    running = asyncio.create_task(job())
    async with asyncio.timeout(30):
        while not is_enough():
            await asyncio.sleep(0)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert running.cancelled()


def test_jobs_go_on_until_cancelled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upkeep, "FIRST_SWEEP_S", 0)

    async def scenario(around: Surroundings) -> None:
        jobs = upkeep_of(around)
        used = Idempotency(org_id="org_1", key="old", body_hash="x", created_at_ms=0)
        await servers.create(around.db, server("srv_1", region="sandbox"), idempotency=used)
        running = [asyncio.create_task(jobs.keep_gauges()), asyncio.create_task(jobs.keep_sweeping())]
        async with asyncio.timeout(30):
            while await servers.find_idempotent(around.db, "org_1", "old", 0) is not None:
                await asyncio.sleep(0)
            while around.measures.servers.value("sandbox", "allocating") != 1:
                await asyncio.sleep(0)
        assert not any(job.done() for job in running)
        for job in running:
            job.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    run(tmp_path, scenario)


class Elsewhere(PassedOn):
    """A database that says it is shared, and has a time of its own."""

    def __init__(self, db: Database) -> None:
        super().__init__(db)
        self.answers: list[list[Row] | DatabaseError] = []

    @property
    def is_shared(self) -> bool:
        return True

    async def read(self, sql: str, params: Mapping[str, Value] | None = None) -> list[Row]:
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, DatabaseError):
            raise answer
        return answer


def test_clocks_are_compared_again_and_again_whatever_happens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(upkeep, "CLOCK_S", 0)

    async def scenario(around: Surroundings) -> None:
        db = Elsewhere(around.db)
        db.answers = [DatabaseAwayError("gone"), DatabaseError("odd"), [(around.clock.now_ms() + 6_000,)]]
        jobs = upkeep_of(msgspec.structs.replace(around, db=db))
        await _run_until(jobs.keep_comparing_clocks, lambda: len(caplog.records) >= 3)
        assert around.measures.crashes.value("clocks") == 1

    run(tmp_path, scenario)
    first, *later = [one.message for one in caplog.records]
    assert first == "clocks were not compared"
    assert set(later) == {"clock differs from the database"}
