"""How much may a stranger make us hold? A connection with limits on what comes before a request is known.

uvicorn's own has none: it keeps headers as long as they come, waits for ever for their end, and takes as many
requests ahead as fit into one read. Nobody needs a key for any of that. A stream is the last answer of its connection:
what the caller sends meanwhile is dropped, and his hanging up is noticed.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import socket
import sys
from typing import Final

import httptools
from uvicorn._types import ASGI3Application
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from matchpod.core.errors import InvalidParamsError
from matchpod.service.identifiers import REQUEST_RANDOM_BYTES, new_request_id
from matchpod.web.endpoint import LINE
from matchpod.web.errors import answer_to

MAX_HEAD_BYTES: Final = 64 * 1024
"""Far more than the headers of any proxy; one read more may be held before it is noticed."""
HEAD_TIMEOUT_S: Final = 30.0
"""For the head of a request to come, from the opening of the connection or its first byte."""
LOST_MS: Final = 30_000
"""For what a stream sent to arrive: the other end may vanish without a word, and TCP waits a quarter of an hour."""
MAX_PIPELINED: Final = 32
"""Requests sent ahead on one connection while one is answered; clients and proxies in use send none."""

_log = logging.getLogger(__name__)


class ApiConnection(HttpToolsProtocol):
    """One connection of a caller or a game server."""

    _held = 0
    """Bytes taken in since a piece of a request was complete: what the parser may have to keep."""
    _deadline: asyncio.TimerHandle | None = None
    _answering: RequestResponseCycle
    """The request that is answered now; uvicorn's `cycle` is the newest one."""
    _is_streaming = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Wait for a request, but not for ever."""
        super().connection_made(transport)
        self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the time limit."""
        self._head_came()
        super().connection_lost(exc)
        if self.scope is not None:
            self.scope.pop("extensions", None)  # else the two would keep each other in memory for a while

    def data_received(self, data: bytes) -> None:
        """Read on; what is no HTTP, or never ends, is refused."""
        if self._is_streaming:
            return
        self._unset_keepalive_if_required()
        self._held += len(data)
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserError:
            self.send_400_response("This is not a request that can be read.")
            return
        except httptools.HttpParserUpgrade:
            return  # to what is not spoken here; the request is answered as if it had not asked
        if self._held > MAX_HEAD_BYTES:
            self.send_400_response(f"The head of a request is over the limit of {MAX_HEAD_BYTES} bytes.")
        elif not self._is_answering():
            self._expect_head()

    def eof_received(self) -> bool:  # type: ignore[override]  # uvicorn always hangs up
        """The caller sends no more; True keeps the connection until he has the answer he may still wait for."""
        if self._is_streaming:  # one who is gone looks the same, and an answer without end is for those who are there
            self.transport.abort()
            return False
        if not self._is_answering() or self.cycle.more_body or self.pipeline:
            return False
        self.cycle.keep_alive = False  # hangs up after the answer
        return True

    def on_headers_complete(self) -> None:
        """Begin with a request, or put it after those that came before."""
        if len(self.pipeline) >= MAX_PIPELINED:
            raise ValueError("too many requests sent ahead")  # the parser makes an HttpParserError of it
        super().on_headers_complete()
        self.scope["extensions"] = {LINE: self}  # type: ignore[dict-item]  # uvicorn knows those of ASGI only
        self._held = 0
        self._head_came()

    def on_body(self, body: bytes) -> None:
        """Hand on a part of a body; how much of it is held is limited by whoever reads it."""
        self._held = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """The next byte belongs to another request."""
        self._held = 0
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """Refuse what came, with the body that every error has, and hang up."""
        _log.debug("connection refused", extra={"reason": msg})
        if self._is_next():  # else this would be read as the answer to the request before
            request_id = new_request_id(secrets.token_bytes(REQUEST_RANDOM_BYTES))
            answer = answer_to(InvalidParamsError(msg), request_id)
            headers = {
                b"content-type": answer.content_type,
                b"content-length": b"%d" % len(answer.body),
                b"x-request-id": request_id.encode(),
                b"connection": b"close",
            }
            lines = b"".join(b"%b: %b\r\n" % header for header in headers.items())
            self.transport.write(STATUS_LINE[answer.status] + lines + b"\r\n" + answer.body)
        self.transport.close()

    # --- streams ------------------------------------------------------------------------------------------------------

    @property
    def has_room(self) -> bool:
        """True when sending does not have to wait for the caller."""
        return not self.flow.write_paused

    def begin_stream(self) -> None:
        """Answer with a body without end from here on; the caller can only hang up."""
        self._is_streaming = True
        self.pipeline.clear()
        self.cycle = self._answering  # which is told when the connection is lost
        self.cycle.keep_alive = False
        if hasattr(socket, "TCP_USER_TIMEOUT"):  # Linux
            plain = self.transport.get_extra_info("socket")
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, LOST_MS)
        if self.cycle.scope["http_version"] == "1.0":
            # Knows no chunks: the body ends where the connection does.
            self.cycle.chunked_encoding = False
            self.cycle.expected_content_length = sys.maxsize

    def end_stream(self) -> None:
        """The body is at its end."""
        self.cycle.expected_content_length = 0

    def cut(self) -> None:
        """Drop the connection with whatever was not sent."""
        self.transport.abort()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        self._answering = cycle
        super()._start_asgi_task(cycle, app)

    def _is_next(self) -> bool:
        """True when the caller takes what is sent now for the answer to what he sent last."""
        return not self._is_answering() or (
            self.cycle.more_body and not self.cycle.response_started and not self.pipeline
        )

    def _is_answering(self) -> bool:
        return not getattr(self.cycle, "response_complete", True)  # there is none before the first request

    def _expect_head(self) -> None:
        if self._deadline is None:
            self._deadline = self.loop.call_later(HEAD_TIMEOUT_S, self._give_up)

    def _head_came(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _give_up(self) -> None:
        self._deadline = None
        if not self.transport.is_closing():
            self.transport.close()
