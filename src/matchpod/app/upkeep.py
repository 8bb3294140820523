"""What must be done now and then, whatever is played? Gauges are set, clocks compared, and what is old is deleted.

The jobs run for ever and survive everything: one that fails is tried again at its next turn.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

import msgspec

from matchpod.ports import DatabaseAwayError
from matchpod.service.pruning import Retention, prune
from matchpod.service.readiness import Readiness
from matchpod.service.runner.surroundings import Surroundings
from matchpod.storage import servers, slots

GAUGE_S: Final = 5.0
"""Scrapers come every 15 s or more."""
CLOCK_S: Final = 60.0
"""Clocks drift by seconds a day, or are set by hand."""
SWEEP_S: Final = 24 * 60 * 60.0
FIRST_SWEEP_S: Final = 60.0
"""After a start: late enough not to be in the way of matches that are picked up again."""
RETRY_S: Final = 10 * 60.0
"""After a sweep that failed; the database may have been away."""

_log = logging.getLogger(__name__)


class Upkeep:
    """The jobs that belong to no match."""

    def __init__(self, around: Surroundings, *, readiness: Readiness, raw_log_days: int, event_days: int) -> None:
        self._db = around.db
        self._clock = around.clock
        self._regions = around.regions
        self._measures = around.measures
        self._readiness = readiness
        self._keep = Retention(raw_log_days=raw_log_days, event_days=event_days)

    async def keep_gauges(self) -> None:
        """Set the gauges every few seconds, until cancelled."""
        is_failing = False
        while True:
            try:
                await self.set_gauges()
                is_failing = False
            except DatabaseAwayError:
                pass  # whoever drives matches says so already; the numbers are then those of before
            except Exception:  # noqa: BLE001 - the loop must survive
                self._measures.crashes.inc("gauges")
                if not is_failing:  # once: every few seconds would bury the rest of the log
                    _log.exception("gauges were not set")
                is_failing = True
            await asyncio.sleep(GAUGE_S)

    async def keep_comparing_clocks(self) -> None:
        """Compare our clock with the database's at once and every minute, until cancelled."""
        while True:
            try:
                await self._readiness.compare_clocks()
            except DatabaseAwayError:
                pass  # as for gauges
            except Exception:  # noqa: BLE001 - the loop must survive
                self._measures.crashes.inc("clocks")
                _log.exception("clocks were not compared")
            await asyncio.sleep(CLOCK_S)

    async def keep_sweeping(self) -> None:
        """Delete what is old once a day, until cancelled."""
        wait_s = FIRST_SWEEP_S
        while True:
            await asyncio.sleep(wait_s)
            try:
                await self.sweep()
                wait_s = SWEEP_S
            except DatabaseAwayError as exc:
                _log.warning("old entries wait for the database", extra={"reason": str(exc)})
                wait_s = RETRY_S
            except Exception:  # noqa: BLE001 - the loop must survive
                self._measures.crashes.inc("sweep")
                _log.exception("old entries were not deleted")
                wait_s = RETRY_S

    async def set_gauges(self) -> None:
        """Count servers and places."""
        counted = await servers.count_by_status(self._db)
        taken = await slots.taken(self._db)
        places: dict[tuple[str, ...], float] = {}
        for region in self._regions.all():
            in_use = len(taken.get(region.code, {}))
            places[(region.code, "all")] = len(region.fleet.slots)
            places[(region.code, "taken")] = in_use
            places[(region.code, "free")] = max(0, len(region.fleet.slots) - in_use)
        self._measures.servers.replace({key: float(number) for key, number in counted.items()})
        self._measures.slots.replace(places)

    async def sweep(self) -> None:
        """Delete what is past its time."""
        pruned = await prune(self._db, self._keep, self._clock.now_ms())
        if not pruned.is_nothing:
            _log.info("old entries deleted", extra=msgspec.structs.asdict(pruned))
