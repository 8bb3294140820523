"""Folds take turns, and an entry that is begun too often without being finished is set aside."""

from __future__ import annotations

import asyncio
import re
import time

import pytest

from matchpod.ports import DatabaseUnavailableError
from matchpod.service.match_log.entries import NO_HEADERS, EntryKind
from matchpod.service.match_log.fold import Fold
from matchpod.service.match_log.fold_turns import MAX_TURN_S, SLOW_S, TURN_S, FoldTurns
from matchpod.service.runner.heartbeat import CONFIRMED_MS
from matchpod.storage.raw_log import RawEntry
from tests.contract.test_ingest import LINE, server


def entry(seq: int = 1, kind: EntryKind = EntryKind.LOG) -> RawEntry:
    return RawEntry(server_id="srv_1", seq=seq, kind=kind, received_ms=seq, headers=NO_HEADERS, body=LINE)


class Marks:
    """Records the calls."""

    def __init__(self) -> None:
        self.calls: list[object] = []

    def mark(self, server_id: str, seq: int) -> None:
        self.calls.append((server_id, seq))

    def clear(self) -> None:
        self.calls.append(None)


async def test_other_work_runs_between_the_turns_of_two_long_folds() -> None:
    turns, applied, seen, is_done = FoldTurns(), [0, 0], {0}, False

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


async def test_fold_that_fails_or_is_cancelled_passes_its_turn_on() -> None:
    turns, done = FoldTurns(), list[int]()

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


async def test_folds_with_many_entries_alternate() -> None:
    turns, order = FoldTurns(), ""

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


async def test_one_entry_of_each_of_many_matches_needs_no_turn_of_its_own() -> None:
    """Otherwise each would wait until the loop has served everybody else, who may be many."""
    turns, applied, rounds = FoldTurns(), 0, 0

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


async def test_turns_are_longer_if_others_keep_the_loop_busy() -> None:
    turns, spent, steps = FoldTurns(), [0.0, 0.0], 0
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


async def test_entry_in_progress_is_marked_and_cleared() -> None:
    marks = Marks()
    FoldTurns(marks).apply(Fold.begin(server(), 1.0), entry(5))
    assert marks.calls == [("srv_1", 5), None]


async def test_slow_entry_is_reported() -> None:
    turns, fold, slow = FoldTurns(slow_s=0.0), Fold.begin(server(), 1.0), list[tuple[str, int]]()

    async def report(server_id: str, seq: int) -> None:
        slow.append((server_id, seq))

    turns.on_slow = report
    await turns.run([entry(), entry(2)], lambda one: bool(turns.apply(fold, one)))
    assert slow == [("srv_1", 1), ("srv_1", 2)]


def test_entry_is_counted_as_slow_before_it_costs_a_process_its_matches() -> None:
    assert SLOW_S * 1_000 < CONFIRMED_MS


async def test_other_folds_go_on_while_a_slow_entry_is_reported() -> None:
    turns, fold = FoldTurns(slow_s=0.0), Fold.begin(server(), 1.0)
    is_reporting, may_go_on = asyncio.Event(), asyncio.Event()

    async def report(_server_id: str, _seq: int) -> None:
        is_reporting.set()
        await may_go_on.wait()

    turns.on_slow = report
    slow = asyncio.create_task(turns.run([entry()], lambda one: bool(turns.apply(fold, one))))
    async with asyncio.timeout(20):
        await is_reporting.wait()
        await turns.run([entry()], lambda _: True)
        may_go_on.set()
        await slow


async def test_slow_entry_that_cannot_be_counted_is_counted_the_next_time(caplog: pytest.LogCaptureFixture) -> None:
    turns, fold = FoldTurns(slow_s=0.0), Fold.begin(server(), 1.0)

    async def report(_server_id: str, _seq: int) -> None:
        raise DatabaseUnavailableError("unavailable")

    turns.on_slow = report
    await turns.run([entry()], lambda one: bool(turns.apply(fold, one)))
    assert caplog.messages == ["slow entry not counted"]
