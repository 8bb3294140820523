"""Implement the lease of a match. Every write is fenced, and every outside effect checks the lease first."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Final

import msgspec

from matchpod.core.server_status import ServerPhase, ServerStep, next_phase, status_of
from matchpod.core.views.progress import PublicPhase
from matchpod.ports import Clock, Database, NothingChangedError, Row, Statement, Value
from matchpod.service.runner.heartbeat import Heartbeat
from matchpod.storage import servers
from matchpod.storage.servers import ServerRow

MAX_ERROR_CHARS: Final = 500
"""Maximum number of stored characters of an error message."""


class LeaseLostError(Exception):
    """The lease has expired, another process holds it, or the match has ended. Stop without further effects."""


class Lease:
    """A server row that this process drives."""

    def __init__(self, row: ServerRow, db: Database, clock: Clock, heartbeat: Heartbeat | None = None) -> None:
        self.row = row
        self.until_ms = row.lease_until_ms or 0
        """No other process acquires the match before this time, while the heartbeat of this process is confirmed."""
        self._db = db
        self._clock = clock
        self._heartbeat = heartbeat
        self._is_lost = False

    def lose(self) -> None:
        """Mark the lease as lost."""
        self._is_lost = True

    def check(self) -> None:
        """Raise LeaseLostError if the lease was lost or may have ended. Call this right before an outside effect."""
        is_dead = self._heartbeat is not None and not self._heartbeat.is_confirmed()
        if self._is_lost or is_dead or self._clock.now_ms() >= self.until_ms:
            raise LeaseLostError(self.row.id)

    def owns_log(self, token: str) -> bool:
        """True if this is the log token of the match."""
        return servers.token_hash(token) == self.row.log_token_hash

    async def write(self, statements: Sequence[Statement]) -> list[list[Row]]:
        """Write as the lease holder; at least one statement must be fenced. Return the rows of each statement."""
        try:
            return await self._db.write(statements)
        except NothingChangedError as exc:
            self._is_lost = True
            raise LeaseLostError(self.row.id) from exc

    async def change(self, *also: Statement, **columns: Value) -> None:
        """Set columns of the row, in one transaction with other statements."""
        await self.write([servers.change(self.row.id, self.row.fence, **columns), *also])
        self.row = msgspec.structs.replace(self.row, **columns)

    async def step(self, step: ServerStep, *also: Statement, **columns: Value) -> None:
        """Change the phase by a step of the transition table, and set columns in the same transaction."""
        phase = next_phase(self.row.phase, step)
        status = status_of(phase) or self.row.status
        match_phase = PublicPhase.WAITING_FOR_PLAYERS if phase is ServerPhase.RUNNING else PublicPhase.ALLOCATING
        await self.change(*also, phase=phase, status=status, match_phase=match_phase, **columns)

    async def release(self, next_at_ms: int, *, step: ServerStep | None = None, **columns: Value) -> None:
        """End the lease, and change the phase if a step is given; the match is due again at `next_at_ms`."""
        columns |= {"lease_owner": None, "lease_until_ms": None, "next_at_ms": next_at_ms}
        await (self.change(**columns) if step is None else self.step(step, **columns))

    async def finish(self, last: Coroutine[None, None, None]) -> None:
        """Await the last write of the lease and the work that follows it, even if this task is cancelled meanwhile.

        When the write is committed, the lease looks lost even before the answer arrives, and nothing repeats the work
        that follows.
        """
        writing, is_cancelled = asyncio.create_task(last), False
        while not writing.done():
            try:
                await asyncio.wait([writing])
            except asyncio.CancelledError:
                is_cancelled = True
        error = writing.exception()
        if is_cancelled:
            raise asyncio.CancelledError from error
        if error is not None:
            raise error


def readable_error(error: str) -> str:
    """Return the start of an error with printable characters only. Errors may quote server output with characters that
    a database rejects.
    """
    return "".join(character if character.isprintable() else " " for character in error[:MAX_ERROR_CHARS])
