"""Who may act on a match? Whoever holds its claim: every write is fenced, and every act outside asks here first."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from matchpod.core.server_status import ServerStep, next_phase, status_of
from matchpod.ports import Clock, Database, NothingChangedError, Statement, Value
from matchpod.storage import servers
from matchpod.storage.servers import ServerRow


class ClaimLostError(Exception):
    """The match is somebody else's by now, or has ended: stop, and touch nothing."""


class Claim:
    """A server row that this process drives."""

    def __init__(self, row: ServerRow, db: Database, clock: Clock) -> None:
        self.row = row
        self.until_ms = row.lease_until_ms or 0
        """Until when nobody else takes the match; moved on by whoever renews all claims."""
        self._db = db
        self._clock = clock
        self._is_lost = False

    def lose(self) -> None:
        """It was found to be somebody else's."""
        self._is_lost = True

    def check(self) -> None:
        """Right before an act outside: ClaimLostError unless the match is still ours."""
        if self._is_lost or self._clock.now_ms() >= self.until_ms:
            raise ClaimLostError(self.row.id)

    async def write(self, statements: Sequence[Statement]) -> None:
        """Write what only the holder may write; at least one of the statements is fenced."""
        try:
            await self._db.write(statements)
        except NothingChangedError as exc:
            self._is_lost = True
            raise ClaimLostError(self.row.id) from exc

    async def change(self, *also: Statement, **columns: Value) -> None:
        """Set columns of the row, together with other statements."""
        await self.write([servers.change(self.row.id, self.row.fence, **columns), *also])
        self.row = msgspec.structs.replace(self.row, **columns)

    async def step(self, step: ServerStep, *also: Statement, **columns: Value) -> None:
        """Take a step of the server's table, and set columns with it."""
        phase = next_phase(self.row.phase, step)
        status = status_of(phase) or self.row.status
        await self.change(*also, phase=phase, status=status, **columns)

    async def give_back(self, next_at_ms: int, **columns: Value) -> None:
        """End the claim; somebody is to look at the match again at this time."""
        await self.change(**columns, **_unclaimed(next_at_ms))

    async def step_back(self, step: ServerStep, next_at_ms: int, **columns: Value) -> None:
        """Take a step and end the claim with it."""
        await self.step(step, **columns, **_unclaimed(next_at_ms))


def _unclaimed(next_at_ms: int) -> dict[str, Value]:
    return {"lease_owner": None, "lease_until_ms": None, "next_at_ms": next_at_ms}
