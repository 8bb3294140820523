"""Recompute the history of ended matches from their stored logs, and compare it with the stored history.

A match is updated in one transaction, and the version of its statistics is incremented. What was reported to the caller
(the outcome, the callback) never changes. Nor do stored timeline items, because callers store cursors into them.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from enum import StrEnum
from typing import Final

import msgspec

from matchpod.core.server_status import ServerPhase
from matchpod.ports import Database, DatabaseUnavailableError, Statement
from matchpod.service.end_match import MATCH_OVER
from matchpod.service.history.differences import Difference, DifferencePart, compare
from matchpod.service.history.finalize import fold_to_end, unstored_pages
from matchpod.service.history.recorder import TimelinePage, append_statements
from matchpod.service.history.rows import history_of
from matchpod.service.identity import identifiers
from matchpod.service.match_log.fold import Fold
from matchpod.service.match_log.fold_turns import FoldTurns
from matchpod.storage import compaction, history, map_events, outbox, servers, stored_matches
from matchpod.storage.history import MatchHistory
from matchpod.storage.servers import ServerRow

PAGE_SERVERS: Final = 100
"""Maximum number of server rows per database read. They take a few hundred kilobytes."""

PAGE_ITEMS: Final = 1_000
"""Maximum number of timeline items stored in one row."""

_log = logging.getLogger(__name__)


class RecomputeRegion(msgspec.Struct, frozen=True):
    """The settings of a region that are needed to recompute its matches: name and game speed."""

    name: str
    speed: float


class Verdict(StrEnum):
    """The outcome of recomputing a match."""

    UNCHANGED = "unchanged"
    """The recomputed history equals the stored history."""
    CHANGED = "changed"
    """The recomputed history differs from the stored history."""
    NEW = "new"
    """No history was stored, because the match was played with an early version that stored no histories."""
    SKIPPED = "skipped"
    """The match cannot be recomputed; the reason says why."""
    FAILED = "failed"
    """The match could not be recomputed because of an unexpected error, which the reason quotes."""


class Finding(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The result of recomputing a match; `stats_version` is the highest version stored for one of its maps."""

    server_id: str
    verdict: Verdict
    reason: str | None = None
    is_written: bool = False
    stats_version: int | None = None
    differences: Sequence[Difference] = ()


