"""Calls to the database are counted by kind and outcome."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from matchpod.adapters.sqlite import SqliteDatabase
from matchpod.ports import DatabaseError, DatabaseUnavailableError, DuplicateError, NothingChangedError, Statement
from matchpod.service.telemetry.measured_database import CallOutcome, MeasuredDatabase
from matchpod.service.telemetry.metrics import DatabaseMetrics
from matchpod.service.telemetry.prometheus import Registry

INSERT = Statement("INSERT INTO one (id) VALUES (1)")


@pytest.fixture
async def file(tmp_path: Path) -> AsyncIterator[SqliteDatabase]:
    db = await SqliteDatabase.open(tmp_path / "db")
    await db.write([Statement("CREATE TABLE one (id BIGINT PRIMARY KEY)")])
    yield db
    await db.close()


async def test_calls_are_counted_by_kind_and_outcome_and_measured(file: SqliteDatabase) -> None:
    registry = Registry()
    metrics = DatabaseMetrics(registry)
    db = MeasuredDatabase(file, metrics)
    assert registry.text().count("} 0\n") >= 2 * len(CallOutcome), "all series exist from the start"
    assert await db.write([INSERT]) == [[]]
    assert await db.read("SELECT id FROM one") == [(1,)]
    assert await db.read_one("SELECT id FROM one WHERE id = :id", {"id": 2}) is None
    with pytest.raises(DuplicateError):
        await db.write([INSERT])
    with pytest.raises(NothingChangedError):
        await db.write([Statement("DELETE FROM one WHERE id = 7", must_change=True)])
    with pytest.raises(DatabaseError):
        await db.read("SELECT nothing")
    await db.close()
    with pytest.raises(DatabaseUnavailableError):
        await db.read_one("SELECT id FROM one", {})
    counted = {
        (kind, str(outcome)): int(metrics.calls.value(kind, outcome))
        for kind in ("read", "write")
        for outcome in CallOutcome
    }
    assert {key: number for key, number in counted.items() if number} == {
        ("read", "ok"): 2,
        ("read", "failed"): 1,
        ("read", "unavailable"): 1,
        ("write", "ok"): 1,
        ("write", "rejected"): 2,
    }
    assert (metrics.seconds.count("read"), metrics.seconds.count("write")) == (4, 3)
