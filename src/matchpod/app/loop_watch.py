"""Watch the event loop from a thread: log what stalls it, and end the process if it does not go on.

All matches of a process share its event loop, so code that never returns stops them all: another process, or this one
after a restart, must take them over. A thread asks the loop for a sign of life several times a second. It counts only
the time in which it ran itself: a process that was stopped, a suspended machine or a debugger is not a stall. Code that
never releases the lock of the interpreter (a regular expression) stops this thread too; then a signal ends the process
after the same time, in CPU time. No error ends the thread while the loop lives, as it must postpone that signal.
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
"""How often the thread looks."""

MAX_STEP_S: Final = 2 * TICK_S
"""The most that counts between two looks: if more time passed, the thread did not run either."""

STALL_S: Final = 1.0
"""A loop that does not answer for this long is stalled. The longest legitimate work takes a tenth of it."""

LOG_EVERY_S: Final = 60.0
"""The stack is logged at most this often."""

LAST_WORDS_S: Final = 2.0
"""How long the last log record may take: what stalls the loop may be the log itself."""

EXIT_CODE: Final = 70
"""Exit code of a process that ended itself: EX_SOFTWARE, an internal error."""

STDERR: Final = 2

_log = logging.getLogger(__name__)


class LoopVerdict(Enum):
    """What to do after a look at the loop."""

    NOTHING = auto()
    LOG = auto()
    EXIT = auto()


class StallClock:
    """How long the loop has not answered, from the times at which the thread looked at it."""

    def __init__(self, exit_s: float) -> None:
        self.stalled_s = 0.0
        self._exit_s = exit_s
        self._looked_s: float | None = None
        self._logged_s: float | None = None
        self._is_logged = False

    def look(self, now_s: float, *, has_answered: bool) -> LoopVerdict:
        """Return what to do, given whether the loop has answered the last question; never ends with `exit_s` 0."""
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
    """Watch the running loop; `on_stall` is called in it, with the seconds, once it goes on after a stall.

    `on_lag` is called in it after each look, with the seconds that this call had to wait.
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
        # Log records are written by a thread of their own: what stalls the loop may hold the lock of the log. It exists
        # from the start: when the loop stalls, there may be no room for another thread.
        self._records: SimpleQueue[tuple[logging.LogRecord, threading.Event] | None] = SimpleQueue()
        self._writer = threading.Thread(target=self._write_records, name="loop watch log", daemon=True)

    def start(self) -> None:
        if self._exit_s:
            # Its handler needs no lock of the interpreter: it prints all stacks, then the signal ends the process.
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
        """Ask the loop for a sign of life, and report the stall that has ended."""
        self._has_answered = False
        try:
            self._loop.call_soon_threadsafe(self._answer, stalled_s, time.monotonic())
        except BaseException:
            self._has_answered = True  # there is no question to answer
            raise

    def _answer(self, stalled_s: float, asked_s: float) -> None:
        self._has_answered = True
        self._on_lag(time.monotonic() - asked_s)
        if stalled_s:
            self._on_stall(stalled_s)

    def _report_failure(self) -> None:
        """Log the current error, unless an error was logged before or the loop is closed."""
        if not self._has_failed and not self._loop.is_closed():
            self._has_failed = True
            with suppress(Exception):
                message, level = "loop watch failed", logging.ERROR
                self._write(_log.makeRecord(_log.name, level, __file__, 0, message, (), sys.exc_info()))

    def _log_stack(self, message: str, level: int) -> None:
        """Log where the loop is."""
        frame = sys._current_frames().get(self._loop_thread)
        stack = "" if frame is None else "".join(traceback.format_stack(frame))
        about = {"stalled_s": round(self._clock.stalled_s, 1)}
        self._write(_log.makeRecord(_log.name, level, __file__, 0, message, (), None, extra=about, sinfo=stack))

    def _write(self, record: logging.LogRecord) -> None:
        """Let a record be written, and wait for that briefly."""
        is_written = threading.Event()
        self._records.put((record, is_written))
        is_written.wait(LAST_WORDS_S)

    def _write_records(self) -> None:
        while (item := self._records.get()) is not None:
            record, is_written = item
            with suppress(Exception):  # a handler with a bug; the next record may be the last one
                _log.handle(record)
            is_written.set()
