"""Every database keeps the promise of the port."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from matchpod.adapters import postgres
from matchpod.adapters.postgres import PostgresDatabase
from matchpod.adapters.sql_text import number_parameters
from matchpod.adapters.sqlite import SqliteDatabase
from matchpod.ports import (
    Database,
    DatabaseAwayError,
    DatabaseError,
    DuplicateError,
    NothingChangedError,
    Statement,
    Value,
)
from tests.contract import databases

home = databases.home

HUNG_S = 15.0
TABLE = Statement("CREATE TABLE notes (id BIGINT PRIMARY KEY, words TEXT, bits BLOB, weight DOUBLE PRECISION)")


def note(number: int, words: str | None = None) -> Statement:
    return Statement("INSERT INTO notes (id, words) VALUES (:id, :words)", {"id": number, "words": words})


async def noted(db: Database) -> list[Value]:
    return [row[0] for row in await db.read("SELECT id FROM notes ORDER BY id")]


def test_every_kind_of_value_comes_back_as_it_was(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        insert = "INSERT INTO notes (id, words, bits, weight) VALUES (:id, :words, :bits, :weight)"
        full: dict[str, Value] = {"id": 2**53, "words": "naïve ':x' 🎯", "bits": b"\x00\xff", "weight": 0.5}
        empty: dict[str, Value] = {"id": 1, "words": None, "bits": None, "weight": None}
        await db.write([TABLE, Statement(insert, full), Statement(insert, empty)])
        rows = await db.read("SELECT id, words, bits, weight FROM notes ORDER BY id")
        assert rows == [tuple(empty.values()), tuple(full.values())]
        assert all(type(row) is tuple for row in rows)

    home.run(scenario)


def test_a_write_answers_the_rows_of_each_statement(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        update = Statement("UPDATE notes SET words = :words WHERE id <= :id RETURNING id", {"words": "x", "id": 1})
        assert await db.write([TABLE, note(1), note(2), update]) == [[], [], [], [(1,)]]

    home.run(scenario)


def test_a_look_up_finds_the_one_row_or_none_as_of_now(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        await db.write([TABLE, note(1, "a")])
        find = "SELECT words FROM notes WHERE id = :id"
        assert await db.look_up(find, {"id": 1}) == ("a",)
        assert await db.look_up(find, {"id": 2}) is None
        await db.write([Statement("UPDATE notes SET words = 'b' WHERE id = 1"), note(2, "c")])
        assert await db.look_up(find, {"id": 1}) == ("b",)
        assert await db.look_up(find, {"id": 2}) == ("c",)
        with pytest.raises(DatabaseError):
            await db.look_up("SELECT nothing FROM notes WHERE id = :id", {"id": 1})

    home.run(scenario)


def test_a_parameter_may_be_used_twice_and_quotes_are_left_alone(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        await db.write([TABLE, note(1, ":id"), note(2, "it's")])
        assert await db.read("SELECT id FROM notes WHERE id = :id OR (id > :id AND words = ':id')", {"id": 1}) == [(1,)]
        assert await db.read("SELECT 'it''s :id' FROM notes WHERE id = :id", {"id": 1}) == [("it's :id",)]

    home.run(scenario)


def test_a_failed_transaction_changes_nothing(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        await db.write([TABLE, note(1)])
        with pytest.raises(DuplicateError):
            await db.write([note(2), note(1)])
        nothing = Statement("UPDATE notes SET words = 'x' WHERE id = 9", must_change=True)
        with pytest.raises(NothingChangedError):
            await db.write([note(3), nothing])
        with pytest.raises(NothingChangedError):
            await db.write([note(3), Statement(nothing.sql + " RETURNING id", must_change=True)])
        with pytest.raises(DatabaseError):
            await db.write([note(4), Statement("INSERT INTO nowhere (id) VALUES (1)")])
        assert await noted(db) == [1]

    home.run(scenario)


def test_must_change_is_content_with_a_changed_or_returned_row(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        await db.write([TABLE, note(1)])
        sql = "UPDATE notes SET words = 'x' WHERE id = 1"
        await db.write([Statement(sql, must_change=True)])
        assert await db.write([Statement(sql + " RETURNING words", must_change=True)]) == [[("x",)]]

    home.run(scenario)


def test_a_missing_parameter_and_a_value_too_large_are_errors_not_absence(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        await db.write([TABLE])
        for params in ({}, {"id": 2**70}):
            statement = Statement("INSERT INTO notes (id) VALUES (:id)", params)
            with pytest.raises(DatabaseError) as caught:
                await db.write([statement])
            assert not isinstance(caught.value, DatabaseAwayError)
        with pytest.raises(DatabaseError):
            await db.read("SELECT id FROM notes WHERE id = :id")
        assert await noted(db) == []

    home.run(scenario)


def test_failures_among_many_concurrent_writes_hurt_nobody_else(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        await db.write([TABLE])
        writes = [db.write([note(1000 + number), note(number % 50)]) for number in range(100)]
        answers = await asyncio.gather(*writes, return_exceptions=True)
        assert sum(isinstance(answer, DuplicateError) for answer in answers) == 50
        assert sum(isinstance(answer, list) for answer in answers) == 50
        assert len(await noted(db)) == 100

    home.run(scenario)


def test_what_was_written_is_read_at_once_and_after_opening_again(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        await db.write([TABLE])
        for number in range(20):
            await db.write([note(number)])
            assert len(await noted(db)) == number + 1
        again = await home.open()
        assert len(await noted(again)) == 20
        await again.close()

    home.run(scenario)


def test_a_closed_database_is_away_and_closes_twice(home: databases.Home) -> None:
    async def scenario(_: Database) -> None:
        db = await home.open()
        await db.close()
        await db.close()
        with pytest.raises(DatabaseAwayError):
            await db.write([Statement("SELECT 1")])
        with pytest.raises(DatabaseAwayError):
            await db.read("SELECT 1")

    home.run(scenario)


def test_a_cancelled_caller_leaves_the_database_working(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        await db.write([TABLE])
        tasks = [asyncio.create_task(db.write([note(number)])) for number in range(30)]
        await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await db.write([note(100)])
        assert (await noted(db))[-1] == 100

    home.run(scenario)


def test_only_postgres_is_shared(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        assert db.is_shared is not home.is_sqlite

    home.run(scenario)


# --- SQLite alone -------------------------------------------------------------------------------------------------


def test_sqlite_closing_waits_for_what_was_accepted(tmp_path: Path) -> None:
    async def main() -> None:
        db = await SqliteDatabase.open(tmp_path / "db")
        await db.write([TABLE])
        writes = [asyncio.create_task(db.write([note(number)])) for number in range(500)]
        await asyncio.sleep(0)
        await db.close()
        await asyncio.gather(*writes)
        again = await SqliteDatabase.open(tmp_path / "db")
        assert len(await noted(again)) == 500
        await again.close()

    asyncio.run(main())


def test_sqlite_with_a_full_disk_is_away_and_goes_on(tmp_path: Path) -> None:
    async def main() -> None:
        db = await SqliteDatabase.open(tmp_path / "db")
        await db.write([TABLE, Statement("PRAGMA max_page_count = 30")])
        large = Statement("INSERT INTO notes (id, bits) VALUES (:id, :bits)", {"id": 1, "bits": bytes(1_000_000)})
        answers = await asyncio.gather(
            *(db.write([statement]) for statement in (note(2), large, note(3))), return_exceptions=True
        )
        assert [type(answer) for answer in answers] == [list, DatabaseAwayError, list]
        await db.write([note(4)])
        assert await noted(db) == [2, 3, 4]
        await db.close()

    asyncio.run(main())


def test_sqlite_locked_by_another_program_is_away_until_it_is_free(tmp_path: Path) -> None:
    async def main() -> None:
        db = await SqliteDatabase.open(tmp_path / "db", busy_s=0.05)
        await db.write([TABLE])
        other = sqlite3.connect(tmp_path / "db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(DatabaseAwayError):
            await db.write([note(1)])
        assert await noted(db) == []
        assert await db.look_up("SELECT id FROM notes WHERE id = :id", {"id": 1}) is None
        other.execute("ROLLBACK")
        other.close()
        await db.write([note(1)])
        assert await noted(db) == [1]
        await db.close()

    asyncio.run(main())


def test_sqlite_in_a_folder_that_is_missing_is_away(tmp_path: Path) -> None:
    with pytest.raises(DatabaseAwayError):
        asyncio.run(SqliteDatabase.open(tmp_path / "missing" / "db"))


def test_sqlite_waits_for_the_disk_at_every_commit(tmp_path: Path) -> None:
    async def main() -> None:
        db = await SqliteDatabase.open(tmp_path / "db")
        assert await db.read("PRAGMA journal_mode") == [("wal",)]
        assert await db.read("PRAGMA synchronous") == [(2,)]
        # A changed level would be refused inside a transaction: this is the writer's own.
        assert await db.write([Statement("PRAGMA synchronous")]) == [[(2,)]]
        await db.close()

    asyncio.run(main())


def test_sqlite_readers_cannot_write(tmp_path: Path) -> None:
    async def main() -> None:
        db = await SqliteDatabase.open(tmp_path / "db")
        await db.write([TABLE])
        with pytest.raises(DatabaseError):
            await db.read("INSERT INTO notes (id) VALUES (1)")
        with pytest.raises(DatabaseError):
            await db.look_up("INSERT INTO notes (id) VALUES (:id) RETURNING id", {"id": 1})
        await db.close()


# --- PostgreSQL alone ---------------------------------------------------------------------------------------------


def test_postgres_that_nobody_answers_for_is_away() -> None:
    with pytest.raises(DatabaseAwayError):
        asyncio.run(PostgresDatabase.open("postgresql://nobody@127.0.0.1:1/nothing"))


def test_postgres_whose_connections_were_cut_is_away_once_and_then_back(request: pytest.FixtureRequest) -> None:
    url = databases.fresh_postgres_schema(request)

    async def main() -> None:
        db, other = await PostgresDatabase.open(url), await PostgresDatabase.open(url)
        ((pid,),) = await db.read("SELECT pg_backend_pid()")
        killing = "SELECT pg_terminate_backend(CAST(:pid AS INTEGER))"
        with pytest.raises(DatabaseAwayError):
            await asyncio.gather(db.read("SELECT pg_sleep(30)"), other.read(killing, {"pid": pid}))
        assert await db.read("SELECT 1") == [(1,)]
        await db.close()
        await other.close()

    asyncio.run(main())


@contextmanager
def hung(*pids: int) -> Iterator[None]:
    """Processes that do nothing for a while, as on a machine or a disk that hangs; at most for HUNG_S."""

    def go_on() -> None:
        for pid in reversed(pids):
            os.kill(pid, signal.SIGCONT)

    last_resort = threading.Timer(HUNG_S, go_on)  # whoever waits for them does not come back to us
    last_resort.start()
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        last_resort.cancel()
        last_resort.join()
        go_on()


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()[1])


def test_postgres_that_hangs_is_away_after_the_limit_and_then_back(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = databases.fresh_postgres_schema(request)

    async def main() -> None:
        db = await PostgresDatabase.open(url)
        await db.write([TABLE])
        ((pid,),) = await db.read("SELECT pg_backend_pid()")
        assert isinstance(pid, int)
        monkeypatch.setattr(postgres, "OPERATION_S", 1.0)
        with hung(pid, parent_of(pid)):  # whoever answers us, and whoever lets in new ones
            began_s = time.monotonic()
            work = [db.write([note(1), note(2)]), db.write([note(3)]), db.read("SELECT 1"), db.read("SELECT 2")]
            answers = await asyncio.gather(*work, return_exceptions=True)
            assert [type(answer) for answer in answers] == [DatabaseAwayError] * 4
            cancelled = asyncio.create_task(db.write([note(4), note(5)]))
            await asyncio.sleep(0.1)
            cancelled.cancel()
            await asyncio.wait([cancelled])
            assert time.monotonic() - began_s < HUNG_S
        monkeypatch.setattr(postgres, "OPERATION_S", 15.0)
        await db.write([note(6)])
        assert 6 in await noted(db)
        await db.close()

    asyncio.run(main())


def test_postgres_that_hangs_does_not_keep_us_from_closing(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = databases.fresh_postgres_schema(request)
    monkeypatch.setattr(postgres, "CLOSE_S", 0.5)

    async def main() -> None:
        db = await PostgresDatabase.open(url)
        ((pid,),) = await db.read("SELECT pg_backend_pid()")
        assert isinstance(pid, int)
        with hung(pid):
            work = asyncio.create_task(db.read("SELECT 1"))
            await asyncio.sleep(0.1)
            began_s = time.monotonic()
            await db.close()
            assert isinstance((await asyncio.gather(work, return_exceptions=True))[0], DatabaseAwayError)
            assert time.monotonic() - began_s < HUNG_S

    asyncio.run(main())


def test_postgres_that_only_reads_is_away_and_is_connected_to_anew(request: pytest.FixtureRequest) -> None:
    url = databases.fresh_postgres_schema(request)

    async def main() -> None:
        db = await PostgresDatabase.open(f"{url}&default_transaction_read_only=on")
        (before,) = await db.read("SELECT pg_backend_pid()")
        for statements in ([TABLE], [Statement("SELECT 1"), TABLE]):
            with pytest.raises(DatabaseAwayError):
                await db.write(statements)
        (after,) = await db.read("SELECT pg_backend_pid()")
        assert before != after, "who took over may answer under the same name"
        await db.close()

    asyncio.run(main())


def test_parameters_are_numbered_and_bytes_renamed() -> None:
    sql = number_parameters("UPDATE t SET a = :a, b = ':a' WHERE c = :c AND a <> :a -- :no BLOB\n")
    assert sql.text == "UPDATE t SET a = $1, b = ':a' WHERE c = $2 AND a <> $1 -- :no BLOB\n"
    assert sql.names == ("a", "c")
    assert not sql.returns_rows
    assert number_parameters("CREATE TABLE t (a BLOB, blobs TEXT)").text == "CREATE TABLE t (a BYTEA, blobs TEXT)"
    assert number_parameters("SELECT a::TEXT FROM t").names == ()
    assert number_parameters("DELETE FROM t RETURNING a").returns_rows
