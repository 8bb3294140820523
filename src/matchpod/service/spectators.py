"""How does a match stand that another process follows? Its stored bytes tell: the snapshot, and what came after it.

What was folded once is kept, so a caller who polls costs the new entries only.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

import msgspec

from matchpod.core.match import Match, Phase
from matchpod.core.result import live_match
from matchpod.core.server_status import ServerPhase
from matchpod.ports import Database
from matchpod.service.folding import Fold
from matchpod.service.match_log.replay import open_match
from matchpod.service.regions import Regions
from matchpod.storage import raw_log
from matchpod.storage.servers import ServerRow

MAX_MATCHES: Final = 200
"""Matches kept in memory, about half a megabyte each; the one that was not asked for longest goes first."""

READ_ENTRIES: Final = 200
"""Entries read at a time."""


class _Watched:
    def __init__(self, fold: Fold, seq: int, log_from_seq: int) -> None:
        self.fold = fold
        self.seq = seq
        self.log_from_seq = log_from_seq
        self.view = b""

    @property
    def is_over(self) -> bool:
        return self.fold.reader.match.phase is Phase.OVER


class Spectators:
    """Matches as seen from outside."""

    def __init__(self, *, db: Database, regions: Regions) -> None:
        self._db = db
        self._regions = regions
        self._watched: OrderedDict[str, _Watched] = OrderedDict()

    async def view(self, row: ServerRow) -> bytes:
        """The live object as JSON."""
        watched = await self._caught_up(row)
        if not watched.view:
            watched.view = msgspec.json.encode(live_match(watched.fold.reader.match))
        return watched.view

    async def match(self, row: ServerRow) -> Match:
        """The match itself: to be looked at before anything is waited for, as others read on in it."""
        return (await self._caught_up(row)).fold.reader.match

    async def _caught_up(self, row: ServerRow) -> _Watched:
        watched = self._watched.get(row.id)
        # Over here and running there: an alarm that whoever follows the match slept through. His snapshot knows better.
        is_astray = watched is not None and watched.is_over and row.phase is ServerPhase.RUNNING
        if watched is None or is_astray or watched.log_from_seq != row.log_from_seq:
            watched = await self._open(row)
        while entries := await raw_log.read_after(self._db, row.id, watched.seq, limit=READ_ENTRIES):
            for entry in entries:
                # Two callers may be here at once, each with the same entries.
                if entry.seq == watched.seq + 1:
                    watched.fold.take(entry)
                    watched.seq = entry.seq
                    watched.view = b""
            watched.fold.reader.timeline.take()  # stored by whoever follows the match; here nobody wants the items
        self._keep(row.id, watched)
        return watched

    async def _open(self, row: ServerRow) -> _Watched:
        region = self._regions.get(row.region)
        fold, seq = await open_match(self._db, row, region.speed if region else 1.0)
        return _Watched(fold, seq, row.log_from_seq)

    def _keep(self, server_id: str, watched: _Watched) -> None:
        self._watched[server_id] = watched
        self._watched.move_to_end(server_id)
        while len(self._watched) > MAX_MATCHES:
            self._watched.popitem(last=False)
