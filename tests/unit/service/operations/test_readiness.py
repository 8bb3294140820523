"""When a process reports that it is ready."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence

import pytest

from matchpod.ports import DatabaseUnavailableError, Row, Statement, Value
from matchpod.service.operations import readiness as readiness_module
from matchpod.service.operations.readiness import MAX_DIFFERENCE_MS, WRITE_CHECK_MS, Readiness, ReadinessState
from matchpod.service.regions.regions import Region
from matchpod.storage.schema import MIGRATIONS
from tests.clocks import ManualClock
from tests.operations import new_readiness
from tests.unit.service.test_access_rules import NoDatabase
from tests.unused_fleet import UnusedFleet

NOW_MS = 1_800_000_000_000


class FakeDatabase(NoDatabase):
    """A database that returns a schema version or its time, unless it is unavailable."""

    def __init__(self, clock: ManualClock | None = None) -> None:
        self.is_unavailable = False
        self.clock = clock
        self.is_shared = clock is not None
        self.ahead_ms = 0
        self.writes = 0
        self.write_fault: str | None = None
        self.required = 1

    async def read(self, sql: str, params: Mapping[str, Value] | None = None) -> list[Row]:
        if self.is_unavailable:
            raise DatabaseUnavailableError("gone")
        if "EPOCH" not in sql:
            return [(self.required,)]
        assert self.clock is not None, "the time of a database that is not shared was read"
        self.clock.at_ms += 2_000
        return [(self.clock.at_ms - 1_000 + self.ahead_ms,)]

    async def write(self, statements: Sequence[Statement]) -> list[list[Row]]:
        self.writes += 1
        if self.write_fault is not None:
            raise DatabaseUnavailableError(self.write_fault)
        return [[] for _ in statements]


class FaultyFleet(UnusedFleet):
    why_unusable: str | None = "The cluster cannot be reached."

    @property
    def fault(self) -> str | None:
        return self.why_unusable


def test_region_that_cannot_be_used_is_a_warning_and_the_process_is_ready() -> None:
    db, fleet = FakeDatabase(), FaultyFleet()
    region = Region(code="eu", name="Europe", location="here", fleet=fleet)
    readiness = new_readiness(db, ManualClock(NOW_MS), [region])
    readiness.mark_ready()
    assert asyncio.run(readiness.check()) == []
    assert asyncio.run(readiness.warnings()) == ["Region eu is inactive: The cluster cannot be reached."]
    fleet.why_unusable = None
    assert asyncio.run(readiness.warnings()) == []


def test_process_is_ready_between_start_and_draining() -> None:
    readiness = new_readiness(FakeDatabase(), ManualClock(NOW_MS))
    assert asyncio.run(readiness.check()) == ["The service is starting."]
    readiness.mark_ready()
    assert asyncio.run(readiness.check()) == []
    readiness.drain()
    assert asyncio.run(readiness.check()) == ["The service is draining."]


def test_draining_process_does_not_become_ready() -> None:
    readiness = new_readiness(FakeDatabase(), ManualClock(NOW_MS))
    readiness.drain()
    readiness.mark_ready()
    assert readiness.state == ReadinessState.DRAINING


def test_process_is_not_ready_if_its_database_is_unavailable() -> None:
    db = FakeDatabase()
    readiness = new_readiness(db, ManualClock(NOW_MS))
    readiness.mark_ready()
    db.is_unavailable = True
    assert asyncio.run(readiness.check()) == ["The database is unavailable."]
    db.is_unavailable = False
    assert asyncio.run(readiness.check()) == []


def test_process_is_not_ready_while_its_database_cannot_be_written(caplog: pytest.LogCaptureFixture) -> None:
    db, clock = FakeDatabase(), ManualClock(NOW_MS)
    readiness = new_readiness(db, clock)
    readiness.mark_ready()
    db.write_fault = "SQLite: database or disk is full"
    with caplog.at_level(logging.INFO):
        for _ in range(2):
            assert asyncio.run(readiness.check()) == [
                "Nothing can be written to the database (SQLite: database or disk is full)."
                " Check its disk space and permissions."
            ]
            clock.at_ms += WRITE_CHECK_MS
        db.write_fault = None
        assert asyncio.run(readiness.check()) == []
    assert [one.message for one in caplog.records] == ["database cannot be written", "database can be written again"]


def test_probes_every_second_write_only_every_few_seconds() -> None:
    db, clock = FakeDatabase(), ManualClock(NOW_MS)
    readiness = new_readiness(db, clock)
    readiness.mark_ready()
    for _ in range(10):
        assert asyncio.run(readiness.check()) == []
        clock.at_ms += 1_000
    assert db.writes == 10 * 1_000 // WRITE_CHECK_MS


class LateDatabase(FakeDatabase):
    """A database whose reads or writes time out, which takes two seconds of its clock."""

    def __init__(self, clock: ManualClock) -> None:
        super().__init__()
        self.ticking = clock
        self.is_late_read = self.is_late_write = False

    async def read(self, sql: str, params: Mapping[str, Value] | None = None) -> list[Row]:
        if self.is_late_read:
            await self.time_out()
        return await super().read(sql, params)

    async def write(self, statements: Sequence[Statement]) -> list[list[Row]]:
        if self.is_late_write:
            await self.time_out()
        return await super().write(statements)

    async def time_out(self) -> None:
        self.ticking.at_ms += 2_000
        await asyncio.Event().wait()


@pytest.fixture
def late(monkeypatch: pytest.MonkeyPatch) -> tuple[LateDatabase, Readiness]:
    monkeypatch.setattr(readiness_module, "CHECK_S", 0.01)
    clock = ManualClock(NOW_MS)
    db = LateDatabase(clock)
    readiness = new_readiness(db, clock)
    readiness.mark_ready()
    return db, readiness


async def test_database_that_does_not_answer_a_write_for_long_is_reported(late: tuple[LateDatabase, Readiness]) -> None:
    db, readiness = late
    for _ in range(2):
        db.is_late_write = True
        assert await readiness.check() == [], "one late write makes no process unready"
        for _ in range(2):
            assert await readiness.check() == ["Nothing was written to the database for 4 s. Check its disk."]
        db.is_late_write = False
        assert await readiness.check() == [], "the next probe tries again"
        db.ticking.at_ms += WRITE_CHECK_MS


async def test_database_that_does_not_answer_a_read_for_long_is_reported(late: tuple[LateDatabase, Readiness]) -> None:
    db, readiness = late
    for _ in range(2):
        db.is_late_read = True
        assert [await readiness.check() for _ in range(3)] == [[], *[["The database is unavailable."]] * 2]
        db.is_late_read = False
        assert await readiness.check() == []


async def test_late_read_hides_no_fault(late: tuple[LateDatabase, Readiness]) -> None:
    db, readiness = late
    db.write_fault = "SQLite: database or disk is full"
    before = await readiness.check()
    assert before
    db.is_late_read = True
    assert await readiness.check() == before


async def test_late_write_of_one_probe_is_not_forgotten_because_of_another(
    late: tuple[LateDatabase, Readiness],
) -> None:
    db, readiness = late
    db.is_late_write = True
    assert [*await asyncio.gather(readiness.check(), readiness.check())] == [[], []]
    first, second = await asyncio.gather(readiness.check(), readiness.check())
    assert first == ["Nothing was written to the database for 4 s. Check its disk."]
    assert second == [], "a probe beside one that still writes gets the result before"


@pytest.mark.parametrize(
    ("ahead_ms", "reasons"),
    [
        (0, []),
        (MAX_DIFFERENCE_MS + 1_000, []),
        (-MAX_DIFFERENCE_MS - 1_000, []),
        (8_500, ["The clock is 7.5 s behind the database's. Restart the service, which corrects it."]),
        (-8_500, ["The clock is 7.5 s ahead of the database's. Restart the service, which corrects it."]),
    ],
)
def test_process_with_a_wrong_clock_is_not_ready_and_logs_it(
    ahead_ms: int, reasons: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    clock = ManualClock(NOW_MS)
    db = FakeDatabase(clock)
    db.ahead_ms = ahead_ms
    readiness = new_readiness(db, clock)
    readiness.mark_ready()
    with caplog.at_level(logging.WARNING):
        asyncio.run(readiness.compare_clocks())
    assert asyncio.run(readiness.check()) == reasons
    assert [one.message for one in caplog.records] == ["clock differs from the database clock"] * len(reasons)
    db.ahead_ms = 0
    asyncio.run(readiness.compare_clocks())
    assert asyncio.run(readiness.check()) == []


def test_clock_is_not_compared_with_a_database_that_is_not_shared() -> None:
    readiness = new_readiness(FakeDatabase(), ManualClock(NOW_MS))
    readiness.mark_ready()
    asyncio.run(readiness.compare_clocks())
    assert asyncio.run(readiness.check()) == []


async def test_process_that_is_too_old_for_the_schema_is_not_ready(caplog: pytest.LogCaptureFixture) -> None:
    db = FakeDatabase()
    readiness = new_readiness(db, ManualClock(NOW_MS))
    readiness.mark_ready()
    db.required = len(MIGRATIONS)
    assert await readiness.check() == []
    db.required += 1
    for _ in range(2):
        (reason,) = await readiness.check()
        assert reason == (
            f"This version is too old for its database, which requires schema version {db.required}: it knows versions up"
            f" to {len(MIGRATIONS)}. Replace it with a newer one."
        )
    assert [record.message for record in caplog.records] == ["database requires a newer version"]
