"""Should this process be sent requests? It says so itself: while it starts or drains, and without its database, no."""

from __future__ import annotations

import asyncio
from enum import StrEnum
from typing import Final

from matchpod.ports import Database, DatabaseError
from matchpod.storage.migrate import current_version

CHECK_S: Final = 2.0
"""The longest wait for the database; a prober gives up soon after."""


class ReadinessState(StrEnum):
    """Where the process stands."""

    STARTING = "starting"
    READY = "ready"
    DRAINING = "draining"


class Readiness:
    """What this process answers to those who ask whether it takes requests."""

    def __init__(self, *, db: Database) -> None:
        self._db = db
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

    async def check(self) -> list[str]:
        """What is wrong, one sentence each; none when requests are welcome."""
        if self._state is not ReadinessState.READY:
            return [f"The service is {self._state}."]
        try:
            async with asyncio.timeout(CHECK_S):
                await current_version(self._db)
        except (DatabaseError, TimeoutError):
            return ["The database is away."]
        return []
