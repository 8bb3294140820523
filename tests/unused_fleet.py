"""A fleet for tests that start no servers."""

from __future__ import annotations

from collections.abc import Sequence

from matchpod.adapters.fleets.fixed_slots import FixedSlots
from matchpod.core.servers.server_loss import FleetReport
from matchpod.ports import GameServer, ListedServer, ServerLease, ServerOrder


class UnusedFleet(FixedSlots):
    """A fleet that must not be used."""

    slots: Sequence[str] = ()
    why_unusable: str | None = None

    @property
    def fault(self) -> str | None:
        return self.why_unusable

    async def allocate(self, order: ServerOrder) -> GameServer:
        raise AssertionError(order)

    async def observe(self, server_id: str, slot: str) -> FleetReport:
        raise AssertionError(server_id, slot)

    async def release(self, server_id: str, slot: str, lease: ServerLease | None = None) -> None:
        raise AssertionError(server_id, slot)

    async def servers(self) -> Sequence[ListedServer]:
        return ()

    async def close(self) -> None:
        pass
