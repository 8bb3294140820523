"""Store heartbeats in the database, so that other processes know that this process is alive.

Other processes end the leases of a process whose heartbeat is older than DEAD_MS. So a process that cannot store its
heartbeat stops acting before that time (`is_confirmed`). When it can store a heartbeat again, it first checks which
matches it has lost.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from typing import Final

from matchpod.ports import Clock, Database, DatabaseUnavailableError
from matchpod.service.regions.silence import SilentServers
from matchpod.service.runner.pulse import since_boot_s
from matchpod.storage import heartbeats
from matchpod.storage.announcements import announce_due
from matchpod.storage.heartbeats import DEAD_MS

CONFIRMED_MS: Final = DEAD_MS - 500
"""Time for which this process may act after it sent a heartbeat that was stored. The margin to DEAD_MS allows for
clocks that run at different speeds."""
STEADY_MS: Final = DEAD_MS + 1_000
"""Time for which this process's heartbeats must have been on time before it ends leases of other processes. After a
database outage, all heartbeats are late, so all processes get time to write their next heartbeat."""
FRESH_MS: Final = 2_000
"""Maximum age of this process's own heartbeat when it checks those of other processes. If it is older, the database may
be unavailable for all processes."""
STEP_MS: Final = 1_000
"""Change of the difference between the clocks of the database and this process, above which one of the clocks must have
been set."""
CHECK_S: Final = 1.5
"""Timeout in seconds of the lease check after a late heartbeat. Without it, a read that hangs on a dead connection
could delay the next heartbeat by more than DEAD_MS."""


class Heartbeat:
    """The heartbeat of this process. With SQLite there are no heartbeats, and `is_confirmed` is always true."""

    def __init__(
        self,
        db: Database,
        clock: Clock,
        owner: str,
        *,
        silent: SilentServers,
        max_matches: int | None = None,
        monotonic_s: Callable[[], float] = since_boot_s,
    ) -> None:
        self._db = db
        self._clock = clock
        self._owner = owner
        self._silent = silent
        self._max_matches = max_matches
        self._monotonic_s = monotonic_s
        self._is_checked = True
        """False if leases must be checked: after a late heartbeat, and after a heartbeat whose write was not confirmed,
        because it may have been stored as a new row."""
        self._sent_ms = -math.inf
        """When the last stored heartbeat was sent."""
        self._until_ms = -math.inf
        self._steady_since_ms = math.inf
        self._ahead_ms = 0.0
        """How far the clock of the database is ahead of the clock of this process."""
        self._are_silences_stored = False

    def is_confirmed(self) -> bool:
        """True if no other process can have ended the leases of this process."""
        return not self._db.is_postgres or self._now_ms() < self._until_ms

    async def beat(self, check_leases: Callable[[], Awaitable[None]]) -> bool:
        """Store a heartbeat. True if it is the first, or so late that other processes may have ended leases before it.

        In these cases, `check_leases` is called, and the heartbeat confirms the leases only after that. If the check
        fails, the next heartbeat repeats it.
        """
        sent_ms, now_ms = self._now_ms(), self._clock.now_ms()
        was_checked, self._is_checked = self._is_checked, False
        stored = await heartbeats.beat(
            self._db, self._owner, max_matches=self._max_matches, silences=self._silent.shared(now_ms)
        )
        self._silent.set_remote(stored.silences, now_ms)
        ahead_ms = stored.at_ms - sent_ms
        is_late = stored.is_new or not was_checked or sent_ms >= self._until_ms
        if stored.is_new:
            self._until_ms = -math.inf
        if is_late or abs(ahead_ms - self._ahead_ms) > STEP_MS:
            self._steady_since_ms = sent_ms
        self._ahead_ms = ahead_ms
        self._sent_ms = sent_ms
        if is_late:
            await self._check(check_leases)
        self._is_checked = True
        self._until_ms = sent_ms + CONFIRMED_MS
        return is_late

    async def store_silences(self) -> None:
        """Store which servers are silent, for commands that show them. Used without PostgreSQL."""
        now_ms = self._clock.now_ms()
        silences = self._silent.shared(now_ms)
        if silences or self._are_silences_stored:
            await heartbeats.store_silences(self._db, self._owner, silences, now_ms)
            self._are_silences_stored = bool(silences)

    async def end_dead_leases(self) -> bool:
        """End the leases of dead or frozen processes, and notify the other processes. True if leases were ended."""
        now_ms = self._now_ms()
        if now_ms - self._sent_ms >= FRESH_MS or now_ms - self._steady_since_ms < STEADY_MS:
            return False
        expected_ms = round(now_ms + self._ahead_ms)
        if not await heartbeats.end_dead_leases(self._db, self._clock.now_ms(), expected_ms=expected_ms):
            return False
        await announce_due(self._db)
        return True

    async def announce_stop(self) -> None:
        """Announce that this process acquires no further matches, so that others acquire what it releases."""
        self._max_matches = 0
        if self._db.is_postgres:
            await heartbeats.beat(self._db, self._owner, max_matches=0)

    async def end(self) -> None:
        """Delete the heartbeat after all matches were released, and notify other processes to acquire them."""
        self._sent_ms = self._until_ms = -math.inf
        if self._db.is_postgres:
            await heartbeats.end(self._db, self._owner)
            await announce_due(self._db)

    async def _check(self, check_leases: Callable[[], Awaitable[None]]) -> None:
        try:
            async with asyncio.timeout(CHECK_S):
                await check_leases()
        except TimeoutError as exc:
            raise DatabaseUnavailableError(f"leases could not be checked within {CHECK_S:g} s") from exc

    def _now_ms(self) -> float:
        return self._monotonic_s() * 1000
