"""Count the calls to a database by type and outcome, and measure how long they take."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Final

from matchpod import ports
from matchpod.service.telemetry.metrics import DatabaseMetrics

READ: Final = "read"
WRITE: Final = "write"


class CallOutcome(StrEnum):
    """How a call to the database ended."""

    OK = "ok"
    REJECTED = "rejected"
    """The call was rejected because it would change nothing, or duplicate a row. This is normal if two processes try
    the same change."""
    UNAVAILABLE = "unavailable"
    FAILED = "failed"


class MeasuredDatabase:
    """A database whose calls are counted and measured, except cancelled calls."""

    def __init__(self, db: ports.Database, metrics: DatabaseMetrics) -> None:
        self.source = db
        """The database that is measured."""
        self._calls, self._seconds = metrics.calls, metrics.seconds
        self._calls.preset((READ, WRITE), CallOutcome)
        self._seconds.preset((READ, WRITE))

    @property
    def is_shared(self) -> bool:
        return self.source.is_shared

    @property
    def is_postgres(self) -> bool:
        return self.source.is_postgres

    async def read(self, sql: str, params: Mapping[str, ports.Value] | None = None) -> list[ports.Row]:
        began_s = time.monotonic()
        try:
            rows = await self.source.read(sql, params)
        except Exception as exc:
            self._count(READ, _outcome(exc), began_s)
            raise
        self._count(READ, CallOutcome.OK, began_s)
        return rows

    async def read_one(self, sql: str, params: Mapping[str, ports.Value]) -> ports.Row | None:
        began_s = time.monotonic()
        try:
            row = await self.source.read_one(sql, params)
        except Exception as exc:
            self._count(READ, _outcome(exc), began_s)
            raise
        self._count(READ, CallOutcome.OK, began_s)
        return row

    async def write(self, statements: Sequence[ports.Statement]) -> list[list[ports.Row]]:
        began_s = time.monotonic()
        try:
            rows = await self.source.write(statements)
        except Exception as exc:
            self._count(WRITE, _outcome(exc), began_s)
            raise
        self._count(WRITE, CallOutcome.OK, began_s)
        return rows

    async def listen(self, channel: str, on_announced: Callable[[str], None]) -> None:
        await self.source.listen(channel, on_announced)

    async def close(self) -> None:
        await self.source.close()

    def _count(self, kind: str, outcome: CallOutcome, began_s: float) -> None:
        self._calls.inc(kind, outcome)
        self._seconds.observe(time.monotonic() - began_s, kind)


def _outcome(error: Exception) -> CallOutcome:
    if isinstance(error, ports.NothingChangedError | ports.DuplicateError):
        return CallOutcome.REJECTED
    return CallOutcome.UNAVAILABLE if isinstance(error, ports.DatabaseUnavailableError) else CallOutcome.FAILED
