"""Matches of other processes are read from their snapshot and log."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import msgspec
import pytest

from cs2_protocol.log_lines import player_lines
from matchpod.core.events import GameEvent
from matchpod.core.views.match_progress import LiveState
from matchpod.core.views.result import live_match
from matchpod.cs2 import interpreter
from matchpod.cs2.combat import Combat
from matchpod.ports import Database, Row, Statement
from matchpod.service.match_log.fold import Fold
from matchpod.service.match_log.fold_turns import FoldTurns
from matchpod.service.match_log.remote import MAX_MATCHES, RemoteMatches
from matchpod.service.match_log.replay import open_match
from matchpod.storage import raw_log, servers, snapshots
from matchpod.storage.raw_log import RawEntry
from matchpod.storage.servers import ServerRow
from matchpod.storage.snapshots import Snapshot
from tests.contract import databases
from tests.contract.databases import HookedDatabase, once
from tests.contract.ended_matches import store
from tests.contract.parts import Parts
from tests.unit.service.match_log.test_fold import recorded, row_of

harness = databases.sqlite_harness


class CountingDatabase(HookedDatabase):
    def __init__(self, db: Database) -> None:
        super().__init__(db, after_read=self._count)
        self.entries_read = 0

    async def _count(self, sql: str, rows: list[Row]) -> None:
        self.entries_read += len(rows) * ("FROM raw_log " in sql)


class FailingOnce:
    """Raises on one kill of a match, once; other lines of its entry are lost with it."""

    def __init__(self, error: Exception) -> None:
        self._error = error
        self._left = 10

    def __call__(self, combat: Combat, at_ms: int, line: player_lines.Killed) -> GameEvent | None:
        self._left -= 1
        if self._left == 0:
            raise self._error
        return combat.killed(at_ms, line)


async def create_match(db: Database, **fields: object) -> ServerRow:
    row = row_of(recorded().settings, **fields)
    await servers.create(db, row, idempotency=None)
    return row


def remote_matches(db: Database) -> RemoteMatches:
    return Parts(db).remote


async def save_snapshot(db: Database, row: ServerRow, *, seq: int | None = None) -> Fold:
    """Save the match after its first entries, as after the entry `seq`; return it."""
    fold = expected_fold(recorded().entries[: middle()])
    await db.write(snapshots.save(row.id, row.fence, Snapshot(middle() if seq is None else seq, fold.dump())))
    return fold


def expected_fold(entries: Sequence[RawEntry]) -> Fold:
    fold = Fold.begin(row_of(recorded().settings), 1.0)
    for entry in entries:
        fold.apply(entry)
    return fold


def expected_state(entries: Sequence[RawEntry]) -> LiveState:
    return expected_fold(entries).state()


def middle() -> int:
    """A number of entries after which the match is live."""
    return len(recorded().entries) * 3 // 4


async def test_repeated_read_reads_only_new_entries(db: Database) -> None:
    row = await create_match(db)
    counting = CountingDatabase(db)
    remote = remote_matches(counting)
    await store(db, recorded().entries[:20])
    first = await remote.state(row)
    assert counting.entries_read == 20
    before = counting.reads
    assert await remote.state(row) is first
    assert counting.entries_read == 20 + 1, "the last one, which must still be there"
    await store(db, recorded().entries[20:23])
    await remote.state(row)
    assert counting.entries_read == 20 + 1 + 4
    assert counting.reads == before + 2


async def test_entries_before_the_snapshot_are_not_read(db: Database) -> None:
    row = await create_match(db)
    entries = recorded().entries
    await save_snapshot(db, row)
    counting = CountingDatabase(db)
    await store(db, entries)
    assert await remote_matches(counting).state(row) == expected_state(entries)
    assert counting.entries_read == len(entries) - middle() + 1


async def test_snapshot_of_another_version_is_ignored(db: Database) -> None:
    row = await create_match(db)
    await db.write(snapshots.save(row.id, row.fence, Snapshot(5, b"\x80")))
    await store(db, recorded().entries)
    assert await remote_matches(db).state(row) == expected_state(recorded().entries)


async def test_log_of_a_replaced_server_does_not_count(db: Database) -> None:
    row = await create_match(db)
    entries = recorded().entries
    remote = remote_matches(db)
    await store(db, entries[: middle()])
    before = await remote.state(row)
    await save_snapshot(db, row)
    await db.write([snapshots.delete(row.id)])
    replaced = msgspec.structs.replace(row, log_from_seq=middle())
    assert await remote.state(replaced) == expected_state([]) != before
    # Neither does an older snapshot.
    await save_snapshot(db, row, seq=middle() - 1)
    assert await remote_matches(db).state(replaced) == expected_state([])


async def test_concurrent_reads_apply_each_entry_once(db: Database) -> None:
    row = await create_match(db)
    await store(db, recorded().entries)
    remote = remote_matches(db)
    views = await asyncio.gather(*(remote.state(row) for _ in range(5)))
    views += await asyncio.gather(*(remote.state(row) for _ in range(5)))
    assert set(views) == {expected_state(recorded().entries)}


async def test_least_recently_read_match_is_dropped_from_the_cache(db: Database) -> None:
    counting = CountingDatabase(db)
    first = row_of(recorded().settings, id="srv_first")
    await store(db, recorded().entries[:10], first.id)
    remote = remote_matches(counting)
    await remote.state(first)
    for number in range(MAX_MATCHES - 1):
        await remote.state(row_of(recorded().settings, id=f"srv_{number}"))
    await remote.state(first)
    assert counting.entries_read == 10 + 1
    for number in range(MAX_MATCHES):
        await remote.state(row_of(recorded().settings, id=f"srv_{number}"))
    await remote.state(first)
    assert counting.entries_read == 10 + 1 + 10


async def test_cached_match_equals_its_view_and_keeps_no_timeline_items(db: Database) -> None:
    row = await create_match(db)
    await store(db, recorded().entries[: middle()])
    remote = remote_matches(db)
    match = await remote.match(row)
    assert msgspec.json.encode(live_match(match)) == (await remote.state(row)).match
    assert await remote.state(row) == expected_state(recorded().entries[: middle()])
    (cached,) = remote._cache.values()
    assert cached.fold.drain_timeline() == []


# --- errors -------------------------------------------------------------------------------------------------------


async def test_fold_that_an_error_left_half_changed_is_not_used_again(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = await create_match(db)
    entries = recorded().entries
    remote = remote_matches(db)
    await remote.state(row)
    await store(db, entries[: middle()])
    monkeypatch.setitem(interpreter._COMBAT, player_lines.Killed, FailingOnce(MemoryError()))
    with pytest.raises(MemoryError):
        await remote.match(row)
    assert await remote.match(row) == expected_fold(entries[: middle()]).match


async def test_fold_that_an_error_left_half_changed_is_not_used_by_others_who_wait(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = await create_match(db)
    entries = recorded().entries
    await store(db, entries[:10])
    is_held, may_return = asyncio.Event(), asyncio.Event()

    async def hold() -> None:
        is_held.set()
        await may_return.wait()

    holding = HookedDatabase(db)
    remote = remote_matches(holding)
    await remote.state(row)
    await store(db, entries[10 : middle()])
    hold_next = once(hold, "FROM raw_log ")
    holding.after_read = lambda sql, _: hold_next(sql)
    waiting = asyncio.create_task(remote.match(row))
    await is_held.wait()
    expected = expected_fold(entries[: middle()]).match
    monkeypatch.setitem(interpreter._COMBAT, player_lines.Killed, FailingOnce(KeyError("a bug")))
    assert await remote.match(row) != expected, "without the entry, which may fail again"
    may_return.set()
    assert await waiting == expected
    assert await remote.match(row) == expected


# --- a standby that was promoted ----------------------------------------------------------------------------------


async def lose_entries(db: Database, after_seq: int, *tables: str) -> None:
    """Lose the last entries of a match, as an asynchronous standby does, and all of these tables."""
    params = {"seq": after_seq}
    lose = Statement("DELETE FROM raw_log WHERE seq > :seq", params)
    lost = [Statement(f"DELETE FROM {table}") for table in tables]
    await db.write([lose, Statement("UPDATE raw_log_heads SET seq = :seq", params), *lost])


@pytest.mark.parametrize("stored", [0, 3, 9, 20], ids=["none", "fewer", "as many", "more"])
async def test_match_is_read_again_if_its_log_lost_entries_and_others_have_their_numbers(
    db: Database, stored: int
) -> None:
    row = await create_match(db)
    entries, kept = recorded().entries, middle() - 9
    await store(db, entries[: middle()])
    remote = remote_matches(db)
    await remote.state(row)
    await lose_entries(db, kept)
    others = entries[kept + 5 : kept + 5 + stored + 2]
    for begin, end in ((0, stored), (stored, stored + 2)):
        await store(db, others[begin:end])
        assert await remote.state(row) == expected_state([*entries[:kept], *others[:end]])


async def test_match_that_was_read_from_its_snapshot_only_notices_a_shorter_log(db: Database) -> None:
    row = await create_match(db)
    entries, kept = recorded().entries, middle() - 9
    await store(db, entries[: middle()])
    await save_snapshot(db, row)
    remote = remote_matches(db)
    await remote.state(row)
    await lose_entries(db, kept)
    await db.write([snapshots.delete(row.id)])
    assert await remote.state(row) == expected_state(entries[:kept])


async def test_snapshot_that_is_ahead_of_the_log_is_ignored(db: Database) -> None:
    row = await create_match(db)
    entries, kept = recorded().entries, middle() - 9
    await store(db, entries[:kept])
    await save_snapshot(db, row)
    assert await remote_matches(db).state(row) == expected_state(entries[:kept])
    found, seq = await open_match(db, row, 1.0, turns=FoldTurns())
    assert (found.dump(), seq) == (Fold.begin(row, 1.0).dump(), 0)


async def test_match_is_kept_if_its_log_was_compressed_or_deleted_after_its_retention(db: Database) -> None:
    row = await create_match(db)
    await store(db, recorded().entries)
    remote = remote_matches(db)
    first = await remote.state(row)
    await raw_log.compress(db, row.id)
    assert await remote.state(row) is first
    await db.write([Statement("UPDATE servers SET phase = 'released'")])
    assert await raw_log.prune(db, 2**53) > 0
    assert await remote.state(row) is first
