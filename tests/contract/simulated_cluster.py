"""A simulated region whose fleet has no slots: it decides itself which match gets one of its servers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec

from matchpod.ports import Capacity, FleetError, GameServer, ServerLease, ServerOrder
from tests.contract.simulated_region import SimulatedRegion


class SimulatedCluster(SimulatedRegion):
    """A fleet of `total` servers, each for one match: a released one is replaced at once."""

    def __init__(self, total: int, *, start_ms: int) -> None:
        super().__init__(None, start_ms=start_ms)
        self.total = total
        self.why_unusable: str | None = None
        """The fault of the fleet; `changed` reports that it has one, or no longer has one."""
        self.lost_answers = 0
        """How many of the next allocations succeed without an answer."""
        self._on_change: list[Callable[[], None]] = []
        self._gone: dict[str, asyncio.Event] = {}

    @property
    def fault(self) -> str | None:
        return self.why_unusable

    async def follow(self, on_change: Callable[[], None]) -> None:
        self._on_change.append(on_change)
        await asyncio.Event().wait()

    async def capacity(self) -> Capacity:
        return Capacity(ready=self.total - len(self.running), allocated=len(self.running), total=self.total)

    async def allocate(self, order: ServerOrder) -> GameServer | None:
        self.orders.append(order)
        if self.allocation_errors:
            raise self.allocation_errors.pop(0)
        if order.server_id in self.running and not order.is_repeated:
            raise AssertionError("a second server for this match")
        if order.server_id not in self.running:
            if len(self.running) >= self.total:
                return None
            self._gone.pop(order.server_id, None)
            self._start(order)
        if self.lost_answers:
            self.lost_answers -= 1
            raise FleetError("no answer")
        return msgspec.structs.replace(self._game_server(order, order.rcon_password), slot="pod-1")

    def holds(self, server_id: str) -> bool:
        return server_id in self.running

    async def wait_gone(self, server_id: str, slot: str) -> str:
        await self._gone.setdefault(server_id, asyncio.Event()).wait()
        return "its pod was deleted"

    async def release(self, server_id: str, slot: str, lease: ServerLease | None = None) -> None:
        await super().release(server_id, slot, lease)
        self.changed()

    async def delete(self, server_id: str) -> None:
        await self.running.pop(server_id).close()
        self._gone.setdefault(server_id, asyncio.Event()).set()

    def changed(self) -> None:
        for on_change in self._on_change:
            on_change()
