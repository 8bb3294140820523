"""What would the history of an ended match be if it were read today? Its stored log is folded again and compared.

A match is changed in one transaction or not at all, and its numbers get the next version. What its caller was told
(the outcome, the callback) is never touched; nor are timelines that are stored, for callers remember where they were.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from enum import StrEnum
from typing import Final

import msgspec

from matchpod.core.server_status import ServerPhase
from matchpod.cs2.match_reader import MatchReader
from matchpod.ports import Database, DatabaseAwayError, Statement
from matchpod.service.conclusion import MATCH_OVER
from matchpod.service.folding import Fold
from matchpod.service.history import naming
from matchpod.service.history.differences import Difference, Part, compare
from matchpod.service.history.recorder import Pages, appends
from matchpod.service.history.settling import final_history, fold_to_end, unstored
from matchpod.storage import history, map_events, outbox, servers, stored_matches
from matchpod.storage.history import MatchHistory
from matchpod.storage.servers import ServerRow

PAGE_SERVERS: Final = 100
"""Servers read at a time: a few hundred kilobytes."""

PAGE_ITEMS: Final = 1_000
"""Items of a timeline stored as one piece."""

_log = logging.getLogger(__name__)


class Place(msgspec.Struct, frozen=True):
    """What is to be known of a region to read its matches again."""

    name: str
    speed: float


class Verdict(StrEnum):
    """What came of reading a match again."""

    UNCHANGED = "unchanged"
    """Today's rules say the same."""
    CHANGED = "changed"
    """They say something else."""
    NEW = "new"
    """Nothing was stored of it: it ended before there was a history."""
    SKIPPED = "skipped"
    """It cannot be read again; the reason says why."""
    FAILED = "failed"
    """Reading it again failed, which is our fault; the reason says how."""


