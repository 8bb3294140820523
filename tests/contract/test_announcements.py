"""A process learns of log entries that another one stored for its matches: by announcements, or by one query."""

from __future__ import annotations

import asyncio

import pytest

from matchpod.adapters.postgres import PostgresDatabase
from matchpod.ports import Database, Statement
from matchpod.service.ingest.posts import Receipt
from matchpod.service.runner.intervals import Intervals
from matchpod.storage import raw_log
from matchpod.storage.announcements import CHANNEL, entries_in
from matchpod.storage.entry_groups import append_group
from tests.contract import databases
from tests.contract.world import World, open_world
from tests.vaults import tokens_of

harness = databases.mostly_sqlite_harness
postgres_url = databases.postgres_url

LINE = b"L 11/18/2026 - 10:00:00: noise\n"
NEVER_S = 3_600.0
WITHIN_S = 5.0


async def is_applied_by_driver(world: World, intervals: Intervals) -> bool:
    """Drive a match in one process and post its log to another; return whether the first applies it within seconds."""
    world.start("driver", intervals=intervals)
    await world.create(scenario="no_show")
    live = await world.until_driven()
    world.region.is_paused = True
    other = world.start("other")
    assert await other.ingest.store_log(tokens_of(await world.row()).log, (), LINE) is Receipt.STORED
    newest = await raw_log.newest_seq(world.db, "srv_1")
    try:
        await world.until(lambda: live.seq >= newest, "the entry is applied", within_s=WITHIN_S)
    except AssertionError:
        return False
    return True


async def test_entry_that_another_process_stored_is_found_without_an_announcement(db: Database) -> None:
    async with open_world(db) as world:
        assert await is_applied_by_driver(world, Intervals(watch_s=0.2))


@databases.on_both
async def test_entry_that_another_process_stored_is_announced(db: Database) -> None:
    if not db.is_postgres:
        pytest.skip("SQLite has no announcements: one process uses the file")
    async with open_world(db) as world:
        assert await is_applied_by_driver(world, Intervals(watch_s=NEVER_S))


async def test_idle_match_costs_no_query_of_its_own(db: Database) -> None:
    async with open_world(db) as world:
        process = world.start(intervals=Intervals(watch_s=0.05))
        await world.create(scenario="no_show")
        await world.until_driven()
        world.region.is_paused = True
        reads: list[str] = []

        async def record(sql: str) -> None:
            reads.append(sql)

        await asyncio.sleep(0.5)  # for what was sent before the pause
        process.db.before_read = record
        await world.until(lambda: sum("LEFT JOIN raw_log_heads" in sql for sql in reads) >= 10, "matches are compared")
        assert [sql for sql in reads if "FROM raw_log " in sql] == []


async def test_listener_reconnects_after_the_database_was_restarted(postgres_url: str) -> None:
    listening, db = [await PostgresDatabase.open(postgres_url) for _ in range(2)]
    heard: list[str] = []
    task = asyncio.create_task(listening.listen("restarted", heard.append))

    async def until_heard(text: str) -> None:
        async with asyncio.timeout(60):
            while text not in heard:
                await db.write([Statement("SELECT pg_notify('restarted', :text)", {"text": text})])
                await asyncio.sleep(0.05)

    try:
        await until_heard("before")
        await db.read(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE query LIKE 'LISTEN%restarted%' AND pid <> pg_backend_pid()"
        )
        await until_heard("after")
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await listening.close()
        await db.close()


@pytest.mark.parametrize("harness", ["postgres"], indirect=True)
async def test_group_is_announced_in_parts_that_postgres_accepts(db: Database) -> None:
    heard: dict[str, int] = {}
    task = asyncio.create_task(db.listen(CHANNEL, lambda text: heard.update(entries_in(text))))
    names = [f"srv_{number:040}" for number in range(501)]
    rows = [(name, "log", 1, b"{}", b"x", "") for name in names]
    try:
        async with asyncio.timeout(60):
            while len(heard) < len(names) - 1:
                await append_group(db, rows, announced=names[1:])
                await asyncio.sleep(0.1)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert names[0] not in heard, "the process that stored it drives its match"


def test_other_announcements_contain_no_entries() -> None:
    assert list(entries_in("srv_1:12 due srv_2: :7 srv_3:x")) == [("srv_1", 12)]
    assert list(entries_in("")) == []
