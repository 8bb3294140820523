"""Build, for readers, the state of matches that other replicas drive, from the stored snapshots and logs.

Folds are cached, so polling a match costs only its new entries.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Set
from itertools import takewhile
from typing import Final

from matchpod.core.match.match import Match
from matchpod.core.views.match_progress import LiveState, MatchProgress
from matchpod.cs2.match_reader import MatchReader
from matchpod.ports import Database
from matchpod.service.match_log.entries import EntryKind
from matchpod.service.match_log.fold import Fold
from matchpod.service.match_log.fold_turns import EntryFailedError, FoldTurns
from matchpod.service.match_log.replay import PAGE_ENTRIES, as_lost, open_match, page_after
from matchpod.service.regions.regions import Regions
from matchpod.storage import raw_log
from matchpod.storage.raw_log import RawEntry
from matchpod.storage.servers import ServerRow

MAX_MATCHES: Final = 200
"""Maximum number of cached matches; each takes about half a megabyte. The least recently used match is dropped
first."""

MAX_LOST: Final = 3
"""Maximum number of entries that may fail while a match is read. After each failure, the match is read again from its
snapshot."""


class _Cached:
    def __init__(self, fold: Fold, seq: int, log_from_seq: int) -> None:
        self.fold = fold
        self.seq = seq
        """The number of the last applied entry."""
        self.received_ms: int | None = None
        """When the last applied entry was received; None if not known yet."""
        self.log_from_seq = log_from_seq
        self.state: LiveState | None = None
        self.is_broken = False
        """True if the fold must no longer be used, because an error left it half changed, or because its applied
        entries are no longer in the database."""


class RemoteMatches:
    """Reads the state of matches that other replicas drive."""

    def __init__(self, *, db: Database, regions: Regions, turns: FoldTurns) -> None:
        self._db = db
        self._turns = turns
        self._regions = regions
        self._cache: OrderedDict[str, _Cached] = OrderedDict()

    async def state(self, row: ServerRow) -> LiveState:
        cached = await self._catch_up(row)
        if cached.state is None:
            cached.state = cached.fold.state()
        return cached.state

    async def progress(self, row: ServerRow) -> MatchProgress:
        return (await self._catch_up(row)).fold.progress()

    async def match(self, row: ServerRow) -> Match:
        """Return the shared match. Use it only until the next await, because other callers advance it."""
        return (await self.reader(row)).match

    async def reader(self, row: ServerRow) -> MatchReader:
        """Return the reader of the match. As with `match`, use it only until the next await."""
        return (await self._catch_up(row)).fold.reader

    async def _catch_up(self, row: ServerRow) -> _Cached:
        """Return the match after all stored entries.

        An entry that fails counts as lost: the process that drives the match is going to set it aside. Until then, the
        match is not cached.
        """
        lost: set[int] = set()
        while True:
            try:
                cached = await self._read(row, lost)
            except EntryFailedError as exc:
                if exc.entry.seq in lost or len(lost) >= MAX_LOST:
                    raise
                lost.add(exc.entry.seq)
                continue
            if not cached.is_broken:  # otherwise another caller failed, or the log was rewound: read again
                return cached

    async def _read(self, row: ServerRow, lost: Set[int]) -> _Cached:
        cached = None if lost else self._cache.get(row.id)
        if cached is None or cached.is_broken or cached.log_from_seq != row.log_from_seq:
            cached = await self._open(row, lost)
        await self._apply_new(row.id, cached, lost)
        if not lost and not cached.is_broken:
            self._keep(row.id, cached)
        return cached

    async def _apply_new(self, server_id: str, cached: _Cached, lost: Set[int]) -> None:
        """Check that the last applied entry is still stored, and apply the entries after it."""

        def step(entry: RawEntry) -> bool:
            # Two concurrent callers may have read the same entries.
            if entry.seq == cached.seq + 1 and not cached.is_broken:
                cached.is_broken = True  # stays set if applying the entry raises an error
                self._turns.apply(cached.fold, as_lost(entry) if entry.seq in lost else entry)
                cached.fold.drain_timeline()  # the process that drives the match stores these items
                cached.seq, cached.received_ms, cached.state = entry.seq, entry.received_ms, None
                cached.is_broken = False
            return not cached.is_broken

        while not cached.is_broken:
            seq, received_ms = cached.seq, cached.received_ms
            page = await page_after(self._db, server_id, seq - 1)
            last = page[0] if page and page[0].seq == seq else None
            if received_ms is None:
                if last is not None and cached.seq == seq:
                    cached.received_ms = last.received_ms
            elif not await self._is_same(server_id, seq, received_ms, last):
                cached.is_broken = True
                return
            new = list(takewhile(lambda entry: entry.kind != EntryKind.ENDED, page if last is None else page[1:]))
            await self._turns.run(new, step)
            if len(new) < PAGE_ENTRIES - 1 or cached.seq == seq:
                return

    async def _is_same(self, server_id: str, seq: int, received_ms: int, stored: RawEntry | None) -> bool:
        """True if the database has not lost the entry that was applied under this number.

        Otherwise the database has failed over to a standby without the last entries, and their numbers are used again.
        """
        if stored is not None:
            return stored.received_ms == received_ms
        return await raw_log.newest_seq(self._db, server_id) >= seq  # it may have been deleted after its retention time

    async def _open(self, row: ServerRow, lost: Set[int]) -> _Cached:
        region = self._regions.get(row.region)
        fold, seq = await open_match(self._db, row, region.speed if region else 1.0, turns=self._turns, lost=lost)
        return _Cached(fold, seq, row.log_from_seq)

    def _keep(self, server_id: str, cached: _Cached) -> None:
        self._cache[server_id] = cached
        self._cache.move_to_end(server_id)
        while len(self._cache) > MAX_MATCHES:
            self._cache.popitem(last=False)
