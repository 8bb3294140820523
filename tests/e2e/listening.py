"""A listening HTTP server on loopback and its clients, for tests of connections."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

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


class Client:
    """A connection to a server, and the last response that it has read."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self.head = b""
        self.body = b""

    def send(self, data: bytes) -> None:
        self._writer.write(data)

    async def status(self) -> int:
        """Read a response."""
        self.head = await self._reader.readuntil(b"\r\n\r\n")
        length = int(self.head.lower().partition(b"content-length: ")[2].split()[0])
        self.body = await self._reader.readexactly(length)
        return int(self.head.split()[1])

    async def rest(self) -> bytes:
        """Read until the connection is closed."""
        with suppress(ConnectionError):
            return await self._reader.read()
        return b""

    @property
    def is_closing(self) -> bool:
        return self._writer.transport.is_closing()

    def close(self) -> None:
        self._writer.transport.abort()


class Listening:
    """A server that accepts connections on `port`; those of its clients are closed with it."""

    def __init__(self, connections: Connections, port: int, metrics: Registry) -> None:
        self.connections = connections
        self.port = port
        self.metrics = metrics
        self._clients: list[Client] = []

    async def connect(self, data: bytes = b"") -> Client:
        """Open a connection, and send this."""
        client = Client(*await asyncio.open_connection("127.0.0.1", self.port))
        self._clients.append(client)
        client.send(data)
        return client

    def close_clients(self) -> None:
        for client in self._clients:
            client.close()

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
        opened = Listening(server.connections, port, metrics)
        try:
            yield opened
        finally:
            opened.close_clients()
            server.stop()
            await serving
