"""Base class of fleets with a fixed number of slots. Only the service itself reserves and frees these slots."""

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
        """Return None, because a server that does not start fails only one attempt; the fleet is still available."""
        return None

    async def check(self) -> Sequence[str]:
        """Return no faults, because the settings of these fleets are validated when they are read."""
        return ()

    async def probe(self) -> str | None:
        """Return None, because there is nothing to test: no server is waiting, or its password is in the settings."""
        return None

    def waiting_server(self, slot: str) -> GameServer | None:
        """Return None, because these fleets start a server for each match."""
        return None

    async def follow(self, on_change: Callable[[], None]) -> None:
        """Wait until cancelled, because no event from outside frees a slot."""
        await asyncio.Event().wait()

    async def capacity(self) -> Capacity | None:
        """Return None, because the number of slots is the capacity of these fleets."""
        return None

    def holds(self, server_id: str) -> bool:
        """Return False, because the stored slot of a match already shows whether it may have a server."""
        return False

    async def wait_gone(self, server_id: str, slot: str) -> str:
        """Wait until cancelled, because these fleets do not report when a server has ended."""
        never: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        return await never
