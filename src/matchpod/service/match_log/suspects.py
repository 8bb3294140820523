"""Find entries that cannot be applied, or that kill the process that applies them, and set them aside.

Applying is deterministic, so an entry that raises an error is set aside at once. If a process dies, a local file names
the entry that the process was applying. If that file is lost, records in a shared database name the matches that the
process was resuming. These matches are suspects. The next process applies the entries of a suspect one by one, while it
resumes no other match, and records each entry in the database before it applies the entry. A record counts as a death
only if the process that wrote it is no longer alive. After an entry was applied, its record is deleted. An entry during
which MAX_DEATHS processes died is set aside, unless the service wrote it (docs/adr/0015-a-bug-costs-an-entry.md).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext, suppress
from itertools import takewhile
from typing import Final

from matchpod.ports import Database, DatabaseError, DatabaseUnavailableError, Statement
from matchpod.service.match_log.entries import SENT_BY_SERVER, EntryKind
from matchpod.service.match_log.fold import Fold
from matchpod.service.match_log.fold_turns import SLOW_S, EntryFailedError, FoldTurns
from matchpod.service.match_log.replay import as_lost, load_snapshot, page_after
from matchpod.storage import unfinished
from matchpod.storage.raw_log import RawEntry
from matchpod.storage.servers import ServerRow
from matchpod.storage.unfinished import ALONE, RESUMING

MAX_DEATHS: Final = 3
"""Number of processes that must die while they apply an entry before it is set aside. Applying takes a millisecond, so
it is unlikely that three processes are killed by chance while they apply the same entry."""

MAX_MATCH_DEATHS: Final = 10
"""Number of processes that must die while they resume only this match, before the match is ended."""

MAX_RESUMING: Final = 4
"""Maximum number of matches that a process resumes concurrently if the database is shared. If the process dies, they
are suspects."""

RECORD_TRIES: Final = 5
"""Maximum number of attempts to write a record while the database is unavailable."""

_log = logging.getLogger(__name__)


class DeadlyMatchError(Exception):
    """A match has killed too many processes, and setting entries aside did not help or is not possible."""


class Suspects:
    """Resumes matches in a way that shows which match and entry kill the process."""

    def __init__(
        self,
        db: Database,
        turns: FoldTurns,
        *,
        owner: str = "",
        slow_s: float = SLOW_S,
        on_set_aside: Callable[[], None] = lambda: None,
    ) -> None:
        """`owner` is the id of this process in its leases and heartbeats."""
        self._db = db
        self._turns = turns
        self._unmarked = FoldTurns()
        """Applies entries that are already recorded in the database. They are not recorded in the file, too, because a
        death would count twice."""
        self._owner = owner
        self._slow_s = slow_s
        self._on_set_aside = on_set_aside
        self._places = asyncio.Semaphore(MAX_RESUMING)
        self._alone = asyncio.Lock()
        self._beside_others = 0
        self._has_none = asyncio.Event()
        self._has_none.set()
        self.resuming_count = 0
        """The number of matches that are being resumed or waiting to be resumed."""
        turns.on_slow = self.count

    async def count(self, server_id: str, seq: int) -> None:
        """Record that an entry took too long, which counts like a death of the process."""
        begun = await unfinished.count(self._db, server_id, seq)
        _log.warning("entry took too long", extra={"server_id": server_id, "seq": seq, "begun": begun})

    async def record_death(self, server_id: str, seq: int, process: str) -> None:
        """Record that a process died while applying an entry. Repeating a call with equal arguments has no effect."""
        await unfinished.record_death(self._db, server_id, seq, process)
        _log.warning("process died while applying an entry", extra={"server_id": server_id, "seq": seq})

    async def set_aside(self, entry: RawEntry) -> None:
        if await unfinished.set_aside(self._db, entry.server_id, entry.seq):
            self._on_set_aside()
            about = {"server_id": entry.server_id, "seq": entry.seq, "kind": entry.kind}
            _log.error("entry set aside: it cannot be applied", extra=about)

    @asynccontextmanager
    async def resuming(self, row: ServerRow, speed: float, *, from_start: bool = False) -> AsyncIterator[None]:
        """A context in which to resume a match. First, entries of a suspect match that fail on a copy are set aside.

        `from_start`: also try the entries before the snapshot. Raise DeadlyMatchError if the match has killed too many
        processes.
        """
        self._turns.is_resuming, self.resuming_count = True, self.resuming_count + 1
        try:
            deaths, has_failed = await unfinished.count_deaths(self._db, row.id, self._owner)
            # Without a shared database, the local file is enough, because it names the entry. A record would name only
            # the match.
            is_recorded = self._db.is_shared or bool(deaths)
            async with (
                self._resuming_alone() if deaths else self._resuming_beside_others(),
                self._recorded(row.id) if is_recorded else nullcontext(),
            ):
                if deaths or has_failed:
                    await self._try_entries(row, speed, deaths, from_start=from_start)
                if is_recorded:
                    await self._record(row.id, ALONE if deaths else RESUMING)
                yield
        finally:
            self.resuming_count -= 1
            self._turns.is_resuming = self.resuming_count > 0

    @asynccontextmanager
    async def _resuming_alone(self) -> AsyncIterator[None]:
        async with self._alone:
            await self._has_none.wait()
            yield

    @asynccontextmanager
    async def _resuming_beside_others(self) -> AsyncIterator[None]:
        if not self._db.is_shared:
            async with self._alone:
                pass
            yield
            return
        async with self._places:
            async with self._alone:
                pass
            self._beside_others += 1
            self._has_none.clear()
            try:
                yield
            finally:
                self._beside_others -= 1
                if not self._beside_others:
                    self._has_none.set()

    @asynccontextmanager
    async def _recorded(self, server_id: str) -> AsyncIterator[None]:
        """Delete all records of a match that was resumed in this context.

        After an error, delete only the records of this process, because no error is a death: this process is stopping,
        has lost the match, or could not use the database.
        """
        try:
            yield
        except BaseException:
            await asyncio.shield(self._write(unfinished.release(server_id, self._owner)))
            raise
        await asyncio.shield(self._write([unfinished.forget(server_id)]))

    async def _record(self, server_id: str, number: int) -> None:
        """Record which entry is applied next, or that the match is resumed. Retry while the database is unavailable."""
        for tries_left in reversed(range(RECORD_TRIES)):
            try:
                await unfinished.begin(self._db, server_id, number, self._owner)
            except DatabaseUnavailableError:
                if not tries_left:
                    raise
            else:
                return

    async def _write(self, statements: Sequence[Statement]) -> None:
        # Best effort: if records are left behind, the next process treats the match as a suspect although nothing is
        # wrong.
        with suppress(DatabaseError):
            await self._db.write(statements)

    # --- trials -----------------------------------------------------------------------------------------------------

    async def _try_entries(self, row: ServerRow, speed: float, deaths: Mapping[int, int], *, from_start: bool) -> None:
        """Apply all entries to a copy of the match. After an entry was set aside, start over."""
        _log.warning("trying entries before resuming match", extra={"server_id": row.id, "deaths": dict(deaths)})
        if deaths.get(ALONE, 0) >= MAX_MATCH_DEATHS:
            raise DeadlyMatchError(row.id)
        while True:
            try:
                await self._try_all(row, speed, deaths, from_start=from_start)
            except EntryFailedError as exc:
                if not exc.costs_entry:
                    raise
                _log.warning("entry could not be applied", extra={"server_id": row.id}, exc_info=exc.error)
                await self.set_aside(exc.entry)
            else:
                return

    async def _try_all(self, row: ServerRow, speed: float, deaths: Mapping[int, int], *, from_start: bool) -> None:
        fold, seq = await load_snapshot(self._db, row)
        if fold is None or from_start:
            fold, seq = Fold.begin(row, speed), row.log_from_seq
        while page := await page_after(self._db, row.id, seq):
            counted = list(takewhile(lambda entry: entry.kind != EntryKind.ENDED, page))
            if deaths:
                for entry in counted:
                    await self._try(fold, entry, deaths.get(entry.seq, 0))
            else:
                await self._turns.run(counted, lambda entry: _apply(self._turns, fold, entry))
            if len(counted) < len(page):
                return
            seq = page[-1].seq

    async def _try(self, fold: Fold, entry: RawEntry, deaths: int) -> None:
        """Apply an entry of a suspect. Raise EntryFailedError if it cannot be applied or takes too long."""
        if entry.kind == EntryKind.SET_ASIDE:
            _apply(self._unmarked, fold, entry)
            return
        is_sent = entry.kind in SENT_BY_SERVER
        if not is_sent and deaths >= MAX_MATCH_DEATHS:
            raise DeadlyMatchError(entry.server_id)
        if is_sent and deaths >= MAX_DEATHS:
            await self.set_aside(entry)
            _apply(self._unmarked, fold, as_lost(entry))
            return
        await self._record(entry.server_id, entry.seq)
        took_s = await self._turns.call(lambda: _timed_apply(self._unmarked, fold, entry))
        if took_s >= self._slow_s:
            raise EntryFailedError(entry, TimeoutError(f"it took {took_s:.1f} s of CPU time"))


def _timed_apply(turns: FoldTurns, fold: Fold, entry: RawEntry) -> float:
    """Apply an entry, and return the CPU time in seconds that this took."""
    began_s = time.thread_time()
    _apply(turns, fold, entry)
    return time.thread_time() - began_s


def _apply(turns: FoldTurns, fold: Fold, entry: RawEntry) -> bool:
    turns.apply(fold, entry)
    fold.drain_timeline()
    return True
