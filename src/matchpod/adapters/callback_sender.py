"""Send callbacks: one POST per connection, with a time limit. Failures are returned, never raised.

The URL comes from a caller, so the receiver is not trusted. The receiver's addresses are checked first; the connection
then goes to a checked address, never to the name, even through a proxy. Redirects are not followed, and responses are
read within limits. Only the status matters: after it was read, later errors do not change it.
"""

from __future__ import annotations

import asyncio
import re
import resource
import ssl
import time
from collections.abc import Mapping
from contextlib import suppress
from urllib.parse import urlsplit

import httptools
import msgspec

from matchpod.adapters.callback_proxy import HttpProxy, ProxyError
from matchpod.adapters.host_lookups import MAX_LOOKUPS, HostLookups, LookupFailedError
from matchpod.core.requests.addresses import is_public
from matchpod.ports import CallbackRequest, Delivery

TOTAL_S = 10.0
"""Time limit in seconds from resolving the name to reading the status. The documentation promises it to callers."""

ADDRESS_S = 3.0
"""Timeout in seconds for connecting to an address while other addresses remain, so that one dead address leaves time
for them."""

REST_S = 1.0
"""Time limit in seconds for reading the response body, which is discarded. Many receivers report an error if the
connection is closed before they have sent it."""

MAX_ADDRESSES = 4
"""Maximum number of addresses that one attempt tries in turn. All addresses of the receiver are checked first."""

MAX_ATTEMPTS = 4_096
"""Maximum number of concurrent attempts, each with its own connection. An organization gets at most half of them, so
1,000 hanging receivers of one organization leave room for the others."""

MAX_HEAD_BYTES = 64 * 1024
MAX_BODY_BYTES = 64 * 1024

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"[\t\x20-\x7e]*")
_URL = re.compile(r"https?://[!-\[\]-~]+", re.IGNORECASE)
_RESERVED_HEADERS = ("connection", "content-length", "host", "transfer-encoding")

_NOT_PUBLIC = (
    "the receiver has an address that is not public; to allow private addresses, set MATCHPOD_CALLBACK_PRIVATE=allow"
)

_RESET_CONTENT = 205
"""HTTP status 205. Its response has no body, like 204 and 304, but the parser would wait for one."""


