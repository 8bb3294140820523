"""Open connections to callback receivers through an HTTP proxy, with CONNECT.

The proxy gets the IP address that was checked, never a host name, because it would resolve the name again and might
then connect to another address. The proxy is trusted, but its answers are read within limits.
"""

from __future__ import annotations

import asyncio
import base64
import re
import ssl
from typing import Final
from urllib.parse import unquote, urlsplit

import msgspec

DEFAULT_PORT: Final = 80
_STATUS: Final = re.compile(rb"HTTP/1\.[01] ([1-5][0-9][0-9])(?: [^\r\n]*)?\r\n")

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class ProxyError(OSError):
    """The proxy could not be reached, or it did not open the connection; the message says why."""


class HttpProxy(msgspec.Struct, frozen=True):
    """The address of a proxy and, if the proxy requires them, our credentials."""

    host: str
    port: int = DEFAULT_PORT
    authorization: str | None = None

    def __repr__(self) -> str:
        """Omit the credentials."""
        return f"HttpProxy({self.host!r}, {self.port})"

    async def connect(
        self, address: str, port: int, *, trust: ssl.SSLContext | None = None, name: str | None = None
    ) -> Connection:
        """Connect to an IP address through the proxy; raise ProxyError if that fails. The caller sets the timeout.

        With `trust`, the connection uses TLS, and the receiver's certificate must be valid for `name`.
        """
        loop = asyncio.get_running_loop()
        reader, protocol = _stream(loop)
        try:
            transport, _ = await loop.create_connection(lambda: protocol, self.host, self.port)
        except OSError as exc:
            raise ProxyError("the callback proxy cannot be reached") from exc
        secured: asyncio.Transport | None = transport
        try:
            transport.write(self._request(address, port))
            await self._wait_for_tunnel(reader)
            if trust is not None:
                # A new reader: bytes that arrived before the TLS handshake are from the proxy, not the receiver.
                reader, protocol = _stream(loop)
                secured = await loop.start_tls(transport, protocol, trust, server_hostname=name)
            if secured is None:
                raise ProxyError("the callback proxy closed the connection")
        except BaseException:
            transport.abort()
            raise
        if secured is not transport:
            protocol.connection_made(secured)
        return reader, asyncio.StreamWriter(secured, protocol, reader, loop)

    def _request(self, address: str, port: int) -> bytes:
        target = f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
        credentials = "" if self.authorization is None else f"Proxy-Authorization: {self.authorization}\r\n"
        return f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n{credentials}\r\n".encode("ascii")

    async def _wait_for_tunnel(self, reader: asyncio.StreamReader) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError) as exc:
            raise ProxyError("the callback proxy closed the connection or did not answer with HTTP") from exc
        status = _STATUS.match(head)
        if status is None:
            raise ProxyError("the callback proxy did not answer with HTTP")
        if not status[1].startswith(b"2"):
            raise ProxyError(f"the callback proxy answered with status {status[1].decode()}")


def _stream(loop: asyncio.AbstractEventLoop) -> tuple[asyncio.StreamReader, asyncio.StreamReaderProtocol]:
    reader = asyncio.StreamReader(loop=loop)
    return reader, asyncio.StreamReaderProtocol(reader, loop=loop)


def read_proxy(url: str) -> HttpProxy:
    """Return the proxy at a valid URL such as `http://user:password@proxy.example:3128`."""
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port or DEFAULT_PORT
    if parts.username is None:
        return HttpProxy(host, port)
    credentials = f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()
    return HttpProxy(host, port, f"Basic {base64.b64encode(credentials).decode()}")
