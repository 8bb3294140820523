"""How does a server ask the world over HTTP? GET and POST, kept connections, one time limit, and never an exception.

A connection that was kept and turns out to be closed is replaced; all other faults are the answer. Redirects are
answers like any other, as the game's client follows none.
"""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from socket import SOCK_STREAM, getaddrinfo
from ssl import SSLContext, create_default_context
from urllib.parse import urlsplit

import msgspec

from matchpod.simulator.outside import Fetched
from matchpod.simulator.wire.http_response import ResponseError, ResponseReader

TIMEOUT_S = 10.0
"""From asking to the whole answer: what a game server waits before it sends its log again."""

MAX_IDLE = 64
"""Connections kept for one address; a farm sends more at a time only when the receiver is slow."""

IDLE_S = 30.0
"""A connection that nobody needs is closed after once or twice this time."""

Headers = Iterable[tuple[str, str]]

Lookup = Sequence[str] | OSError | UnicodeError
"""What came of the question for the addresses of a host."""

_IP = re.compile(r"[0-9.]+|[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*(%.*)?")

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_NOT_GIVEN = ("content-length", "transfer-encoding")


class Address(msgspec.Struct, frozen=True):
    """Where a connection goes."""

    host: str
    port: int
    is_secure: bool


class _Connection(asyncio.Protocol):
    """One connection and the answer it waits for."""

    def __init__(self, on_lost: Callable[[_Connection], None]) -> None:
        self.transport: asyncio.Transport | None = None
        self.reader = ResponseReader()
        self.answer: asyncio.Future[None] | None = None
        self.is_stale = False
        """True when it was not needed for IDLE_S."""
        self._on_lost = on_lost

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
        self._on_lost(self)
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
        try:
            await self.answer
        finally:
            self.answer = None  # a fault in it knows this frame: they would keep each other, and the request, alive
        return self.reader


class HttpClient:
    """Requests of all servers of a process."""

    def __init__(self, *, timeout_s: float = TIMEOUT_S) -> None:
        self._timeout_s = timeout_s
        self._idle: dict[Address, list[_Connection]] = {}
        self._in_use: set[_Connection] = set()
        self._sweep: asyncio.TimerHandle | None = None
        self._lookups: dict[str, asyncio.Future[Lookup]] = {}
        self._trust: SSLContext | None = None
        self._is_closed = False

    async def get(self, url: str, headers: Headers) -> Fetched:
        """GET a URL."""
        return await self._ask("GET", url, headers, b"")

    async def post(self, url: str, headers: Headers, body: bytes) -> Fetched:
        """POST a body."""
        return await self._ask("POST", url, headers, body)

    async def post_as_given(self, url: str, head: bytes, body: bytes) -> Fetched:
        """POST a body with these header lines and no others; each has its line end."""
        try:
            address, target = _split(url)
        except ValueError as fault:
            return Fetched(None, reason=f"not sent: {fault}")
        return await self._send(address, b"POST %b HTTP/1.1\r\n%b\r\n%b" % (target, head, body))

    @property
    def connections(self) -> int:
        """How many connections are open."""
        return len(self._in_use) + sum(map(len, self._idle.values()))

    async def close(self) -> None:
        """Close all connections; requests under way end without an answer, and so do later ones."""
        self._is_closed = True
        if self._sweep is not None:
            self._sweep.cancel()
        for connections in tuple(self._idle.values()):
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
            return Fetched(None, reason=f"not sent: {fault}")
        return await self._send(address, request)

    async def _send(self, address: Address, request: bytes) -> Fetched:
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
        idle = self._idle.get(address, ())
        if reader.is_reusable and connection.is_open and len(idle) < MAX_IDLE and not self._is_closed:
            self._keep(connection, address)
        else:
            connection.abort()
        return reader

    def _keep(self, connection: _Connection, address: Address) -> None:
        connection.is_stale = False
        self._idle.setdefault(address, []).append(connection)
        if self._sweep is None:
            self._sweep = asyncio.get_running_loop().call_later(IDLE_S, self._close_stale)

    def _close_stale(self) -> None:
        self._sweep = None
        for connections in tuple(self._idle.values()):
            for connection in connections:
                if connection.is_stale:
                    connection.abort()
                connection.is_stale = True
        if self._idle:
            self._sweep = asyncio.get_running_loop().call_later(IDLE_S, self._close_stale)

    def _take_idle(self, address: Address) -> _Connection | None:
        idle = self._idle.get(address)
        while idle:
            connection = idle.pop()
            if not idle:
                del self._idle[address]
            if connection.is_open:
                return connection
        return None

    def _forget(self, address: Address, connection: _Connection) -> None:
        idle = self._idle.get(address)
        if idle is not None and connection in idle:
            idle.remove(connection)
            if not idle:
                del self._idle[address]

    async def _connect(self, address: Address) -> _Connection:
        if self._is_closed:
            raise ConnectionAbortedError("the client is closed")
        if address.is_secure and self._trust is None:
            self._trust = create_default_context()
        fault: OSError | None = None
        for ip in await self._resolve(address.host):
            try:
                _, connection = await asyncio.get_running_loop().create_connection(
                    lambda: _Connection(partial(self._forget, address)),
                    ip,
                    address.port,
                    ssl=self._trust if address.is_secure else None,
                    server_hostname=address.host if address.is_secure else None,
                )
            except OSError as exc:
                fault = exc
            else:
                if self._is_closed:
                    connection.abort()
                return connection
        try:
            raise fault or OSError("the host has no address")
        finally:
            fault = None  # it knows this frame: the two would keep each other, and the request, alive

    async def _resolve(self, host: str) -> Sequence[str]:
        """The addresses of a host. Not in the loop's own threads: a process cannot end before they do."""
        if _IP.fullmatch(host):
            return (host,)
        lookup = self._lookups.get(host)
        if lookup is None:
            loop = asyncio.get_running_loop()
            self._lookups[host] = lookup = loop.create_future()
            lookup.add_done_callback(lambda _: self._lookups.pop(host, None))
            threading.Thread(target=_look_up, args=(host, loop, lookup), daemon=True).start()
        found = await asyncio.shield(lookup)
        if isinstance(found, Exception):
            raise OSError(str(found))
        return found


