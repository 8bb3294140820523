"""A listening HTTP server on loopback, for tests of connections."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from matchpod.app.http_server import ACCEPT_PAUSE_S, DEFAULT_LIMITS, DEFAULT_PATIENCE, HttpServer, bind, port_of
from matchpod.service.telemetry.metrics import ConnectionMetrics
from matchpod.service.telemetry.prometheus import Registry
from matchpod.web.http.admission import ConnectionLimits
from matchpod.web.http.asgi import Application
from matchpod.web.http.connections import Connections, Patience
from tests.waiting import until


class _Relocated(socket.socket):
    """A listening socket whose clients seem to have another address."""

    host = "127.0.0.1"

    def accept(self) -> tuple[socket.socket, tuple[str, int]]:
        client, (_, port) = super().accept()
        return client, (self.host, port)


class Listening:
    """A server that accepts connections on `port`."""

    def __init__(self, connections: Connections, port: int, metrics: Registry) -> None:
        self.connections = connections
        self.port = port
        self.metrics = metrics

    async def until_idle(self) -> None:
        """Wait until no connection or request is left."""
        await until(lambda: not (self.connections.open or self.connections.tasks))


@asynccontextmanager
async def listening(
    app: Application,
    limits: ConnectionLimits = DEFAULT_LIMITS,
    *,
    host: str = "127.0.0.1",
    patience: Patience = DEFAULT_PATIENCE,
    accept_pause_s: float = ACCEPT_PAUSE_S,
) -> AsyncIterator[Listening]:
    """Serve the application on loopback until the end of the block; clients seem to come from `host`."""
    ready, metrics = asyncio.Event(), Registry()
    server = HttpServer(
        app,
        on_listening=ready.set,
        limits=limits,
        metrics=ConnectionMetrics(metrics),
        patience=patience,
        accept_pause_s=accept_pause_s,
    )
    with _Relocated(fileno=bind("127.0.0.1", 0).detach()) as bound:
        bound.setblocking(False)
        bound.host = host
        port = port_of(bound)
        serving = asyncio.create_task(server.serve(bound))
        await ready.wait()
        try:
            yield Listening(server.connections, port, metrics)
        finally:
            server.stop()
            await serving
