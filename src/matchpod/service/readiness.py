"""Check the readiness of this process: it has started, does not drain, and has a database and the right time.

Leases and deadlines in a shared database require that the clocks of all processes agree.
"""

from __future__ import annotations

import asyncio
import logging
from enum import StrEnum
from typing import Final

from matchpod.ports import Clock, Database, DatabaseError
from matchpod.storage.migrate import current_version
from matchpod.storage.time_check import database_ms

CHECK_S: Final = 2.0
"""Timeout of the database check, shorter than that of a usual probe."""
MAX_DIFFERENCE_MS: Final = 5_000
"""Tolerated difference between our clock and the database's: a sixth of a lease."""

_log = logging.getLogger(__name__)


class ReadinessState(StrEnum):
    """The lifecycle of a process."""

    STARTING = "starting"
    READY = "ready"
    DRAINING = "draining"
    """Not ready, but requests are still answered: a load balancer needs a moment to notice."""
    STOPPING = "stopping"
    """Requests are rejected."""


class Readiness:
    """Whether this process accepts requests."""

    def __init__(self, *, db: Database, clock: Clock) -> None:
        self._db = db
        self._clock = clock
        self._difference_ms = 0
        self._state = ReadinessState.STARTING

    @property
    def state(self) -> ReadinessState:
        """The current state."""
        return self._state

    def mark_ready(self) -> None:
        """Mark the startup as complete; has no effect on a draining process."""
        if self._state is ReadinessState.STARTING:
            self._state = ReadinessState.READY

    def drain(self) -> None:
        """Mark the process as about to stop: requests should go to other processes."""
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
        # The database read its clock at some time during the query: only a time before or after it is a difference.
        self._difference_ms = theirs_ms - max(before_ms, min(theirs_ms, self._clock.now_ms()))
        if self._has_wrong_clock():
            _log.warning("clock differs from the database clock", extra={"difference_s": self._difference_ms / 1000})

    def _has_wrong_clock(self) -> bool:
        return abs(self._difference_ms) > MAX_DIFFERENCE_MS

    async def check(self) -> list[str]:
        """The reasons why the process is not ready; empty if it is."""
        if self._state is not ReadinessState.READY:
            return [f"The service is {self._state}."]
        try:
            async with asyncio.timeout(CHECK_S):
                await current_version(self._db)
        except (DatabaseError, TimeoutError):
            return ["The database is unavailable."]
        if self._has_wrong_clock():
            seconds = abs(self._difference_ms) / 1000
            where = "behind" if self._difference_ms > 0 else "ahead of"
            return [f"The clock is {seconds:.1f} s {where} the database's. Correct it and restart the service."]
        return []
