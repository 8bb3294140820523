"""Run many independent simulated servers in one process, with a shared HTTP client."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Sequence

from cs2_simulator.options import ServerOptions
from cs2_simulator.wire.http_client import HttpClient
from cs2_simulator.wire.pacer import Pacer
from cs2_simulator.wire.server import MachineFactory, SimulatedServer

BOOT_BATCH = 50
"""Number of servers booted before the event loop handles other events, such as signals. This takes a tenth of a
second."""


class Farm:
    """One or more servers in one process. Must be created inside a running event loop."""

    def __init__(
        self,
        options: Sequence[ServerOptions],
        make_machine: MachineFactory,
        *,
        on_exit: Callable[[SimulatedServer], None],
    ) -> None:
        """`on_exit` is called for each server that quits or crashes, even while the farm is being stopped."""
        self._options = list(options)
        self._make_machine = make_machine
        self._on_exit = on_exit
        self._client = HttpClient()
        self._pacer = Pacer()
        self._servers: list[SimulatedServer] = []

    @property
    def servers(self) -> Sequence[SimulatedServer]:
        """All servers in the order of their options, including those that have ended."""
        return self._servers

    async def start(self) -> None:
        """Start all servers. If that fails, start none. Raise OSError if a port is in use."""
        try:
            for options in self._options:
                self._servers.append(self._new_server(options))
                await self._servers[-1].bind()
            # Boot only after all ports are bound: servers that already run would delay binding the others.
            for number, server in enumerate(self._servers):
                if number % BOOT_BATCH == 0:
                    await asyncio.sleep(0)
                server.boot()
        except BaseException:
            await self.abort()
            raise

    async def stop(self) -> None:
        """Stop all servers gracefully and free all resources."""
        await asyncio.gather(*(server.stop() for server in self._servers))
        await self._client.close()

    async def abort(self) -> None:
        """Free all resources immediately, without sending remaining logs."""
        for server in self._servers:
            server.close(is_abrupt=True)
        await self._client.close()

    def _new_server(self, options: ServerOptions) -> SimulatedServer:
        return SimulatedServer(
            options,
            self._client,
            self._pacer,
            make_machine=self._make_machine,
            start_ms=time.time_ns() // 1_000_000,
            instance_token=os.urandom(8).hex(),
            on_exit=self._on_exit,
            servers=len(self._options),
        )
