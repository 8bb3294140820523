"""A single HTTP request and its response, with the `receive` and `send` of ASGI on top of a connection.

The head of a response is held back until the first part of its body, so that a small response needs only one write.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from http import HTTPStatus
from typing import Final, Protocol

from matchpod.web.http.asgi import Message, Scope

MAX_BUFFERED_BODY: Final = 64 * 1024
"""Maximum number of body bytes to buffer before the application reads them. Above it, reading from the client pauses.
"""

CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
OK, NO_CONTENT, NOT_MODIFIED = 200, 204, 304
_STATUS_LINES: Final = {
    status.value: b"HTTP/1.1 %d %b\r\n" % (status.value, status.phrase.encode()) for status in HTTPStatus
}


class Carrier(Protocol):
    """The connection on which an exchange takes place."""

    def write(self, data: bytes) -> None:
        """Send data to the client."""

    async def drain(self) -> None:
        """Wait until the client has read enough of the sent data."""

    def pause_body(self) -> None:
        """Stop reading from the client."""

    def resume_body(self) -> None:
        """Resume reading from the client."""

    def date(self) -> bytes:
        """The value of the `date` header."""

    def exchange_completed(self) -> None:
        """Notify the connection that the response is complete."""


def format_head(status: int, headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    line = _STATUS_LINES.get(status) or b"HTTP/1.1 %d \r\n" % status
    return b"%b%b\r\n" % (line, format_headers(headers))


def format_headers(headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Format the headers, each followed by a line end."""
    return b"".join([b"%b: %b\r\n" % header for header in headers])


class Exchange:
    """A request that is being answered, and its response."""

    def __init__(self, carrier: Carrier, scope: Scope, *, keep_alive: bool) -> None:
        self.scope = scope
        self.keep_alive = keep_alive
        """False if the connection is closed after the response."""
        self.is_body_complete = False
        self.is_response_started = False
        self.is_response_complete = False
        self.is_disconnected = False
        self.expects_continue = False
        self.status = 0
        """The status of the response; 0 until its head has been sent."""
        self._carrier = carrier
        self._body = bytearray()
        self._is_body_delivered = False
        self._changed = asyncio.Event()
        self._head: tuple[int, list[tuple[bytes, bytes]]] | None = None
        self._is_chunked = False
        self._unsent: int | None = None
        """Number of bytes to be sent until the content length is reached; None if there is no content length."""

    # --- what the client sends ------------------------------------------------------------------------------------

    def add_body(self, part: bytes) -> None:
        """Buffer a part of the body, or drop it if the response is already complete."""
        if self.is_response_complete:
            return
        self._body += part
        if len(self._body) > MAX_BUFFERED_BODY:
            self._carrier.pause_body()
        self._changed.set()

    def complete_body(self) -> None:
        """Record that the body is complete."""
        self.is_body_complete = True
        self._changed.set()

    def disconnect(self) -> None:
        """Record that the client has disconnected, so that `receive` returns and `send` does nothing."""
        self.is_disconnected = True
        self._changed.set()

    async def receive(self) -> Message:
        """Return the next part of the body. After the last, wait until the response or the connection has ended."""
        if self.expects_continue and not self.is_response_started and not self.is_disconnected:
            self.expects_continue = False
            self._carrier.write(CONTINUE)
        while not self._has_news():
            self._changed.clear()
            await self._changed.wait()
        if self.is_disconnected or self.is_response_complete or self._is_body_delivered:
            return {"type": "http.disconnect"}
        body = bytes(self._body)
        self._body.clear()
        self._carrier.resume_body()
        self._is_body_delivered = self.is_body_complete
        return {"type": "http.request", "body": body, "more_body": not self.is_body_complete}

    def _has_news(self) -> bool:
        if self.is_disconnected or self.is_response_complete:
            return True
        return bool(self._body) or (self.is_body_complete and not self._is_body_delivered)

    # --- what the application sends -------------------------------------------------------------------------------

    async def send(self, message: Message) -> None:
        """Send the start of the response or a part of its body. If the client reads too slowly, wait first."""
        if self.is_disconnected:
            return
        if message["type"] == "http.response.start":
            if self.is_response_started:
                raise RuntimeError("the response has already been started")
            self.is_response_started = True
            self._head = (message["status"], list(message.get("headers", ())))
            return
        if not self.is_response_started or self.is_response_complete:
            raise RuntimeError("a body part was sent before the start or after the end of the response")
        await self._carrier.drain()
        if not self.is_disconnected:
            self._send_body(message.get("body", b""), is_last=not message.get("more_body", False))

    def _send_body(self, part: bytes, *, is_last: bool) -> None:
        head = self._pending_head(len(part) if is_last else None)
        if self.scope["method"] == "HEAD":
            part = b""
        elif self._is_chunked:
            part = _chunk(part, is_last=is_last)
        elif self._unsent is not None:
            self._unsent -= len(part)
            if self._unsent < 0 or (is_last and self._unsent):
                raise RuntimeError("the body does not have the announced content length")
        if head or part:
            self._carrier.write(head + part)
        if is_last:
            self.is_response_complete = True
            self._body.clear()
            self._changed.set()
            self._carrier.exchange_completed()

    def _pending_head(self, whole_length: int | None) -> bytes:
        """Return the response head, or nothing if it was sent. `whole_length` is the length of a one-part body."""
        if self._head is None:
            return b""
        (status, headers), self._head = self._head, None
        self.status = status
        names = {name.lower(): value for name, value in headers}
        self._choose_framing(status, headers, names.get(b"content-length"), whole_length)
        if names.get(b"connection", b"").lower() == b"close":
            self.keep_alive = False
        elif not self.keep_alive or not self.is_body_complete:
            # This connection cannot be used again: it must be closed anyway, or a part of the request body is missing.
            self.keep_alive = False
            headers.append((b"connection", b"close"))
        elif self.scope["http_version"] == "1.0":
            headers.append((b"connection", b"keep-alive"))
        return format_head(status, [(b"date", self._carrier.date()), *headers])

    def _choose_framing(
        self, status: int, headers: list[tuple[bytes, bytes]], length: bytes | None, whole_length: int | None
    ) -> None:
        if length is not None:
            self._unsent = int(length)
        elif status in (NO_CONTENT, NOT_MODIFIED):
            self._unsent = 0
        elif self.scope["method"] == "HEAD":
            return  # no body is sent, and the length of a GET's body is not known
        elif whole_length is not None:
            self._unsent = whole_length
            headers.append((b"content-length", b"%d" % whole_length))
        elif self.scope["http_version"] == "1.0":
            self.keep_alive = False  # HTTP/1.0 has no chunks: closing the connection ends the body
        else:
            self._is_chunked = True
            headers.append((b"transfer-encoding", b"chunked"))


def _chunk(part: bytes, *, is_last: bool) -> bytes:
    chunk = b"%x\r\n%b\r\n" % (len(part), part) if part else b""
    return chunk + b"0\r\n\r\n" if is_last else chunk
