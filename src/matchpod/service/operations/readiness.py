"""Check whether this process is ready: it has started, is not draining, can use its database, and its clock is correct.

Clocks are checked because leases and deadlines in a shared database require that the clocks of all processes agree.
"""

from __future__ import annotations

import asyncio
import logging
from enum import StrEnum
from typing import Final

from matchpod.ports import Clock, Database, DatabaseError
from matchpod.service.operations.disk_space import DiskSpace
from matchpod.service.regions.regions import Regions
from matchpod.storage.database_checks import check_write, database_ms
from matchpod.storage.migrate import required_version
from matchpod.storage.schema import MIGRATIONS

CHECK_S: Final = 2.0
"""Timeout of the database check in seconds. It is shorter than the usual timeout of a readiness probe."""
LATE_MS: Final = 4_000
"""Time for which all database checks must time out before the process is not ready. If one slow write were enough, a
load balancer would at once stop using all replicas that share the database."""
WRITE_CHECK_MS: Final = 5_000
"""Time for which the result of a write check is cached. Probes arrive every second, and each write waits for the
disk."""
MAX_DIFFERENCE_MS: Final = 5_000
"""Maximum difference between the clock of this process and that of the database: a sixth of the duration of a lease."""

_UNAVAILABLE: Final = "The database is unavailable."
_log = logging.getLogger(__name__)


class ReadinessState(StrEnum):
    """The states in the lifecycle of a process."""

    STARTING = "starting"
    READY = "ready"
    DRAINING = "draining"
    """Not ready. Requests are still answered, because a load balancer takes a moment to stop sending them."""
    STOPPING = "stopping"
    """Requests are rejected."""


class _Timeouts:
    """Tracks for how long all checks of one type have timed out."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._since_ms: int | None = None

    def reset(self) -> None:
        """Record that a check succeeded."""
        self._since_ms = None

    def add(self, started_ms: int) -> bool:
        """Record that a check that began at `started_ms` timed out. True if checks have timed out for LATE_MS."""
        if self._since_ms is None:
            self._since_ms = started_ms
        return self._clock.now_ms() - self._since_ms >= LATE_MS


class Readiness:
    """Determines whether this process is ready, and whether it accepts requests."""

    def __init__(self, *, db: Database, clock: Clock, disk: DiskSpace, regions: Regions) -> None:
        self._db = db
        self._clock = clock
        self._disk = disk
        self._regions = regions
        self._read_only: str | None = None
        self._difference_ms = 0
        self._written_ms: int | None = None
        self._write_fault: str | None = None
        self._reasons: list[str] = []
        """The reasons that the last check returned."""
        self._read_timeouts = _Timeouts(clock)
        self._write_timeouts = _Timeouts(clock)
        self._is_too_old = False
        self._state = ReadinessState.STARTING

    @property
    def state(self) -> ReadinessState:
        return self._state

    @property
    def read_only(self) -> str | None:
        """Why this process accepts only reads, as a sentence for operators; None if it also drives matches."""
        return self._read_only

    def serve_reads_only(self, reason: str) -> None:
        """Reject requests that change data. Call this before the process starts."""
        self._read_only = reason

    def mark_ready(self) -> None:
        """Record that the startup is complete. This has no effect on a draining process."""
        if self._state is ReadinessState.STARTING:
            self._state = ReadinessState.READY

    def drain(self) -> None:
        """Make the process not ready because it is about to stop, so that load balancers use other processes."""
        self._state = ReadinessState.DRAINING

    def stop(self) -> None:
        """Reject requests from now on."""
        self._state = ReadinessState.STOPPING

    async def compare_clocks(self) -> None:
        """Measure how far the clock of this process differs from the clock of a shared database."""
        before_ms = self._clock.now_ms()
        theirs_ms = await database_ms(self._db)
        if theirs_ms is None:
            return
        # The database read its clock at some point during the query, so a time within the query is no difference.
        self._difference_ms = theirs_ms - max(before_ms, min(theirs_ms, self._clock.now_ms()))
        if self._has_wrong_clock():
            _log.warning("clock differs from the database clock", extra={"difference_s": self._difference_ms / 1000})

    def _has_wrong_clock(self) -> bool:
        return abs(self._difference_ms) > MAX_DIFFERENCE_MS

    async def check(self) -> list[str]:
        """Return the reasons why the process is not ready; empty if it is ready."""
        if self._state is not ReadinessState.READY:
            return [f"The service is {self._state}."]
        self._reasons = await self._check_database()
        return self._reasons

    async def _check_database(self) -> list[str]:
        started_ms = self._clock.now_ms()
        try:
            async with asyncio.timeout(CHECK_S):
                required = await required_version(self._db)
        except DatabaseError:
            return [_UNAVAILABLE]
        except TimeoutError:
            return [_UNAVAILABLE] if self._read_timeouts.add(started_ms) else self._reasons
        self._read_timeouts.reset()
        if required > len(MIGRATIONS):
            return [self._too_old(required)]
        if fault := await self._check_write():
            return [fault]
        if self._has_wrong_clock():
            seconds = abs(self._difference_ms) / 1000
            where = "behind" if self._difference_ms > 0 else "ahead of"
            return [f"The clock is {seconds:.1f} s {where} the database's. Restart the service, which corrects it."]
        return []

    def _too_old(self, required: int) -> str:
        """Return why the process is not ready after a newer version changed the schema incompatibly. Log this once."""
        known = len(MIGRATIONS)
        if not self._is_too_old:
            self._is_too_old = True
            _log.error("database requires a newer version", extra={"required": required, "known": known})
        return (
            f"This version is too old for its database, which requires schema version {required}: it knows versions up"
            f" to {known}. Replace it with a newer one."
        )

    async def warnings(self) -> list[str]:
        """Return the problems that do not affect the readiness of this process.

        If they did, a load balancer would no longer send this process the log posts of running matches.
        """
        shortage = await self._disk.shortage()
        sentences = [sentence for sentence in (self._read_only, shortage) if sentence is not None]
        inactive = (f"Region {region.code} is inactive: {fault}" for region, fault in self._regions.faults())
        return [*sentences, *inactive]

    async def _check_write(self) -> str | None:
        now_ms = self._clock.now_ms()
        if self._written_ms is None or not 0 <= now_ms - self._written_ms < WRITE_CHECK_MS:
            self._written_ms = now_ms  # set first, so that concurrent probes use the previous result
            before, self._write_fault = self._write_fault, await self._try_to_write(now_ms)
            if self._write_fault is not None and before is None:
                _log.warning("database cannot be written", extra={"reason": self._write_fault})
            elif self._write_fault is None and before is not None:
                _log.info("database can be written again")
        return self._write_fault

    async def _try_to_write(self, started_ms: int) -> str | None:
        try:
            async with asyncio.timeout(CHECK_S):
                await check_write(self._db)
        except DatabaseError as exc:
            return f"Nothing can be written to the database ({exc}). Check its disk space and permissions."
        except TimeoutError:
            self._written_ms = None  # the next probe repeats the check
            if self._write_timeouts.add(started_ms):
                return f"Nothing was written to the database for {LATE_MS // 1_000} s. Check its disk."
            return self._write_fault
        self._write_timeouts.reset()
        return None
