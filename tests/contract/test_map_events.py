"""Timelines have no gaps and no duplicates, even with concurrent writers, merges and readers."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence

import pytest

from matchpod.core.server_status import ServerPhase
from matchpod.ports import Database, DuplicateError
from matchpod.storage import map_events
from tests.contract import databases
from tests.contract.match_histories import MapState, create_server, insert_counted, map_id, match_history
from tests.effort import times

harness = databases.harness

MAP = map_id("srv_1")


def line(seq: int) -> bytes:
    return b'{"seq":%d,"name":"\\u00e9 \\n"}' % seq


def lines(first: int, last: int) -> list[bytes]:
    return [line(seq) for seq in range(first, last + 1)]


def items(first: int, last: int) -> list[tuple[int, bytes]]:
    return [(seq, line(seq)) for seq in range(first, last + 1)]


async def create_match(db: Database, server_id: str = "srv_1", phase: ServerPhase = ServerPhase.RUNNING) -> None:
    await create_server(db, server_id, phase=phase)
    await db.write(insert_counted(match_history(server_id, [MapState(), MapState()])))


async def write_batches(db: Database, sizes: Sequence[int], *, of_map: str = MAP, at_ms: int = 10) -> int:
    """Write batches of these sizes, starting with item 1; return the number of the last item."""
    seq = 0
    statements = []
    for size in sizes:
        statements.append(map_events.append(of_map, seq + 1, lines(seq + 1, seq + size), at_ms=at_ms))
        seq += size
    await db.write(statements)
    return seq


async def stored_batches(db: Database, of_map: str = MAP) -> list[tuple[object, ...]]:
    return list(
        await db.read(
            "SELECT first_seq, count, is_compressed FROM map_events WHERE map_id = :map_id ORDER BY first_seq",
            {"map_id": of_map},
        )
    )


async def assert_reads_are_slices(db: Database, first: int, last: int) -> None:
    for after in range(last + 2):
        for limit in (1, 2, 3, 10, last + 5):
            start = max(after + 1, first)
            expected = items(start, min(last, start + limit - 1))
            assert await map_events.read_after(db, MAP, after, limit=limit) == expected, (after, limit)


async def test_items_are_read_from_the_middle_of_batches(db: Database) -> None:
    await write_batches(db, [7], of_map=map_id("srv_2"))
    last = await write_batches(db, [1, 3, 1, 5, 2])
    await assert_reads_are_slices(db, 1, last)
    assert await map_events.read_after(db, "unknown", 0, limit=10) == []
    assert await map_events.read_after(db, MAP, 2**53 - 1, limit=1_000) == []


async def test_only_one_of_two_concurrent_appends_succeeds(replicas: databases.Replicas) -> None:
    db, peer = replicas
    last = 0
    for _ in range(times(4)):
        writes = [
            handle.write([map_events.append(MAP, last + 1, lines(last + 1, last + size), at_ms=1)])
            for handle, size in ((db, 1), (peer, 2))
        ]
        results = await asyncio.gather(*writes, return_exceptions=True)
        assert sum(isinstance(result, DuplicateError) for result in results) == 1
        last += 2 if isinstance(results[0], DuplicateError) else 1
    assert await map_events.read_after(db, MAP, 0, limit=100) == items(1, last)


@pytest.mark.parametrize("is_merged", [False, True])
async def test_existing_item_is_never_overwritten(db: Database, is_merged: bool) -> None:
    await create_match(db)
    last = await write_batches(db, [2, 3, 2])
    if is_merged:
        await map_events.compact(db, "srv_1")
    for seq in range(1, last + 1):
        with pytest.raises(DuplicateError):
            await db.write([map_events.append(MAP, seq, [b"other"], at_ms=1)])
    await db.write([map_events.append(MAP, last + 1, lines(last + 1, last + 1), at_ms=1)])
    assert await map_events.read_after(db, MAP, 0, limit=100) == items(1, last + 1)


def test_empty_batch_is_rejected() -> None:
    with pytest.raises(ValueError, match="at least one"):
        map_events.append(MAP, 1, [], at_ms=1)


async def test_merged_batches_are_fewer_and_read_the_same(db: Database) -> None:
    await create_match(db)
    rng = random.Random(1)
    last = await write_batches(db, [rng.randrange(1, 9) for _ in range(280)])
    await write_batches(db, [1, 1], of_map=map_id("srv_1", 2))
    await write_batches(db, [1, 1], of_map=map_id("srv_2"))
    before = await map_events.read_after(db, MAP, 0, limit=10_000)
    await asyncio.gather(*(map_events.compact(db, "srv_1") for _ in range(3)))
    assert await map_events.read_after(db, MAP, 0, limit=10_000) == before == items(1, last)
    size = map_events.MERGED_ITEMS
    starts = range(1, last + 1, size)
    assert await stored_batches(db) == [(start, min(size, last + 1 - start), 1) for start in starts]
    assert await stored_batches(db, map_id("srv_1", 2)) == [(1, 2, 1)]
    assert await stored_batches(db, map_id("srv_2")) == [(1, 1, 0), (2, 1, 0)]
    assert await map_events.last_seqs(db, "srv_1") == {MAP: last, map_id("srv_1", 2): 2}
    for after in (0, 1, size - 1, size, size + 1, last - 1, last):
        expected = items(after + 1, min(last, after + 100))
        assert await map_events.read_after(db, MAP, after, limit=100) == expected


async def test_merging_does_not_affect_concurrent_reads(replicas: databases.Replicas) -> None:
    db, peer = replicas
    await create_match(db)
    last = 0
    for _ in range(times(5)):
        first = last + 1
        last += 120
        await db.write([map_events.append(MAP, seq, [line(seq)], at_ms=1) for seq in range(first, last + 1)])
        reads = [map_events.read_after(peer, MAP, after, limit=1_000) for after in range(0, last, 60)]
        merge, *results = await asyncio.gather(map_events.compact(db, "srv_1"), *reads)
        assert merge is None
        assert results == [items(after + 1, last) for after in range(0, last, 60)]


async def test_old_items_are_pruned_except_those_of_matches_in_progress(db: Database) -> None:
    for name, phase in (("srv_1", ServerPhase.RELEASED), ("srv_2", ServerPhase.RUNNING)):
        await create_match(db, name, phase)
        await write_batches(db, [3, 4], of_map=map_id(name), at_ms=99)
        await db.write([map_events.append(map_id(name), 8, lines(8, 9), at_ms=100)])
    assert await map_events.prune(db, 99) == 0
    assert await map_events.prune(db, 100) == 7
    await assert_reads_are_slices(db, 8, 9)
    assert await map_events.read_after(db, map_id("srv_2"), 0, limit=100) == items(1, 9)
    assert await map_events.last_seqs(db, "srv_1") == {MAP: 9}
    await map_events.compact(db, "srv_1")
    await assert_reads_are_slices(db, 8, 9)
    assert await map_events.prune(db, 101) == 2
    assert await map_events.read_after(db, MAP, 0, limit=100) == []


async def test_merged_batch_is_kept_as_long_as_its_newest_item(db: Database) -> None:
    await create_match(db, phase=ServerPhase.RELEASED)
    batches = ((1, 3, 50), (4, 5, 90))
    await db.write([map_events.append(MAP, first, lines(first, last), at_ms=at) for first, last, at in batches])
    await map_events.compact(db, "srv_1")
    assert await map_events.prune(db, 90) == 0
    assert await map_events.prune(db, 91) == 5


async def test_batches_with_a_gap_between_them_are_merged_separately(db: Database) -> None:
    await create_match(db)
    batches = ((1, 2), (3, 4), (9, 9), (10, 12))
    await db.write([map_events.append(MAP, first, lines(first, last), at_ms=1) for first, last in batches])
    await map_events.compact(db, "srv_1")
    assert await stored_batches(db) == [(1, 4, 1), (9, 4, 1)]


async def test_more_batches_than_one_transaction_deletes_are_pruned(db: Database) -> None:
    count = map_events.PRUNE_BATCHES + 5
    await write_batches(db, [2] * count)
    assert await map_events.prune(db, 100) == 2 * count
    assert await map_events.prune(db, 100) == 0
