"""Apply entries in turns, so that a match with many entries slows down neither other matches nor the API.

All folds of a process share one event loop. They may use it for a few milliseconds; then it belongs to others for as
long, or for a quarter of that while matches are resumed. If others use it for longer at a time, folds may too: a flood
of requests must not stop them. Which entry is being applied is recorded outside of the process, for `suspects`.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable
from heapq import heappop, heappush
from itertools import count
from typing import Final, Protocol, TypeVar

from matchpod.cs2.match_reader import ReadResult
from matchpod.ports import DatabaseError
from matchpod.service.match_log.entries import SENT_BY_SERVER
from matchpod.service.match_log.fold import Fold
from matchpod.storage.raw_log import RawEntry

TURN_S: Final = 0.004
"""Length of a turn of all folds: the loop answers others after this time. It is longer if one entry takes longer."""

MAX_TURN_S: Final = 0.05
"""Longest turn, if others use the loop for this long at a time."""

SLOW_S: Final = 2.0
"""CPU time for one entry that counts as not finished: the largest one takes less than a tenth of a second, and with
PostgreSQL, a process that is blocked for 3.5 s counts as dead and loses its matches."""

RESUMING_SHARE: Final = 4
"""While matches are resumed, folds use the loop for this many times as long as others: until a match is read again,
nothing acts upon its log."""

_log = logging.getLogger(__name__)

_Item = TypeVar("_Item")


class EntryFailedError(Exception):
    """Applying an entry raised an error: a bug. The fold may be half changed and must not be used any longer."""

    def __init__(self, entry: RawEntry, error: Exception) -> None:
        super().__init__(f"entry {entry.seq} of {entry.server_id} ({entry.kind}) could not be applied")
        self.entry = entry
        self.error = error

    @property
    def costs_entry(self) -> bool:
        """True if the match can go on without the entry; one that the service wrote would be written again."""
        return self.entry.kind in SENT_BY_SERVER


class BegunEntry(Protocol):
    """Records which entry is being applied, such that the record outlives this process."""

    def mark(self, server_id: str, seq: int) -> None:
        """Record that an entry is being applied."""

    def clear(self) -> None:
        """Record that it was applied."""


async def _ignore(_server_id: str, _seq: int) -> None:
    pass


class FoldTurns:
    """The turns of all folds of a process, of redacting large posts, and of parsing what consoles answer.

    Without `pauses` if the process does nothing else.
    """

    def __init__(
        self,
        begun: BegunEntry | None = None,
        *,
        pauses: bool = True,
        slow_s: float = SLOW_S,
    ) -> None:
        self._begun = begun
        self.is_resuming = False
        """True while matches are resumed."""
        self.on_slow: Callable[[str, int], Awaitable[None]] = _ignore
        """Called with the server and number of an entry that took seconds."""
        self._pauses = pauses
        self._slow_s = slow_s
        self._slow: list[tuple[str, int]] = []
        self._turn_s = TURN_S
        self._left_s = TURN_S
        """What is left of the current turn; time that others use is added to it."""
        self._stopped_s = time.monotonic()
        """When a fold last used the loop."""
        self._tickets = count()
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []
        """A heap of folds that wait for a turn, by ticket: those that have waited longest come first."""
        self._timer: asyncio.TimerHandle | None = None
        """Begins the next turn."""
        self._is_turn_over = False

    async def run(self, items: Iterable[_Item], step: Callable[[_Item], bool]) -> None:
        """Call `step`, such as applying an entry, for each item until it returns False."""
        rest = iter(items)
        item = next(rest, None)
        ticket = next(self._tickets)
        try:
            while item is not None:
                if not self.has_time():
                    await self._wait(ticket)
                    continue
                while item is not None and self._is_on():
                    item = next(rest, None) if self._timed(step, item) else None
                ticket = next(self._tickets)
        finally:
            self._pass_on()
        if self._slow:
            await self._report_slow()

    def advance(self, take: Callable[[], _Item | None], step: Callable[[_Item], bool]) -> bool:
        """Call `step` for each item that `take` returns, while the turn lasts; False if it is over before the items."""
        while self.has_time():
            item = take()
            if item is None or not self._timed(step, item):
                return True
        return False

    async def next_turn(self) -> None:
        """Wait until a turn begins."""
        if self._slow:
            await self._report_slow()
        ticket = next(self._tickets)
        while not self.has_time():
            await self._wait(ticket)

    def _timed(self, step: Callable[[_Item], bool], item: _Item) -> bool:
        began_s = time.monotonic()
        goes_on = step(item)
        self._stopped_s = time.monotonic()
        self._left_s -= self._stopped_s - began_s
        return goes_on

    @property
    def _share(self) -> int:
        return RESUMING_SHARE if self.is_resuming else 1

    def _is_on(self) -> bool:
        return self._left_s > 0 or not self._pauses

    async def call(self, work: Callable[[], _Item]) -> _Item:
        """Call a function in a turn, and return its result."""
        results: list[_Item] = []

        def step(work: Callable[[], _Item]) -> bool:
            results.append(work())
            return True

        await self.run((work,), step)
        return results[0]

    def has_time(self) -> bool:
        """True if a fold may use the loop now."""
        now_s = time.monotonic()
        self._left_s = min(self._turn_s, self._left_s + (now_s - self._stopped_s) * self._share)
        self._stopped_s = now_s
        return self._is_on()

    async def _wait(self, ticket: int) -> None:
        if self._timer is None or not self._is_turn_over:
            self._is_turn_over = True
            self._plan((self._turn_s - self._left_s) / self._share)
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heappush(self._waiting, (ticket, future))
        await future

    def _plan(self, pause_s: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(pause_s, self._begin_turn, time.monotonic() + pause_s)

    def _begin_turn(self, planned_s: float) -> None:
        """Begin a turn. It is as long as the others kept the loop busy, within limits."""
        self._timer, self._is_turn_over = None, False
        self._stopped_s = time.monotonic()
        self._turn_s = self._left_s = min(max(self._stopped_s - planned_s, TURN_S), MAX_TURN_S)
        self._wake_next()
        if self._waiting:  # if the fold that was woken ends without passing the turn on, the next one begins later
            self._plan(self._turn_s + self._turn_s / self._share)

    def _pass_on(self) -> None:
        """Wake the next fold if the turn lasts: waking all, most for nothing, would cost more than their entries."""
        if self._waiting and self.has_time():
            self._wake_next()

    def _wake_next(self) -> None:
        """Wake the fold that has waited longest."""
        while self._waiting:
            _, future = heappop(self._waiting)
            if not future.done():
                future.set_result(None)
                return

    def apply(self, fold: Fold, entry: RawEntry) -> ReadResult:
        """Apply an entry to a match; EntryFailedError if that raises an error."""
        began_s = time.thread_time()
        if self._begun is not None:
            self._begun.mark(entry.server_id, entry.seq)
        try:
            return fold.apply(entry)
        except MemoryError:
            raise  # not the fault of the entry
        except Exception as exc:
            raise EntryFailedError(entry, exc) from exc
        finally:
            if self._begun is not None:
                self._begun.clear()
            if time.thread_time() - began_s >= self._slow_s:
                self._slow.append((entry.server_id, entry.seq))

    async def _report_slow(self) -> None:
        slow, self._slow = self._slow, []
        for server_id, seq in slow:
            try:
                await self.on_slow(server_id, seq)
            except DatabaseError as exc:  # it is counted the next time
                _log.warning("slow entry not counted", extra={"server_id": server_id, "seq": seq, "error": str(exc)})
