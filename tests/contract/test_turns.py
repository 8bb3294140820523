"""Folds take turns, and an entry that is begun too often without being finished is set aside."""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Sequence
from functools import partial

import pytest

from matchpod.ports import Database, Row, Statement
from matchpod.service.match_log.entries import NO_HEADERS, EntryKind
from matchpod.service.match_log.fold import Fold
from matchpod.service.match_log.replay import replay
from matchpod.service.match_log.turns import MAX_BEGUN, MAX_TURN_S, SLOW_S, TURN_S, FoldTurns
from matchpod.service.runner.heartbeat import CONFIRMED_MS
from matchpod.storage import raw_log, servers, unfinished
from matchpod.storage.raw_log import RawEntry
from tests.contract import databases
from tests.contract.test_ingest import LINE, server

harness = databases.mostly_sqlite_harness


def entry(seq: int = 1, kind: EntryKind = EntryKind.LOG) -> RawEntry:
    return RawEntry(server_id="srv_1", seq=seq, kind=kind, received_ms=seq, headers=NO_HEADERS, body=LINE)


async def store(db: Database, count: int) -> None:
    await servers.create(db, server(), idempotency=None)
    for number in range(count):
        await db.write(raw_log.append("srv_1", EntryKind.LOG, received_ms=number, headers=NO_HEADERS, body=LINE))


class Marks:
    """Records the calls."""

    def __init__(self) -> None:
        self.calls: list[object] = []

    def mark(self, server_id: str, seq: int) -> None:
        self.calls.append((server_id, seq))

    def clear(self) -> None:
        self.calls.append(None)


async def test_other_work_runs_between_the_turns_of_two_long_folds(db: Database) -> None:
    turns, applied, seen, is_done = FoldTurns(db), [0, 0], {0}, False

    async def fold(number: int) -> None:
        def step(_: RawEntry) -> bool:
            time.sleep(TURN_S / 2)
            applied[number] += 1
            return True

        await turns.run([entry()] * 20, step)

    async def others() -> None:
        while not is_done:
            await asyncio.sleep(0)
            seen.add(sum(applied))

    watching = asyncio.create_task(others())
    await asyncio.gather(fold(0), fold(1))
    is_done = True
    await watching
    assert applied == [20, 20]
    assert len(seen) > 2, "others ran while the folds were in progress"


async def test_other_work_runs_between_many_calls(db: Database) -> None:
    turns, called, seen, is_done = FoldTurns(db), list[int](), {0}, False

    def parse(number: int) -> int:
        time.sleep(TURN_S)
        called.append(number)
        return number

    async def others() -> None:
        while not is_done:
            await asyncio.sleep(0)
            seen.add(len(called))

    watching = asyncio.create_task(others())
    assert await asyncio.gather(*(turns.call(partial(parse, number)) for number in range(10))) == list(range(10))
    is_done = True
    await watching
    assert len(seen) > 5, "others ran between most of them"


async def test_fold_that_fails_or_is_cancelled_passes_its_turn_on(db: Database) -> None:
    turns, done = FoldTurns(db), list[int]()

    def step(number: int) -> bool:
        time.sleep(10 * TURN_S)  # far longer than the loop takes for the others
        if number == 1:
            raise RuntimeError("a bug")
        done.append(number)
        return True

    folds = [asyncio.create_task(turns.run([number], step)) for number in range(6)]
    await asyncio.sleep(0)  # the first has used the turn, and all others wait
    folds[2].cancel()
    async with asyncio.timeout(60):
        results = await asyncio.gather(*folds, return_exceptions=True)
    assert [type(result) for result in results[1:3]] == [RuntimeError, asyncio.CancelledError]
    assert done == [0, 3, 4, 5]


async def test_matches_that_are_being_resumed_are_counted(db: Database) -> None:
    turns = FoldTurns(db)
    async with turns.resuming("srv_1"), turns.resuming("srv_2"):
        assert turns.resuming_count == 2
    with pytest.raises(RuntimeError, match="a bug"):
        async with turns.resuming("srv_1"):
            raise RuntimeError("a bug")
    assert turns.resuming_count == 0


async def test_folds_with_many_entries_alternate(db: Database) -> None:
    turns, order = FoldTurns(db), ""

    async def fold(name: str) -> None:
        def step(_: RawEntry) -> bool:
            nonlocal order
            time.sleep(TURN_S)
            order += name
            return True

        await turns.run([entry()] * 40, step)

    await asyncio.gather(fold("a"), fold("b"))
    per_turn = round(MAX_TURN_S / TURN_S)
    assert max(map(len, re.findall("a+|b+", order))) <= per_turn + 1, "no fold has two turns in a row"


