"""How does a server ask the world over HTTP? GET and POST, kept connections, one time limit, and never an exception.

A connection that was kept and turns out to be closed is replaced once; all other faults are the answer. Redirects are
answers like any other, as the game's client follows none.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from ssl import SSLContext, create_default_context
from urllib.parse import urlsplit

import msgspec

from matchpod.simulator.outside import Fetched
from matchpod.simulator.wire.http_response import ResponseError, ResponseReader

TIMEOUT_S = 10.0
"""From asking to the whole answer: what a game server waits before it sends its log again."""

MAX_IDLE = 64
"""Connections kept for one address; a farm sends more at a time only when the receiver is slow."""

Headers = Iterable[tuple[str, str]]


class Address(msgspec.Struct, frozen=True):
    """Where a connection goes."""

    host: str
    port: int
    is_secure: bool


class _Connection(asyncio.Protocol):
    """One connection and the answer it waits for."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport | None = None
        self.reader = ResponseReader()
        self.answer: asyncio.Future[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        if self.answer is None or self.answer.done():
            self.abort()  # nobody asked
            return
        try:
            self.reader.feed(data)
        except ResponseError as fault:
            self._settle(fault)
            return
        if self.reader.is_done:
            self._settle(None)

    def connection_lost(self, exc: Exception | None) -> None:
        self.transport = None
        if exc is not None:
            self._settle(exc)
            return
        try:
            self.reader.finish()
        except ResponseError as fault:
            self._settle(fault)
        else:
            self._settle(None)

    def _settle(self, fault: Exception | None) -> None:
        if self.answer is None or self.answer.done():
            return
        if fault is None:
            self.answer.set_result(None)
        else:
            self.answer.set_exception(fault)

    @property
    def is_open(self) -> bool:
        return self.transport is not None and not self.transport.is_closing()

    def abort(self) -> None:
        if self.transport is not None:
            self.transport.abort()

    async def exchange(self, request: bytes) -> ResponseReader:
        """Send a request and wait for the whole answer."""
        if self.transport is None or self.transport.is_closing():
            raise ConnectionResetError("the connection is closed")
        self.reader = ResponseReader()
        self.answer = asyncio.get_running_loop().create_future()
        self.transport.write(request)
        await self.answer
        return self.reader


class HttpClient:
    """Requests of all servers of a process."""

    def __init__(self, *, timeout_s: float = TIMEOUT_S) -> None:
        self._timeout_s = timeout_s
        self._idle: dict[Address, list[_Connection]] = {}
        self._in_use: set[_Connection] = set()
        self._trust: SSLContext | None = None
        self._is_closed = False

    async def get(self, url: str, headers: Headers) -> Fetched:
        """GET a URL."""
        return await self._ask("GET", url, headers, b"")

    async def post(self, url: str, headers: Headers, body: bytes) -> Fetched:
        """POST a body. Host and Content-Length are added unless they are among the headers."""
        return await self._ask("POST", url, headers, body)

    async def close(self) -> None:
        """Close all connections; requests under way end without an answer, and so do later ones."""
        self._is_closed = True
        for connections in self._idle.values():
            for connection in connections:
                connection.abort()
        self._idle.clear()
        for connection in tuple(self._in_use):
            connection.abort()
        await asyncio.sleep(0)  # a transport lets go of its socket in the next turn of the loop

    async def _ask(self, method: str, url: str, headers: Headers, body: bytes) -> Fetched:
        try:
            address, request = _encode(method, url, headers, body)
        except ValueError as fault:
            return Fetched(None, reason=f"no HTTP address: {fault}")
        try:
            async with asyncio.timeout(self._timeout_s):
                reader = await self._exchange(address, request)
        except TimeoutError:
            return Fetched(None, reason=f"no answer within {self._timeout_s:g} s")
        except (OSError, ResponseError, ValueError) as fault:  # ValueError: a host that no resolver takes
            return Fetched(None, reason=str(fault) or type(fault).__name__)
        return Fetched(reader.status, reader.body)

    async def _exchange(self, address: Address, request: bytes) -> ResponseReader:
        while (connection := self._take_idle(address)) is not None:
            try:
                return await self._exchange_on(connection, address, request)
            except (OSError, ResponseError):
                # The peer may have closed it before our request came: that is no fault of the request.
                if connection.reader.has_begun:
                    raise
        return await self._exchange_on(await self._connect(address), address, request)

    async def _exchange_on(self, connection: _Connection, address: Address, request: bytes) -> ResponseReader:
        self._in_use.add(connection)
        try:
            reader = await connection.exchange(request)
        except BaseException:
            connection.abort()
            raise
        finally:
            self._in_use.discard(connection)
        idle = self._idle.setdefault(address, [])
        if reader.is_reusable and connection.is_open and len(idle) < MAX_IDLE and not self._is_closed:
            idle.append(connection)
        else:
            connection.abort()
        return reader

    def _take_idle(self, address: Address) -> _Connection | None:
        idle = self._idle.get(address, [])
        while idle:
            connection = idle.pop()
            if connection.is_open:
                return connection
        return None

    async def _connect(self, address: Address) -> _Connection:
        if self._is_closed:
            raise ConnectionAbortedError("the client is closed")
        if address.is_secure and self._trust is None:
            self._trust = create_default_context()
        _, connection = await asyncio.get_running_loop().create_connection(
            _Connection, address.host, address.port, ssl=self._trust if address.is_secure else None
        )
        if self._is_closed:
            connection.abort()
        return connection


def _encode(method: str, url: str, headers: Headers, body: bytes) -> tuple[Address, bytes]:
    """Where to and which bytes; ValueError for what is no HTTP address."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("it begins with http:// or https:// and a host")
    is_secure = parts.scheme == "https"
    address = Address(parts.hostname, parts.port or (443 if is_secure else 80), is_secure)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    if any(char <= " " or char == "\x7f" for char in target):
        raise ValueError("it has a blank or a control character")
    given = dict(headers)
    names = {name.lower() for name in given}
    if "host" not in names:
        given["Host"] = parts.netloc.rpartition("@")[2]
    if "content-length" not in names and method == "POST":
        given["Content-Length"] = str(len(body))
    lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {_one_line(value)}" for name, value in given.items())]
    return address, "\r\n".join([*lines, "\r\n"]).encode("utf-8", "replace") + body


def _one_line(value: str) -> str:
    """A header value without what would end it: team names are anybody's."""
    if value.isprintable():
        return value
    return "".join(char if char >= " " and char != "\x7f" else " " for char in value)
