"""The entries of many servers are appended together: in order, without gaps, and a locked server delays no other."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from matchpod.ports import Database, DatabaseUnavailableError, RowLockedError, Statement
from matchpod.service.match_log.entries import EntryKind, NewEntry
from matchpod.service.match_log.live import LocalMatches
from matchpod.service.match_log.log_writer import LogWriter
from matchpod.service.match_log.turns import FoldTurns
from matchpod.storage import raw_log
from matchpod.storage.entry_groups import NewRow, append_group
from tests.contract import databases
from tests.contract.databases import Replicas

harness = databases.harness


def group(*posts: tuple[str, bytes]) -> list[NewRow]:
    return [(server_id, "log", 1, b'{"x":"1"}', body) for server_id, body in posts]


async def bodies(db: Database, server_id: str) -> list[tuple[int, bytes]]:
    return [(one.seq, one.body) for one in await raw_log.read_after(db, server_id, 0, limit=1_000)]


async def test_entries_of_a_server_get_consecutive_numbers_in_their_order(db: Database) -> None:
    first = await append_group(db, group(("srv_b", b"b1"), ("srv_a", b"a1"), ("srv_b", b"b2!"), ("srv_b", b"")))
    assert first == [(1, 2), (1, 2), (2, 5), (3, 5)]
    assert await append_group(db, group(("srv_b", b"b4"), ("srv_c", b"c"))) == [(4, 7), (1, 1)]
    assert await bodies(db, "srv_b") == [(1, b"b1"), (2, b"b2!"), (3, b""), (4, b"b4")]
    (stored,) = await raw_log.read_after(db, "srv_a", 0, limit=9)
    assert (stored.kind, stored.received_ms, stored.headers) == ("log", 1, b'{"x":"1"}')


async def test_a_group_continues_where_single_entries_ended(db: Database) -> None:
    await db.write(raw_log.append("srv_1", "log", received_ms=1, headers=b"{}", body=b"one"))
    assert await append_group(db, group(("srv_1", b"two"))) == [(2, 6)]
    await db.write(raw_log.append("srv_1", "log", received_ms=1, headers=b"{}", body=b"three"))
    assert await bodies(db, "srv_1") == [(1, b"one"), (2, b"two"), (3, b"three")]
    assert await append_group(db, []) == []


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


async def test_a_server_whose_row_is_locked_delays_the_others_for_a_moment_only(replicas: Replicas) -> None:
    db, other = replicas
    if not db.is_postgres:
        pytest.skip("a SQLite file has one writer")
    await append_group(db, group(("srv_1", b"before")))
    told: dict[str, object] = {}
    all_told, is_locked = asyncio.Event(), asyncio.Event()

    async def hold() -> None:
        """Lock the row as a frozen process does, until the test has ended."""
        lock = Statement("UPDATE raw_log_heads SET seq = seq WHERE server_id = 'srv_1'")
        await other.write([lock, Statement("SELECT pg_sleep(60)")])

    holding = asyncio.create_task(hold())
    try:
        while not is_locked.is_set():
            try:
                await append_group(db, group(("srv_1", b"probe")))
            except RowLockedError:
                is_locked.set()
        writer = LogWriter(db, LocalMatches(), FoldTurns(db), distance_of=lambda _: 0.0)
        for name in ("srv_0", "srv_1", "srv_2"):

            def done(result: object, name: str = name) -> None:
                told[name] = result
                if len(told) == 3:
                    all_told.set()

            writer.add(name, (NewEntry(kind=EntryKind.LOG, received_ms=1, body=b"late"),), done)
        await asyncio.wait_for(all_told.wait(), 40)
    finally:
        holding.cancel()
        await asyncio.gather(holding, return_exceptions=True)
    assert (told["srv_0"], told["srv_2"]) == (4, 4)
    assert isinstance(told["srv_1"], DatabaseUnavailableError)
