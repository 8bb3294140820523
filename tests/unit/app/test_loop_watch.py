"""Stalls of the event loop are measured by a thread, which does not count time in which it did not run itself."""

from __future__ import annotations

import asyncio
import logging
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable

import pytest

from matchpod.app.loop_watch import (
    EXIT_CODE,
    LOG_EVERY_S,
    MAX_STEP_S,
    STALL_S,
    TICK_S,
    LoopVerdict,
    StallClock,
    watched_loop,
)


def look_for(clock: StallClock, seconds: float, *, since_s: float, has_answered: bool = False) -> list[LoopVerdict]:
    """Look every tick; return the verdicts that are not NOTHING."""
    ticks = range(round(seconds / TICK_S))
    found = [clock.look(since_s + (tick + 1) * TICK_S, has_answered=has_answered) for tick in ticks]
    return [one for one in found if one is not LoopVerdict.NOTHING]


def stalled_clock(exit_s: float = 60.0) -> StallClock:
    clock = StallClock(exit_s)
    assert clock.look(0.0, has_answered=True) is LoopVerdict.NOTHING
    return clock


def test_loop_that_answers_is_not_stalled() -> None:
    clock = stalled_clock()
    assert look_for(clock, 300, since_s=0, has_answered=True) == []
    assert clock.stalled_s == 0


def test_short_stall_is_not_logged() -> None:
    assert look_for(stalled_clock(), STALL_S - TICK_S, since_s=0) == []


def test_stall_is_logged_once_and_ends_the_process_after_its_time() -> None:
    clock = stalled_clock(60.0)
    assert look_for(clock, 59, since_s=0) == [LoopVerdict.LOG]
    assert look_for(clock, 1, since_s=59) == [LoopVerdict.EXIT]


def test_stack_is_logged_at_most_once_per_minute() -> None:
    clock, logged = stalled_clock(), []
    for start_s in range(0, 180, 3):
        logged += [start_s for _ in look_for(clock, 2, since_s=start_s)]
        look_for(clock, 1, since_s=start_s + 2, has_answered=True)
    assert logged == [0, round(LOG_EVERY_S), 2 * round(LOG_EVERY_S)]


def test_process_is_never_ended_with_zero() -> None:
    assert LoopVerdict.EXIT not in look_for(stalled_clock(0.0), 3600, since_s=0)


@pytest.mark.parametrize("stopped_s", [33.0, 3600.0])
def test_time_in_which_the_whole_process_was_stopped_does_not_count(stopped_s: float) -> None:
    clock = stalled_clock()
    assert clock.look(TICK_S, has_answered=False) is LoopVerdict.NOTHING
    assert clock.look(TICK_S + stopped_s, has_answered=False) is LoopVerdict.NOTHING
    assert clock.stalled_s == TICK_S + MAX_STEP_S


async def test_stall_is_logged_with_its_stack_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    stalls: list[float] = []
    with watched_loop(exit_s=0, on_stall=stalls.append):
        _block_the_loop(2.5)
        async with asyncio.timeout(60):
            while not stalls:
                await asyncio.sleep(TICK_S)
    (seconds,) = stalls
    assert STALL_S <= seconds <= 3.0
    (record,) = [one for one in caplog.records if one.name == "matchpod.app.loop_watch"]
    assert (record.message, record.levelno) == ("event loop stalled", logging.WARNING)
    assert "_block_the_loop" in (record.stack_info or "")


async def test_lag_is_how_long_a_call_waits_for_the_loop() -> None:
    lags: list[float] = []
    with watched_loop(exit_s=0, on_stall=lambda _: None, on_lag=lags.append):
        async with asyncio.timeout(60):
            while not lags:
                await asyncio.sleep(TICK_S)
            lags.clear()
            _block_the_loop(0.9)
            while not lags or max(lags) < 0.5:
                await asyncio.sleep(TICK_S)
    assert all(lag >= 0 for lag in lags)


async def test_error_in_the_watch_does_not_end_it(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop, ask = asyncio.get_running_loop(), asyncio.get_running_loop().call_soon_threadsafe
    errors = iter([MemoryError(), RuntimeError("a bug"), MemoryError()])
    lags: list[float] = []
    stalls: list[float] = []

    def ask_or_fail(*args: object) -> object:
        error = next(errors, None)
        if error is not None:
            raise error
        return ask(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(loop, "call_soon_threadsafe", ask_or_fail)
    with watched_loop(exit_s=60.0, on_stall=stalls.append, on_lag=lags.append):
        await _until(lambda: len(lags) > 2)
    assert stalls == [], "a question that was not asked is not a stall"
    failures = [record for record in caplog.records if record.message == "loop watch failed"]
    assert [(record.levelno, record.exc_info is not None) for record in failures] == [(logging.ERROR, True)]


def test_timer_is_disarmed_when_the_watch_ends_by_itself() -> None:
    async def leave_the_watch_behind() -> threading.Thread:
        watch = watched_loop(exit_s=60.0, on_stall=lambda _: None)
        watch.__enter__()
        kept.append(watch)
        await _until(lambda: signal.getitimer(signal.ITIMER_PROF)[0] > 0)
        return next(one for one in threading.enumerate() if one.name == "loop watch")

    kept: list[object] = []
    thread = asyncio.run(leave_the_watch_behind())
    thread.join(60)
    assert not thread.is_alive(), "its loop is closed"
    assert signal.getitimer(signal.ITIMER_PROF) == (0.0, 0.0)


_HANGING = """
import asyncio, logging, threading, time
from matchpod.app.loop_watch import watched_loop

def refuse(*_):
    raise RuntimeError("can't start new thread")

async def main():
    with watched_loop(exit_s=2.0, on_stall=print):
        threading.Thread.start = refuse
        {hang}

logging.basicConfig()
asyncio.run(main())
"""


@pytest.mark.parametrize(
    ("hang", "has_last_words"),
    [("time.sleep(600)", True), ("logging.root.handlers[0].acquire(); time.sleep(600)", False)],
)
def test_process_that_hangs_without_a_thread_to_spare_ends_itself(hang: str, has_last_words: bool) -> None:
    """With the lock of the log held, nothing can be written, and nothing waits for it either."""
    done = subprocess.run(
        [sys.executable, "-c", _HANGING.format(hang=hang)], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == EXIT_CODE, done.stderr
    assert ("WARNING:matchpod.app.loop_watch:event loop stalled" in done.stderr) is has_last_words
    assert ("process ends itself: event loop stalled for too long" in done.stderr) is has_last_words


async def _until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(TICK_S)


def _block_the_loop(seconds: float) -> None:
    time.sleep(seconds)
