"""Count and limit trials of a fleet's secret in the memory of one process, for use without a database."""

from __future__ import annotations

from itertools import count


class LocalTrials:
    """Implements the SecretTrials port for a single fleet and process."""

    def __init__(self) -> None:
        self._ids = count(1)
        self._open: set[tuple[str, str]] = set()
        self._rejected: set[tuple[str, str]] = set()

    async def begin(self, secret: str, places: int) -> str | None:
        if sum(tried == secret for tried, _ in (*self._open, *self._rejected)) >= places:
            return None
        trial = str(next(self._ids))
        self._open.add((secret, trial))
        return trial

    async def reject(self, secret: str, trial: str) -> None:
        self._open.discard((secret, trial))
        self._rejected.add((secret, trial))

    async def accept(self, secret: str, trial: str | None) -> None:
        self._rejected = {(tried, other) for tried, other in self._rejected if tried != secret}
        self._open.discard((secret, trial or ""))

    async def drop(self, secret: str, trial: str) -> None:
        self._open.discard((secret, trial))

    async def rejected(self, secret: str) -> int:
        return sum(tried == secret for tried, _ in self._rejected)
