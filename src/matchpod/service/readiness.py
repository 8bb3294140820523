"""Should this process be sent requests? It says so itself: while it starts or drains, and without its database, no.

Nor with a wrong clock: leases and deadlines in a shared database mean the same to all only if their clocks agree.
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
"""The longest wait for the database; a prober gives up soon after."""
MAX_DIFFERENCE_MS: Final = 5_000
"""Between our clock and the database's: a sixth of the time for which a match or a callback is claimed."""

_log = logging.getLogger(__name__)


class ReadinessState(StrEnum):
    """Where the process stands."""

    STARTING = "starting"
    READY = "ready"
    DRAINING = "draining"


class Readiness:
    """What this process answers to those who ask whether it takes requests."""

    def __init__(self, *, db: Database, clock: Clock) -> None:
        self._db = db
        self._clock = clock
        self._difference_ms = 0
        self._state = ReadinessState.STARTING

    @property
    def state(self) -> ReadinessState:
        """Where the process stands."""
        return self._state

    def became_ready(self) -> None:
        """Everything runs; a process that drains already stays so."""
        if self._state is ReadinessState.STARTING:
            self._state = ReadinessState.READY

    def drain(self) -> None:
        """The process is about to end: others are to take its requests."""
        self._state = ReadinessState.DRAINING

    async def compare_clocks(self) -> None:
        """Note how far our clock is from that of a shared database."""
        before_ms = self._clock.now_ms()
        there_ms = await database_ms(self._db)
        if there_ms is None:
            return
        # The answer is from some moment in between: only what lies outside is a difference.
        self._difference_ms = there_ms - max(before_ms, min(there_ms, self._clock.now_ms()))
        if self._has_wrong_clock():
            _log.warning("clock differs from the database", extra={"difference_s": self._difference_ms / 1000})

    def _has_wrong_clock(self) -> bool:
        return abs(self._difference_ms) > MAX_DIFFERENCE_MS

    async def check(self) -> list[str]:
        """What is wrong, one sentence each; none when requests are welcome."""
        if self._state is not ReadinessState.READY:
            return [f"The service is {self._state}."]
        try:
            async with asyncio.timeout(CHECK_S):
                await current_version(self._db)
        except (DatabaseError, TimeoutError):
            return ["The database is away."]
        if self._has_wrong_clock():
            seconds = abs(self._difference_ms) / 1000
            where = "behind" if self._difference_ms > 0 else "ahead of"
            return [f"The clock is {seconds:.1f} s {where} the database's; set it, then start the service again."]
        return []
