"""Parse one HTTP/1.1 response with httptools, within size limits. This module does no I/O."""

from __future__ import annotations

import httptools

MAX_HEAD_BYTES = 16 * 1024
"""Maximum size of all headers in bytes. Most peers send a few hundred bytes."""

MAX_BODY_BYTES = 2 * 1024 * 1024
"""Maximum size of a body in bytes; a longer body is an error. A match file has a few KB."""

_RESET_CONTENT = 205
"""Status 205. Like 204 and 304, a 205 response has no body, but the parser would wait for one."""


class ResponseError(Exception):
    """The response is invalid or too long."""


class ResponseReader:
    """An incremental parser for one response."""

    def __init__(self) -> None:
        self._parser = httptools.HttpResponseParser(self)
        self._body = bytearray()
        self._head_bytes = 0
        self._unparsed_bytes = 0
        self._has_head = False
        self._has_framing = False
        self._fault = ""
        self.has_begun = False
        """True if any bytes were received."""
        self.status = 0
        self.is_done = False
        self.is_reusable = False
        """True if the connection can be used for another request after this response."""

    @property
    def body(self) -> bytes:
        return bytes(self._body)

    def feed(self, more: bytes) -> None:
        """Parse more bytes. Raise ResponseError if they are invalid."""
        self.has_begun = self.has_begun or bool(more)
        self._unparsed_bytes += len(more)
        try:
            self._parser.feed_data(more)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as exc:
            if self.is_done:
                self.is_reusable = False  # the peer has sent data after the response
                return
            raise ResponseError(self._fault or f"response is not valid HTTP: {exc}") from exc
        if not self._has_head and self._unparsed_bytes > MAX_HEAD_BYTES:
            raise ResponseError("response headers too long")

    def finish(self) -> None:
        """Handle the end of the connection. Raise ResponseError if the response is still incomplete."""
        if self.is_done:
            return
        if not self._has_head or self._has_framing:
            raise ResponseError("connection closed before the end of the response")
        self.is_done = True

    # --- callbacks of the parser --------------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        """Reject a second response."""
        if self.is_done:
            raise self._failed("unexpected data after the response")
        self._head_bytes, self._has_framing = 0, False

    def on_header(self, name: bytes, value: bytes) -> None:
        """Limit the total size of the headers, and record how the body is delimited."""
        self._head_bytes += len(name) + len(value)
        if self._head_bytes > MAX_HEAD_BYTES:
            raise self._failed("response headers too long")
        name = name.lower()
        self._has_framing = self._has_framing or name in (b"content-length", b"transfer-encoding")
        if name == b"content-length" and value.isdigit() and int(value) > MAX_BODY_BYTES:
            raise self._failed("response body too long")

    def on_headers_complete(self) -> None:
        """Record the status. After a 1xx response, the final response follows."""
        self.status = self._parser.get_status_code()
        if self.status < 200:
            return
        self._has_head = True
        self.is_reusable = self._parser.should_keep_alive()
        self.is_done = self.status == _RESET_CONTENT

    def on_body(self, part: bytes) -> None:
        if self.is_done:
            raise self._failed("unexpected data after the response")
        self._body += part
        if len(self._body) > MAX_BODY_BYTES:
            raise self._failed("response body too long")

    def on_message_complete(self) -> None:
        """Record the end of the response. A 1xx response is ignored."""
        self._unparsed_bytes = 0
        self.is_done = self.is_done or self._has_head

    def _failed(self, fault: str) -> ResponseError:
        self._fault = fault
        return ResponseError(fault)
