"""Send GET and POST requests with connection reuse and a timeout. Errors are returned, not raised.

If a reused connection turns out to be closed, a new connection is tried; all other errors are returned as the result.
Redirects are not followed, as in the game's client. Closing idle connections is left to the peers.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from ssl import SSLContext, create_default_context
from urllib.parse import urlsplit

import msgspec

from cs2_simulator.log_stream import one_line
from cs2_simulator.outside import FetchResult, Upload
from cs2_simulator.wire.http_response import ResponseError, ResponseReader

TIMEOUT_S = 10.0
"""Timeout in seconds of a whole request. A game server waits this long before it resends a log post."""

UPLOAD_TIMEOUT_S = 100.0
"""Timeout in seconds of an upload, from connecting to the end of the response: the default of the .NET client."""

PACE_S = 0.02
"""Maximum time in seconds that an upload may be ahead of its rate limit."""

MAX_IDLE = 64
"""Maximum number of idle connections per address. A farm only uses more at the same time if the receiver is slow."""

Headers = Iterable[tuple[str, str]]

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_RESERVED = ("content-length", "transfer-encoding")


class Address(msgspec.Struct, frozen=True):
    host: str
    port: int
    is_secure: bool


class _Connection(asyncio.Protocol):
    """A connection, and the response that is awaited on it."""

    def __init__(self, on_lost: Callable[[_Connection], None]) -> None:
        self.transport: asyncio.Transport | None = None
        self.reader = ResponseReader()
        self.response: asyncio.Future[None] | None = None
        self._on_lost = on_lost
        self._can_write = asyncio.Event()
        self._can_write.set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        if self.response is None or self.response.done():
            self.abort()  # unsolicited data
            return
        try:
            self.reader.feed(data)
        except ResponseError as fault:
            self._complete(fault)
            return
        if self.reader.is_done:
            self._complete(None)

    def pause_writing(self) -> None:
        self._can_write.clear()

    def resume_writing(self) -> None:
        self._can_write.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self.transport = None
        self._can_write.set()
        self._on_lost(self)
        if exc is not None:
            self._complete(exc)
            return
        try:
            self.reader.finish()
        except ResponseError as fault:
            self._complete(fault)
        else:
            self._complete(None)

    def _complete(self, fault: Exception | None) -> None:
        if self.response is None or self.response.done():
            return
        if fault is None:
            self.response.set_result(None)
        else:
            self.response.set_exception(fault)

    @property
    def is_open(self) -> bool:
        return self.transport is not None and not self.transport.is_closing()

    def abort(self) -> None:
        if self.transport is not None:
            self.transport.abort()

    async def exchange(self, request: bytes, upload: Upload | None = None) -> ResponseReader:
        """Send a request, optionally with a file as its body, and wait for the whole response."""
        if self.transport is None or self.transport.is_closing():
            raise ConnectionResetError("connection is closed")
        self.reader = ResponseReader()
        self.response = asyncio.get_running_loop().create_future()
        self.transport.write(request)
        try:
            if upload is not None:
                await self._send_file(self.response, upload)
            await self.response
        finally:
            self.response = None  # avoid a reference cycle: its exception refers to this frame
        return self.reader

    async def _send_file(self, response: asyncio.Future[None], upload: Upload) -> None:
        """Write a file at its rate limit until a response arrives; raise ConnectionResetError at `stops_after`."""
        loop = asyncio.get_running_loop()
        began_s, sent = loop.time(), 0
        for block in upload.blocks():
            if response.done() or self.transport is None:
                return
            if upload.stops_after is not None and sent + len(block) > upload.stops_after:
                raise ConnectionResetError("upload cut")
            self.transport.write(block)
            sent += len(block)
            await self._can_write.wait()
            ahead_s = began_s + sent / upload.bytes_per_s - loop.time()
            if ahead_s > PACE_S:
                await asyncio.sleep(ahead_s)


class HttpClient:
    """An HTTP client that all servers of a process share."""

    def __init__(self, *, timeout_s: float = TIMEOUT_S) -> None:
        self._timeout_s = timeout_s
        self._idle: dict[Address, list[_Connection]] = {}
        self._in_use: set[_Connection] = set()
        self._ssl_context: SSLContext | None = None
        self._is_closed = False

    async def get(self, url: str, headers: Headers) -> FetchResult:
        return await self._request("GET", url, headers, b"")

    async def post(self, url: str, headers: Headers, body: bytes) -> FetchResult:
        return await self._request("POST", url, headers, body)

    async def upload(self, url: str, headers: Headers, upload: Upload) -> FetchResult:
        """POST a file once, on a separate connection. The file is never in memory as a whole."""
        try:
            address, request = _encode("POST", url, headers, b"", body_bytes=upload.size)
        except ValueError as fault:
            return FetchResult(None, reason=f"not sent: {fault}")

        async def exchange() -> ResponseReader:
            return await self._exchange_on(await self._connect(address), address, request, upload)

        return await _result(exchange, UPLOAD_TIMEOUT_S)

    async def post_raw(self, url: str, head: bytes, body: bytes) -> FetchResult:
        """POST a body with exactly these header lines. Each header line includes its line end."""
        try:
            address, target = _split(url)
        except ValueError as fault:
            return FetchResult(None, reason=f"not sent: {fault}")
        return await self._send(address, b"POST %b HTTP/1.1\r\n%b\r\n%b" % (target, head, body))

    @property
    def connections(self) -> int:
        return len(self._in_use) + sum(map(len, self._idle.values()))

    async def close(self) -> None:
        """Close all connections. Pending and later requests end without a response."""
        self._is_closed = True
        for connections in tuple(self._idle.values()):
            for connection in connections:
                connection.abort()
        self._idle.clear()
        for connection in tuple(self._in_use):
            connection.abort()
        await asyncio.sleep(0)  # a transport closes its socket in the next iteration of the event loop

    async def _request(self, method: str, url: str, headers: Headers, body: bytes) -> FetchResult:
        try:
            address, request = _encode(method, url, headers, body)
        except ValueError as fault:
            return FetchResult(None, reason=f"not sent: {fault}")
        return await self._send(address, request)

    async def _send(self, address: Address, request: bytes) -> FetchResult:
        return await _result(partial(self._exchange, address, request), self._timeout_s)

    async def _exchange(self, address: Address, request: bytes) -> ResponseReader:
        while (connection := self._pop_idle(address)) is not None:
            try:
                return await self._exchange_on(connection, address, request)
            except (OSError, ResponseError):
                # The peer may have closed the idle connection before the request arrived. Try another connection.
                if connection.reader.has_begun:
                    raise
        return await self._exchange_on(await self._connect(address), address, request)

    async def _exchange_on(
        self, connection: _Connection, address: Address, request: bytes, upload: Upload | None = None
    ) -> ResponseReader:
        self._in_use.add(connection)
        try:
            reader = await connection.exchange(request, upload)
        except BaseException:
            connection.abort()
            raise
        finally:
            self._in_use.discard(connection)
        idle = self._idle.get(address, ())
        may_keep = upload is None and len(idle) < MAX_IDLE and not self._is_closed
        if may_keep and reader.is_reusable and connection.is_open:
            self._idle.setdefault(address, []).append(connection)
        else:
            connection.abort()
        return reader

    def _pop_idle(self, address: Address) -> _Connection | None:
        idle = self._idle.get(address)
        while idle:
            connection = idle.pop()
            if not idle:
                del self._idle[address]
            if connection.is_open:
                return connection
        return None

    def _remove_idle(self, address: Address, connection: _Connection) -> None:
        idle = self._idle.get(address)
        if idle is not None and connection in idle:
            idle.remove(connection)
            if not idle:
                del self._idle[address]

    async def _connect(self, address: Address) -> _Connection:
        if self._is_closed:
            raise ConnectionAbortedError("HTTP client is closed")
        if address.is_secure and self._ssl_context is None:
            self._ssl_context = create_default_context()
        _, connection = await asyncio.get_running_loop().create_connection(
            lambda: _Connection(partial(self._remove_idle, address)),
            address.host,
            address.port,
            ssl=self._ssl_context if address.is_secure else None,
        )
        if self._is_closed:
            connection.abort()
        return connection


async def _result(exchange: Callable[[], Awaitable[ResponseReader]], timeout_s: float) -> FetchResult:
    try:
        async with asyncio.timeout(timeout_s):
            reader = await exchange()
    except TimeoutError:
        return FetchResult(None, reason=f"no response within {timeout_s:g} s")
    except (OSError, ResponseError, ValueError) as fault:  # ValueError: an invalid host name
        return FetchResult(None, reason=str(fault) or type(fault).__name__)
    return FetchResult(reader.status, reader.body)


def _split(url: str) -> tuple[Address, bytes]:
    """Split a URL into address and request target. Raise ValueError if the URL is invalid."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("URL must begin with http:// or https:// and a host")
    is_secure = parts.scheme == "https"
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    if any(char <= " " or char == "\x7f" for char in target):
        raise ValueError("URL contains whitespace or control characters")
    port = parts.port or (443 if is_secure else 80)
    return Address(parts.hostname, port, is_secure), target.encode("utf-8", "replace")


def _encode(
    method: str, url: str, headers: Headers, body: bytes, *, body_bytes: int | None = None
) -> tuple[Address, bytes]:
    """Encode a request, and return the address and the bytes. A body must follow if `body_bytes` is given.

    Raise ValueError if URL or headers are invalid.
    """
    address, target = _split(url)
    sent = {"Host": urlsplit(url).netloc.rpartition("@")[2]}
    for name, value in headers:
        if not _TOKEN.fullmatch(name) or name.lower() in _RESERVED:
            raise ValueError(f"header `{name}` is not allowed")
        sent["Host" if name.lower() == "host" else name] = one_line(value)
    if method == "POST":
        sent["Content-Length"] = str(len(body) if body_bytes is None else body_bytes)
    head = "".join(f"{name}: {value}\r\n" for name, value in sent.items())
    return address, b"%b %b HTTP/1.1\r\n%b\r\n%b" % (method.encode(), target, head.encode("utf-8", "replace"), body)
