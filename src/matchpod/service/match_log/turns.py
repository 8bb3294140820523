"""Apply entries in turns, so that a match with many entries slows down neither other matches nor the API.

All folds of a process share one event loop. A fold gets a turn of a few milliseconds; then the loop belongs to others
for as long. Which entry is being applied is recorded outside of the process: an entry during which the process died, or
that took seconds, is counted, and set aside when that happened too often.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable
from typing import Final, Protocol

from matchpod.cs2.match_reader import ReadResult
from matchpod.ports import Database, DatabaseError
from matchpod.service.match_log.fold import Fold
from matchpod.storage import unfinished
from matchpod.storage.raw_log import RawEntry

TURN_S: Final = 0.004
"""Length of a turn: the loop answers others after this time. A turn is longer if one entry takes longer."""

SLOW_S: Final = 5.0
"""CPU time for one entry that counts as not finished: the largest one takes less than a tenth of a second, and a
process that is blocked for long loses its leases."""

MAX_BEGUN: Final = 3
"""How often an entry may be begun without being finished. A process can be killed by chance during the same entry, but
hardly three times: an entry takes a millisecond."""

_log = logging.getLogger(__name__)


class BegunEntry(Protocol):
    """Records which entry is being applied, such that the record outlives this process."""

    def mark(self, server_id: str, seq: int) -> None:
        """Record that an entry is being applied."""

    def clear(self) -> None:
        """Record that it was applied."""


class FoldTurns:
    """The turns of all folds of a process; without `pauses` if the process does nothing else."""

    def __init__(self, db: Database, begun: BegunEntry | None = None, *, pauses: bool = True) -> None:
        self._db = db
        self._begun = begun
        self._pauses = pauses
        self._lock = asyncio.Lock()
        self._slow: list[tuple[str, int]] = []

    async def run(self, entries: Iterable[RawEntry], step: Callable[[RawEntry], bool]) -> None:
        """Call `step`, which applies an entry, for each entry until it returns False."""
        rest = iter(entries)
        entry = next(rest, None)
        while entry is not None:
            async with self._lock:
                began_s, spent_s = time.monotonic(), 0.0
                while entry is not None and spent_s < TURN_S:
                    entry = next(rest, None) if step(entry) else None
                    spent_s = time.monotonic() - began_s
                if self._pauses and spent_s >= TURN_S:
                    await asyncio.sleep(spent_s)
            if self._slow:
                await self._count_slow()  # not in our turn: the database may take long

    def apply(self, fold: Fold, entry: RawEntry) -> ReadResult:
        """Apply an entry to a match."""
        began_s = time.thread_time()
        if self._begun is not None:
            self._begun.mark(entry.server_id, entry.seq)
        try:
            return fold.apply(entry)
        finally:
            if self._begun is not None:
                self._begun.clear()
            if time.thread_time() - began_s >= SLOW_S:
                self._slow.append((entry.server_id, entry.seq))

    async def _count_slow(self) -> None:
        slow, self._slow = self._slow, []
        for server_id, seq in slow:
            try:
                await count_unfinished(self._db, server_id, seq)
            except DatabaseError as exc:  # it is counted the next time
                _log.warning("slow entry not counted", extra={"server_id": server_id, "seq": seq, "error": str(exc)})


async def count_unfinished(db: Database, server_id: str, seq: int) -> None:
    """Count that an entry was begun and not finished; set it aside if that happened too often."""
    begun = await unfinished.count(db, server_id, seq)
    about = {"server_id": server_id, "seq": seq, "begun": begun}
    if begun < MAX_BEGUN:
        _log.warning("entry was begun and not finished", extra=about)
        return
    if await unfinished.set_aside(db, server_id, seq):
        _log.error("entry set aside: it was begun too often and never finished", extra=about)