class Finding(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One match that was read again; `stats_version` is the newest of its maps, as it is stored now."""

    server_id: str
    verdict: Verdict
    reason: str | None = None
    is_written: bool = False
    stats_version: int | None = None
    differences: Sequence[Difference] = ()


class Recompute:
    """Reads ended matches again; `places` are the regions by code, items before `events_since_ms` are not stored."""

    def __init__(self, *, db: Database, places: Mapping[str, Place], events_since_ms: int) -> None:
        self._db = db
        self._places = places
        self._events_since_ms = events_since_ms

    async def one(self, server_id: str, *, write: bool) -> Finding | None:
        """Read one match again, and store what differs if that is wanted; None when there is no such server."""
        row = await servers.get(self._db, server_id)
        return None if row is None else await self._look(row, write=write)

    async def count(self) -> int:
        """How many matches `all` goes through."""
        return await stored_matches.count(self._db)

    async def all(self, *, write: bool) -> AsyncIterator[Finding]:
        """Read all matches again, the oldest first, one at a time."""
        last = ""
        while rows := await stored_matches.page_after(self._db, last, limit=PAGE_SERVERS):
            for row in rows:
                yield await self._look(row, write=write)
            last = rows[-1].id

    async def _look(self, row: ServerRow, *, write: bool) -> Finding:
        try:
            return await self._recompute(row, write=write)
        except DatabaseAwayError:
            raise  # nothing is wrong with this match
        except Exception as exc:  # noqa: BLE001 - one broken match must not keep the others from being read
            _log.exception("match was not recomputed", extra={"server_id": row.id})
            return Finding(server_id=row.id, verdict=Verdict.FAILED, reason=f"{type(exc).__name__}: {exc}.")

    async def _recompute(self, row: ServerRow, *, write: bool) -> Finding:
        place = self._places.get(row.region)
        refusal = await self._refusal(row, place)
        if place is None or refusal is not None:
            return Finding(server_id=row.id, verdict=Verdict.SKIPPED, reason=refusal)
        old = await self._stored(row)
        fold = await fold_to_end(self._db, row, place.speed)
        # Asked again, for it may have been deleted while it was read.
        refusal = await self._log_refusal(row) or await self._outcome_refusal(row, fold)
        if refusal is not None:
            return Finding(server_id=row.id, verdict=Verdict.SKIPPED, reason=refusal)
        name = old.maps[0].server_name if old.maps else naming.server_name(place.name, row.id)
        new = await final_history(self._db, row, fold, server_name=name)
        differences = compare(old, new)
        new = _numbered(old, new, differences)
        if differences and write:
            await self._write(row, old, new, fold.reader)
        stored = new if write else old
        return Finding(
            server_id=row.id,
            verdict=(Verdict.CHANGED if old.maps else Verdict.NEW) if differences else Verdict.UNCHANGED,
            is_written=bool(differences) and write,
            stats_version=max((one.stats_version for one in stored.stats), default=None),
            differences=differences,
        )

    async def _stored(self, row: ServerRow) -> MatchHistory:
        maps = await history.maps_of(self._db, row.id)
        stats = [await history.stats_of(self._db, one.id) for one in maps]
        return MatchHistory(
            maps=tuple(maps),
            series=await history.series_of(self._db, row.id),
            stats=tuple(one for one in stats if one is not None),
        )

    async def _write(self, row: ServerRow, old: MatchHistory, new: MatchHistory, reader: MatchReader) -> None:
        timelines = await self._timelines(row, old, reader)
        await self._db.write([servers.hold(row.id, row.fence), *history.replace(new), *timelines])
        if timelines:
            await map_events.compact(self._db, row.id)

    async def _timelines(self, row: ServerRow, old: MatchHistory, reader: MatchReader) -> list[Statement]:
        """What is missing of the timelines of maps that were never settled."""
        ended_ms = row.ended_at_ms or row.created_at_ms
        if ended_ms < self._events_since_ms:
            return []  # they would be deleted at the next opportunity
        known = {one.map_id for one in old.stats}
        statements: list[Statement] = []
        for page in await unstored(self._db, row, reader.timeline.take()):
            if page.map_id not in known:
                statements += appends(_pieces(page), ended_ms)
        return statements

    # --- what cannot be read again --------------------------------------------------------------------------------

    async def _refusal(self, row: ServerRow, place: Place | None) -> str | None:
        if row.phase is ServerPhase.ENDING:
            return "It has just ended; its server is not released yet."
        if row.phase is not ServerPhase.RELEASED:
            return "It has not ended yet."
        if place is None:
            return f"Its region {row.region} is not in the settings, which say how fast its servers ran."
        return await self._log_refusal(row)

    async def _log_refusal(self, row: ServerRow) -> str | None:
        if await stored_matches.is_log_whole(self._db, row):
            return None
        return "Its log is no longer stored, or not all of it."

    async def _outcome_refusal(self, row: ServerRow, fold: Fold) -> str | None:
        """History must not contradict what the caller was told, whatever the log now seems to say."""
        told, found = await outbox.outcome_of(self._db, row.id), fold.reader.match.outcome
        if told is None or found is None:
            return "It ended without an outcome."
        if told.kind == MATCH_OVER and not found.is_finished:
            return "Its caller was told a result, and its log read today has none."
        if not found.is_finished and found.reason != told.reason:
            return f"Its caller was told that it ended by {told.reason}, and its log read today says {found.reason}."
        return None


def _numbered(old: MatchHistory, new: MatchHistory, differences: Sequence[Difference]) -> MatchHistory:
    """With the next version on the maps that differ, and the version they have on the others."""
    versions = {one.map_id: one.stats_version for one in old.stats}
    numbers = {one.id: one.map_number for one in new.maps}
    changed = {one.map_number for one in differences if one.part is not Part.SERIES}
    stats = (
        msgspec.structs.replace(one, stats_version=versions.get(one.map_id, 0) + (numbers[one.map_id] in changed) or 1)
        for one in new.stats
    )
    return msgspec.structs.replace(new, stats=tuple(stats))


def _pieces(page: Pages) -> list[Pages]:
    return [
        Pages(page.map_id, page.first_seq + start, page.lines[start : start + PAGE_ITEMS])
        for start in range(0, len(page.lines), PAGE_ITEMS)
    ]
