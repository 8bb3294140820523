"""Watch the event loop from a thread: log what stalls it, and end the process if a stall lasts too long.

All matches share the event loop, so code that never returns stops all of them, and another process must take them over.
A thread pings the loop several times a second. It counts only the time in which the thread itself ran, so a stopped
process, a suspended machine or a debugger does not count as a stall. Code that never releases the GIL, such as a
regular expression, stops this thread too. In this case, a signal ends the process after the same CPU time. The thread
postpones that signal with each ping, so no error may end the thread while the loop runs.
"""

from __future__ import annotations

import asyncio
import faulthandler
import logging
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from enum import Enum, auto
from queue import SimpleQueue
from typing import Final

TICK_S: Final = 0.25
"""Interval in seconds at which the thread checks the loop."""

MAX_STEP_S: Final = 2 * TICK_S
"""Maximum time in seconds to count between two checks. If more time passed, the watching thread itself did not run."""

STALL_S: Final = 1.0
"""Time in seconds without an answer after which the loop counts as stalled. The longest legitimate work takes a tenth
of that."""

LOG_EVERY_S: Final = 60.0
"""Minimum interval in seconds between two logged stacks."""

LAST_WORDS_S: Final = 2.0
"""Timeout in seconds for writing a log record, because the stall may be in the log itself."""

EXIT_CODE: Final = 70
"""Exit code of a process that has ended itself: EX_SOFTWARE, an internal error."""

STDERR: Final = 2

_log = logging.getLogger(__name__)


class LoopVerdict(Enum):
    """What the thread must do after a check of the loop."""

    NOTHING = auto()
    LOG = auto()
    EXIT = auto()


class StallClock:
    """Adds up, from check to check, how long the loop has not answered."""

    def __init__(self, exit_s: float) -> None:
        self.stalled_s = 0.0
        self._exit_s = exit_s
        self._looked_s: float | None = None
        self._logged_s: float | None = None
        self._is_logged = False

    def look(self, now_s: float, *, has_answered: bool) -> LoopVerdict:
        """Return what to do, depending on whether the loop has answered the last ping. Never EXIT if `exit_s` is 0."""
        step_s = 0.0 if self._looked_s is None else min(now_s - self._looked_s, MAX_STEP_S)
        self._looked_s = now_s
        if has_answered:
            self.stalled_s, self._is_logged = 0.0, False
            return LoopVerdict.NOTHING
        self.stalled_s += step_s
        if 0 < self._exit_s <= self.stalled_s:
            return LoopVerdict.EXIT
        is_recent = self._logged_s is not None and now_s - self._logged_s < LOG_EVERY_S
        if self.stalled_s < STALL_S or self._is_logged or is_recent:
            return LoopVerdict.NOTHING
        self._logged_s, self._is_logged = now_s, True
        return LoopVerdict.LOG


@contextmanager
def watched_loop(
    *, exit_s: float, on_stall: Callable[[float], None], on_lag: Callable[[float], None] = lambda _: None
) -> Iterator[None]:
    """Watch the running loop. When it continues after a stall, call `on_stall` with the duration in seconds.

    For each ping, also call `on_lag` with the seconds that the ping waited in the loop's queue. Both are called in the
    loop.
    """
    watch = _LoopWatch(asyncio.get_running_loop(), exit_s=exit_s, on_stall=on_stall, on_lag=on_lag)
    watch.start()
    try:
        yield
    finally:
        watch.stop()


class _LoopWatch:
    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        *,
        exit_s: float,
        on_stall: Callable[[float], None],
        on_lag: Callable[[float], None],
    ) -> None:
        self._loop = loop
        self._exit_s = exit_s
        self._on_stall = on_stall
        self._on_lag = on_lag
        self._clock = StallClock(exit_s)
        self._loop_thread = threading.get_ident()
        self._has_answered = True
        self._has_failed = False
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="loop watch", daemon=True)
        # A separate thread writes to the log, because the stall may hold the log's lock. It is created in advance.
        self._records: SimpleQueue[tuple[logging.LogRecord, threading.Event] | None] = SimpleQueue()
        self._writer = threading.Thread(target=self._write_records, name="loop watch log", daemon=True)

    def start(self) -> None:
        if self._exit_s:
            # This handler works without the GIL. It prints the stacks of all threads; then the signal ends the process.
            faulthandler.register(signal.SIGPROF, file=STDERR, all_threads=True, chain=True)
        self._writer.start()
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()
        self._records.put(None)
        if self._exit_s:
            faulthandler.unregister(signal.SIGPROF)

    def _run(self) -> None:
        try:
            while True:
                try:
                    if self._stopped.wait(TICK_S) or self._loop.is_closed():
                        return
                    self._look()
                except Exception:  # noqa: BLE001 - without this thread, the signal would end a healthy process
                    self._report_failure()
                    time.sleep(TICK_S)
        finally:
            if self._exit_s:
                signal.setitimer(signal.ITIMER_PROF, 0)

    def _look(self) -> None:
        if self._exit_s:
            signal.setitimer(signal.ITIMER_PROF, self._exit_s)
        has_answered, stalled_s = self._has_answered, self._clock.stalled_s
        verdict = self._clock.look(time.monotonic(), has_answered=has_answered)
        if has_answered:
            self._ask(stalled_s if stalled_s >= STALL_S else 0.0)
        if verdict is LoopVerdict.LOG:
            self._log_stack("event loop stalled", logging.WARNING)
        elif verdict is LoopVerdict.EXIT:
            try:
                self._log_stack("process ends itself: event loop stalled for too long", logging.CRITICAL)
            finally:
                os._exit(EXIT_CODE)

    def _ask(self, stalled_s: float) -> None:
        """Send a ping to the loop. With it, report the stall that has just ended, if `stalled_s` is not 0."""
        self._has_answered = False
        try:
            self._loop.call_soon_threadsafe(self._answer, stalled_s, time.monotonic())
        except BaseException:
            self._has_answered = True  # no ping is pending
            raise

    def _answer(self, stalled_s: float, asked_s: float) -> None:
        self._has_answered = True
        self._on_lag(time.monotonic() - asked_s)
        if stalled_s:
            self._on_stall(stalled_s)

    def _report_failure(self) -> None:
        """Log the exception of this thread, unless an exception was logged before or the loop is closed."""
        if not self._has_failed and not self._loop.is_closed():
            self._has_failed = True
            with suppress(Exception):
                message, level = "loop watch failed", logging.ERROR
                self._write(_log.makeRecord(_log.name, level, __file__, 0, message, (), sys.exc_info()))

    def _log_stack(self, message: str, level: int) -> None:
        """Log the current stack of the thread in which the loop runs."""
        frame = sys._current_frames().get(self._loop_thread)
        stack = "" if frame is None else "".join(traceback.format_stack(frame))
        about = {"stalled_s": round(self._clock.stalled_s, 1)}
        self._write(_log.makeRecord(_log.name, level, __file__, 0, message, (), None, extra=about, sinfo=stack))

    def _write(self, record: logging.LogRecord) -> None:
        """Pass a record to the writer thread, and wait until it is written, at most LAST_WORDS_S."""
        is_written = threading.Event()
        self._records.put((record, is_written))
        is_written.wait(LAST_WORDS_S)

    def _write_records(self) -> None:
        while (item := self._records.get()) is not None:
            record, is_written = item
            with suppress(Exception):  # an error in a log handler must not stop this thread
                _log.handle(record)
            is_written.set()
