"""Run the periodic jobs: update gauges, compare clocks, delete old entries and sessions, return free space.

The jobs run until cancelled. If a job fails, it is retried later.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec

from matchpod.core.demos import DemoState
from matchpod.core.server_status import ServerStatus
from matchpod.ports import DatabaseUnavailableError, DemoStorage
from matchpod.service.access.console_sessions import ConsoleSessions
from matchpod.service.history.search_index import PER_TURN, index_some
from matchpod.service.operations.disk_space import DiskSpace
from matchpod.service.operations.pruning import Retention, prune, prune_demos
from matchpod.service.operations.readiness import Readiness
from matchpod.service.runner.deps import Deps
from matchpod.storage import compaction, demos, outbox, servers, waiting_matches, webhooks
from matchpod.storage.webhook_deliveries import WEBHOOKS

GAUGE_S: Final = 5.0
"""Interval in seconds at which the gauges are updated. Metrics are usually scraped every 15 s or less often."""
CLOCK_S: Final = 60.0
"""Interval in seconds at which clocks are compared. They drift by seconds per day, or are set by hand."""
SWEEP_S: Final = 24 * 60 * 60.0
FIRST_SWEEP_S: Final = 60.0
"""Delay in seconds from the start to the first sweep, so that the sweep does not slow down the matches that are being
resumed."""
INDEX_S: Final = 1.0
"""Interval in seconds at which matches are added to the search index."""
INDEX_PAUSE_S: Final = 0.1
"""Interval in seconds at which matches are added to the search index while many are still missing there."""
RETRY_S: Final = 10 * 60.0
"""Delay in seconds before a failed sweep is retried, because the database may have been unavailable."""

_log = logging.getLogger(__name__)


class UpkeepIntervals(msgspec.Struct, frozen=True, kw_only=True):
    """The intervals of the periodic jobs, in seconds."""

    gauge_s: float = GAUGE_S
    clock_s: float = CLOCK_S
    index_s: float = INDEX_S
    sweep_s: float = SWEEP_S
    first_sweep_s: float = FIRST_SWEEP_S
    retry_s: float = RETRY_S


UPKEEP_INTERVALS: Final = UpkeepIntervals()


class Upkeep:
    """The periodic jobs of the service that belong to no single match."""

    def __init__(
        self,
        deps: Deps,
        *,
        readiness: Readiness,
        disk: DiskSpace,
        retention: Retention,
        sessions: ConsoleSessions,
        demo_storage: DemoStorage,
        give_back: Callable[[], Awaitable[int]] | None = None,
        intervals: UpkeepIntervals = UPKEEP_INTERVALS,
    ) -> None:
        """Call `give_back` to return free space of the database to the disk; its result is the number of bytes."""
        self._db = deps.db
        self._clock = deps.clock
        self._regions = deps.regions
        self._metrics = deps.metrics
        self._readiness = readiness
        self._disk = disk
        self._retention = retention
        self._sessions = sessions
        self._demo_storage = demo_storage
        self._give_back = give_back
        self._intervals = intervals

    async def run_gauges(self) -> None:
        """Update the gauges every `gauge_s` seconds, until cancelled."""
        is_failing = False
        while True:
            try:
                await self.set_gauges()
                is_failing = False
            except DatabaseUnavailableError:
                pass  # the supervisor logs the outage; the gauges keep their last values
            except Exception:  # noqa: BLE001 - the loop must survive
                self._metrics.crashes.inc("gauges")
                if not is_failing:  # logged once, because a line every few seconds would flood the log
                    _log.exception("gauge update failed")
                is_failing = True
            await asyncio.sleep(self._intervals.gauge_s)

    async def run_clock_checks(self) -> None:
        """Compare the clocks of this machine and the database, at once and every `clock_s` seconds, until cancelled."""
        while True:
            try:
                await self._readiness.compare_clocks()
            except DatabaseUnavailableError:
                pass  # the supervisor logs the outage
            except Exception:  # noqa: BLE001 - the loop must survive
                self._metrics.crashes.inc("clocks")
                _log.exception("clock comparison failed")
            await asyncio.sleep(self._intervals.clock_s)

    async def run_indexing(self) -> None:
        """Until cancelled, add matches to the search index: new and ended matches, and matches of earlier versions."""
        while True:
            wait_s = self._intervals.index_s
            try:
                if await index_some(self._db) == PER_TURN:
                    wait_s = min(INDEX_PAUSE_S, wait_s)
            except DatabaseUnavailableError:
                pass  # the supervisor logs the outage
            except Exception:  # noqa: BLE001 - the loop must survive
                self._metrics.crashes.inc("search")
                _log.exception("adding matches to the search index failed")
                wait_s = self._intervals.retry_s
            await asyncio.sleep(wait_s)

    async def run_sweeps(self) -> None:
        """Run `sweep` once a day, until cancelled."""
        wait_s = self._intervals.first_sweep_s
        while True:
            await asyncio.sleep(wait_s)
            try:
                await self.sweep()
                wait_s = self._intervals.sweep_s
            except DatabaseUnavailableError as exc:
                _log.warning("pruning postponed: database unavailable", extra={"reason": str(exc)})
                wait_s = self._intervals.retry_s
            except Exception:  # noqa: BLE001 - the loop must survive
                self._metrics.crashes.inc("sweep")
                _log.exception("pruning failed")
                wait_s = self._intervals.retry_s

    async def set_gauges(self) -> None:
        """Set the gauges of matches, slots, fleets, callbacks, webhooks, demos and free disk space."""
        await self._disk.shortage()
        await self._set_database_gauges()
        by_state: dict[tuple[str, ...], float] = {}
        faults: dict[tuple[str, ...], float] = {}
        silent: dict[tuple[str, ...], float] = {}
        for region, capacity in await self._regions.capacities():
            faults[(region.code,)] = float(region.fleet.fault is not None)
            silent[(region.code,)] = float(self._regions.silent.count(region.code))
            if capacity is not None:  # the capacity of an unavailable fleet is unknown
                by_state[(region.code, "all")] = capacity.total
                by_state[(region.code, "taken")] = capacity.allocated
                by_state[(region.code, "free")] = capacity.ready
        self._metrics.slots.replace(by_state)
        self._metrics.fleet_faults.replace(faults)
        self._metrics.fleet_fault_reasons.replace({(region.code, why): 1.0 for region, why in self._regions.faults()})
        self._metrics.silent_servers.replace(silent)

    async def _set_database_gauges(self) -> None:
        """Set the gauges that are read from the database, and so are the same in all replicas."""
        now_ms, codes, metrics = self._clock.now_ms(), self._metrics.regions, self._metrics
        counted: dict[tuple[str, ...], float] = {(code, status): 0.0 for code in codes for status in ServerStatus}
        metrics.servers.replace(counted | await servers.count_by_status(self._db))
        pending = dict.fromkeys(codes, now_ms) | await waiting_matches.oldest_pending(self._db)
        metrics.oldest_pending_s.replace({(code,): max(0, now_ms - at_ms) / 1000 for code, at_ms in pending.items()})
        waiting = await outbox.count_waiting(self._db)
        metrics.callbacks_waiting.set(waiting.number)
        await self._set_demo_gauges(now_ms)
        metrics.oldest_callback_s.set(max(0, now_ms - (waiting.oldest_ms or now_ms)) / 1000)
        deliveries = await outbox.count_waiting(self._db, WEBHOOKS)
        metrics.webhooks_waiting.set(deliveries.number)
        metrics.oldest_webhook_s.set(max(0, now_ms - (deliveries.oldest_ms or now_ms)) / 1000)
        metrics.webhooks_off.set(await webhooks.count_failing_off(self._db))

    async def _set_demo_gauges(self, now_ms: int) -> None:
        """Mark overdue demos, and demos whose upload process has ended, as missing; then set the gauges of demos."""
        if lost := await demos.lose_stale(self._db, now_ms) + await demos.give_up_overdue(self._db, now_ms):
            _log.warning("demos missing: not uploaded in time, or interrupted", extra={"demos": lost})
        none: dict[tuple[str, ...], float] = {(DemoState.RECORDING,): 0.0, (DemoState.UPLOADING,): 0.0}
        self._metrics.demos.states.replace(none | await demos.count_by_state(self._db))

    async def sweep(self) -> None:
        """Delete entries past their retention and ended sessions, compress ended matches, and free disk space."""
        await self._sessions.sweep()
        pruned = await prune(self._db, self._retention, self._clock.now_ms())
        if deleted := await prune_demos(self._db, self._demo_storage, self._retention, self._clock.now_ms()):
            _log.info("old demos deleted", extra={"demos": deleted})
        if not pruned.is_empty:
            _log.info("old entries deleted", extra=msgspec.structs.asdict(pruned))
        if compacted := await compaction.compact(self._db, self._clock.now_ms(), pause_s=compaction.PAUSE_S):
            _log.info("ended matches compressed", extra={"matches": compacted})
        if self._give_back is not None and (size := await self._give_back()):
            _log.info("free space of the database returned to the disk", extra={"bytes": size})
