"""Whether this process says that it takes requests."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from matchpod.ports import Database, DatabaseAwayError, Row, Statement, Value
from matchpod.service.readiness import Readiness, ReadinessState


class OneTable(Database):
    """A database with a version in it, unless it is away."""

    def __init__(self) -> None:
        self.is_away = False

    @property
    def is_shared(self) -> bool:
        return False

    async def read(self, sql: str, params: Mapping[str, Value] | None = None) -> list[Row]:
        if self.is_away:
            raise DatabaseAwayError("gone")
        return [(1,)]

    async def look_up(self, sql: str, params: Mapping[str, Value]) -> Row | None:
        rows = await self.read(sql, params)
        return rows[0] if rows else None

    async def write(self, statements: Sequence[Statement]) -> list[list[Row]]:
        raise NotImplementedError

    async def close(self) -> None:
        pass


def test_requests_are_welcome_between_start_and_draining() -> None:
    readiness = Readiness(db=OneTable())
    assert asyncio.run(readiness.check()) == ["The service is starting."]
    readiness.became_ready()
    assert asyncio.run(readiness.check()) == []
    readiness.drain()
    assert asyncio.run(readiness.check()) == ["The service is draining."]


def test_a_process_that_drains_does_not_become_ready() -> None:
    readiness = Readiness(db=OneTable())
    readiness.drain()
    readiness.became_ready()
    assert readiness.state == ReadinessState.DRAINING


def test_a_database_that_is_away_is_a_reason() -> None:
    db = OneTable()
    readiness = Readiness(db=db)
    readiness.became_ready()
    db.is_away = True
    assert asyncio.run(readiness.check()) == ["The database is away."]
    db.is_away = False
    assert asyncio.run(readiness.check()) == []