def _look_up(host: str, loop: asyncio.AbstractEventLoop, lookup: asyncio.Future[Lookup]) -> None:
    found: Lookup
    try:
        found = list(dict.fromkeys(str(entry[4][0]) for entry in getaddrinfo(host, None, type=SOCK_STREAM)))
    except (OSError, UnicodeError) as fault:
        found = fault
    with suppress(RuntimeError):  # the loop has ended meanwhile
        loop.call_soon_threadsafe(lookup.set_result, found)


def _split(url: str) -> tuple[Address, bytes]:
    """Where to, and what to ask for there; ValueError for what is no HTTP address."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("an address begins with http:// or https:// and a host")
    is_secure = parts.scheme == "https"
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    if any(char <= " " or char == "\x7f" for char in target):
        raise ValueError("the address has a blank or a control character")
    port = parts.port or (443 if is_secure else 80)
    return Address(parts.hostname, port, is_secure), target.encode("utf-8", "replace")


def _encode(method: str, url: str, headers: Headers, body: bytes) -> tuple[Address, bytes]:
    """Where to and which bytes; ValueError for what is no HTTP address, and for what is no header."""
    address, target = _split(url)
    given = {"Host": urlsplit(url).netloc.rpartition("@")[2]}
    for name, value in headers:
        if not _TOKEN.fullmatch(name) or name.lower() in _NOT_GIVEN:
            raise ValueError(f"`{name}` is no header to give")
        given["Host" if name.lower() == "host" else name] = _one_line(value)
    if method == "POST":
        given["Content-Length"] = str(len(body))
    head = "".join(f"{name}: {value}\r\n" for name, value in given.items())
    return address, b"%b %b HTTP/1.1\r\n%b\r\n%b" % (method.encode(), target, head.encode("utf-8", "replace"), body)


def _one_line(value: str) -> str:
    """A header value without what would end it."""
    return "".join(char if char >= " " and char != "\x7f" else " " for char in value)
