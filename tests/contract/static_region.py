"""A simulated region whose servers an operator runs: its fleet is the static one, its consoles are simulated."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from matchpod.adapters.fleets.static import StaticFleet, StaticServer
from matchpod.core.servers.server_loss import FleetReport
from matchpod.ports import GameServer, ListedServer, ServerLease, ServerOrder
from tests.contract.simulated_region import OPERATOR_PASSWORD, SimulatedConsole, SimulatedRegion, SimulatedServer

FIRST, SECOND = "192.0.2.1:27015", "192.0.2.1:27016"
OURS, THEIRS = "mp-00000000000000aa", "mp-00000000000000bb"
"""Ids of installations: that of the fleet, and another one."""


class FreezingConsole(SimulatedConsole):
    """A console whose answer to one command of a region arrives late."""

    def __init__(self, server: SimulatedServer, region: StaticRegion) -> None:
        super().__init__(server)
        self._region = region

    async def run(self, command: str, *, timeout_s: float = 10.0) -> str:
        answer = await super().run(command, timeout_s=timeout_s)
        if self._region.freezes_at == command:
            self._region.freezes_at = None
            self._region.is_frozen.set()
            await self._region.go_on.wait()
        return answer


class StaticRegion(SimulatedRegion):
    """A static fleet with one simulated server per slot."""

    def __init__(self, slots: Sequence[str] | None = (FIRST, SECOND), *, start_ms: int) -> None:
        super().__init__(slots, start_ms=start_ms)
        addresses = slots or ()
        fleet_servers = [StaticServer(address, OPERATOR_PASSWORD) for address in addresses]
        self._fleet = StaticFleet(fleet_servers, self, owner=OURS, clean_s=600.0)
        self.servers_at = {address: self._boot(number) for number, address in enumerate(addresses, start=1)}
        self.opened: list[str] = []
        """The address of each connection that was opened."""
        self.freezes_at: str | None = None
        """A command after which the process that sent it is frozen, until `go_on` is set."""
        self.is_frozen, self.go_on = asyncio.Event(), asyncio.Event()

    def _boot(self, number: int) -> SimulatedServer:
        order = ServerOrder(
            server_id="", slot="", map_name="de_dust2", game_type=0, game_mode=1, rcon_password=OPERATOR_PASSWORD
        )
        return SimulatedServer(self, order, start_ms=self._start_ms, number=number)

    async def open(self, host: str, port: int, password: str) -> SimulatedConsole:
        self.opened.append(f"{host}:{port}")
        return FreezingConsole(self.servers_at[f"{host}:{port}"], self)

    @property
    def keeps_servers(self) -> bool:
        return self._fleet.keeps_servers

    async def allocate(self, order: ServerOrder) -> GameServer | None:
        self.orders.append(order)
        server = await self._fleet.allocate(order)
        self.running[order.server_id] = self.servers_at[order.slot]
        return server

    async def observe(self, server_id: str, slot: str) -> FleetReport:
        return await self._fleet.observe(server_id, slot)

    async def release(self, server_id: str, slot: str, lease: ServerLease | None = None) -> None:
        await self._fleet.release(server_id, slot, lease)
        self.releases.append(server_id)
        self.running.pop(server_id, None)

    async def servers(self) -> Sequence[ListedServer]:
        return await self._fleet.servers()

    async def close(self) -> None:
        for server in self.servers_at.values():
            await server.close()
