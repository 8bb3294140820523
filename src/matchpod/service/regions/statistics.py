"""Summarize the last 24 hours of each region: its matches, the times until servers were running, and failures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from matchpod.core.failures import sentence
from matchpod.ports import Clock, Database
from matchpod.service.availability import unavailable_on_outage
from matchpod.service.identity.identifiers import ID_RANDOM_BYTES, new_server_id
from matchpod.service.regions.regions import Regions
from matchpod.storage.region_statistics import StartedMatch, newest_matches

DAY_MS: Final = 24 * 60 * 60 * 1000


class RegionDay(msgspec.Struct, frozen=True, kw_only=True):
    """Statistics of a region's matches that were created in the last 24 hours."""

    code: str
    created: int = 0
    bring_up_p50_ms: int | None = None
    """Median time from the creation of a match until its server was running; None if there was no running server.

    The median and the 95th percentile are of the newest 1,000 matches. They include the time for which a match waited
    for a free server.
    """
    bring_up_p95_ms: int | None = None
    failures: int = 0
    last_failure: str | None = None
    """Why the match that failed last has failed, as a sentence for callers."""
    last_failure_at_ms: int | None = None


class RegionStatistics:
    def __init__(self, *, db: Database, clock: Clock, regions: Regions) -> None:
        self._db = db
        self._clock = clock
        self._regions = regions

    @unavailable_on_outage
    async def last_day(self, org_id: str | None) -> list[RegionDay]:
        """Return all regions in the order of the settings, then removed regions that had matches.

        Only matches of the organization count. If `org_id` is None, those of all organizations count.
        """
        since_ms = self._clock.now_ms() - DAY_MS
        since_id = new_server_id(since_ms, bytes(ID_RANDOM_BYTES))
        found: dict[str, list[StartedMatch]] = {region.code: [] for region in self._regions.all()}
        for match in await newest_matches(self._db, org_id, since_ms=since_ms, since_id=since_id):
            found.setdefault(match.region, []).append(match)
        return [_region_day(code, matches) for code, matches in found.items()]


def percentile(values: Sequence[int], percent: int) -> int | None:
    """Return the smallest value that at least `percent` of all values do not exceed; None without values."""
    ordered = sorted(values)
    return ordered[-(-len(ordered) * percent // 100) - 1] if ordered else None


def _region_day(code: str, matches: Sequence[StartedMatch]) -> RegionDay:
    if not matches:
        return RegionDay(code=code)
    times = [match.running_at_ms - match.created_at_ms for match in matches if match.running_at_ms is not None]
    last = next((match for match in matches if match.is_last_failure), None)
    return RegionDay(
        code=code,
        created=matches[0].created,
        bring_up_p50_ms=percentile(times, 50),
        bring_up_p95_ms=percentile(times, 95),
        failures=matches[0].failed,
        last_failure=None if last is None else sentence(last.reason, last.failure),
        last_failure_at_ms=None if last is None else last.ended_at_ms,
    )
