"""Try the entries of a match on a copy before it is driven again, and set aside those that cannot be applied.

This happens after an error or a death while its entries were applied: a bug in the fold costs an entry, not the match.
An error is certain to come again, because applying is pure: the entry is tried MAX_BEGUN times in all. A death ends the
process, so before each entry is tried, that is stored where the next process finds it.
"""

from __future__ import annotations

import logging
from itertools import takewhile

from matchpod.ports import Database
from matchpod.service.match_log.entries import EntryKind
from matchpod.service.match_log.fold import Fold
from matchpod.service.match_log.replay import as_lost, load_snapshot, page_after
from matchpod.service.match_log.turns import MAX_BEGUN, EntryFailedError, FoldTurns
from matchpod.storage import unfinished
from matchpod.storage.raw_log import RawEntry
from matchpod.storage.servers import ServerRow
from matchpod.storage.unfinished import RESUMING

_log = logging.getLogger(__name__)


async def rehearse(db: Database, row: ServerRow, speed: float, *, turns: FoldTurns, from_start: bool = False) -> None:
    """Set aside the entries after the snapshot, or `from_start`, that cannot be applied; nothing if none has failed."""
    begun = await unfinished.begun_of(db, row.id)
    if not begun:
        return
    found, seq = await load_snapshot(db, row)
    if found is None or from_start:
        found, seq = Fold.begin(row, speed), row.log_from_seq
    begun = {one for one in begun if one > seq or one == RESUMING}
    if not begun:
        return
    _log.warning("entries are tried before the match goes on", extra={"server_id": row.id, "begun": sorted(begun)})
    await _Rehearsal(db, found, seq, turns=turns, counts_each=RESUMING in begun).run(row.id)
    if RESUMING in begun:
        await unfinished.forget(db, row.id, RESUMING)


class _Rehearsal:
    def __init__(self, db: Database, fold: Fold, seq: int, *, turns: FoldTurns, counts_each: bool) -> None:
        self._db = db
        self._turns = turns
        self._fold = fold
        self._seq = seq
        """The number of the last applied entry."""
        self._counts_each = counts_each
        """A process died, but it is not known during which entry."""
        # What is counted in the database is not recorded in a file too: a death would count twice.
        self._apply_entry = FoldTurns(db).apply if counts_each else turns.apply
        self._saved = b""
        self._since: list[RawEntry] = []
        """What was applied since the fold was saved."""
        self._failed: RawEntry | None = None

    async def run(self, server_id: str) -> None:
        while page := await page_after(self._db, server_id, self._seq):
            counted = list(takewhile(lambda entry: entry.kind != EntryKind.ENDED, page))
            self._save()
            if self._counts_each:
                for entry in counted:
                    await self._try(entry)
            else:
                await self._apply_page(counted)
            if len(counted) < len(page):
                return

    async def _apply_page(self, page: list[RawEntry]) -> None:
        while rest := [entry for entry in page if entry.seq > self._seq]:
            await self._turns.run(rest, self._step)
            if self._failed is not None:
                self._restore()
                await self._try(self._failed)

    async def _try(self, entry: RawEntry) -> None:
        """Apply an entry, or set it aside if it fails again or has killed too many processes."""
        self._save()
        while (begun := await unfinished.count(self._db, entry.server_id, entry.seq)) < MAX_BEGUN:
            await self._turns.run([entry], self._step)
            if self._failed is None:
                await unfinished.finish(self._db, entry.server_id, entry.seq)
                return
            self._restore()
        await self._turns.set_aside(entry.server_id, entry.seq, begun)
        self._apply(as_lost(entry))

    def _step(self, entry: RawEntry) -> bool:
        try:
            self._apply(entry)
        except EntryFailedError as exc:
            about = {"server_id": entry.server_id, "seq": entry.seq}
            _log.warning("entry could not be applied", extra=about, exc_info=exc.error)
            self._failed = entry
            return False
        self._failed = None
        return True

    def _apply(self, entry: RawEntry) -> None:
        self._apply_entry(self._fold, entry)
        self._fold.drain_timeline()
        self._since.append(entry)
        self._seq = entry.seq

    def _save(self) -> None:
        self._saved = self._fold.dump()
        self._since.clear()

    def _restore(self) -> None:
        """Return to the state before the entry that failed."""
        self._fold = Fold.load(self._saved)
        for entry in self._since:
            self._fold.apply(entry)
