"""Count, across all processes, how many servers of a region have rejected the secret of the region's fleet."""

from __future__ import annotations

from collections.abc import Callable

from matchpod.ports import Clock, Database
from matchpod.storage import secret_trials


class StoredTrials:
    """Limits, for all processes together, how many servers of a region get an unconfirmed fleet secret."""

    def __init__(self, db: Database, clock: Clock, region: str, *, new_id: Callable[[], str]) -> None:
        self._db = db
        self._clock = clock
        self._region = region
        self._new_id = new_id

    async def begin(self, secret: str, places: int) -> str | None:
        trial, now_ms = self._new_id(), self._clock.now_ms()
        is_begun = await secret_trials.begin(self._db, self._region, secret, trial, places=places, now_ms=now_ms)
        return trial if is_begun else None

    async def reject(self, secret: str, trial: str) -> None:
        await secret_trials.reject(self._db, self._region, secret, trial, now_ms=self._clock.now_ms())

    async def accept(self, secret: str, trial: str | None) -> None:
        await secret_trials.accept(self._db, self._region, secret, trial)

    async def drop(self, secret: str, trial: str) -> None:
        await secret_trials.drop(self._db, self._region, secret, trial)

    async def rejected(self, secret: str) -> int:
        return await secret_trials.rejected(self._db, self._region, secret)
