"""Tests of the scheduling of wake-ups."""

from __future__ import annotations

import asyncio

from cs2_simulator.wire.pacer import MAX_CANCELLED, SLICE_S, Pacer
from simulator_tests.wire.loop_thread import DrivenLoop, run_driven


async def test_wakeups_run_in_order_of_their_time() -> None:
    pacer = Pacer()
    now_s = asyncio.get_running_loop().time()
    woken: list[str] = []
    done = asyncio.Event()
    pacer.wake_at(now_s + 0.05, lambda: woken.append("third"))
    pacer.wake_at(now_s, lambda: woken.append("first"))
    pacer.wake_at(now_s + 0.01, lambda: woken.append("second"))
    pacer.wake_at(now_s + 0.1, done.set)
    async with asyncio.timeout(10):
        await done.wait()
    assert woken == ["first", "second", "third"]


async def test_cancelled_wakeup_does_not_run() -> None:
    pacer = Pacer()
    now_s = asyncio.get_running_loop().time()
    woken: list[str] = []
    done = asyncio.Event()
    pacer.wake_at(now_s, lambda: woken.append("cancelled")).cancel()
    pacer.wake_at(now_s, done.set)
    async with asyncio.timeout(10):
        await done.wait()
    assert woken == []


async def test_cancelled_wakeups_do_not_accumulate() -> None:
    pacer = Pacer()
    later_s = asyncio.get_running_loop().time() + 0.05
    woken: list[str] = []
    done = asyncio.Event()
    pacer.wake_at(later_s, lambda: woken.append("kept"))
    for _ in range(10_000):
        pacer.wake_at(later_s, lambda: woken.append("cancelled")).cancel()
    assert len(pacer) <= 2 * MAX_CANCELLED
    pacer.wake_at(later_s, done.set)
    async with asyncio.timeout(10):
        await done.wait()
    assert woken == ["kept"]
    assert len(pacer) == 0


async def test_cancelling_a_past_wakeup_does_nothing() -> None:
    pacer = Pacer()
    done = asyncio.Event()
    wakeups = [pacer.wake_at(0.0, lambda: None) for _ in range(2 * MAX_CANCELLED)]
    pacer.wake_at(0.0, done.set)
    async with asyncio.timeout(10):
        await done.wait()
    for wake in wakeups:
        wake.cancel()
    assert len(pacer) == 0


def test_event_loop_runs_while_many_wakeups_are_due() -> None:
    async def work(loop: DrivenLoop) -> list[int]:
        pacer = Pacer()
        woken = 0

        def wake() -> None:
            nonlocal woken
            woken += 1
            loop.advance(SLICE_S / 2)

        for _ in range(6):
            pacer.wake_at(loop.time(), wake)
        found = [woken]
        while woken < 6:
            await asyncio.sleep(0)
            found.append(woken)
        return found

    assert sorted(set(run_driven(work))) == [0, 2, 4, 6]


async def test_failing_callback_does_not_stop_the_others() -> None:
    pacer = Pacer()
    loop = asyncio.get_running_loop()
    faults: list[object] = []
    loop.set_exception_handler(lambda _loop, context: faults.append(context["exception"]))
    done = asyncio.Event()

    def fail() -> None:
        raise ZeroDivisionError

    pacer.wake_at(loop.time(), fail)
    pacer.wake_at(loop.time(), done.set)
    async with asyncio.timeout(10):
        await done.wait()
    assert [type(fault) for fault in faults] == [ZeroDivisionError]
