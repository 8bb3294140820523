"""Simulated servers in this process that stand for the pods of a fleet: each listens on a port of its own."""

from __future__ import annotations

import asyncio
import time

from cs2_simulator.machine import Machine
from cs2_simulator.options import ServerOptions
from cs2_simulator.wire.http_client import HttpClient
from cs2_simulator.wire.pacer import Pacer
from cs2_simulator.wire.server import SimulatedServer
from matchpod.adapters.fleets.agones_console import first_password

SECRET = b"a secret of the whole fleet"
MAP = "de_mirage"
"""The map that waiting servers have loaded: that of most test matches, so that they need not load it."""


class GameServers:
    def __init__(self, secret: bytes = SECRET) -> None:
        self.secret = secret
        self.running: dict[str, SimulatedServer] = {}
        self._client = HttpClient()
        self._pacer = Pacer()

    async def start(self, name: str) -> int:
        """Start a server with the first password of its name; return its port."""
        server = SimulatedServer(
            ServerOptions(port=0, rcon_password=first_password(self.secret, name), seed=name, map=MAP),
            self._client,
            self._pacer,
            make_machine=Machine,
            start_ms=time.time_ns() // 1_000_000,
            instance_token=f"{len(self.running):016x}",
            on_exit=lambda _server: None,
        )
        await server.bind()
        server.boot()
        self.running[name] = server
        return server.options.port

    def stop(self, name: str) -> None:
        server = self.running.pop(name, None)
        if server is not None:
            server.close(is_abrupt=True)

    async def close(self) -> None:
        for name in tuple(self.running):
            self.stop(name)
        await self._client.close()
        await asyncio.sleep(0)  # transports close their sockets in the next iteration of the loop
