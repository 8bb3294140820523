"""Find the regions that do not start matches as they should: one line each, with how many matches are behind it.

Every page shows these lines, so what they are made of is read at most every few seconds.
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
"""How long the lines are not read again: all pages of an organization share them."""
RECENT_MS: Final = 60 * 60 * 1000
"""How old a creation may be that says something about its region."""
NEWEST: Final = 20
"""Creations of each region that are read."""
SEVERAL_FAILURES: Final = 2
"""From how many failed creations in a row on the cause is taken for that of the region."""
MAX_KEPT: Final = 1_000
"""Organizations whose lines are kept."""


class AlertKind(StrEnum):
    """Why a region needs a look."""

    PENDING = "pending"
    """Matches wait for a free server."""
    FULL = "full"
    """All servers are in use, and no match has waited for long."""
    TRIES = "tries"
    """Several matches wait for another server, because the first one did not start."""
    FAILED = "failed"
    """The last creations failed."""


class RegionAlert(msgspec.Struct, frozen=True, kw_only=True):
    """One reason to look at a region instead of the same reason at each of its matches."""

    region: str
    kind: AlertKind
    condition: RegionCondition | None = None
    """That of the region; None if it is not one of this service."""
    count: int
    """The matches that it concerns."""
    since_ms: int | None = None
    """When the first of them was created, or the last one failed."""

    @property
    def is_urgent(self) -> bool:
        """False if it is only worth knowing: no match waits."""
        return self.kind is not AlertKind.FULL


class RegionAlerts:
    """The alerts of all organizations."""

    def __init__(self, *, db: Database, clock: Clock, regions: Regions, kept_ms: int = KEPT_MS) -> None:
        self._db = db
        self._clock = clock
        self._regions = regions
        self._kept_ms = kept_ms
        self._kept: dict[str | None, tuple[int, tuple[RegionAlert, ...]]] = {}
        self._views: tuple[int, list[RegionView]] | None = None

    @unavailable_on_outage
    async def read(self, org_id: str | None) -> tuple[RegionAlert, ...]:
        """Return the alerts that concern matches of an organization, or of all; regions in their order."""
        now_ms = self._clock.now_ms()
        kept = self._kept.get(org_id)
        if kept is not None and 0 <= now_ms - kept[0] < self._kept_ms:
            return kept[1]
        if self._views is None or not 0 <= now_ms - self._views[0] < self._kept_ms:
            self._views = (now_ms, await self._regions.views())
        conditions = {view.code: view.condition for view in self._views[1]}
        found = [*await self._waiting(org_id, conditions, now_ms), *await self._failed(org_id, conditions, now_ms)]
        order = {code: number for number, code in enumerate(conditions)}
        alerts = tuple(sorted(found, key=lambda one: (order.get(one.region, len(order)), one.region, one.kind)))
        if len(self._kept) >= MAX_KEPT:
            self._kept.clear()
        self._kept[org_id] = (now_ms, alerts)
        return alerts

    async def _waiting(
        self, org_id: str | None, conditions: dict[str, RegionCondition], now_ms: int
    ) -> list[RegionAlert]:
        waiting = {one.region: one for one in await waiting_matches(self._db, org_id)}
        found = []
        for code in dict.fromkeys((*conditions, *sorted(waiting))):
            condition, one = conditions.get(code), waiting.get(code)
            since_ms = None if one is None else one.pending_since_ms
            if one is not None and since_ms is not None and now_ms - since_ms >= PENDING_MS:
                found.append(
                    RegionAlert(
                        region=code, kind=AlertKind.PENDING, condition=condition, count=one.pending, since_ms=since_ms
                    )
                )
            elif condition is RegionCondition.FULL:
                found.append(
                    RegionAlert(
                        region=code,
                        kind=AlertKind.FULL,
                        condition=condition,
                        count=0 if one is None else one.pending,
                        since_ms=None,
                    )
                )
            if one is not None and one.retried >= SEVERAL_TRIES:
                found.append(
                    RegionAlert(
                        region=code,
                        kind=AlertKind.TRIES,
                        condition=condition,
                        count=one.retried,
                        since_ms=one.retried_since_ms,
                    )
                )
        return found

    async def _failed(
        self, org_id: str | None, conditions: dict[str, RegionCondition], now_ms: int
    ) -> list[RegionAlert]:
        since_ms = now_ms - RECENT_MS
        since_id = new_server_id(since_ms, bytes(ID_RANDOM_BYTES))
        created: defaultdict[str, list[StartedMatch]] = defaultdict(list)
        for one in await newest_matches(self._db, org_id, since_ms=since_ms, since_id=since_id, limit=NEWEST):
            created[one.region].append(one)
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
    """Return the matches that got no server that works, the newest first, up to the newest that got one.

    Those that still wait, and those that were canceled by hand before they had one, say nothing.
    """
    failed = []
    for one in sorted(matches, key=lambda match: -match.created_at_ms):
        if one.running_at_ms is not None:
            break
        if one.ended_at_ms is not None and one.reason not in BY_HAND:
            failed.append(one)
    return failed
