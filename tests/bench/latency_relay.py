"""Relay what game servers send to a service, and receive its callbacks, with the times of both."""

from __future__ import annotations

import asyncio
import re
from time import perf_counter
from typing import cast

BACKLOG = 1024
GAME_OVER = b"Game Over: "

_ADDRESS = re.compile(rb"\r\nX-Server-Addr: [\d.]+:(\d+)\r\n")
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_PATH = re.compile(rb"POST /(\d+) ")
_ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"


class Relay:
    """Passes every connection on to the service at `upstream_port`, unchanged."""

    def __init__(self) -> None:
        self.upstream_port = 0
        self.port = 0
        self.game_over_s: dict[int, float] = {}
        """When the post with `Game Over` was passed on, by the port of the game server."""

    async def open(self) -> None:
        loop = asyncio.get_running_loop()
        self._listening = await loop.create_server(lambda: _Inbound(self), "127.0.0.1", 0, backlog=BACKLOG)
        self.port = self._listening.sockets[0].getsockname()[1]

    def close(self) -> None:
        self._listening.close()


class _Inbound(asyncio.Protocol):
    """A connection of a game server."""

    def __init__(self, relay: Relay) -> None:
        self._relay = relay
        self._server = 0
        self._last = b""
        self._waiting: list[bytes] = []
        self._outbound: asyncio.Transport | None = None
        self._opening: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self._opening = asyncio.get_running_loop().create_task(self._open())

    async def _open(self) -> None:
        loop = asyncio.get_running_loop()
        transport, _ = await loop.create_connection(lambda: _Outbound(self), "127.0.0.1", self._relay.upstream_port)
        self._outbound = transport
        for data in self._waiting:
            self._send(data)

    def data_received(self, data: bytes) -> None:
        if self._outbound is None:
            self._waiting.append(data)
        else:
            self._send(data)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._outbound is not None:
            self._outbound.close()

    def _send(self, data: bytes) -> None:
        assert self._outbound is not None
        seen = self._last + data  # a read may end within the text
        for found in _ADDRESS.finditer(seen):
            self._server = int(found[1])
        if GAME_OVER in seen:
            self._relay.game_over_s[self._server] = perf_counter()
        self._last = b"" if GAME_OVER in seen else data[-64:]
        self._outbound.write(data)


class _Outbound(asyncio.Protocol):
    def __init__(self, inbound: _Inbound) -> None:
        self._inbound = inbound

    def data_received(self, data: bytes) -> None:
        self._inbound.transport.write(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._inbound.transport.close()


class CallbackReceiver:
    """Accepts callbacks to `/NUMBER`."""

    def __init__(self) -> None:
        self.port = 0
        self.arrived_s: dict[int, float] = {}
        """When the first byte of a callback arrived, by the number in its URL."""
        self.bodies: dict[int, bytes] = {}

    async def open(self) -> None:
        loop = asyncio.get_running_loop()
        self._listening = await loop.create_server(lambda: _Callback(self), "127.0.0.1", 0, backlog=BACKLOG)
        self.port = self._listening.sockets[0].getsockname()[1]

    def close(self) -> None:
        self._listening.close()


class _Callback(asyncio.Protocol):
    def __init__(self, receiver: CallbackReceiver) -> None:
        self._receiver = receiver
        self._waiting = b""
        self._began_s = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        if not self._waiting:
            self._began_s = perf_counter()
        self._waiting += data
        end = self._waiting.find(b"\r\n\r\n")
        length, path = _LENGTH.search(self._waiting, 0, end), _PATH.match(self._waiting)
        if end < 0 or length is None or path is None or len(self._waiting) < end + 4 + int(length[1]):
            return
        number = int(path[1])
        self._receiver.bodies[number] = self._waiting[end + 4 :]
        self._receiver.arrived_s[number] = self._began_s
        self._waiting = b""
        self._transport.write(_ANSWER)
