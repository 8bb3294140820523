"""Fair turns: rotation among keys, bounds, and what happens to those that no longer wait."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matchpod.service.fair_turns import (
    FairTurns,
    NotWantedError,
    QueueFullError,
    TurnKey,
    TurnLimits,
    WaitedTooLongError,
    changes_of,
)
from tests import effort

FOREVER_S = 3600.0
PATIENT = TurnLimits(near_s=0.0, wait_s=FOREVER_S, hold_s=0.0)


async def iterations(count: int = 1) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


class TurnsOf(FairTurns):
    """Turns of keys that have only an owner, named by it."""

    def start(self, owner: str) -> bool:
        return self.begin(TurnKey(owner))

    def finish(self, owner: str) -> None:
        self.end(TurnKey(owner))


class Party:
    """Work of several keys, in the order in which its turns began."""

    def __init__(self, limits: TurnLimits = PATIENT) -> None:
        self.turns = TurnsOf(limits)
        self.begun: list[str] = []
        self.tasks: list[asyncio.Task[None]] = []

    async def work(self, key: str) -> None:
        if not self.turns.start(key):
            await self.turns.wait(TurnKey(key))
        self.begun.append(key)

    def add(self, key: str, count: int = 1) -> Sequence[asyncio.Task[None]]:
        added = [asyncio.ensure_future(self.work(key)) for _ in range(count)]
        self.tasks += added
        return added

    async def settle(self) -> list[str]:
        """Let everything happen that can; return whose turns began since the last call."""
        await iterations(20)
        begun, self.begun = self.begun, []
        return begun

    async def leave(self) -> None:
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)


@asynccontextmanager
async def a_party(limits: TurnLimits = PATIENT) -> AsyncIterator[Party]:
    party = Party(limits)
    try:
        yield party
    finally:
        await party.leave()


async def test_one_turn_begins_per_iteration_of_the_event_loop_while_there_are_others() -> None:
    async with a_party(TurnLimits(near_s=FOREVER_S, wait_s=FOREVER_S, hold_s=0.0)) as party:
        assert party.turns.start("a")
        assert not party.turns.start("b")
        party.add("b")
        party.add("c")
        await iterations(2)
        assert len(party.begun) <= 1
        assert await party.settle() == ["b", "c"]


async def test_more_turns_begin_per_iteration_if_their_owner_is_alone() -> None:
    async with a_party(TurnLimits(of_key=40, burst=3, near_s=FOREVER_S, wait_s=FOREVER_S)) as party:
        assert [party.turns.start("a") for _ in range(5)] == [True, True, True, False, False]
        party.add("a", 20)
        counts = [0]
        while counts[-1] < 20:
            await iterations()
            counts.append(len(party.begun))
        assert max(after - before for before, after in pairwise(counts)) == 3


async def test_key_has_fewer_in_progress_while_there_are_others() -> None:
    async with a_party(TurnLimits(of_key=4, near_s=FOREVER_S, slow_s=FOREVER_S, wait_s=FOREVER_S)) as party:
        assert party.turns.start("other")
        party.turns.finish("other")
        party.add("flood", 10)
        assert await party.settle() == ["flood"] * 2
        for _ in range(2):
            party.turns.finish("flood")
            assert await party.settle() == ["flood"]


async def test_slow_work_does_not_keep_that_of_the_same_key_from_beginning() -> None:
    async with a_party(TurnLimits(of_key=4, near_s=FOREVER_S, slow_s=0.0, wait_s=FOREVER_S)) as party:
        assert party.turns.start("other")
        party.turns.finish("other")
        party.add("flood", 10)
        async with asyncio.timeout(60):
            while len(party.begun) < 4:
                await iterations()
        assert await party.settle() == ["flood"] * 4


async def test_keys_take_turns_and_each_keeps_its_order() -> None:
    async with a_party(TurnLimits(at_once=1, wait_s=FOREVER_S)) as party:
        assert party.turns.start("busy")
        party.add("a", 3)
        await iterations()
        party.add("b", 2)
        await iterations()
        party.add("c")
        begun = []
        current = "busy"
        for _ in range(6):
            party.turns.finish(current)
            (current,) = await party.settle()
            begun.append(current)
        assert begun == ["a", "b", "c", "a", "b", "a"]


async def test_key_that_had_no_turn_lately_comes_before_a_flood() -> None:
    async with a_party(TurnLimits(at_once=1, wait_s=FOREVER_S)) as party:
        party.add("flood", 20)
        assert await party.settle() == ["flood"]
        for _ in range(3):
            party.add("other")
            await iterations(3)
            party.turns.finish("flood")
            assert await party.settle() == ["other"]
            party.turns.finish("other")
            assert await party.settle() == ["flood"]


async def test_what_waits_is_held_back_while_a_key_without_waiting_work_has_its_turn() -> None:
    async with a_party(TurnLimits(near_s=0.0, wait_s=FOREVER_S, hold_s=FOREVER_S)) as party:
        party.add("flood", 10)
        assert await party.settle() == ["flood", "flood"]
        party.add("other")
        assert await party.settle() == ["other"]
        party.turns.finish("flood")
        assert await party.settle() == []
        party.turns.finish("other")
        assert await party.settle() == ["flood"]


async def test_single_work_of_a_key_is_not_held_back_for_that_of_another() -> None:
    async with a_party(TurnLimits(wait_s=FOREVER_S, hold_s=FOREVER_S)) as party:
        assert party.turns.start("a")
        party.add("b")
        assert await party.settle() == ["b"]
        party.add("c")
        assert await party.settle() == ["c"]


async def test_what_is_held_back_begins_after_a_while() -> None:
    async with a_party(TurnLimits(near_s=FOREVER_S, slow_s=0.0, wait_s=FOREVER_S, hold_s=0.001)) as party:
        party.add("flood", 10)
        party.add("other")
        assert await party.settle() == ["flood", "flood", "other"]
        party.turns.finish("flood")
        party.begun.clear()
        async with asyncio.timeout(60):
            while "flood" not in party.begun:
                await iterations()


# --- those that no longer wait ------------------------------------------------------------------------------------


async def test_cancelled_wait_frees_its_place_in_the_queue() -> None:
    async with a_party() as party:
        party.add("a", 2)
        await party.settle()
        first, second = party.add("a", 2)
        await iterations(3)
        assert party.turns.waiting == 2
        first.cancel()
        await iterations(2)
        assert party.turns.waiting == 1
        second.cancel()
        await iterations(2)
        assert party.turns.waiting == 0
        party.turns.finish("a")
        await iterations()
        assert party.turns.start("a")


async def test_turn_that_begins_for_a_cancelled_task_ends() -> None:
    async with a_party(TurnLimits(of_key=1, wait_s=FOREVER_S)) as party:
        assert party.turns.start("a")
        (waiting,) = party.add("a")
        await iterations(2)
        party.turns.finish("a")
        await iterations()  # the turn of the other begins, and its task would run in the next iteration
        waiting.cancel()
        await iterations(2)
        assert party.begun == []
        assert party.turns.start("a")


async def test_wait_ends_if_the_one_who_waits_has_gone() -> None:
    async with a_party(TurnLimits(of_key=1, wait_s=FOREVER_S)) as party:
        assert party.turns.start("a")
        watched: list[Callable[[], None] | None] = []
        waiting = asyncio.ensure_future(party.turns.wait(TurnKey("a"), watch_loss=watched.append))
        await iterations(2)
        assert watched[0] is not None
        watched[0]()
        with pytest.raises(NotWantedError):
            await waiting
        assert watched[1:] == [None]
        assert not party.turns.waiting
        party.turns.finish("a")
        await iterations()
        assert party.turns.start("a")


async def test_wait_has_a_time_limit() -> None:
    async with a_party(TurnLimits(of_key=1, wait_s=0.0)) as party:
        assert party.turns.start("a")
        with pytest.raises(WaitedTooLongError):
            await party.turns.wait(TurnKey("a"))
        assert not party.turns.waiting
        unlimited = asyncio.ensure_future(party.turns.wait(TurnKey("a"), is_limited=False))
        await iterations(5)
        party.turns.finish("a")
        await unlimited


async def test_queue_of_a_key_is_bounded_and_those_of_others_are_not_affected() -> None:
    async with a_party(TurnLimits(of_key=1, waiting=3, wait_s=FOREVER_S, full_s=0.0)) as party:
        assert party.turns.start("a")
        party.add("a", 3)
        await iterations(2)
        with pytest.raises(QueueFullError):
            await party.turns.wait(TurnKey("a"))
        assert party.turns.waiting == 3
        party.add("b")
        assert await party.settle() == ["b"]


async def test_work_runs_in_a_turn_that_ends_even_if_it_fails() -> None:
    async with a_party(TurnLimits(of_key=1)) as party:

        async def fail() -> None:
            assert not party.turns.start("a")
            raise LookupError

        for _ in range(3):
            with pytest.raises(LookupError):
                await party.turns.run(TurnKey("a"), fail)
        await iterations()
        assert party.turns.start("a")


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 4), st.booleans()), max_size=60))
@effort.examples(60)
def test_bounds_hold_and_all_work_is_done(steps: list[tuple[str, int, bool]]) -> None:
    limits = TurnLimits(of_key=2, at_once=3, wait_s=FOREVER_S, hold_s=0.0)
    turns, in_progress, done = TurnsOf(limits), Counter[str](), Counter[str]()

    async def work(key: str, length: int) -> None:
        if not turns.start(key):
            await turns.wait(TurnKey(key))
        in_progress[key] += 1
        assert in_progress[key] <= limits.of_key
        assert in_progress.total() <= limits.at_once
        try:
            await iterations(length)
        finally:
            in_progress[key] -= 1
            turns.finish(key)
        done[key] += 1

    async def main() -> None:
        tasks, kept = [], Counter[str]()
        for key, length, is_cancelled in steps:
            tasks.append(asyncio.ensure_future(work(key, length)))
            await iterations(length)
            if is_cancelled and not tasks[-1].done():
                tasks[-1].cancel()
            else:
                kept[key] += 1
        async with asyncio.timeout(60):
            for task in tasks:
                with contextlib.suppress(asyncio.CancelledError):
                    await task
        assert done == kept
        assert not turns.waiting
        assert not in_progress.total()
        await iterations()
        assert turns.start("a")

    asyncio.run(main())


async def test_more_changes_are_in_progress_because_they_share_a_commit() -> None:
    async with a_party() as party:
        begun = 0
        while party.turns.begin(changes_of("a")):
            begun += 1
            await iterations()
        assert begun == changes_of("a").parallel * PATIENT.of_key
