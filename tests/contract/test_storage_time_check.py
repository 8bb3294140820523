"""The time of a database that processes share."""

from __future__ import annotations

import time

from matchpod.ports import Database
from matchpod.storage.time_check import database_ms
from tests.contract import databases

home = databases.home


def test_a_shared_database_tells_its_time(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        told_ms = await database_ms(db)
        if home.is_sqlite:
            assert told_ms is None
        else:
            assert told_ms is not None
            assert abs(told_ms - time.time() * 1000) < 30_000

    home.run(scenario)
