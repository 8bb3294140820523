"""The first API key from a file, when replicas start at the same moment."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from matchpod.adapters.clock import SystemClock
from matchpod.app.first_run import ORGANIZATION, create_key_from_file
from matchpod.service.access.organizations import Access
from tests.contract import databases
from tests.vaults import VAULT

harness = databases.mostly_sqlite_harness

KEY = "mk_live_Qm9-fT2xKq0LrW7vUeYzA1sDdGhJk3NpXcV_bM4n5Oi"


@databases.on_both
async def test_replicas_that_start_together_create_one_key(
    harness: databases.Harness, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "key"
    file.write_text(KEY)
    async with harness.open_migrated() as db:
        other = db if harness.is_sqlite else await harness.open()  # an SQLite file is used by one process
        replicas = [Access(db=one, clock=SystemClock(), vault=VAULT) for one in (db, other) for _ in range(3)]
        await asyncio.gather(*(create_key_from_file(access, file) for access in replicas))
        assert (await replicas[-1].authenticate(f"Bearer {KEY}")).may_create
        assert [one.name for one in await replicas[0].organizations()] == [ORGANIZATION]
        assert len(await replicas[0].keys(ORGANIZATION)) == 1
        if other is not db:
            await other.close()
    assert [record.message for record in caplog.records if record.levelname == "WARNING"] == []
