"""Read model of matches that another replica drives, built from their stored snapshot and log.

Folds are cached, so polling a match costs only its new entries.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Set
from typing import Final

from matchpod.core.match.match import Match
from matchpod.core.views.match_progress import MatchProgress
from matchpod.ports import Database
from matchpod.service.match_log.fold import Fold, LiveState
from matchpod.service.match_log.replay import apply_after, as_lost, open_match
from matchpod.service.match_log.turns import EntryFailedError, FoldTurns
from matchpod.service.regions.regions import Regions
from matchpod.storage.raw_log import RawEntry
from matchpod.storage.servers import ServerRow

MAX_MATCHES: Final = 200
"""Maximum cached matches, about half a megabyte each; the least recently used one is dropped first."""

MAX_LOST: Final = 3
"""How many entries of a match may fail while it is read: each costs another read of the log since its snapshot."""


class _Cached:
    def __init__(self, fold: Fold, seq: int, log_from_seq: int) -> None:
        self.fold = fold
        self.seq = seq
        self.log_from_seq = log_from_seq
        self.state: LiveState | None = None


class RemoteMatches:
    """Matches that other replicas drive."""

    def __init__(self, *, db: Database, regions: Regions, turns: FoldTurns) -> None:
        self._db = db
        self._turns = turns
        self._regions = regions
        self._cache: OrderedDict[str, _Cached] = OrderedDict()

    async def state(self, row: ServerRow) -> LiveState:
        """What callers see of the match."""
        cached = await self._catch_up(row)
        if cached.state is None:
            cached.state = cached.fold.state()
        return cached.state

    async def progress(self, row: ServerRow) -> MatchProgress:
        """Where the match stands."""
        return (await self._catch_up(row)).fold.progress()

    async def match(self, row: ServerRow) -> Match:
        """The match itself. Use it before the next await: other callers advance it."""
        return (await self._catch_up(row)).fold.match

    async def _catch_up(self, row: ServerRow) -> _Cached:
        """Apply new entries. One that fails counts as lost, as it will once the process that drives the match has set
        it aside; until then nothing is cached.
        """
        lost: set[int] = set()
        while True:
            try:
                return await self._read(row, lost)
            except EntryFailedError as exc:
                self._cache.pop(row.id, None)
                if exc.entry.seq in lost or len(lost) >= MAX_LOST:
                    raise
                lost.add(exc.entry.seq)

    async def _read(self, row: ServerRow, lost: Set[int]) -> _Cached:
        cached = None if lost else self._cache.get(row.id)
        if cached is None or cached.log_from_seq != row.log_from_seq:
            cached = await self._open(row, lost)
        current = cached

        def step(entry: RawEntry) -> bool:
            # Two callers may be here at once with the same entries.
            if entry.seq == current.seq + 1:
                self._turns.apply(current.fold, as_lost(entry) if entry.seq in lost else entry)
                current.fold.drain_timeline()  # its runner stores the items; they are not needed here
                current.seq = entry.seq
                current.state = None
            return True

        await apply_after(self._db, row.id, cached.seq, step, turns=self._turns)
        if not lost:
            self._keep(row.id, cached)
        return cached

    async def _open(self, row: ServerRow, lost: Set[int]) -> _Cached:
        region = self._regions.get(row.region)
        fold, seq = await open_match(self._db, row, region.speed if region else 1.0, turns=self._turns, lost=lost)
        return _Cached(fold, seq, row.log_from_seq)

    def _keep(self, server_id: str, cached: _Cached) -> None:
        self._cache[server_id] = cached
        self._cache.move_to_end(server_id)
        while len(self._cache) > MAX_MATCHES:
            self._cache.popitem(last=False)
