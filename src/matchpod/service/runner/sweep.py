"""Search the fleets for servers without a match, and release those that certainly have none."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import suppress

from matchpod.core.servers.orphaned_servers import KnownMatches, OrphanWatch, RunningServer, SweepPlan
from matchpod.ports import FleetError, ListedServer
from matchpod.service.identity.identifiers import is_check_id
from matchpod.service.regions.regions import Region
from matchpod.service.runner.deps import Deps
from matchpod.storage import region_checks, servers, slots, withheld_servers

_log = logging.getLogger(__name__)


class Sweeper:
    """Sweeps all regions. A new process releases nothing at first, because it has no earlier observations."""

    def __init__(self, deps: Deps) -> None:
        self._deps = deps
        self._watches: dict[str, OrphanWatch] = {}
        self._reported: set[tuple[str, str]] = set()

    async def sweep(self) -> None:
        """Release servers without a match, and free slots whose match is released or unknown."""
        for region in self._deps.regions.all():
            try:
                await self._sweep_region(region)
            except FleetError as exc:  # only this region fails; the next sweep retries
                _log.warning("region sweep failed", extra={"region": region.code, "error": str(exc)})
        checks = await region_checks.running_ids(self._deps.db, self._deps.clock.now_ms())
        freed = await slots.free_orphaned(self._deps.db, tuple(checks))
        if freed:
            _log.warning("released orphaned slots", extra={"count": freed})

    async def _sweep_region(self, region: Region) -> None:
        # List the fleet before the rows are read, so that each listed server of a new match is found in the rows.
        running = await region.fleet.servers()
        known = await self._known(region, running)
        watch = self._watches.setdefault(region.code, OrphanWatch())
        now_ms = self._deps.clock.now_ms()
        plan = watch.plan([_running(server) for server in running], known, now_ms)
        await self._withhold(region, plan, known, now_ms)
        self._report_foreign(region, plan, running)
        for server_id in plan.release:
            _log.warning("releasing server without a match", extra={"region": region.code, "server_id": server_id})
            with suppress(FleetError):  # release the other servers nevertheless
                await region.fleet.release(server_id, "")
                self._deps.metrics.swept.inc(region.code)

    async def _known(self, region: Region, running: Sequence[ListedServer]) -> KnownMatches:
        db = self._deps.db
        open_ids = await servers.open_ids(db) | await region_checks.running_ids(db, self._deps.clock.now_ms())
        others = {server.server_id for server in running} - open_ids
        withheld = (await withheld_servers.withheld_servers(db)).get(region.code, ())
        return KnownMatches(
            open=open_ids,
            ended={found for found in others if is_check_id(found) or await servers.summary(db, found) is not None},
            newest=await servers.newest_id(db),
            withheld={server.server_id: server.is_confirmed for server in withheld},
        )

    async def _withhold(self, region: Region, plan: SweepPlan, known: KnownMatches, now_ms: int) -> None:
        if plan.settled:
            await withheld_servers.remove(self._deps.db, region.code, plan.settled)
        added = [server_id for server_id in plan.withhold if server_id not in known.withheld]
        if added:
            await withheld_servers.add(self._deps.db, region.code, added, now_ms)
        self._deps.metrics.withheld.set(len(plan.withhold), region.code)
        new = self._report(region, "withheld", plan.withhold)
        if new:
            _log.error(
                "running servers have no match in this database; is it the right database? they are not released"
                f" without `matchpod regions sweep {region.code} --yes`",
                extra={"region": region.code, "count": len(plan.withhold), "server_ids": new},
            )

    def _report_foreign(self, region: Region, plan: SweepPlan, running: Sequence[ListedServer]) -> None:
        self._deps.metrics.foreign.set(len(plan.foreign), region.code)
        new = self._report(region, "foreign", plan.foreign)
        owners = sorted({server.owner for server in running if server.server_id in new})
        if new:
            about = {"region": region.code, "server_ids": new, "owners": owners}
            _log.warning("servers of another installation are left alone", extra=about)

    def _report(self, region: Region, kind: str, server_ids: Sequence[str]) -> list[str]:
        """Return the servers that were not reported before. Reported servers that are gone are forgotten."""
        key = f"{kind} {region.code}"
        new = [server_id for server_id in server_ids if (key, server_id) not in self._reported]
        others = {reported for reported in self._reported if reported[0] != key}
        self._reported = others | {(key, server_id) for server_id in server_ids}
        return new


def _running(server: ListedServer) -> RunningServer:
    return RunningServer(server_id=server.server_id, is_own=server.is_own, age_ms=round(server.age_s * 1000))