class HttpCallbackSender:
    def __init__(
        self,
        *,
        total_s: float = TOTAL_S,
        rest_s: float = REST_S,
        max_lookups: int = MAX_LOOKUPS,
        trust: ssl.SSLContext | None = None,
        proxy: HttpProxy | None = None,
    ) -> None:
        """Connect to public addresses through `proxy`, if there is one, and to private addresses directly."""
        self._total_s = total_s
        self._rest_s = rest_s
        self._trust = trust
        self._proxy = proxy
        self._capacity = max_attempts(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
        self._lookups = HostLookups(max_lookups)
        self._open_writers: set[asyncio.StreamWriter] = set()
        self._is_closed = False

    @property
    def capacity(self) -> int:
        return self._capacity

    async def send(self, request: CallbackRequest) -> Delivery:
        """Send the request once within the total time limit. The result includes errors. Redirects are not followed."""
        started = time.monotonic()
        response = _Response()
        error: str | None = None
        try:
            async with asyncio.timeout(self._total_s):
                await self._attempt(request, response)
        except TimeoutError:
            if response.status is None:
                error = f"no response within {self._total_s:g} s"
        except (OSError, EOFError, ValueError) as exc:
            error = _describe(exc)
        return Delivery(status=response.status, duration_ms=round((time.monotonic() - started) * 1000), error=error)

    async def close(self) -> None:
        """Abort all attempts in progress. They fail with an error, as do all later attempts."""
        self._is_closed = True
        for writer in tuple(self._open_writers):
            writer.transport.abort()
        await asyncio.sleep(0)  # lets each transport close its socket, which happens in the next loop iteration

    async def _attempt(self, request: CallbackRequest, response: _Response) -> None:
        receiver = _receiver_of(request.url)
        message = _encode(receiver, request)
        reader, writer = await self._connect(receiver, request)
        self._open_writers.add(writer)
        try:
            if self._is_closed:
                raise _NotSentError("the sender is closed")
            # `drain` is not called, because a receiver may respond before it has read the whole request.
            writer.write(message)
            await _read_status(reader, response)
            await _discard_body(reader, response, self._rest_s)
        finally:
            self._open_writers.discard(writer)
            writer.transport.abort()
            await asyncio.sleep(0)

    async def _connect(
        self, receiver: _Receiver, request: CallbackRequest
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Check all addresses of the receiver, then connect to one of them."""
        if self._is_closed:
            raise _NotSentError("the sender is closed")
        try:
            addresses = await self._lookups.addresses(receiver.host, org_id=request.org_id)
        except LookupFailedError as exc:
            raise _NotSentError(str(exc)) from exc
        if not request.allow_private and not all(map(is_public, addresses)):
            raise _NotSentError(_NOT_PUBLIC)
        tried = addresses[:MAX_ADDRESSES]
        for address in tried[:-1]:
            with suppress(OSError):  # OSError includes timeouts; the next address is tried
                async with asyncio.timeout(ADDRESS_S):
                    return await self._connect_to(address, receiver)
        return await self._connect_to(tried[-1], receiver)

    async def _connect_to(self, address: str, receiver: _Receiver) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self._trust is None and receiver.is_secure:
            self._trust = ssl.create_default_context()
        trust = self._trust if receiver.is_secure else None
        name = receiver.host.removesuffix(".") if trust else None  # names in certificates have no trailing dot
        if self._proxy is None or not is_public(address):
            return await asyncio.open_connection(address, receiver.port, ssl=trust, server_hostname=name)
        return await self._proxy.connect(address, receiver.port, trust=trust, name=name)


def max_attempts(open_files: int) -> int:
    """Return the maximum number of concurrent attempts: at most a quarter of the process's limit on open files."""
    return MAX_ATTEMPTS if open_files == resource.RLIM_INFINITY else min(MAX_ATTEMPTS, open_files // 4)


class _Receiver(msgspec.Struct, frozen=True):
    """The parsed URL of a receiver."""

    host: str
    port: int
    is_secure: bool
    target: str

    @property
    def host_header(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == (443 if self.is_secure else 80) else f"{host}:{self.port}"


class _Response:
    """The part of a receiver's response that has arrived. The status is kept even if the attempt fails afterwards."""

    def __init__(self) -> None:
        self.status: int | None = None
        self.is_complete = False
        self._parser = httptools.HttpResponseParser(self)
        self._head_bytes = 0
        self._final_status: int | None = None

    def feed(self, data: bytes) -> None:
        """Parse more bytes. Until the status is known, raise _BadResponseError for invalid HTTP or an overlong head."""
        if self.status is None:
            self._head_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as exc:
            if self._final_status is None:
                raise _BadResponseError("the response is not HTTP") from exc
            # Only the status line matters; a later error in the response must not cause a retry.
            self.status, self.is_complete = self._final_status, True
        if self.status is None and self._head_bytes > MAX_HEAD_BYTES:
            raise _BadResponseError("the response headers are too long")

    def on_status(self, _reason: bytes) -> None:
        """Remember the status, unless it is 1xx, because the final response follows a 1xx response."""
        status = self._parser.get_status_code()
        if status >= 200 and self._final_status is None:
            self._final_status = status

    def on_headers_complete(self) -> None:
        """Accept the remembered status. After the head of a 1xx response, there is no status yet."""
        self.on_status(b"")  # the parser does not call `on_status` if the status line has no reason phrase
        self.status = self._final_status
        self.is_complete = self.status == _RESET_CONTENT

    def on_message_complete(self) -> None:
        """Mark the response as complete, unless it was a 1xx response."""
        self.is_complete = self.status is not None


class _NotSentError(ValueError):
    """The request was not sent; the message says why and contains no secrets."""


class _BadResponseError(ValueError):
    """The receiver did not send a valid HTTP response."""


def _receiver_of(url: str) -> _Receiver:
    # Check before calling urlsplit, which drops tabs and line ends. Some URL parsers treat a backslash as a slash.
    if not _URL.fullmatch(url):
        raise _NotSentError("the URL is not an absolute http or https URL")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as exc:
        raise _NotSentError("the URL has no valid host or port") from exc
    if not host or port == 0 or "@" in parts.netloc:
        raise _NotSentError("the URL has no valid host or port")
    is_secure = parts.scheme == "https"
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return _Receiver(host, port or (443 if is_secure else 80), is_secure, target)


def _encode(receiver: _Receiver, request: CallbackRequest) -> bytes:
    custom = _checked(request.headers)
    headers = {"Host": receiver.host_header, **custom, "Content-Length": str(len(request.body)), "Connection": "close"}
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"POST {receiver.target} HTTP/1.1\r\n{lines}\r\n".encode("ascii") + request.body


def _checked(headers: Mapping[str, str]) -> Mapping[str, str]:
    for name, value in headers.items():
        if not _TOKEN.fullmatch(name) or name.lower() in _RESERVED_HEADERS:
            raise _NotSentError("a header name is invalid or reserved")
        if not _VALUE.fullmatch(value):
            raise _NotSentError(f"the header {name} contains an invalid character")
    return headers


async def _read_status(reader: asyncio.StreamReader, response: _Response) -> None:
    """Read from the connection until the final status is known."""
    while response.status is None:
        data = await reader.read(MAX_HEAD_BYTES)
        if not data:
            raise EOFError
        response.feed(data)


async def _discard_body(reader: asyncio.StreamReader, response: _Response, rest_s: float) -> None:
    """Read and discard the body, ignoring errors. The receiver may keep the connection open, so EOF is not awaited."""
    remaining = MAX_BODY_BYTES
    with suppress(OSError, _BadResponseError):  # includes timeouts
        async with asyncio.timeout(rest_s):
            while not response.is_complete and remaining > 0 and (data := await reader.read(remaining)):
                remaining -= len(data)
                response.feed(data)


def _describe(exc: Exception) -> str:
    """Return a short text for an error, without the URL, headers, body or addresses of our own network."""
    match exc:
        case ProxyError():
            return f"not sent: {exc}"
        case _NotSentError():
            return f"not sent: {exc}"
        case _BadResponseError():
            return str(exc)
        case ssl.SSLCertVerificationError():
            return f"certificate verification failed: {exc.verify_message}"
        case ssl.SSLError():
            return "the TLS handshake failed"
        case ConnectionRefusedError():
            return "the connection was refused"
        case EOFError() | ConnectionError():
            return "the connection was closed before a response arrived"
        case OSError():
            return "the receiver could not be reached"
    return "the attempt failed"
