"""Check the readiness of this process: started, not draining, its database available, and its clock correct.

Leases and deadlines in a shared database require that the clocks of all processes agree.
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
"""Timeout of the database check in seconds, shorter than the usual timeout of a probe."""
LATE_MS: Final = 4_000
"""How long the database checks must time out before the process is not ready. Otherwise a single slow write would take
all replicas that share the database out of a load balancer at once."""
WRITE_CHECK_MS: Final = 5_000
"""How long the result of a write check is used. Probes come every second, and each write waits for the disk."""
MAX_DIFFERENCE_MS: Final = 5_000
"""Maximum difference between our clock and the database's, a sixth of a lease."""

_UNAVAILABLE: Final = "The database is unavailable."
_log = logging.getLogger(__name__)


class ReadinessState(StrEnum):
    """The lifecycle of a process."""

    STARTING = "starting"
    READY = "ready"
    DRAINING = "draining"
    """Not ready, but requests are still answered, because a load balancer needs a moment to notice."""
    STOPPING = "stopping"
    """Requests are rejected."""


class _Timeouts:
    """Tracks since when the checks of one kind have timed out."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._since_ms: int | None = None

    def reset(self) -> None:
        """Record that a check succeeded."""
        self._since_ms = None

    def add(self, started_ms: int) -> bool:
        """Record that a check timed out, and when it started; True if no check has succeeded for LATE_MS."""
        if self._since_ms is None:
            self._since_ms = started_ms
        return self._clock.now_ms() - self._since_ms >= LATE_MS


class Readiness:
    """Whether this process accepts requests."""

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
        """The result of the last check."""
        self._read_timeouts = _Timeouts(clock)
        self._write_timeouts = _Timeouts(clock)
        self._is_too_old = False
        self._state = ReadinessState.STARTING

    @property
    def state(self) -> ReadinessState:
        return self._state

    @property
    def read_only(self) -> str | None:
        """Why this process serves reads only, in one sentence for operators; None if it drives matches."""
        return self._read_only

    def serve_reads_only(self, reason: str) -> None:
        """Reject requests that change something; call this before the process starts."""
        self._read_only = reason

    def mark_ready(self) -> None:
        """Mark the startup as complete; has no effect on a draining process."""
        if self._state is ReadinessState.STARTING:
            self._state = ReadinessState.READY

    def drain(self) -> None:
        """Mark the process as about to stop, so that requests go to other processes."""
        self._state = ReadinessState.DRAINING

    def stop(self) -> None:
        """Reject requests from now on."""
        self._state = ReadinessState.STOPPING

    async def compare_clocks(self) -> None:
        """Measure how far our clock differs from that of a shared database."""
        before_ms = self._clock.now_ms()
        theirs_ms = await database_ms(self._db)
        if theirs_ms is None:
            return
        # The database read its clock at some time during the query. Only a time outside the query is a difference.
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
        """Return the reason if a newer process has removed parts of the schema that this process needs; log it once."""
        known = len(MIGRATIONS)
        if not self._is_too_old:
            self._is_too_old = True
            _log.error("database requires a newer version", extra={"required": required, "known": known})
        return (
            f"This version is too old for its database, which requires schema version {required}: it knows versions up"
            f" to {known}. Replace it with a newer one."
        )

    async def warnings(self) -> list[str]:
        """Return problems that do not affect readiness.

        The process stays ready, because a load balancer would otherwise send it no log posts of running matches.
        """
        shortage = await self._disk.shortage()
        sentences = [sentence for sentence in (self._read_only, shortage) if sentence is not None]
        inactive = (f"Region {region.code} is inactive: {fault}" for region, fault in self._regions.faults())
        return [*sentences, *inactive]

    async def _check_write(self) -> str | None:
        now_ms = self._clock.now_ms()
        if self._written_ms is None or not 0 <= now_ms - self._written_ms < WRITE_CHECK_MS:
            self._written_ms = now_ms  # before the write: concurrent probes use the previous result
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
            self._written_ms = None  # the next probe tries again
            if self._write_timeouts.add(started_ms):
                return f"Nothing was written to the database for {LATE_MS // 1_000} s. Check its disk."
            return self._write_fault
        self._write_timeouts.reset()
        return None
