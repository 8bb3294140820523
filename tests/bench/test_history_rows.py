"""Is the made-up history what it says it is, and does everything that is asked of it have an answer?"""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

from matchpod.storage.migrate import migrate
from tests.bench import history_cases
from tests.bench.history_databases import SqliteHome
from tests.bench.history_rows import BIG, ORGANIZATIONS, filling
from tests.contract.match_histories import stored_counts, true_counts

MAPS = 1_000


def test_a_made_up_history_is_counted_and_answers_every_case(tmp_path: Path) -> None:
    home = SqliteHome(tmp_path, "history")

    async def scenario() -> None:
        db = await home.open()
        try:
            await migrate(db)
            await asyncio.to_thread(home.load, (statement for _, statement in filling(MAPS)))
            counts = await stored_counts(db)
            assert counts == await true_counts(db)
            of_all = {key[0]: count for key, count in counts.items() if key[1:] == ("map", "", "", -1)}
            assert len(of_all) == ORGANIZATIONS
            assert sum(of_all.values()) == MAPS
            assert abs(of_all[BIG] - MAPS // 2) <= 4
            for ask in (await history_cases.cases(db, MAPS)).values():
                await ask(random.Random(1))
        finally:
            await db.close()

    asyncio.run(scenario())
