"""Implement the lease of a match. Every write is fenced, and the lease is checked before every effect on a server."""

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
"""Maximum number of characters of an error message that are stored."""


class LeaseLostError(Exception):
    """The lease has expired, another process holds it, or the match has ended. The step must stop."""


class Lease:
    """The lease of this process on a match, with the row of its server."""

    def __init__(self, row: ServerRow, db: Database, clock: Clock, heartbeat: Heartbeat | None = None) -> None:
        self.row = row
        self.until_ms = row.lease_until_ms or 0
        """When the lease expires. Until then, no other process acquires the match while this process's heartbeat is
        confirmed."""
        self._db = db
        self._clock = clock
        self._heartbeat = heartbeat
        self._is_lost = False

    def lose(self) -> None:
        """Mark the lease as lost, so that `check` raises LeaseLostError."""
        self._is_lost = True

    def check(self) -> None:
        """Raise LeaseLostError if the lease was or may be lost. Call this right before each effect on a server."""
        is_dead = self._heartbeat is not None and not self._heartbeat.is_confirmed()
        if self._is_lost or is_dead or self._clock.now_ms() >= self.until_ms:
            raise LeaseLostError(self.row.id)

    def owns_log(self, token: str) -> bool:
        """True if this is the log token of the match's current server."""
        return servers.token_hash(token) == self.row.log_token_hash

    async def write(self, statements: Sequence[Statement]) -> list[list[Row]]:
        """Execute statements, at least one of them fenced; return their rows. LeaseLostError if the lease is lost."""
        try:
            return await self._db.write(statements)
        except NothingChangedError as exc:
            self._is_lost = True
            raise LeaseLostError(self.row.id) from exc

    async def change(self, *also: Statement, **columns: Value) -> None:
        """Set columns of the row, in the same transaction as other statements."""
        await self.write([servers.change(self.row.id, self.row.fence, **columns), *also])
        self.row = msgspec.structs.replace(self.row, **columns)

    async def step(self, step: ServerStep, *also: Statement, **columns: Value) -> None:
        """Change the phase according to the transition table, and set columns in the same transaction."""
        phase = next_phase(self.row.phase, step)
        status = status_of(phase) or self.row.status
        match_phase = PublicPhase.WAITING_FOR_PLAYERS if phase is ServerPhase.RUNNING else PublicPhase.ALLOCATING
        await self.change(*also, phase=phase, status=status, match_phase=match_phase, **columns)

    async def release(self, next_at_ms: int, *, step: ServerStep | None = None, **columns: Value) -> None:
        """End the lease, and change the phase if `step` is given. The match is due again at `next_at_ms`."""
        columns |= {"lease_owner": None, "lease_until_ms": None, "next_at_ms": next_at_ms}
        await (self.change(**columns) if step is None else self.step(step, **columns))

    async def finish(self, last: Coroutine[None, None, None]) -> None:
        """Await the last write under the lease and the work that follows the write, even if this task is cancelled.

        Once the write is committed, the lease counts as lost, which may cancel this task before the write returns. The
        work that follows would then never be done.
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
    """Return the start of an error, with printable characters only.

    An error may quote output of a server with characters that a database rejects.
    """
    return "".join(character if character.isprintable() else " " for character in error[:MAX_ERROR_CHARS])
