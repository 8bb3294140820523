"""How do many servers live in one process? Each for itself, with one HTTP client for all; one's death is its own."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Sequence

from matchpod.simulator.options import ServerOptions
from matchpod.simulator.wire.http_client import HttpClient
from matchpod.simulator.wire.pacer import Pacer
from matchpod.simulator.wire.server import Birth, MachineMaker, SimulatedServer

BOOTS_AT_ONCE = 50
"""Servers that boot before anything else has its turn, such as a signal: they take a tenth of a second."""


class Farm:
    """A number of servers, one or hundreds; made inside a running event loop."""

    def __init__(
        self,
        options: Sequence[ServerOptions],
        make_machine: MachineMaker,
        *,
        on_exit: Callable[[SimulatedServer], None],
    ) -> None:
        """`on_exit` is told of a server that quit or crashed, also while the farm stops."""
        self._options = list(options)
        self._make_machine = make_machine
        self._on_exit = on_exit
        self._client = HttpClient()
        self._pacer = Pacer()
        self._servers: list[SimulatedServer] = []

    @property
    def servers(self) -> Sequence[SimulatedServer]:
        """All servers, in the order of their options; those that ended too."""
        return self._servers

    async def start(self) -> None:
        """Start all servers, or none: OSError when a port is in use."""
        try:
            for options in self._options:
                server = self._new_server(options)
                self._servers.append(server)
                await server.bind()
            # Only now: servers that run already would delay the others.
            for number, server in enumerate(self._servers):
                if number % BOOTS_AT_ONCE == 0:
                    await asyncio.sleep(0)
                server.boot()
        except BaseException:
            await self.abandon()
            raise

    async def restart(self, index: int) -> SimulatedServer:
        """Start a server anew, as a new process would, on the port it had; the old one is stopped if it still runs."""
        old = self._servers[index]
        await old.stop()
        self._servers[index] = server = self._new_server(old.options)
        await server.bind()
        server.boot()
        return server

    async def stop(self) -> None:
        """Let all servers quit, and free everything."""
        await asyncio.gather(*(server.stop() for server in self._servers))
        await self._client.close()

    async def abandon(self) -> None:
        """Free everything at once, without farewell."""
        for server in self._servers:
            server.close(is_abrupt=True)
        await self._client.close()

    def _new_server(self, options: ServerOptions) -> SimulatedServer:
        return SimulatedServer(
            options,
            self._client,
            self._pacer,
            make_machine=self._make_machine,
            birth=Birth(start_ms=time.time_ns() // 1_000_000, instance_token=os.urandom(8).hex()),
            on_exit=self._on_exit,
            servers=len(self._options),
        )
