"""Remember which servers are in use by other installations or matches, so that they are not checked constantly.

There is no notification when such a server becomes free, so it is polled by one waiting match at a time.
"""

from __future__ import annotations

import asyncio
from typing import Final

ASK_AGAIN_MS: Final = 15_000
"""Interval at which a process checks whether a server is still in use, regardless of how many matches wait. After the
server has become free, a match gets it within half a minute, because the match must be woken, too."""


class UsedSlots:
    """The slots whose servers this process has found in use by another installation or match."""

    def __init__(self, ask_again_ms: int = ASK_AGAIN_MS) -> None:
        self._ask_again_ms = ask_again_ms
        self._found: dict[tuple[str, str], tuple[int, str]] = {}
        """By region and slot: when to check the server again, and why the slot cannot be used."""
        self._turns: dict[str, asyncio.Lock] = {}
        self._asking: dict[str, str] = {}
        """The match that may check servers now, by region."""

    def record(self, region: str, slot: str, now_ms: int, error: str) -> bool:
        """Record that the server of a slot is in use. True if this was not known."""
        is_new = (region, slot) not in self._found
        self._found[region, slot] = (now_ms + self._ask_again_ms, error)
        return is_new

    def clear(self, region: str, slot: str) -> None:
        """Forget that the server of a slot was in use."""
        self._found.pop((region, slot), None)

    def known(self, region: str) -> set[str]:
        """Return the slots of a region whose servers were in use when they were last checked."""
        return {slot for code, slot in self._found if code == region}

    def skipped(self, region: str, now_ms: int) -> dict[str, str]:
        """Return the slots that must not be checked now, with the reason why each cannot be used."""
        return {
            slot: error
            for (code, slot), (until_ms, error) in self._found.items()
            if code == region and now_ms < until_ms
        }

    async def begin(self, region: str, server_id: str) -> None:
        """Wait until a match may check the region's servers. Then other matches wait until this match calls `end`."""
        if self._asking.get(region) != server_id:
            await self._turns.setdefault(region, asyncio.Lock()).acquire()
            self._asking[region] = server_id

    def end(self, region: str, server_id: str) -> None:
        """Let the next match check servers, if this match was allowed to check them."""
        if self._asking.get(region) == server_id:
            del self._asking[region]
            self._turns[region].release()
