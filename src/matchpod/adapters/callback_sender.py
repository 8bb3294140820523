"""How does a callback reach its receiver? One POST on its own connection, one limit for all of it, never an exception.

A caller names the receiver, so it is not trusted: the addresses of its name are checked by the function that connects,
which then uses the checked address and no name; redirects are answers like any other; answers are read within limits.
What counts is the status: when it has come, nothing the receiver does afterwards changes it.
"""

from __future__ import annotations

import asyncio
import ipaddress
import re
import ssl
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from socket import SOCK_STREAM, gaierror, getaddrinfo
from urllib.parse import urlsplit

import msgspec

from matchpod.ports import CallbackRequest, Delivery

TOTAL_S = 10.0
"""From looking up the name to the status of the answer, as promised to callers."""

ADDRESS_S = 3.0
"""For connecting to an address while there are others to try: one that is dead must not use up the total."""

REST_S = 1.0
"""For the body of an answer, of no use to us: closing before it has come would look like a fault to the receiver."""

MAX_ADDRESSES = 4
"""Tried in one attempt; all are checked."""

MAX_HEAD_BYTES = 64 * 1024
MAX_BODY_BYTES = 64 * 1024

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"[\t\x20-\x7e]*")
_URL = re.compile(r"https?://[!-\[\]-~]+", re.IGNORECASE)
_OURS = ("connection", "content-length", "host", "transfer-encoding")

_STATUS = re.compile(rb"HTTP/1\.[01] ([1-9][0-9]{2})(?: [^\r\n]*)?\r\n")
_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*([0-9]{1,15})[ \t]*\r\n", re.IGNORECASE)
_LAST_CHUNK = b"\r\n0\r\n\r\n"
_BODILESS = (204, 205, 304)

_IPV6_GLOBAL = ipaddress.IPv6Network("2000::/3")
_IPV6_TO_IPV4 = ipaddress.IPv6Network("2002::/16")
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_IPV4_SPECIAL = (
    ipaddress.IPv4Network("192.0.0.0/24"),  # of protocols; a cloud has its metadata here
    ipaddress.IPv4Network("192.88.99.0/24"),  # relays to IPv6
    ipaddress.IPv4Network("168.63.129.16/32"),  # looks public, is the host of a cloud's virtual machines
)


class HttpCallbackSender:
    """Sends callbacks over http and https."""

    def __init__(
        self, *, allow_private: bool = False, total_s: float = TOTAL_S, trust: ssl.SSLContext | None = None
    ) -> None:
        self._allow_private = allow_private
        self._total_s = total_s
        self._trust = trust
        self._open_writers: set[asyncio.StreamWriter] = set()
        self._is_closed = False

    async def send(self, request: CallbackRequest) -> Delivery:
        """Make one attempt, within the total time whatever the receiver does; never raises, follows no redirect."""
        began = time.monotonic()
        answer = _Answer()
        error: str | None = None
        try:
            async with asyncio.timeout(self._total_s):
                await self._attempt(request, answer)
        except TimeoutError:
            if answer.status is None:
                error = f"no answer within {self._total_s:g} s"
        except (OSError, EOFError, ValueError, asyncio.LimitOverrunError) as exc:
            error = _in_words(exc)
        return Delivery(status=answer.status, duration_ms=round((time.monotonic() - began) * 1000), error=error)

    async def close(self) -> None:
        """Cut off all attempts under way; they and later ones end with an error."""
        self._is_closed = True
        for writer in tuple(self._open_writers):
            writer.transport.abort()
        await asyncio.sleep(0)  # a transport lets go of its socket in the next turn of the loop

    async def _attempt(self, request: CallbackRequest, answer: _Answer) -> None:
        receiver = _receiver_of(request.url)
        message = _encode(receiver, request)
        reader, writer = await self._connect(receiver)
        self._open_writers.add(writer)
        try:
            if self._is_closed:
                raise _NotSentError("the sender is closed")
            # Not drained: a receiver may answer before it has read everything, and the limit is on the answer.
            writer.write(message)
            answer.status, head = await _read_head(reader)
            await _read_rest(reader, answer.status, head)
        finally:
            self._open_writers.discard(writer)
            writer.transport.abort()
            await asyncio.sleep(0)

    async def _connect(self, receiver: _Receiver) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection to one of the receiver's addresses, after a look at all of them."""
        if self._is_closed:
            raise _NotSentError("the sender is closed")
        addresses = await _look_up(receiver.host)
        if not self._allow_private and not all(map(is_public, addresses)):
            raise _NotSentError("the receiver has an address that is not public")
        tried = addresses[:MAX_ADDRESSES]
        for address in tried[:-1]:
            with suppress(OSError):  # a timeout is one: the next address may do better
                async with asyncio.timeout(ADDRESS_S):
                    return await self._connect_to(address, receiver)
        return await self._connect_to(tried[-1], receiver)

    async def _connect_to(self, address: str, receiver: _Receiver) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if not receiver.is_secure:
            return await asyncio.open_connection(address, receiver.port, limit=MAX_HEAD_BYTES)
        if self._trust is None:
            self._trust = ssl.create_default_context()
        name = receiver.host.removesuffix(".")  # certificates have no final dot
        return await asyncio.open_connection(
            address, receiver.port, limit=MAX_HEAD_BYTES, ssl=self._trust, server_hostname=name
        )


