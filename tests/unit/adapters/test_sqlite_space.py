"""Free pages of an SQLite file are returned to the disk, in steps or at once."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from matchpod.adapters.sqlite import PAGE_BYTES, SqliteDatabase
from matchpod.adapters.sqlite_space import KEPT_SHARE, VacuumError, check_unused, give_back, read_pages, vacuum
from matchpod.ports import DatabaseUnavailableError, Statement

FILL = (
    "WITH RECURSIVE numbers (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM numbers WHERE i < 2000)"
    " INSERT INTO entries SELECT i, zeroblob(4000) FROM numbers"
)
CREATE = "CREATE TABLE entries (id BIGINT PRIMARY KEY, body BLOB)"


async def fill_and_delete(db: SqliteDatabase) -> None:
    await db.write([Statement(CREATE), Statement(FILL)])
    await db.write([Statement("DELETE FROM entries WHERE id % 10 <> 0")])


def old_file(path: Path) -> Path:
    """A file as earlier versions created it, with many free pages."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for sql in ("PRAGMA journal_mode = WAL", CREATE, FILL, "DELETE FROM entries WHERE id % 10 <> 0"):
            connection.execute(sql)
    return path


async def test_new_file_becomes_smaller_while_it_is_used(tmp_path: Path) -> None:
    path = tmp_path / "db"
    db = await SqliteDatabase.open(path)
    await fill_and_delete(db)
    before = read_pages(path)
    assert before.is_incremental
    assert before.free > before.count / 2

    async def write() -> None:
        for number in range(50):
            await db.write([Statement("INSERT INTO entries VALUES (:id, NULL)", {"id": 10_000 + number})])

    given, _ = await asyncio.gather(give_back(path, pause_s=0), write())
    after = read_pages(path)
    assert given == (before.count - after.count) * after.size > 0
    assert after.surplus == 0
    assert path.stat().st_size < before.count * before.size / 2, "not only in the write-ahead log"
    assert after.free == int(after.count * KEPT_SHARE), "a tenth is kept for what is stored next"
    assert await give_back(path, pause_s=0) == 0
    assert await db.read("SELECT COUNT(*), COUNT(body) FROM entries") == [(250, 200)]
    assert await db.read("PRAGMA integrity_check") == [("ok",)]
    await db.close()


async def test_connections_to_an_existing_file_write_nothing(tmp_path: Path) -> None:
    path = tmp_path / "db"
    db = await SqliteDatabase.open(path)
    await db.write([Statement(CREATE)])
    await db.close()
    before = path.read_bytes()
    db = await SqliteDatabase.open(path)
    await db.read("SELECT COUNT(*) FROM entries")
    await db.close()
    assert path.read_bytes() == before


async def test_older_file_keeps_its_free_pages_and_the_log_says_what_to_do(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = old_file(tmp_path / "db")
    size = path.stat().st_size
    with caplog.at_level(logging.INFO):
        assert await give_back(path) == 0
    assert path.stat().st_size == size
    assert "matchpod prune --vacuum" in caplog.text


async def test_older_file_is_vacuumed_once_and_then_in_steps(tmp_path: Path) -> None:
    path = old_file(tmp_path / "db")
    size = path.stat().st_size
    assert vacuum(path) == (size, path.stat().st_size)
    assert path.stat().st_size < size / 5
    assert read_pages(path).is_incremental
    assert read_pages(path).size == PAGE_BYTES
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT COUNT(*) FROM entries").fetchall() == [(200,)]
        assert connection.execute("PRAGMA journal_mode").fetchall() == [("wal",)]
    db = await SqliteDatabase.open(path)
    await db.write([Statement("DELETE FROM entries")])
    assert await give_back(path, pause_s=0) > 0
    await db.close()


async def test_file_in_use_is_not_vacuumed(tmp_path: Path) -> None:
    path = old_file(tmp_path / "db")
    check_unused(path)
    db = await SqliteDatabase.open(path)
    await db.read("SELECT COUNT(*) FROM entries")
    for check in (check_unused, vacuum):
        with pytest.raises(VacuumError, match="Another process uses"):
            check(path)
    await db.write([Statement("DELETE FROM entries")])
    await db.close()
    check_unused(path)


def test_vacuum_needs_free_disk_space(tmp_path: Path) -> None:
    path = old_file(tmp_path / "db")
    size = path.stat().st_size
    with pytest.raises(VacuumError, match=r"needs 19 MB of free disk space; only 18 MB are free\.$"):
        vacuum(path, free=lambda _: 18_000_000)
    assert path.stat().st_size == size
    vacuum(path, free=lambda _: 19_000_000)
    assert path.stat().st_size < size


async def test_file_that_is_no_database_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "db"
    path.write_bytes(b"no database" * 100)
    with pytest.raises(DatabaseUnavailableError):
        await give_back(path)
    with pytest.raises(VacuumError):
        vacuum(path)
