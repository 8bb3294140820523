"""The generated history has correct counters, and every benchmark case works on it."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

from matchpod.storage.migrate import migrate
from tests.bench import history_cases
from tests.bench.history_databases import SqliteHome
from tests.bench.history_rows import BIG, ORGANIZATIONS, fill_statements
from tests.contract.match_histories import stored_counts, true_counts
from tests.vaults import VAULT

MAPS = 1_000


async def test_generated_history_has_correct_counters_and_supports_every_case(tmp_path: Path) -> None:
    home = SqliteHome(tmp_path, "history")
    db = await home.open()
    try:
        await migrate(db, VAULT.seal)
        await asyncio.to_thread(home.load, fill_statements(MAPS))
        counts = await stored_counts(db)
        assert counts == await true_counts(db)
        maps_by_org = {key[0]: count for key, count in counts.items() if key[1:] == ("map", "", "", -1)}
        assert len(maps_by_org) == ORGANIZATIONS
        assert sum(maps_by_org.values()) == MAPS
        assert abs(maps_by_org[BIG] - MAPS // 2) <= 4
        for query in (await history_cases.cases(db, MAPS)).values():
            await query(random.Random(1))
    finally:
        await db.close()