def is_public(address: str) -> bool:
    """True for an address of the internet, at which none of our own machines answers."""
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return False
    if isinstance(ip, ipaddress.IPv6Address):
        if ip in _NAT64:  # how a network without IPv4 sees the IPv4 internet
            return is_public(str(ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)))
        return ip in _IPV6_GLOBAL and ip.is_global and ip not in _IPV6_TO_IPV4
    return ip.is_global and not ip.is_multicast and not any(ip in network for network in _IPV4_SPECIAL)


class _Receiver(msgspec.Struct, frozen=True):
    """Where a callback goes."""

    host: str
    port: int
    is_secure: bool
    target: str

    @property
    def host_header(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == (443 if self.is_secure else 80) else f"{host}:{self.port}"


class _Answer(msgspec.Struct):
    """What is known of the answer when an attempt ends, in whatever way."""

    status: int | None = None


class _NotSentError(ValueError):
    """Nothing was sent; the message says why, without anything that was given in confidence."""


class _BadAnswerError(ValueError):
    """The receiver sent what is no answer."""


def _receiver_of(url: str) -> _Receiver:
    # urlsplit leaves out tabs and line ends, and a backslash is a slash to some: neither gets that far.
    if not _URL.fullmatch(url):
        raise _NotSentError("the URL is not an absolute http or https one")
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
    given = _checked(request.headers)
    headers = {"Host": receiver.host_header, **given, "Content-Length": str(len(request.body)), "Connection": "close"}
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"POST {receiver.target} HTTP/1.1\r\n{lines}\r\n".encode("ascii") + request.body


def _checked(headers: Mapping[str, str]) -> Mapping[str, str]:
    for name, value in headers.items():
        if not _TOKEN.fullmatch(name) or name.lower() in _OURS:
            raise _NotSentError("a header has a name that cannot be given")
        if not _VALUE.fullmatch(value):
            raise _NotSentError(f"the header {name} has a character that cannot be sent")
    return headers


async def _look_up(host: str) -> Sequence[str]:
    """The addresses of a name, at least one. Not in the loop's own threads: a process cannot end before they do."""
    loop = asyncio.get_running_loop()
    found: asyncio.Future[Sequence[str] | OSError] = loop.create_future()

    def settle(answer: Sequence[str] | OSError) -> None:
        if not found.done():  # it is when the time was over
            found.set_result(answer)

    def ask() -> None:
        answer: Sequence[str] | OSError
        try:
            answer = list(dict.fromkeys(str(entry[4][0]) for entry in getaddrinfo(host, None, type=SOCK_STREAM)))
        except (OSError, UnicodeError) as exc:
            answer = exc if isinstance(exc, OSError) else gaierror(str(exc))
        with suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(settle, answer)

    try:
        threading.Thread(target=ask, name="callback-lookup", daemon=True).start()
    except RuntimeError as exc:
        raise _NotSentError("no thread to look up the host name") from exc
    answer = await found
    if isinstance(answer, OSError) or not answer:
        raise _NotSentError("the host name was not found")
    return answer


async def _read_head(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    """Status and head of the answer; those that only announce it are read over."""
    size = 0
    while size <= MAX_HEAD_BYTES:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError as exc:
            if exc.partial and not exc.partial.startswith(b"HTTP/"):
                raise _BadAnswerError("the answer is not HTTP") from exc
            raise
        found = _STATUS.match(head)
        if found is None:
            raise _BadAnswerError("the answer is not HTTP")
        status = int(found[1])
        if status >= 200:
            return status, head
        size += len(head)
    raise _BadAnswerError("the head of the answer is too long")


async def _read_rest(reader: asyncio.StreamReader, status: int, head: bytes) -> None:
    """Read the body and forget it; how it ends is of no matter."""
    if status in _BODILESS:
        return
    length = _LENGTH.search(head)
    wanted = min(int(length[1]) if length else MAX_BODY_BYTES, MAX_BODY_BYTES)
    tail = b"\r\n"  # a body without chunks begins like the end of one
    with suppress(OSError):  # a timeout is one
        async with asyncio.timeout(REST_S):
            while wanted > 0 and (piece := await reader.read(wanted)):
                wanted -= len(piece)
                tail = (tail + piece)[-len(_LAST_CHUNK) :]
                if length is None and tail == _LAST_CHUNK:
                    return  # the receiver may keep the connection open, though asked to close it


def _in_words(exc: Exception) -> str:
    """The fault in a few words: nothing of URL, headers or body, and no addresses of our own network."""
    match exc:
        case _NotSentError():
            return f"not sent: {exc}"
        case _BadAnswerError():
            return str(exc)
        case ssl.SSLCertVerificationError():
            return f"the certificate was not accepted: {exc.verify_message}"
        case ssl.SSLError():
            return "the TLS handshake failed"
        case asyncio.LimitOverrunError():
            return "the head of the answer is too long"
        case ConnectionRefusedError():
            return "the connection was refused"
        case EOFError() | ConnectionError():
            return "the connection ended before the answer"
        case OSError():
            return "the receiver could not be reached"
    return "the attempt failed"
