"""Remember which servers of a fleet are in use elsewhere, so that waiting matches do not ask them all the time."""

from __future__ import annotations

from typing import Final

ASK_AGAIN_MS: Final = 15_000
"""How long a server in use is not asked again. However many matches wait, a process connects to it this often; a match
gets it, with the time until one is woken, at most half a minute after it became free."""


class UsedSlots:
    """The slots whose servers this process found in use by another installation."""

    def __init__(self, ask_again_ms: int = ASK_AGAIN_MS) -> None:
        self._ask_again_ms = ask_again_ms
        self._found: dict[tuple[str, str], tuple[int, str]] = {}
        """When to ask again, and why the slot cannot be used, by region and slot."""

    def record(self, region: str, slot: str, now_ms: int, error: str) -> bool:
        """Record that the server of a slot is in use; True if that was not known."""
        is_new = (region, slot) not in self._found
        self._found[region, slot] = (now_ms + self._ask_again_ms, error)
        return is_new

    def clear(self, region: str, slot: str) -> None:
        """Record that the server of a slot is free."""
        self._found.pop((region, slot), None)

    def skipped(self, region: str, now_ms: int) -> dict[str, str]:
        """Return the slots of a region that are not to be asked now, and why."""
        return {
            slot: error
            for (code, slot), (until_ms, error) in self._found.items()
            if code == region and now_ms < until_ms
        }
