"""Reading the time of a shared database."""

from __future__ import annotations

import time

from matchpod.ports import Database
from matchpod.storage.database_checks import database_ms
from tests.contract import databases

harness = databases.harness


async def test_only_a_shared_database_reports_its_time(harness: databases.Harness, db: Database) -> None:
    time_ms = await database_ms(db)
    if harness.is_sqlite:
        assert time_ms is None
    else:
        assert time_ms is not None
        assert abs(time_ms - time.time() * 1000) < 30_000