class Recompute:
    """Recomputes ended matches. The timelines of matches that ended before `events_since_ms` are not changed."""

    def __init__(
        self,
        *,
        db: Database,
        regions: Mapping[str, RecomputeRegion],
        events_since_ms: int,
        page_servers: int = PAGE_SERVERS,
    ) -> None:
        self._db = db
        self._turns = FoldTurns(pauses=False)
        self._regions = regions
        self._events_since_ms = events_since_ms
        self._page_servers = page_servers

    async def one(self, server_id: str, *, write: bool) -> Finding | None:
        """Recompute one match and, if `write`, store a history that differs; None if there is no such server."""
        row = await servers.get(self._db, server_id)
        return None if row is None else await self._try_recompute(row, write=write)

    async def all(self, *, write: bool) -> AsyncIterator[Finding]:
        """Recompute all matches, oldest first, one at a time."""
        last = ""
        while rows := await stored_matches.page_after(self._db, last, limit=self._page_servers):
            for row in rows:
                yield await self._try_recompute(row, write=write)
            last = rows[-1].id

    async def _try_recompute(self, row: ServerRow, *, write: bool) -> Finding:
        try:
            return await self._recompute(row, write=write)
        except DatabaseUnavailableError:
            raise  # an outage is not caused by this match
        except Exception as exc:  # noqa: BLE001 - one broken match must not stop the others
            _log.exception("match not recomputed", extra={"server_id": row.id})
            return Finding(server_id=row.id, verdict=Verdict.FAILED, reason=f"{type(exc).__name__}: {exc}.")

    async def _recompute(self, row: ServerRow, *, write: bool) -> Finding:
        region = self._regions.get(row.region)
        reason = await self._skip_reason(row, region)
        if region is None or reason is not None:
            return Finding(server_id=row.id, verdict=Verdict.SKIPPED, reason=reason)
        old = await self._stored(row)
        fold = await fold_to_end(self._db, row, region.speed, turns=self._turns)
        # Check again whether the log is complete, because it may have been deleted while it was read.
        reason = await self._incomplete_log(row) or await self._contradiction(row, fold)
        if reason is not None:
            return Finding(server_id=row.id, verdict=Verdict.SKIPPED, reason=reason)
        name = old.maps[0].server_name if old.maps else identifiers.server_name(region.name, row.id)
        new = history_of(row, fold.match, server_name=name, is_final=True)
        differences = compare(old, new)
        new = _with_versions(old, new, differences)
        if differences and write:
            await self._write(row, old, new, fold)
        stored = new if write else old
        return Finding(
            server_id=row.id,
            verdict=(Verdict.CHANGED if old.maps else Verdict.NEW) if differences else Verdict.UNCHANGED,
            is_written=bool(differences) and write,
            stats_version=max((stat.stats_version for stat in stored.stats), default=None),
            differences=differences,
        )

    async def _stored(self, row: ServerRow) -> MatchHistory:
        maps = await history.maps_of(self._db, row.id)
        stats = [await history.stats_of(self._db, played.id) for played in maps]
        rounds = [await history.rounds_of(self._db, played.id) for played in maps]
        return MatchHistory(
            maps=tuple(maps),
            series=await history.series_of(self._db, row.id),
            stats=tuple(row for row in stats if row is not None),
            rounds=tuple(row for row in rounds if row is not None),
        )

    async def _write(self, row: ServerRow, old: MatchHistory, new: MatchHistory, fold: Fold) -> None:
        timelines = await self._timelines(row, old, fold)
        await self._db.write([servers.check_fence(row.id, row.fence), *history.replace(new), *timelines])
        if timelines:
            await map_events.compact(self._db, row.id)
        await compaction.compact_stats(self._db, row.id)

    async def _timelines(self, row: ServerRow, old: MatchHistory, fold: Fold) -> list[Statement]:
        """Return the statements that append missing items to the timelines of maps that were never finalized."""
        ended_ms = row.ended_at_ms or row.created_at_ms
        if ended_ms < self._events_since_ms:
            return []  # past their retention
        known = {stat.map_id for stat in old.stats}
        statements: list[Statement] = []
        for page in await unstored_pages(self._db, row, fold.drain_timeline()):
            if page.map_id not in known:
                statements += append_statements(_split(page), ended_ms)
        return statements

    # --- skipped matches ------------------------------------------------------------------------------------------

    async def _skip_reason(self, row: ServerRow, region: RecomputeRegion | None) -> str | None:
        if row.phase is ServerPhase.ENDING:
            return "It has ended, but its server is not released yet."
        if row.phase is not ServerPhase.RELEASED:
            return "It has not ended yet."
        if region is None:
            return f"Its region {row.region} is not configured; the speed of its servers is unknown."
        return await self._incomplete_log(row)

    async def _incomplete_log(self, row: ServerRow) -> str | None:
        if await stored_matches.is_log_complete(self._db, row):
            return None
        return "Its log is no longer stored completely."

    async def _contradiction(self, row: ServerRow, fold: Fold) -> str | None:
        """Return how the recomputed match contradicts the outcome reported to the caller; None if it does not."""
        stored, found = await outbox.outcome_of(self._db, row.id), fold.match.outcome
        if stored is None:
            return "It ended without an outcome."
        if stored.kind == MATCH_OVER and (found is None or not found.is_finished):
            return "Its stored outcome has a result, but its log now gives none."
        return None


def _with_versions(old: MatchHistory, new: MatchHistory, differences: Sequence[Difference]) -> MatchHistory:
    """Increment the statistics version of maps that differ. All other maps keep their version."""
    versions = {stat.map_id: stat.stats_version for stat in old.stats}
    numbers = {played.id: played.map_number for played in new.maps}
    changed = {difference.map_number for difference in differences if difference.part is not DifferencePart.SERIES}
    stats = (
        msgspec.structs.replace(
            stat, stats_version=versions.get(stat.map_id, 0) + (numbers[stat.map_id] in changed) or 1
        )
        for stat in new.stats
    )
    return msgspec.structs.replace(new, stats=tuple(stats))


def _split(page: TimelinePage) -> list[TimelinePage]:
    return [
        TimelinePage(page.map_id, page.first_seq + start, page.lines[start : start + PAGE_ITEMS])
        for start in range(0, len(page.lines), PAGE_ITEMS)
    ]
