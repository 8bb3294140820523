"""Base class of fleets with a fixed number of slots: nothing about their servers changes unnoticed by the service."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from matchpod.ports import Capacity, GameServer


class FixedSlots:
    """What these fleets have in common."""

    @property
    def keeps_servers(self) -> bool:
        """False: each match has a server of its own."""
        return False

    @property
    def fault(self) -> str | None:
        """None: a server that cannot be started is a failed attempt of one match."""
        return None

    async def check(self) -> Sequence[str]:
        """Return no faults: settings of these fleets are checked when they are read."""
        return ()

    async def probe(self) -> str | None:
        """Return None: these fleets have no waiting servers, or know their passwords from the settings."""
        return None

    def waiting_server(self, slot: str) -> GameServer | None:
        """None: a server is started for each match."""
        return None

    async def follow(self, on_change: Callable[[], None]) -> None:
        """Wait until cancelled: a slot becomes free only by a release."""
        await asyncio.Event().wait()

    async def capacity(self) -> Capacity | None:
        """Return None: the slots are all there is to know."""
        return None

    def holds(self, server_id: str) -> bool:
        """False: the slot of a match says whether it may have a server."""
        return False

    async def wait_gone(self, server_id: str, slot: str) -> str:
        """Wait until cancelled: nothing notifies these fleets."""
        never: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        return await never
