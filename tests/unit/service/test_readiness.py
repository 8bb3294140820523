"""Whether this process says that it takes requests."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence

import pytest

from matchpod.ports import Database, DatabaseAwayError, Row, Statement, Value
from matchpod.service.readiness import MAX_DIFFERENCE_MS, Readiness, ReadinessState

NOW_MS = 1_800_000_000_000


class Watch:
    """A clock that goes on by a second whenever the database is asked."""

    def __init__(self) -> None:
        self.at_ms = NOW_MS

    def now_ms(self) -> int:
        return self.at_ms


class OneTable(Database):
    """A database with a version and a clock in it, unless it is away."""

    def __init__(self, watch: Watch | None = None) -> None:
        self.is_away = False
        self.watch = watch
        self.ahead_ms = 0

    @property
    def is_shared(self) -> bool:
        return self.watch is not None

    async def read(self, sql: str, params: Mapping[str, Value] | None = None) -> list[Row]:
        if self.is_away:
            raise DatabaseAwayError("gone")
        if "EPOCH" not in sql:
            return [(1,)]
        assert self.watch is not None, "asked for its time, which is nobody else's"
        self.watch.at_ms += 2_000
        return [(self.watch.at_ms - 1_000 + self.ahead_ms,)]

    async def look_up(self, sql: str, params: Mapping[str, Value]) -> Row | None:
        rows = await self.read(sql, params)
        return rows[0] if rows else None

    async def write(self, statements: Sequence[Statement]) -> list[list[Row]]:
        raise NotImplementedError

    async def close(self) -> None:
        pass


def test_requests_are_welcome_between_start_and_draining() -> None:
    readiness = Readiness(db=OneTable(), clock=Watch())
    assert asyncio.run(readiness.check()) == ["The service is starting."]
    readiness.became_ready()
    assert asyncio.run(readiness.check()) == []
    readiness.drain()
    assert asyncio.run(readiness.check()) == ["The service is draining."]


def test_a_process_that_drains_does_not_become_ready() -> None:
    readiness = Readiness(db=OneTable(), clock=Watch())
    readiness.drain()
    readiness.became_ready()
    assert readiness.state == ReadinessState.DRAINING


def test_a_database_that_is_away_is_a_reason() -> None:
    db = OneTable()
    readiness = Readiness(db=db, clock=Watch())
    readiness.became_ready()
    db.is_away = True
    assert asyncio.run(readiness.check()) == ["The database is away."]
    db.is_away = False
    assert asyncio.run(readiness.check()) == []


@pytest.mark.parametrize(
    ("ahead_ms", "reasons"),
    [
        (0, []),
        (MAX_DIFFERENCE_MS + 1_000, []),
        (-MAX_DIFFERENCE_MS - 1_000, []),
        (8_500, ["The clock is 7.5 s behind the database's; set it, then start the service again."]),
        (-8_500, ["The clock is 7.5 s ahead of the database's; set it, then start the service again."]),
    ],
)
def test_a_clock_that_is_surely_wrong_is_a_reason_and_is_told(
    ahead_ms: int, reasons: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    watch = Watch()
    db = OneTable(watch)
    db.ahead_ms = ahead_ms
    readiness = Readiness(db=db, clock=watch)
    readiness.became_ready()
    with caplog.at_level(logging.WARNING):
        asyncio.run(readiness.compare_clocks())
    assert asyncio.run(readiness.check()) == reasons
    assert [one.message for one in caplog.records] == ["clock differs from the database"] * len(reasons)
    db.ahead_ms = 0
    asyncio.run(readiness.compare_clocks())
    assert asyncio.run(readiness.check()) == []


def test_a_database_of_one_process_has_no_other_time() -> None:
    readiness = Readiness(db=OneTable(), clock=Watch())
    readiness.became_ready()
    asyncio.run(readiness.compare_clocks())
    assert asyncio.run(readiness.check()) == []
