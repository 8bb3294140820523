"""Every database implements the Database port."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec
import pytest

from matchpod.adapters.postgres import CONNECTIONS, PostgresDatabase, PostgresLimits
from matchpod.adapters.sql_text import number_parameters
from matchpod.adapters.sqlite import CHECKPOINT_BYTES, PAGE_BYTES, SqliteDatabase
from matchpod.ports import (
    Database,
    DatabaseError,
    DatabaseUnavailableError,
    DuplicateError,
    NothingChangedError,
    Statement,
    Value,
)
from matchpod.storage.database_checks import database_ms
from tests.contract import databases

harness = databases.harness
postgres_url = databases.postgres_url
own_postgres_url = databases.own_postgres_url

HUNG_S = 15.0
TABLE = Statement("CREATE TABLE notes (id BIGINT PRIMARY KEY, words TEXT, bits BLOB, weight DOUBLE PRECISION)")


def insert_note(number: int, words: str | None = None) -> Statement:
    return Statement("INSERT INTO notes (id, words) VALUES (:id, :words)", {"id": number, "words": words})


async def note_ids(db: Database) -> list[Value]:
    return [row[0] for row in await db.read("SELECT id FROM notes ORDER BY id")]


@pytest.fixture
async def db(harness: databases.Harness) -> AsyncIterator[Database]:
    """Provide a database without our tables."""
    opened = await harness.open()
    yield opened
    await opened.close()


async def test_values_of_every_type_are_stored_unchanged(db: Database) -> None:
    insert = "INSERT INTO notes (id, words, bits, weight) VALUES (:id, :words, :bits, :weight)"
    full: dict[str, Value] = {"id": 2**53, "words": "naïve ':x' 🎯", "bits": b"\x00\xff", "weight": 0.5}
    empty: dict[str, Value] = {"id": 1, "words": None, "bits": None, "weight": None}
    await db.write([TABLE, Statement(insert, full), Statement(insert, empty)])
    rows = await db.read("SELECT id, words, bits, weight FROM notes ORDER BY id")
    assert rows == [tuple(empty.values()), tuple(full.values())]
    assert all(type(row) is tuple for row in rows)


async def test_write_returns_the_rows_of_each_statement(db: Database) -> None:
    sql = "UPDATE notes SET words = :words WHERE id <= :id RETURNING id"
    update = Statement(sql, {"words": "x", "id": 1}, must_change=True)
    assert await db.write([TABLE, insert_note(1), insert_note(2), update]) == [[], [], [], [(1,)]]


async def test_read_one_returns_the_current_row_or_none(db: Database) -> None:
    await db.write([TABLE, insert_note(1, "a")])
    find = "SELECT words FROM notes WHERE id = :id"
    assert await db.read_one(find, {"id": 1}) == ("a",)
    assert await db.read_one(find, {"id": 2}) is None
    await db.write([Statement("UPDATE notes SET words = 'b' WHERE id = 1"), insert_note(2, "c")])
    assert await db.read_one(find, {"id": 1}) == ("b",)
    assert await db.read_one(find, {"id": 2}) == ("c",)
    with pytest.raises(DatabaseError):
        await db.read_one("SELECT nothing FROM notes WHERE id = :id", {"id": 1})


async def test_parameter_may_be_used_twice_and_quoted_text_is_unchanged(db: Database) -> None:
    await db.write([TABLE, insert_note(1, ":id"), insert_note(2, "it's")])
    assert await db.read("SELECT id FROM notes WHERE id = :id OR (id > :id AND words = ':id')", {"id": 1}) == [(1,)]
    assert await db.read("SELECT 'it''s :id' FROM notes WHERE id = :id", {"id": 1}) == [("it's :id",)]


async def test_failed_transaction_changes_nothing(db: Database) -> None:
    await db.write([TABLE, insert_note(1)])
    with pytest.raises(DuplicateError):
        await db.write([insert_note(2), insert_note(1)])
    nothing = Statement("UPDATE notes SET words = 'x' WHERE id = 9", must_change=True)
    with pytest.raises(NothingChangedError):
        await db.write([insert_note(3), nothing])
    with pytest.raises(NothingChangedError):
        await db.write([insert_note(3), Statement(nothing.sql + " RETURNING id", must_change=True)])
    with pytest.raises(DatabaseError):
        await db.write([insert_note(4), Statement("INSERT INTO nowhere (id) VALUES (1)")])
    assert await note_ids(db) == [1]


async def test_statement_that_changes_fewer_rows_than_it_must_rolls_the_transaction_back(db: Database) -> None:
    await db.write([TABLE, insert_note(1), insert_note(2)])
    both = "UPDATE notes SET words = 'x' WHERE id IN (1, 2, 3)"
    await db.write([Statement(both, must_change=2)])
    for sql in (both, both + " RETURNING id"):
        with pytest.raises(NothingChangedError):
            await db.write([insert_note(4), Statement(sql, must_change=3)])
    assert await db.read("SELECT id FROM notes WHERE id = 4") == []


async def test_missing_parameter_and_too_large_value_do_not_count_as_unavailable(db: Database) -> None:
    await db.write([TABLE])
    for params in ({}, {"id": 2**70}):
        statement = Statement("INSERT INTO notes (id) VALUES (:id)", params)
        with pytest.raises(DatabaseError) as caught:
            await db.write([statement])
        assert not isinstance(caught.value, DatabaseUnavailableError)
    with pytest.raises(DatabaseError):
        await db.read("SELECT id FROM notes WHERE id = :id")
    assert await note_ids(db) == []


async def test_failed_concurrent_writes_do_not_affect_the_others(db: Database) -> None:
    await db.write([TABLE])
    writes = [db.write([insert_note(1000 + number), insert_note(number % 50)]) for number in range(100)]
    results = await asyncio.gather(*writes, return_exceptions=True)
    assert sum(isinstance(result, DuplicateError) for result in results) == 50
    assert sum(isinstance(result, list) for result in results) == 50
    assert len(await note_ids(db)) == 100


async def test_writes_are_visible_at_once_and_after_reopening(harness: databases.Harness, db: Database) -> None:
    await db.write([TABLE])
    for number in range(20):
        await db.write([insert_note(number)])
        assert len(await note_ids(db)) == number + 1
    again = await harness.open()
    assert len(await note_ids(again)) == 20
    await again.close()


async def test_closed_database_is_unavailable_and_can_be_closed_twice(harness: databases.Harness) -> None:
    db = await harness.open()
    await db.close()
    await db.close()
    with pytest.raises(DatabaseUnavailableError):
        await db.write([Statement("SELECT 1")])
    with pytest.raises(DatabaseUnavailableError):
        await db.read("SELECT 1")


async def test_database_works_after_cancelled_writes(db: Database) -> None:
    await db.write([TABLE])
    tasks = [asyncio.create_task(db.write([insert_note(number)])) for number in range(30)]
    await asyncio.sleep(0)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await db.write([insert_note(100)])
    assert (await note_ids(db))[-1] == 100


async def test_only_postgres_is_shared_and_reports_its_time(harness: databases.Harness, db: Database) -> None:
    assert db.is_shared is not harness.is_sqlite
    time_ms = await database_ms(db)
    assert (time_ms is None) is harness.is_sqlite
    assert time_ms is None or abs(time_ms - time.time() * 1000) < 30_000


# --- SQLite only --------------------------------------------------------------------------------------------------


async def test_sqlite_close_commits_accepted_writes(tmp_path: Path) -> None:
    db = await SqliteDatabase.open(tmp_path / "db")
    await db.write([TABLE])
    writes = [asyncio.create_task(db.write([insert_note(number)])) for number in range(500)]
    await asyncio.sleep(0)
    await db.close()
    await asyncio.gather(*writes)
    again = await SqliteDatabase.open(tmp_path / "db")
    assert len(await note_ids(again)) == 500
    await again.close()


async def test_sqlite_recovers_from_a_full_disk(tmp_path: Path) -> None:
    db = await SqliteDatabase.open(tmp_path / "db")
    await db.write([TABLE, Statement("PRAGMA max_page_count = 30")])
    large = Statement("INSERT INTO notes (id, bits) VALUES (:id, :bits)", {"id": 1, "bits": bytes(1_000_000)})
    results = await asyncio.gather(
        *(db.write([statement]) for statement in (insert_note(2), large, insert_note(3))), return_exceptions=True
    )
    assert [type(result) for result in results] == [list, DatabaseUnavailableError, list]
    await db.write([insert_note(4)])
    assert await note_ids(db) == [2, 3, 4]
    await db.close()


async def test_sqlite_is_unavailable_while_another_program_locks_it(tmp_path: Path) -> None:
    db = await SqliteDatabase.open(tmp_path / "db", busy_s=0.05)
    await db.write([TABLE])
    other = sqlite3.connect(tmp_path / "db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(DatabaseUnavailableError):
        await db.write([insert_note(1)])
    assert await note_ids(db) == []
    assert await db.read_one("SELECT id FROM notes WHERE id = :id", {"id": 1}) is None
    other.execute("ROLLBACK")
    other.close()
    await db.write([insert_note(1)])
    assert await note_ids(db) == [1]
    await db.close()


def test_sqlite_in_a_missing_folder_is_unavailable(tmp_path: Path) -> None:
    with pytest.raises(DatabaseUnavailableError):
        asyncio.run(SqliteDatabase.open(tmp_path / "missing" / "db"))


async def test_sqlite_syncs_to_disk_at_every_commit(tmp_path: Path) -> None:
    db = await SqliteDatabase.open(tmp_path / "db")
    assert await db.read("PRAGMA journal_mode") == [("wal",)]
    assert await db.read("PRAGMA synchronous") == [(2,)]
    # The level cannot be changed inside a transaction, so this is the setting of the writer's connection.
    assert await db.write([Statement("PRAGMA synchronous")]) == [[(2,)]]
    await db.close()


@pytest.mark.parametrize("existing_bytes", [None, 4096])
async def test_new_sqlite_file_has_small_pages_and_an_existing_one_keeps_its_own(
    tmp_path: Path, existing_bytes: int | None
) -> None:
    if existing_bytes is not None:
        other = sqlite3.connect(tmp_path / "db", isolation_level=None)
        other.execute(f"PRAGMA page_size = {existing_bytes}")
        other.execute("CREATE TABLE pages (body BLOB NOT NULL)")
        other.close()
    db = await SqliteDatabase.open(tmp_path / "db")
    page_bytes = existing_bytes or PAGE_BYTES
    assert await db.read("PRAGMA page_size") == [(page_bytes,)]
    assert await db.write([Statement("PRAGMA wal_autocheckpoint")]) == [[(CHECKPOINT_BYTES // page_bytes,)]]
    await db.close()


async def test_sqlite_moves_pages_to_the_file_after_a_while(tmp_path: Path) -> None:
    sizes = {}
    for checkpoint_s in (0.0, 60.0):
        path = tmp_path / f"db{checkpoint_s}"
        db = await SqliteDatabase.open(path, checkpoint_s=checkpoint_s)
        await db.write([Statement("CREATE TABLE pages (body BLOB NOT NULL)")])
        for _ in range(50):
            await db.write([Statement("INSERT INTO pages (body) VALUES (:body)", {"body": b"x" * 8_000})])
        sizes[checkpoint_s] = path.with_name(f"{path.name}-wal").stat().st_size
        await db.close()
    assert sizes[0.0] < 100_000 < 400_000 < sizes[60.0]


async def test_sqlite_readers_cannot_write(tmp_path: Path) -> None:
    db = await SqliteDatabase.open(tmp_path / "db")
    await db.write([TABLE])
    with pytest.raises(DatabaseError):
        await db.read("INSERT INTO notes (id) VALUES (1)")
    with pytest.raises(DatabaseError):
        await db.read_one("INSERT INTO notes (id) VALUES (:id) RETURNING id", {"id": 1})
    await db.close()


# --- PostgreSQL only ----------------------------------------------------------------------------------------------


def test_unreachable_postgres_is_unavailable() -> None:
    with pytest.raises(DatabaseUnavailableError):
        asyncio.run(PostgresDatabase.open("postgresql://nobody@127.0.0.1:1/nothing"))


async def test_postgres_reconnects_after_its_connection_was_terminated(postgres_url: str) -> None:
    db, other = await PostgresDatabase.open(postgres_url), await PostgresDatabase.open(postgres_url)
    ((pid,),) = await db.read("SELECT pg_backend_pid()")
    terminate = "SELECT pg_terminate_backend(CAST(:pid AS INTEGER))"
    with pytest.raises(DatabaseUnavailableError):
        await asyncio.gather(db.read("SELECT pg_sleep(30)"), other.read(terminate, {"pid": pid}))
    assert await db.read("SELECT 1") == [(1,)]
    await db.close()
    await other.close()


@contextmanager
def suspended(*pids: int) -> Iterator[None]:
    """Suspend processes for at most HUNG_S, to simulate a hanging machine or disk."""

    def resume() -> None:
        for pid in reversed(pids):
            os.kill(pid, signal.SIGCONT)

    last_resort = threading.Timer(HUNG_S, resume)  # in case the test itself blocks on them
    last_resort.start()
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        last_resort.cancel()
        last_resort.join()
        resume()


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()[1])


async def test_postgres_runs_no_second_query_after_a_statement_and_leaves_no_transaction_open(
    postgres_url: str,
) -> None:
    db, other = [await PostgresDatabase.open(postgres_url) for _ in range(2)]
    activity = "SELECT state, query FROM pg_stat_activity WHERE query LIKE '%round trip%' AND pid <> pg_backend_pid()"
    try:
        await db.read("SELECT 'one round trip'")
        assert await other.read(activity) == [("idle", "SELECT 'one round trip'")]
        with pytest.raises(DatabaseError):
            await db.write([Statement("SELECT 'two round trips'"), Statement("SELECT 1 / 0")])
        assert await db.read("SELECT 'a third round trip'") == [("a third round trip",)]
        assert [state for state, _ in await other.read(activity)] == ["idle"]
    finally:
        await db.close()
        await other.close()


async def test_hanging_postgres_is_unavailable_after_the_time_limit_and_recovers(own_postgres_url: str) -> None:
    db = await PostgresDatabase.open(own_postgres_url, PostgresLimits(operation_s=2.0))
    await db.write([TABLE])
    ((pid,),) = await db.read("SELECT pg_backend_pid()")
    assert isinstance(pid, int)
    with suspended(pid, parent_of(pid)):  # our backend process, and the process that accepts connections
        started_s = time.monotonic()
        work = [
            db.write([insert_note(1), insert_note(2)]),
            db.write([insert_note(3)]),
            db.read("SELECT 1"),
            db.read("SELECT 2"),
        ]
        results = await asyncio.gather(*work, return_exceptions=True)
        assert [type(result) for result in results] == [DatabaseUnavailableError] * 4
        with pytest.raises(TimeoutError):  # a write that is cancelled does not wait for its connection
            async with asyncio.timeout(0.1):
                await db.write([insert_note(4), insert_note(5)])
        assert time.monotonic() - started_s < HUNG_S
    async with asyncio.timeout(HUNG_S):
        while True:
            with suppress(DatabaseUnavailableError):  # the machine may be busy
                await db.write([Statement("DELETE FROM notes")])
                break
    await db.close()


async def test_urgent_write_does_not_wait_for_other_transactions_of_the_process(postgres_url: str) -> None:
    db = await PostgresDatabase.open(postgres_url, PostgresLimits(urgent_s=HUNG_S))
    await db.write([TABLE])
    busy = [asyncio.create_task(db.write([Statement("SELECT pg_sleep(60)", is_long=True)])) for _ in range(CONNECTIONS)]
    try:
        await asyncio.sleep(1)  # all connections are in use
        await db.write([msgspec.structs.replace(insert_note(1), is_urgent=True)])
        assert not any(task.done() for task in busy)
    finally:
        for task in busy:
            task.cancel()
        await asyncio.gather(*busy, return_exceptions=True)
    assert await note_ids(db) == [1]
    await db.close()


async def test_urgent_write_fails_after_a_short_time_and_the_next_has_a_new_connection(postgres_url: str) -> None:
    db = await PostgresDatabase.open(postgres_url, PostgresLimits(operation_s=120.0, urgent_s=2.0))
    await db.write([TABLE])
    who = Statement("SELECT pg_backend_pid()", is_urgent=True)
    ((before,),) = await db.write([who])
    assert [[before]] == await db.write([who]), "it is kept"
    started_s = time.monotonic()
    with pytest.raises(DatabaseUnavailableError):
        await db.write([Statement("SELECT pg_sleep(60)", is_urgent=True)])
    assert time.monotonic() - started_s < HUNG_S
    ((after,),) = await db.write([who])
    assert after != before
    await db.read("SELECT pg_terminate_backend(CAST(:pid AS INT))", {"pid": after[0]})
    async with asyncio.timeout(HUNG_S):
        while True:
            with suppress(DatabaseUnavailableError):  # the loss may not be known yet
                await db.write([who])
                break
    await db.close()


async def test_reads_do_not_hang_on_dead_connections_once_the_urgent_one_was_replaced(postgres_url: str) -> None:
    db = await PostgresDatabase.open(postgres_url, PostgresLimits(operation_s=120.0, urgent_s=2.0))
    who = Statement("SELECT pg_backend_pid()", is_urgent=True)
    ((pooled,),) = await db.read(who.sql)
    (((urgent,),),) = await db.write([who])
    assert await db.read(who.sql) == [(pooled,)], "the first urgent connection replaces none"
    assert isinstance(pooled, int)
    assert isinstance(urgent, int)
    with suspended(pooled, urgent):
        with pytest.raises(DatabaseUnavailableError):
            await db.write([who])
        async with asyncio.timeout(HUNG_S / 2):
            while True:
                with suppress(DatabaseUnavailableError):  # the machine may be busy
                    await db.write([who])
                    break
            assert await db.read(who.sql) != [(pooled,)]
    await db.close()


async def test_migration_may_take_longer_than_the_time_limit(postgres_url: str) -> None:
    db = await PostgresDatabase.open(postgres_url, PostgresLimits(operation_s=1.0))
    sleep = Statement("SELECT pg_sleep(2)")
    with pytest.raises(DatabaseUnavailableError):
        await db.write([sleep, sleep])
    await db.write([Statement(sleep.sql, is_long=True), Statement("SELECT 1")])
    await db.close()


async def test_locks_of_a_frozen_replica_are_released(postgres_url: str) -> None:
    limits = PostgresLimits(idle_s=1)
    db, other = await PostgresDatabase.open(postgres_url, limits), await PostgresDatabase.open(postgres_url)
    await db.write([TABLE])
    await db.write([insert_note(1)])
    update = Statement("UPDATE notes SET words = 'x' WHERE id = 1")

    def freeze() -> Statement:
        time.sleep(1.5)  # the transaction has the lock, and this process does nothing
        return update

    class Freezing(list[Statement]):
        def __iter__(self) -> Iterator[Statement]:
            yield update
            yield freeze()

    with pytest.raises(DatabaseUnavailableError):
        await db.write(Freezing([update, update]))
    await other.write([update])
    await db.close()
    await other.close()


async def test_hanging_postgres_does_not_block_closing(postgres_url: str) -> None:
    db = await PostgresDatabase.open(postgres_url, PostgresLimits(close_s=0.5))
    ((pid,),) = await db.read("SELECT pg_backend_pid()")
    assert isinstance(pid, int)
    with suspended(pid):
        work = asyncio.create_task(db.read("SELECT 1"))
        await asyncio.sleep(0.1)
        started_s = time.monotonic()
        await db.close()
        assert isinstance((await asyncio.gather(work, return_exceptions=True))[0], DatabaseUnavailableError)
        assert time.monotonic() - started_s < HUNG_S


async def test_read_only_postgres_is_unavailable_and_is_reconnected(postgres_url: str) -> None:
    db = await PostgresDatabase.open(f"{postgres_url}&default_transaction_read_only=on")
    (before,) = await db.read("SELECT pg_backend_pid()")
    for statements in ([TABLE], [Statement("SELECT 1"), TABLE]):
        with pytest.raises(DatabaseUnavailableError):
            await db.write(statements)
    (after,) = await db.read("SELECT pg_backend_pid()")
    assert before != after, "a new connection may reach the new primary"
    await db.close()


def test_parameters_are_numbered_and_blob_becomes_bytea() -> None:
    sql = number_parameters("UPDATE t SET a = :a, b = ':a' WHERE c = :c AND a <> :a -- :no BLOB\n")
    assert sql.text == "UPDATE t SET a = $1, b = ':a' WHERE c = $2 AND a <> $1 -- :no BLOB\n"
    assert sql.names == ("a", "c")
    assert not sql.returns_rows
    assert number_parameters("CREATE TABLE t (a BLOB, blobs TEXT)").text == "CREATE TABLE t (a BYTEA, blobs TEXT)"
    assert number_parameters("SELECT a::TEXT FROM t").names == ()
    assert number_parameters("DELETE FROM t RETURNING a").returns_rows
