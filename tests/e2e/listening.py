"""A listening HTTP server on loopback, for tests of connections."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from matchpod.app.http_server import HttpServer, bind, port_of
from matchpod.web.asgi import Application
from matchpod.web.connection import Connections


class Listening:
    """A server that accepts connections on `port`."""

    def __init__(self, connections: Connections, port: int) -> None:
        self.connections = connections
        self.port = port


@asynccontextmanager
async def listening(app: Application) -> AsyncIterator[Listening]:
    """Serve the application on loopback until the end of the block."""
    ready = asyncio.Event()
    server = HttpServer(app, on_listening=ready.set)
    with bind("127.0.0.1", 0) as bound:
        port = port_of(bound)
        serving = asyncio.create_task(server.serve(bound))
        await ready.wait()
        try:
            yield Listening(server.connections, port)
        finally:
            server.stop()
            await serving
