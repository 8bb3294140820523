"""Find regions in which matches do not start as they should, and count the affected matches.

Every page of the console shows these alerts, so they are cached for a few seconds.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from enum import StrEnum
from typing import Final

import msgspec

from matchpod.core.effects import BY_HAND
from matchpod.core.views.attention import PENDING_MS, SEVERAL_TRIES
from matchpod.ports import Clock, Database
from matchpod.service.availability import unavailable_on_outage
from matchpod.service.identity.identifiers import ID_RANDOM_BYTES, new_server_id
from matchpod.service.regions.regions import RegionCondition, Regions, RegionView
from matchpod.storage.region_statistics import StartedMatch, newest_matches, waiting_matches

KEPT_MS: Final = 2_000
"""Time for which the alerts of an organization are cached. All of its console pages share them."""
RECENT_MS: Final = 60 * 60 * 1000
"""Maximum age of the matches that are searched for failures."""
NEWEST: Final = 20
"""Maximum number of matches (the newest) that are searched for failures per region."""
SEVERAL_FAILURES: Final = 2
"""Minimum number of consecutive failed matches for an alert. A single failure need not be caused by the region."""
MAX_KEPT: Final = 1_000
"""Maximum number of organizations whose alerts are cached."""


class AlertKind(StrEnum):
    """Why a region needs attention."""

    PENDING = "pending"
    """Matches have waited for a free server for a long time."""
    FULL = "full"
    """All servers are in use, but no match has waited for long."""
    TRIES = "tries"
    """Several matches wait for another server, because their previous server did not start."""
    FAILED = "failed"
    """The newest matches have ended without a running server."""


class RegionAlert(msgspec.Struct, frozen=True, kw_only=True):
    """An alert about a region. It is shown once instead of at each affected match."""

    region: str
    kind: AlertKind
    condition: RegionCondition | None = None
    """The condition of the region; None if the region is no longer in the settings."""
    count: int
    """Number of affected matches."""
    since_ms: int | None = None
    """When the first affected match was created or, for FAILED, when the last match failed. None for FULL."""

    @property
    def is_urgent(self) -> bool:
        """False if the alert is only information: all servers are in use, but no match has waited for long."""
        return self.kind is not AlertKind.FULL


class RegionAlerts:
    """Reads the alerts about regions for each organization, and caches them."""

    def __init__(self, *, db: Database, clock: Clock, regions: Regions, kept_ms: int = KEPT_MS) -> None:
        self._db = db
        self._clock = clock
        self._regions = regions
        self._kept_ms = kept_ms
        self._kept: dict[str | None, tuple[int, tuple[RegionAlert, ...]]] = {}
        self._views: tuple[int, list[RegionView]] | None = None

    @unavailable_on_outage
    async def read(self, org_id: str | None) -> tuple[RegionAlert, ...]:
        """Return the alerts for matches of an organization, or of all organizations, in the order of the regions."""
        now_ms = self._clock.now_ms()
        kept = self._kept.get(org_id)
        if kept is not None and 0 <= now_ms - kept[0] < self._kept_ms:
            return kept[1]
        if self._views is None or not 0 <= now_ms - self._views[0] < self._kept_ms:
            self._views = (now_ms, await self._regions.views())
        conditions = {view.code: view.condition for view in self._views[1]}
        found = [*await self._waiting(org_id, conditions, now_ms), *await self._failed(org_id, conditions, now_ms)]
        order = {code: number for number, code in enumerate(conditions)}
        alerts = tuple(sorted(found, key=lambda alert: (order.get(alert.region, len(order)), alert.region, alert.kind)))
        if len(self._kept) >= MAX_KEPT:
            self._kept.clear()
        self._kept[org_id] = (now_ms, alerts)
        return alerts

    async def _waiting(
        self, org_id: str | None, conditions: dict[str, RegionCondition], now_ms: int
    ) -> list[RegionAlert]:
        waiting = {row.region: row for row in await waiting_matches(self._db, org_id)}
        found = []
        for code in dict.fromkeys((*conditions, *sorted(waiting))):
            condition, row = conditions.get(code), waiting.get(code)
            since_ms = None if row is None else row.pending_since_ms
            if row is not None and since_ms is not None and now_ms - since_ms >= PENDING_MS:
                found.append(
                    RegionAlert(
                        region=code, kind=AlertKind.PENDING, condition=condition, count=row.pending, since_ms=since_ms
                    )
                )
            elif condition is RegionCondition.FULL:
                found.append(
                    RegionAlert(
                        region=code,
                        kind=AlertKind.FULL,
                        condition=condition,
                        count=0 if row is None else row.pending,
                        since_ms=None,
                    )
                )
            if row is not None and row.retried >= SEVERAL_TRIES:
                found.append(
                    RegionAlert(
                        region=code,
                        kind=AlertKind.TRIES,
                        condition=condition,
                        count=row.retried,
                        since_ms=row.retried_since_ms,
                    )
                )
        return found

    async def _failed(
        self, org_id: str | None, conditions: dict[str, RegionCondition], now_ms: int
    ) -> list[RegionAlert]:
        since_ms = now_ms - RECENT_MS
        since_id = new_server_id(since_ms, bytes(ID_RANDOM_BYTES))
        created: defaultdict[str, list[StartedMatch]] = defaultdict(list)
        for match in await newest_matches(self._db, org_id, since_ms=since_ms, since_id=since_id, limit=NEWEST):
            created[match.region].append(match)
        failures = {code: last_failures(matches) for code, matches in created.items()}
        return [
            RegionAlert(
                region=code,
                kind=AlertKind.FAILED,
                condition=conditions.get(code),
                count=len(failed),
                since_ms=failed[0].ended_at_ms,
            )
            for code, failed in sorted(failures.items())
            if len(failed) >= SEVERAL_FAILURES
        ]


def last_failures(matches: Sequence[StartedMatch]) -> list[StartedMatch]:
    """Return the matches, newest first, that ended without a running server.

    Only matches that were created after the last match whose server was running are returned. Matches that still wait
    are skipped, and so are matches that were canceled by the caller or an operator before their server was running.
    """
    failed = []
    for match in sorted(matches, key=lambda match: -match.created_at_ms):
        if match.running_at_ms is not None:
            break
        if match.ended_at_ms is not None and match.reason not in BY_HAND:
            failed.append(match)
    return failed
