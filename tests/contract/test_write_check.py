"""Databases that can be read but not written: the service is not ready, requests fail as retryable, nothing is lost."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path

import pytest

from matchpod.adapters.postgres import PostgresDatabase
from matchpod.adapters.sqlite import SqliteDatabase
from matchpod.core.errors import UnavailableError
from matchpod.core.model import CvarSetting
from matchpod.core.server_status import ServerPhase
from matchpod.ports import Database, DatabaseUnavailableError, Value
from matchpod.service.ingest.posts import RawHeaders, Receipt
from matchpod.storage.database_checks import check_write
from matchpod.storage.migrate import migrate
from matchpod.storage.rows import read_number, write_one
from tests.clocks import ManualClock
from tests.contract import databases
from tests.contract.test_matches import Callers
from tests.contract.world import Between, callback_fields, open_world, play_undisturbed
from tests.operations import new_readiness
from tests.vaults import VAULT

harness = databases.harness
postgres_url = databases.postgres_url

NO_LIMIT = 2**30
MANY = 20
LOCKSTEP = CvarSetting("sim_lockstep", "1")
"""The game waits until its log is acknowledged."""


async def reasons(db: Database) -> list[str]:
    readiness = new_readiness(db, ManualClock())
    readiness.mark_ready()
    return await readiness.check()


@asynccontextmanager
async def open_sqlite(folder: Path) -> AsyncIterator[SqliteDatabase]:
    db = await SqliteDatabase.open(folder / "matchpod.sqlite")
    await migrate(db, VAULT.seal)
    yield db
    await db.close()


async def fill_up(db: SqliteDatabase) -> None:
    """Let the file grow no further, as on a full disk, and use up its free pages."""
    pages = await read_number(db, "SELECT page_count FROM pragma_page_count")
    await write_one(db, f"PRAGMA max_page_count = {pages}")
    with suppress(DatabaseUnavailableError):
        for number in itertools.count():
            row: dict[str, Value] = {"id": f"{number}", "body": bytes(1_000)}
            await write_one(db, "INSERT INTO write_checks (id, body) VALUES (:id, :body)", row)


async def free_space(db: SqliteDatabase) -> None:
    await write_one(db, f"PRAGMA max_page_count = {NO_LIMIT}")
    await write_one(db, "DELETE FROM write_checks")


async def test_check_leaves_nothing_behind(db: Database) -> None:
    for _ in range(3):
        await check_write(db)
    assert await reasons(db) == []
    assert await db.read("SELECT * FROM write_checks") == []


async def create_many(callers: Callers) -> None:
    """Create more matches than fit into the rest of the pages in use."""
    for _ in range(100):
        await callers.create()


async def test_process_on_a_full_disk_is_not_ready_and_creates_no_match(tmp_path: Path) -> None:
    async with open_sqlite(tmp_path) as db:
        callers = Callers(db)
        await fill_up(db)
        assert await reasons(db) == [
            "Nothing can be written to the database (SQLite: database or disk is full)."
            " Check its disk space and permissions."
        ]
        with pytest.raises(UnavailableError, match=r"The database is unavailable\. Retry later\."):
            await create_many(callers)
        await free_space(db)
        assert await reasons(db) == []
        await callers.create()


async def test_process_with_a_read_only_file_is_not_ready(tmp_path: Path) -> None:
    async with open_sqlite(tmp_path) as db:
        await write_one(db, "PRAGMA query_only = ON")
        assert await reasons(db) == [
            "Nothing can be written to the database (SQLite: attempt to write a readonly database)."
            " Check its disk space and permissions."
        ]
        with pytest.raises(UnavailableError):
            await Callers(db).create()


async def test_process_with_a_read_only_postgresql_is_not_ready(postgres_url: str) -> None:
    db = await PostgresDatabase.open(postgres_url)
    await migrate(db, VAULT.seal)
    await db.close()
    standby = await PostgresDatabase.open(f"{postgres_url}&default_transaction_read_only=on")
    assert await reasons(standby) == [
        "Nothing can be written to the database (PostgreSQL is unavailable: ReadOnlySQLTransactionError)."
        " Check its disk space and permissions."
    ]
    with pytest.raises(DatabaseUnavailableError):
        await check_write(standby)
    await standby.close()


class _ObservedIngest(Between):
    """Counts the log posts that were not stored. Reports wait instead: a plugin would not repeat them."""

    rejected = 0

    async def store_log(self, token: str, headers: RawHeaders, body: bytes) -> Receipt:
        try:
            return await super().store_log(token, headers, body)
        except UnavailableError:
            self.rejected += 1
            raise

    async def store_report(self, token: str | None, body: bytes) -> Receipt:
        return await _until_stored(partial(super().store_report, token, body))

    async def store_shots(self, token: str | None, body: bytes) -> Receipt:
        return await _until_stored(partial(super().store_shots, token, body))


async def _until_stored(store: Callable[[], Awaitable[Receipt]]) -> Receipt:
    while True:
        try:
            return await store()
        except UnavailableError:
            await asyncio.sleep(0.05)


async def test_match_continues_without_loss_when_a_full_disk_has_space_again(tmp_path: Path) -> None:
    async with open_sqlite(tmp_path) as db:
        expected = await play_undisturbed(db, seed=5)
        async with open_world(db) as world:
            process = world.start()
            observed = _ObservedIngest(process)
            await world.create(seed=5, cvars=[LOCKSTEP])
            await world.until_live()
            await fill_up(db)

            async def is_stopped() -> bool:
                return observed.rejected > 0 and (process.live.get("srv_1") is None or observed.rejected > MANY)

            await world.until(is_stopped, "log posts are rejected again and again, or the match waits for its database")
            assert (await world.row()).phase is ServerPhase.RUNNING
            await free_space(db)
            assert callback_fields(await world.outcome()) == expected