async def test_one_entry_of_each_of_many_matches_needs_no_turn_of_its_own(db: Database) -> None:
    """Otherwise each would wait until the loop has served everybody else, who may be many."""
    turns, applied, rounds = FoldTurns(db), 0, 0

    def step(_: RawEntry) -> bool:
        nonlocal applied
        applied += 1
        return True

    async def others() -> None:
        nonlocal rounds
        while applied < 100:
            rounds += 1
            await asyncio.sleep(0)

    await asyncio.gather(others(), *(turns.run([entry()], step) for _ in range(100)))
    assert applied == 100
    assert rounds < 20


async def test_turns_are_longer_if_others_keep_the_loop_busy(db: Database) -> None:
    turns, spent, steps = FoldTurns(db), [0.0, 0.0], 0
    """Time used by the fold and by others, as measured: on a busy machine, a sleep takes longer."""

    def step(_: RawEntry) -> bool:
        nonlocal steps
        began = time.perf_counter()
        time.sleep(TURN_S / 4)
        spent[0] += time.perf_counter() - began
        steps += 1
        return True

    async def others() -> None:
        while steps < 200:
            began = time.perf_counter()
            time.sleep(MAX_TURN_S)
            spent[1] += time.perf_counter() - began
            await asyncio.sleep(0)

    await asyncio.gather(turns.run([entry()] * 200, step), others())
    assert spent[0] > spent[1] / 8, "with turns of the usual length it would be a twelfth"


async def test_run_ends_when_a_step_returns_false(db: Database) -> None:
    seen: list[int] = []

    def step(one: RawEntry) -> bool:
        seen.append(one.seq)
        return one.seq < 2

    await FoldTurns(db).run([entry(1), entry(2), entry(3)], step)
    assert seen == [1, 2]


async def test_entry_in_progress_is_marked_and_cleared(db: Database) -> None:
    marks = Marks()
    FoldTurns(db, marks).apply(Fold.begin(server(), 1.0), entry(5))
    assert marks.calls == [("srv_1", 5), None]


@databases.on_both
async def test_entry_begun_too_often_is_set_aside_and_skipped(db: Database, caplog: pytest.LogCaptureFixture) -> None:
    await store(db, 3)
    for _ in range(MAX_BEGUN - 1):
        await FoldTurns(db).count_unfinished("srv_1", 2)
    assert [one.kind for one in await raw_log.read_after(db, "srv_1", 0, limit=9)] == ["log"] * 3
    assert await unfinished.of_server(db, "srv_1") == []
    await FoldTurns(db).count_unfinished("srv_1", 2)
    assert [one.kind for one in await raw_log.read_after(db, "srv_1", 0, limit=9)] == ["log", "set_aside", "log"]
    (row,) = await unfinished.of_server(db, "srv_1")
    assert (row.seq, row.begun, row.kind) == (2, MAX_BEGUN, "log")
    assert [record.message for record in caplog.records if record.levelno == logging.ERROR] == [
        "entry set aside: it was begun too often and never finished"
    ]
    stored = await servers.get(db, "srv_1")
    assert stored is not None
    fold = await replay(db, stored, 1.0, turns=FoldTurns(db))
    assert fold.line_counts == (2, 0), "the match goes on without the lines of the entry"


@databases.on_both
async def test_unknown_entry_is_counted_without_effect(db: Database) -> None:
    for _ in range(MAX_BEGUN + 1):
        await FoldTurns(db).count_unfinished("srv_none", 1)
    assert await unfinished.of_server(db, "srv_none") == []


async def test_slow_entry_counts_as_not_finished(db: Database) -> None:
    await store(db, 1)
    turns, fold = FoldTurns(db, slow_s=0.0), Fold.begin(server(), 1.0)
    for _ in range(MAX_BEGUN):
        await turns.run([entry()], lambda one: bool(turns.apply(fold, one)))
    (row,) = await unfinished.of_server(db, "srv_1")
    assert row.seq == 1


def test_entry_is_counted_as_slow_before_it_costs_a_process_its_matches() -> None:
    assert SLOW_S * 1_000 < CONFIRMED_MS


class SlowDatabase(databases.DelegatingDatabase):
    """Writes when it may."""

    def __init__(self, db: Database) -> None:
        super().__init__(db)
        self.is_writing, self.may_write = asyncio.Event(), asyncio.Event()

    async def write(self, statements: Sequence[Statement]) -> list[list[Row]]:
        self.is_writing.set()
        await self.may_write.wait()
        return await super().write(statements)


async def test_other_folds_go_on_while_a_slow_entry_is_counted(db: Database) -> None:
    await store(db, 1)
    slow_db = SlowDatabase(db)
    turns, fold = FoldTurns(slow_db, slow_s=0.0), Fold.begin(server(), 1.0)
    slow = asyncio.create_task(turns.run([entry()], lambda one: bool(turns.apply(fold, one))))
    async with asyncio.timeout(20):
        await slow_db.is_writing.wait()
        await turns.run([entry()], lambda _: True)
        slow_db.may_write.set()
        await slow
