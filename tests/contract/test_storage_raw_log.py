"""Log entries are stored byte for byte and numbered without gaps."""

from __future__ import annotations

import asyncio
import lzma
import zlib
from collections.abc import Sequence

import msgspec
import pytest

from matchpod.core.server_status import ServerPhase
from matchpod.ports import Database, DatabaseError, Row, Statement, Value
from matchpod.storage import raw_log, servers, unfinished
from matchpod.storage.entry_groups import append_group
from matchpod.storage.raw_log import RawEntry
from tests.contract import databases
from tests.contract.match_histories import create_server
from tests.server_rows import server_row

harness = databases.harness


@pytest.fixture(autouse=True)
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of blocks and of what is pruned at a time, so that few entries are beyond them."""
    limits = {"BLOCK_BYTES": 128 * 1024, "BLOCK_ENTRIES": 100, "PRUNE_ENTRIES": 20, "PRUNE_MATCHES": 10}
    for name, limit in limits.items():
        monkeypatch.setattr(raw_log, name, limit)


async def append(db: Database, server_id: str, body: bytes, received_ms: int = 10) -> int:
    results = await db.write(raw_log.append(server_id, "log", received_ms=received_ms, headers=b"{}", body=body))
    ((seq, _),) = results[0]
    assert isinstance(seq, int)
    return seq


async def bodies(db: Database, server_id: str) -> list[bytes]:
    return [entry.body for entry in await raw_log.read_after(db, server_id, 0, limit=1_000)]


async def read_all(db: Database, server_id: str) -> list[RawEntry]:
    found: list[RawEntry] = []
    while page := await raw_log.read_after(db, server_id, found[-1].seq if found else 0, limit=100):
        found += page
    return found


async def test_entries_are_numbered_by_server_and_read_in_order(db: Database) -> None:
    assert [await append(db, "srv_1", body) for body in (b"one\x00\xff", b"", b"three")] == [1, 2, 3]
    assert await append(db, "srv_2", b"other") == 1
    first = RawEntry(server_id="srv_1", seq=1, kind="log", received_ms=10, headers=b"{}", body=b"one\x00\xff")
    assert await raw_log.read_after(db, "srv_1", 0, limit=1) == [first]
    assert [entry.seq for entry in await raw_log.read_after(db, "srv_1", 1, limit=10)] == [2, 3]
    assert await raw_log.read_after(db, "srv_1", 3, limit=10) == []


async def test_entry_of_a_kind_is_found_after_a_number(db: Database) -> None:
    await append(db, "srv_1", b"1")
    await db.write(raw_log.append("srv_1", "report", received_ms=10, headers=b"{}", body=b"2"))
    assert await raw_log.has_kind(db, "srv_1", "log", after_seq=0)
    assert not await raw_log.has_kind(db, "srv_1", "log", after_seq=1)
    assert await raw_log.has_kind(db, "srv_1", "report", after_seq=1)
    assert not await raw_log.has_kind(db, "srv_2", "log", after_seq=0)


async def test_newest_entries_of_a_kind_are_read_newest_first(db: Database) -> None:
    for body in (b"first", b"second\x00\xff", b"", b"4"):
        await append(db, "srv_1", body)
    await db.write(raw_log.append("srv_1", "report", received_ms=10, headers=b"{}", body=b"{}"))
    newest = await raw_log.newest_of_kind(db, "srv_1", "log", count=4)
    assert [(entry.seq, entry.body) for entry in newest] == [(4, b"4"), (3, b""), (2, b"second\x00\xff")]
    assert await raw_log.newest_of_kind(db, "srv_2", "log", count=4) == []


async def test_concurrent_appends_leave_no_gaps_and_lose_nothing(replicas: databases.Replicas) -> None:
    db, peer = replicas

    async def failing() -> None:
        statements = raw_log.append("srv_1", "log", received_ms=10, headers=b"{}", body=b"never")
        await db.write([*statements, Statement("INSERT INTO nowhere (id) VALUES (1)")])

    writes = [append((db, peer)[number % 2], "srv_1", b"%d" % number) for number in range(60)]
    results = await asyncio.gather(*writes, *(failing() for _ in range(10)), return_exceptions=True)
    assert sum(isinstance(result, DatabaseError) for result in results) == 10
    assert sorted(result for result in results if isinstance(result, int)) == list(range(1, 61))
    assert sorted(map(int, await bodies(db, "srv_1"))) == list(range(60))


async def test_entries_of_an_ended_match_become_blocks_that_read_the_same(db: Database) -> None:
    line = b"L 11/15/2026 - 08:00:00: line %d\n"
    count = 10 * raw_log.BLOCK_BYTES // (3 * 400 * len(line))
    sent = [line % number * 400 for number in range(count)]
    kinds = ["report" if number % 10 == 9 else "log" for number in range(count)]
    await db.write(
        [
            part
            for number, (kind, body) in enumerate(zip(kinds, sent, strict=True))
            for part in raw_log.append("srv_1", kind, received_ms=number, headers=b'{"n":"%d"}' % number, body=body)
        ]
    )
    await append(db, "srv_2", b"untouched")
    before = await raw_log.read_after(db, "srv_1", 0, limit=count)
    newest = await raw_log.newest_of_kind(db, "srv_1", "log", count=25)

    await asyncio.gather(raw_log.compress(db, "srv_1"), raw_log.compress(db, "srv_1"))

    assert await read_all(db, "srv_1") == before
    assert await raw_log.newest_of_kind(db, "srv_1", "log", count=25) == newest
    assert (await raw_log.read_after(db, "srv_1", count - 3, limit=2))[0] == before[count - 3]
    rows = await db.read("SELECT LENGTH(body) FROM raw_log WHERE server_id = 'srv_1'")
    assert len(rows) == 4, "three full blocks, and the rest"
    assert sum(int(str(size)) for (size,) in rows) < sum(map(len, sent)) // 10
    assert await db.read("SELECT body FROM raw_log WHERE server_id = 'srv_2'") == [(b"untouched",)]
    assert await append(db, "srv_1", b"late") == count + 1
    assert (await read_all(db, "srv_1"))[-1].body == b"late"


async def test_entries_that_an_earlier_version_compressed_alone_read_the_same(db: Database) -> None:
    await append(db, "srv_1", b"plain")
    await append(db, "srv_1", b"to be compressed")
    deflated = {"body": zlib.compress(b"to be compressed")}
    await db.write([Statement("UPDATE raw_log SET body = :body, is_compressed = 1 WHERE seq = 2", deflated)])
    assert await bodies(db, "srv_1") == [b"plain", b"to be compressed"]
    await raw_log.compress(db, "srv_1")
    assert await bodies(db, "srv_1") == [b"plain", b"to be compressed"]


async def test_block_that_an_earlier_version_stored_reads_the_same(db: Database) -> None:
    seqs, sent, headers = [1, 2, 3], [b"one\n", b"", b"three\n"], [b"{}", b'{"n":"1"}', b"{}"]
    columns = [seqs, ["log", "report", "log"], [10, 10, 12], headers, [len(body) for body in sent], b"".join(sent)]
    for _ in seqs:
        await append(db, "srv_1", b"")
    block: dict[str, Value] = {"body": lzma.compress(msgspec.msgpack.encode(columns), preset=1)}
    await db.write(
        [
            Statement("DELETE FROM raw_log WHERE seq < 3"),
            Statement("UPDATE raw_log SET body = :body, is_compressed = -3, kind = 'block'", block),
        ]
    )
    found = await raw_log.read_after(db, "srv_1", 1, limit=10)
    assert [(one.seq, one.kind, one.received_ms, one.headers, one.body) for one in found] == [
        (2, "report", 10, b'{"n":"1"}', b""),
        (3, "log", 12, b"{}", b"three\n"),
    ]


async def test_page_of_a_large_log_reads_only_the_blocks_it_needs(db: Database) -> None:
    body = b"x" * (raw_log.BLOCK_BYTES // 4)
    for _ in range(40):
        await append(db, "srv_1", body)
    await raw_log.compress(db, "srv_1")
    ((blocks,),) = await db.read("SELECT COUNT(*) FROM raw_log")
    assert blocks == 10
    found: list[Row] = []

    async def note(_: str, rows: list[Row]) -> None:
        found.extend(rows)

    counted = databases.HookedDatabase(db, after_read=note)
    for after, limit, rows in ((0, 3, 1), (0, 4, 1), (2, 2, 1), (2, 3, 2), (4, 4, 1), (37, 100, 1), (40, 4, 0)):
        found.clear()
        page = await raw_log.read_after(counted, "srv_1", after, limit=limit)
        assert [one.seq for one in page[:limit]] == list(range(after + 1, min(after + limit, 40) + 1))
        assert len(found) == rows, f"{limit} entries after {after}"


async def test_log_whose_beginning_was_pruned_is_read_from_what_is_left(db: Database) -> None:
    await append_group(db, [("srv_1", "log", 10, b"{}", b"%d" % number, "") for number in range(300)])
    await db.write([Statement("DELETE FROM raw_log WHERE seq <= 250 AND seq <> 20")])
    assert [one.seq for one in await read_all(db, "srv_1")] == [20, *range(251, 301)]


async def test_small_entries_do_not_make_a_block_too_long(db: Database) -> None:
    count = raw_log.BLOCK_ENTRIES + 5
    await db.write(
        [part for _ in range(count) for part in raw_log.append("srv_1", "log", received_ms=1, headers=b"{}", body=b"x")]
    )
    await raw_log.compress(db, "srv_1")
    assert await db.read("SELECT seq FROM raw_log ORDER BY seq") == [(raw_log.BLOCK_ENTRIES,), (count,)]


async def test_block_is_pruned_when_its_newest_entry_is_old(db: Database) -> None:
    await create_server(db, "srv_done", phase=ServerPhase.RELEASED)
    await append(db, "srv_done", b"old", received_ms=99)
    await append(db, "srv_done", b"new", received_ms=100)
    await raw_log.compress(db, "srv_done")
    assert await raw_log.prune(db, 100) == 0
    assert await raw_log.count_prunable(db, 101) == 1
    assert await raw_log.prune(db, 101) == 1
    assert await bodies(db, "srv_done") == []


class SteppedDatabase(databases.DelegatingDatabase):
    """Writes only when it is told to."""

    def __init__(self, db: Database) -> None:
        super().__init__(db)
        self.waiting, self.may_write, self.written = (asyncio.Semaphore(0) for _ in range(3))

    async def write(self, statements: Sequence[Statement]) -> list[list[Row]]:
        self.waiting.release()
        await self.may_write.acquire()
        try:
            return await super().write(statements)
        finally:
            self.written.release()


async def test_two_processes_that_merge_different_entries_at_once_store_no_overlapping_blocks(db: Database) -> None:
    for number in range(5):
        await append(db, "srv_1", b"%d" % number)
    slow, fast = SteppedDatabase(db), SteppedDatabase(db)
    merging = [asyncio.create_task(raw_log.compress(slow, "srv_1"))]
    await slow.waiting.acquire()  # it has read five entries
    for number in range(5, 10):
        await append(db, "srv_1", b"%d" % number)
    merging.append(asyncio.create_task(raw_log.compress(fast, "srv_1")))
    await fast.waiting.acquire()  # it has read ten
    for one in (slow, fast):
        one.may_write.release()
        await one.written.acquire()
    slow.may_write.release()  # the rest, which only one has left
    await asyncio.gather(*merging)
    assert await bodies(db, "srv_1") == [b"%d" % number for number in range(10)]
    assert await db.read("SELECT seq FROM raw_log WHERE kind <> 'block'") == []


async def test_block_cannot_be_set_aside(db: Database) -> None:
    await append(db, "srv_1", b"one")
    await raw_log.compress(db, "srv_1")
    await unfinished.count(db, "srv_1", 1)
    assert not await unfinished.set_aside(db, "srv_1", 1)
    assert await bodies(db, "srv_1") == [b"one"]


async def test_old_entries_are_pruned_except_those_of_matches_in_progress(db: Database) -> None:
    await create_server(db, "srv_done", phase=ServerPhase.RELEASED)
    await create_server(db, "srv_live")
    for name in ("srv_done", "srv_live"):
        await append(db, name, b"old", received_ms=99)
        await append(db, name, b"new", received_ms=100)
    assert await raw_log.prune(db, 100) == 1
    assert await bodies(db, "srv_done") == [b"new"]
    assert await bodies(db, "srv_live") == [b"old", b"new"]
    assert await raw_log.prune(db, 101) == 1
    assert await append(db, "srv_done", b"numbering continues") == 3


async def test_entries_of_a_match_are_kept_until_all_of_it_is_old(db: Database) -> None:
    for name, ended_at_ms in (("srv_1", 100), ("srv_2", 99), ("srv_3", None)):
        row = server_row(name, phase=ServerPhase.RELEASED)
        await servers.create(db, msgspec.structs.replace(row, ended_at_ms=ended_at_ms), idempotency=None)
        await append(db, name, b"old", received_ms=98)
        await append(db, name, b"after the end", received_ms=101)
    assert await raw_log.count_prunable(db, 100) == await raw_log.prune(db, 100) == 2
    assert await bodies(db, "srv_1") == [b"old", b"after the end"]
    assert await bodies(db, "srv_2") == await bodies(db, "srv_3") == [b"after the end"]


async def test_more_matches_than_one_query_looks_at_are_pruned(db: Database) -> None:
    names = [f"srv_{number:04}" for number in range(2 * raw_log.PRUNE_MATCHES + 1)]
    await append_group(db, [(name, "log", 1 + number % 2, b"{}", b"x", "") for number, name in enumerate(names)])
    assert await raw_log.count_prunable(db, 2) == await raw_log.prune(db, 2) == raw_log.PRUNE_MATCHES + 1
    assert await bodies(db, names[-1]) == []
    assert await bodies(db, names[1]) == [b"x"]


async def test_more_entries_than_one_transaction_deletes_are_pruned(db: Database) -> None:
    count = raw_log.PRUNE_ENTRIES + 5
    await db.write(
        [part for _ in range(count) for part in raw_log.append("srv_1", "log", received_ms=1, headers=b"{}", body=b"x")]
    )
    assert await raw_log.prune(db, 100) == count
    assert await raw_log.prune(db, 100) == 0
