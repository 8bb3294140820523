"""The entries of many servers are appended together: in order, without gaps, and a locked server delays no other."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from matchpod.ports import Database, DatabaseError, DatabaseUnavailableError, Row, RowLockedError, Statement
from matchpod.service.match_log.entries import EntryKind, NewEntry
from matchpod.service.match_log.fold_turns import FoldTurns
from matchpod.service.match_log.live import LocalMatches
from matchpod.service.match_log.log_writer import LogWriter
from matchpod.storage import raw_log
from matchpod.storage.entry_groups import LOCK_ALONE_MS, LOCK_MS, MAX_PLAIN_BYTES, NewRow, append_group
from tests.contract import databases
from tests.contract.databases import DelegatingDatabase, Replicas

harness = databases.harness


def group(*posts: tuple[str, bytes]) -> list[NewRow]:
    return [(server_id, "log", 1, b'{"x":"1"}', body, "") for server_id, body in posts]


async def bodies(db: Database, server_id: str) -> list[tuple[int, bytes]]:
    return [(one.seq, one.body) for one in await raw_log.read_after(db, server_id, 0, limit=1_000)]


async def test_a_group_continues_where_single_entries_ended(db: Database) -> None:
    await db.write(raw_log.append("srv_1", "log", received_ms=1, headers=b"{}", body=b"one"))
    assert await append_group(db, group(("srv_1", b"two"))) == [(2, 6)]
    await db.write(raw_log.append("srv_1", "log", received_ms=1, headers=b"{}", body=b"three"))
    assert await bodies(db, "srv_1") == [(1, b"one"), (2, b"two"), (3, b"three")]
    assert await append_group(db, []) == []


async def test_several_entries_of_a_server_in_a_group_are_numbered_in_order(db: Database) -> None:
    await append_group(db, group(("srv_1", b"one"), ("srv_2", b"one")))
    posts = (("srv_2", b"2"), ("srv_1", b"two"), ("srv_3", b"1"), ("srv_2", b"33"), ("srv_1", b"3"), ("srv_2", b"444"))
    assert await append_group(db, group(*posts)) == [(2, 4), (2, 6), (1, 1), (3, 6), (3, 7), (4, 9)]
    assert await bodies(db, "srv_2") == [(1, b"one"), (2, b"2"), (3, b"33"), (4, b"444")]
    assert [await raw_log.head(db, f"srv_{number}") for number in (1, 2, 3)] == [(3, 7), (4, 9), (1, 1)]


async def test_long_bodies_of_a_group_are_compressed_in_sqlite_and_read_the_same(db: Database) -> None:
    posts = [("srv_1", b"line\n" * 200), ("srv_2", b"short"), ("srv_1", b"x" * (MAX_PLAIN_BYTES + 1))]
    assert await append_group(db, group(*posts)) == [(1, 1_000), (1, 5), (2, 1_000 + MAX_PLAIN_BYTES + 1)]
    assert await bodies(db, "srv_1") == [(1, posts[0][1]), (2, posts[2][1])]
    stored = await db.read("SELECT is_compressed, LENGTH(body) < 100 FROM raw_log ORDER BY server_id, seq")
    expected = [(0, False), (0, False), (0, True)] if db.is_postgres else [(1, True), (1, True), (0, True)]
    assert [(kind, bool(is_short)) for kind, is_short in stored] == expected
    await raw_log.compress(db, "srv_1")
    assert await bodies(db, "srv_1") == [(1, posts[0][1]), (2, posts[2][1])]


async def test_processes_append_to_the_same_servers_without_gaps_or_deadlocks(replicas: Replicas) -> None:
    names = [f"srv_{number}" for number in range(20)]

    async def append(db: Database, order: Sequence[str], mark: bytes) -> None:
        for number in range(10):
            await append_group(db, group(*((name, b"%s%d" % (mark, number)) for name in order)))

    await asyncio.gather(append(replicas[0], names, b"x"), append(replicas[1], names[::-1], b"y"))
    for name in names:
        stored = await bodies(replicas[0], name)
        assert [seq for seq, _ in stored] == list(range(1, 21))
        for mark in (b"x", b"y"):
            assert [body for _, body in stored if body[:1] == mark] == [b"%s%d" % (mark, n) for n in range(10)]


async def test_servers_whose_rows_are_locked_delay_the_others_for_a_moment_only(replicas: Replicas) -> None:
    db, other = replicas
    if not db.is_postgres:
        pytest.skip("a SQLite file has one writer")
    names = [f"srv_{number:02}" for number in range(20)]
    locked, free = names[:10], names[10:]
    await append_group(db, group(*((name, b"before") for name in locked)))
    told: dict[str, list[object]] = {name: [] for name in names}
    order: list[str] = []
    all_told = asyncio.Event()

    async def hold() -> None:
        """Lock the rows as a frozen process does, until the test has ended."""
        lock = Statement("UPDATE raw_log_heads SET seq = seq")
        await other.write([lock, Statement("SELECT pg_sleep(60)")])

    holding = asyncio.create_task(hold())
    try:
        is_locked = False
        while not is_locked:
            try:
                await append_group(db, group((locked[0], b"probe")), lock_ms=100)
            except RowLockedError:
                is_locked = True
        writer = LogWriter(db, LocalMatches(), FoldTurns(), distance_of=lambda _: 0.0)
        for name in [free[0], *locked, *locked, *names[11:]]:

            def done(result: object, name: str = name) -> None:
                told[name].append(result)
                order.append(name)
                if len(order) == 30:
                    all_told.set()

            writer.add(name, (NewEntry(kind=EntryKind.LOG, received_ms=1, body=b"late"),), done)
        began_s = asyncio.get_running_loop().time()
        await asyncio.wait_for(all_told.wait(), 60)
        took_s = asyncio.get_running_loop().time() - began_s
    finally:
        holding.cancel()
        await asyncio.gather(holding, return_exceptions=True)
    assert all(told[name] == [4] for name in free)
    assert all(isinstance(result, RowLockedError) for name in locked for result in told[name])
    least_s = (LOCK_MS + len(locked) * LOCK_ALONE_MS) / 1_000
    assert least_s <= took_s < least_s + 10, "the second post of a server does not wait: that would be 40 s"


async def test_post_that_can_be_stored_is_answered_while_others_wait_for_a_locked_row(replicas: Replicas) -> None:
    events: list[str] = []

    class LockedDatabase(DelegatingDatabase):
        async def write(self, statements: Sequence[Statement]) -> list[list[Row]]:
            names = {str(name) for one in statements for name in _servers_of(one)}
            if "srv_locked" in names:
                events.append("waits" if len(names) == 1 else "group")
                raise RowLockedError("locked")
            return await super().write(statements)

    writer = LogWriter(LockedDatabase(replicas[0]), LocalMatches(), FoldTurns(), distance_of=lambda _: 0.0)
    all_told = asyncio.Event()

    def done(result: int | DatabaseError) -> None:
        events.append("locked" if isinstance(result, DatabaseError) else "stored")
        if len(events) == 6:
            all_told.set()

    for name in ("srv_1", "srv_locked", "srv_locked", "srv_2"):
        writer.add(name, (NewEntry(kind=EntryKind.LOG, received_ms=1, body=b"line"),), done)
    await asyncio.wait_for(all_told.wait(), 60)
    assert events == ["group", "stored", "waits", "locked", "locked", "stored"]


async def test_no_post_waits_for_a_shared_database_that_became_unavailable_meanwhile(replicas: Replicas) -> None:
    if not replicas[0].is_shared:
        pytest.skip("another database fails at once")
    attempts: list[int] = []

    class FailingDatabase(DelegatingDatabase):
        async def write(self, statements: Sequence[Statement]) -> list[list[Row]]:
            attempts.append(len(statements))
            raise RowLockedError("locked") if len(attempts) == 1 else DatabaseUnavailableError("gone")

    writer = LogWriter(FailingDatabase(replicas[0]), LocalMatches(), FoldTurns(), distance_of=lambda _: 0.0)
    entry = NewEntry(kind=EntryKind.LOG, received_ms=1, body=b"line")
    results = await asyncio.gather(
        *(writer.append(f"srv_{number}", (entry,)) for number in range(3)), return_exceptions=True
    )
    assert [str(result) for result in results] == ["gone"] * 3
    assert len(attempts) == 2


def _servers_of(statement: Statement) -> Sequence[object]:
    """Return the servers whose entries a statement stores."""
    together = statement.params.get("server_ids")
    return together if isinstance(together, list) else [statement.params.get("server_id")]
