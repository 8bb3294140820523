"""Apply entries in turns (time slices), so that no match with many entries slows down other matches or the API.

All folds of a process share one event loop. A turn lasts a few milliseconds. Then other tasks may use the loop for the
same time, or for a quarter of this time while matches are resumed. If other tasks block the loop for longer, turns
become longer, too, so that the folds make progress during a flood of requests. The entry that is being applied is
recorded outside of the process, because `suspects.py` needs to know it if the process dies.
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
"""Length of a turn in seconds. All folds share the turn; after it, the loop runs other tasks. A turn may be longer,
because an entry is never interrupted."""

MAX_TURN_S: Final = 0.05
"""Maximum length of a turn in seconds. Turns reach it if other tasks block the loop for this long."""

SLOW_S: Final = 2.0
"""CPU time in seconds from which applying an entry counts as if it had killed the process. The largest normal entries
take less than 0.1 s. With PostgreSQL, a process that is blocked for 3.5 s counts as dead and loses its matches."""

RESUMING_SHARE: Final = 4
"""Ratio of the time for folds to the time for other tasks while matches are resumed. It is high because nothing reacts
to the log of a match until the match is resumed."""

_log = logging.getLogger(__name__)

_Item = TypeVar("_Item")


class EntryFailedError(Exception):
    """Applying an entry raised an error, due to a bug. The fold may be half changed, so it must no longer be used."""

    def __init__(self, entry: RawEntry, error: Exception) -> None:
        super().__init__(f"entry {entry.seq} of {entry.server_id} ({entry.kind}) could not be applied")
        self.entry = entry
        self.error = error

    @property
    def costs_entry(self) -> bool:
        """True if the entry can be set aside. Entries of the service cannot, because it would write them again."""
        return self.entry.kind in SENT_BY_SERVER


class BegunEntry(Protocol):
    """Records which entry is being applied, so that this is known even if the process dies."""

    def mark(self, server_id: str, seq: int) -> None:
        """Record that an entry is being applied."""

    def clear(self) -> None:
        """Record that the entry was applied."""


async def _ignore(_server_id: str, _seq: int) -> None:
    pass


class FoldTurns:
    """The turns of all folds of a process. They are also used to redact large posts and to parse console output.

    Without `pauses`, turns never end. This is for processes that do nothing but apply entries.
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
        """Called with the server id and the number of an entry that took at least `slow_s`."""
        self._pauses = pauses
        self._slow_s = slow_s
        self._slow: list[tuple[str, int]] = []
        self._turn_s = TURN_S
        self._left_s = TURN_S
        """Time in seconds that is left of the current turn. It grows while other tasks use the loop."""
        self._stopped_s = time.monotonic()
        """When a fold last stopped using the loop."""
        self._tickets = count()
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []
        """A heap of the folds that wait for a turn. The fold with the lowest ticket has waited longest."""
        self._timer: asyncio.TimerHandle | None = None
        """The timer that begins the next turn."""
        self._is_turn_over = False

    async def run(self, items: Iterable[_Item], step: Callable[[_Item], bool]) -> None:
        """Call `step` in turns for each item, until it returns False. Usually `step` applies an entry."""
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
        """Call `step` for each item that `take` returns while the turn lasts. False if items may be left."""
        while self.has_time():
            item = take()
            if item is None or not self._timed(step, item):
                return True
        return False

    async def next_turn(self) -> None:
        """Wait until a fold may use the loop."""
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
        """True if a fold may use the loop now: the turn has time left."""
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
        """Begin a turn. It lasts for as long as other tasks delayed this call, but for TURN_S to MAX_TURN_S."""
        self._timer, self._is_turn_over = None, False
        self._stopped_s = time.monotonic()
        self._turn_s = self._left_s = min(max(self._stopped_s - planned_s, TURN_S), MAX_TURN_S)
        self._wake_next()
        if self._waiting:  # a fallback, in case the woken fold does not wake the next fold
            self._plan(self._turn_s + self._turn_s / self._share)

    def _pass_on(self) -> None:
        """Wake the next fold if the turn has time left. Waking all costs more than applying their entries."""
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
        """Apply an entry to a match. Raise EntryFailedError if the entry cannot be applied."""
        began_s = time.thread_time()
        if self._begun is not None:
            self._begun.mark(entry.server_id, entry.seq)
        try:
            return fold.apply(entry)
        except MemoryError:
            raise  # not caused by the entry
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
            except DatabaseError as exc:  # not retried: the entry is counted the next time it is slow
                _log.warning("slow entry not counted", extra={"server_id": server_id, "seq": seq, "error": str(exc)})
