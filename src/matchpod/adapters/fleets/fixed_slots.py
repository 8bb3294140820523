"""Base class of fleets with a fixed number of slots. Only the service changes which of their slots are in use."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from matchpod.ports import Capacity, GameServer


class FixedSlots:
    """Base class of fleets with a fixed number of slots."""

    @property
    def keeps_servers(self) -> bool:
        """Return False, because each match gets a server of its own."""
        return False

    @property
    def fault(self) -> str | None:
        """Return None, because a server that cannot be started fails only an attempt of its match."""
        return None

    async def check(self) -> Sequence[str]:
        """Return no faults, because the settings of these fleets are checked when they are read."""
        return ()

    async def probe(self) -> str | None:
        """Return None, because these fleets have no waiting servers, or their passwords are in the settings."""
        return None

    def waiting_server(self, slot: str) -> GameServer | None:
        """Return None, because these fleets start a server per match."""
        return None

    async def follow(self, on_change: Callable[[], None]) -> None:
        """Wait until cancelled, because a slot becomes free only by a release."""
        await asyncio.Event().wait()

    async def capacity(self) -> Capacity | None:
        """Return None, because the capacity of these fleets is their slots."""
        return None

    def holds(self, server_id: str) -> bool:
        """Return False, because the slot of a match shows whether it may have a server."""
        return False

    async def wait_gone(self, server_id: str, slot: str) -> str:
        """Wait until cancelled, because these fleets are not notified of ended servers."""
        never: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        return await never
