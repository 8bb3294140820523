"""HTTP/1.1 connections of callers and game servers, with limits for the memory that an unknown client can use.

httptools parses and `Exchange` responds; this module orders requests and applies timeouts. A stream is the last
response on its connection: data that the client sends during a stream is dropped, and a disconnect is detected. If a
request is rejected, earlier requests are still answered, and all later data is dropped.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Final, cast
from urllib.parse import unquote_to_bytes

import httptools

from matchpod.web.http.admission import Excess, Seat
from matchpod.web.http.asgi import Scope
from matchpod.web.http.connections import Connections
from matchpod.web.http.direct import DirectExchange, DirectRoute
from matchpod.web.http.errors import INTERNAL_ERROR, HttpError
from matchpod.web.http.exchange import MAX_BUFFERED_BODY, OK, Exchange, format_head
from matchpod.web.http.request_head import MAX_HEAD_BYTES, TOO_LARGE, RequestHead
from matchpod.web.http.responses import CONNECTION, Header

UNACKNOWLEDGED_MS: Final = 30_000
"""Timeout in milliseconds for the TCP acknowledgment of stream data. A client may vanish silently, and the default
timeout of TCP is a quarter of an hour."""
_INVALID: Final = "This is not a valid HTTP request."
_SLOW_BODY: Final = "The request body was not complete in time."
_TOO_MANY: Final = "Too many requests were sent before the answer to an earlier one."
_OK_DATE: Final = b"HTTP/1.1 200 OK\r\ndate: "
_ASGI: Final = {"version": "3.0", "spec_version": "2.3"}

_log = logging.getLogger(__name__)


class ApiConnection(asyncio.Protocol):
    """A connection of a caller or a game server. It uses little memory, because each match has several for hours."""

    __slots__ = (
        "__weakref__",
        "_addresses",
        "_current",
        "_deadline_s",
        "_direct",
        "_direct_body",
        "_drops_data",
        "_head",
        "_is_body_paused",
        "_is_half_closed",
        "_is_streaming",
        "_loop",
        "_may_read",
        "_newest",
        "_on_lost",
        "_parser",
        "_patience",
        "_proxy",
        "_shared",
        "_timer",
        "_unparsed_bytes",
        "_unread",
        "_waiting",
        "_writable",
        "_written_bytes",
        "on_header",
        "on_message_begin",
        "on_url",
        "seat",
        "transport",
    )

    def __init__(self, shared: Connections, seat: Seat) -> None:
        self.seat = seat
        self._shared = shared
        self._patience = shared.patience
        self._loop = asyncio.get_running_loop()
        self._head = RequestHead()
        # The parser calls these methods of the head directly, because most of its callbacks are for headers.
        self.on_message_begin = self._head.begin
        self.on_url = self._head.add_url
        self.on_header = self._head.add_header
        self._parser = httptools.HttpRequestParser(self)
        self.transport: asyncio.Transport
        self._addresses: tuple[tuple[str, int] | None, ...] = (None, None)
        self._proxy: str | None = None
        """The address of the connected machine if it is a trusted proxy; None for other clients."""
        self._unparsed_bytes = 0
        """Number of bytes since the parser last completed a part of a request. It may have buffered them."""
        self._direct_body: bytes | None = None
        """The received part of the body of a request that may be answered directly; None for other requests."""
        self._direct: DirectRoute | None = None
        """The route of the current request if it is a POST that may be answered directly; None otherwise."""
        self._may_read = True
        """False after a GET was answered directly, until more data arrives: other connections are served in between."""
        self._newest: Exchange | None = None
        """The exchange of the newest request, to which received data belongs."""
        self._current: Exchange | DirectExchange | None = None
        """The exchange of the request that is being answered."""
        self._waiting: list[Exchange] = []
        self._deadline_s: float | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._written_bytes = 0
        self._unread: tuple[int, float] | None = None
        """The bytes accepted by the system for sending, and when they last grew; None if all data was sent."""
        self._writable: asyncio.Future[None] | None = None
        """A future that is done when the client has read enough; None unless the client reads too slowly."""
        self._is_body_paused = self._is_streaming = False
        self._drops_data = False
        """True if received data is dropped, which is the case during a stream and after a rejected request."""
        self._is_half_closed = False
        self._on_lost: Callable[[], None] | None = None

    # --- the transport --------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start the timeout for the first request."""
        self.transport = cast(asyncio.Transport, transport)  # uvloop's transport is no subclass of this type
        client = _address(transport, "peername")
        self._addresses = (client, _address(transport, "sockname"))
        self._proxy = client[0] if client is not None and self._shared.proxies.has(client[0]) else None
        self._shared.add(self)
        self._deadline_s = self._loop.time() + self._patience.head_s
        self._check_timeouts()

    def connection_lost(self, exc: Exception | None) -> None:
        """Notify the exchanges and stop the timer.

        Break all reference cycles, so that the connection is freed at once; the garbage collector runs rarely.
        """
        self._shared.remove(self)
        if self._timer is not None:
            self._timer.cancel()
        self._set_writable()
        if self._on_lost is not None:
            self._on_lost()
        for exchange in (self._current, *self._waiting):
            if exchange is not None:
                exchange.disconnect()
        self._waiting.clear()
        self._current = self._newest = None
        del self._parser

    def data_received(self, data: bytes) -> None:
        """Parse the data. Reject the request if it is not HTTP, or if its head exceeds the limit."""
        if self._drops_data or self.transport.is_closing():
            return
        self._may_read = True
        if self._current is None and self._unparsed_bytes == 0 and self._direct_body is None:
            self._deadline_s = self._loop.time() + self._patience.head_s  # these are the first bytes of a request
        try:
            while data:
                # Parse at most what the head limit still allows, because the parser skips any number of spaces.
                room = MAX_HEAD_BYTES - self._unparsed_bytes
                if room <= 0:
                    raise HttpError(TOO_LARGE)
                part, data = data[:room], data[room:]
                self._unparsed_bytes += len(part)
                self._parser.feed_data(part)
            if self._direct_body is not None:
                self._await_body(self._direct_body)
        except httptools.HttpParserUpgrade:
            return  # upgrades are not supported; the request gets a normal response
        except (httptools.HttpParserError, HttpError) as exc:
            error = exc if isinstance(exc, HttpError) else exc.__context__  # a callback of the parser raised it
            self._reject(error if isinstance(error, HttpError) else HttpError(_INVALID))

    def eof_received(self) -> bool:
        """Handle a half-closed connection. Return True to keep it open until the response in progress is sent."""
        if self._is_streaming:  # the client may have disconnected, and a stream may stay open for hours
            self.transport.abort()
            return False
        if self._on_lost is not None:  # a client that closes its side while waiting has usually disconnected
            return False
        if self._drops_data:  # earlier requests are being answered, or the client still reads
            self._is_half_closed = True
            return self._current is not None and not self._current.is_response_complete
        if self._current is None or not self._current.is_body_complete or self._waiting:
            return False
        self._current.keep_alive = False
        self._is_half_closed = True
        return True

    def pause_writing(self) -> None:
        """Make `drain` wait, because the client does not read fast enough."""
        if self._writable is None:
            self._writable = self._loop.create_future()
        self._shared.add_unread(self, self.transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        """Let `drain` return."""
        self._set_writable()
        self._shared.remove_unread(self)

    def _set_writable(self) -> None:
        writable, self._writable = self._writable, None
        if writable is not None:
            writable.set_result(None)

    # --- the parser -----------------------------------------------------------------------------------------------

    def on_headers_complete(self) -> None:
        """Start the exchange, or queue it behind earlier exchanges."""
        if len(self._waiting) >= self._shared.max_pipelined and self._current is not None:
            raise HttpError(_TOO_MANY)  # the parser raises an HttpParserError with it as the context
        version = self._parser.get_http_version()
        self._head.complete(version)
        self._unparsed_bytes = 0
        reads, url = self._shared.reads, self._head.url
        self._direct = self._shared.direct_route(url)
        is_post = self._direct is not None and self._may_be_direct(b"POST") and self._closes_as_asked(version)
        is_read = reads is not None and url.startswith(reads.prefix) and self._may_read_directly(version)
        if is_post or is_read:
            self._direct_body = b""
        else:
            self._begin_exchange()

    def _may_be_direct(self, method: bytes) -> bool:
        parser = self._parser
        return (
            self._current is None
            and parser.get_method() == method
            and not parser.should_upgrade()
            and not self._head.expects_continue
            and not self._head.is_encoded
        )

    def _may_read_directly(self, version: str) -> bool:
        return version == "1.1" and self._parser.should_keep_alive() and self._may_be_direct(b"GET")

    def _closes_as_asked(self, version: str) -> bool:
        """False for an HTTP/1.0 client that wants to keep the connection open.

        Such a client needs a header in the response, which only the application sends.
        """
        return version == "1.1" or not self._parser.should_keep_alive()

    def _await_body(self, body: bytes) -> None:
        """Wait for the rest of a body, until the request's deadline. A large or unusual request gets an exchange."""
        if self._direct is None or len(body) > MAX_BUFFERED_BODY:
            self._begin_exchange()
        else:
            self._shared.set_busy(self)

    def _begin_exchange(self) -> None:
        """Start an exchange for the request whose head is complete, or queue the exchange behind earlier requests."""
        body, self._direct_body = self._direct_body, None
        keep_alive = self._parser.should_keep_alive() and not self._parser.should_upgrade()
        keep_alive = keep_alive and not self.seat.admission.is_single
        method = self._parser.get_method().decode("ascii")
        scope = self._scope(self._parser.get_http_version(), method, self._head.url, self._head.headers)
        exchange = Exchange(self, scope, keep_alive=keep_alive)
        exchange.expects_continue = self._head.expects_continue
        if body:
            exchange.add_body(body)
        self._newest = exchange
        if self._current is None:
            self._start(exchange)
        else:
            self._waiting.append(exchange)
            self.pause_body()

    def on_body(self, body: bytes) -> None:
        """Pass on a part of a body. The reader of the body limits its size."""
        self._unparsed_bytes = 0
        if self._direct_body is not None:
            self._direct_body += body
        elif self._newest is not None:
            self._newest.add_body(body)

    def on_message_complete(self) -> None:
        """Complete the body, and its exchange if the response is complete. The next byte belongs to another request."""
        self._unparsed_bytes = 0
        if self._direct_body is not None:
            if self._direct is not None:
                self._take(self._direct_body)
                return
            if self._answer_read():
                return
            self._begin_exchange()
        if self._newest is not None:
            self._newest.complete_body()
            if self._newest.is_response_complete:
                self._finish(self._newest)

    def _scope(self, http_version: str, method: str, target: bytes, headers: list[tuple[bytes, bytes]]) -> Scope:
        url = httptools.parse_url(target)
        raw_path = url.path or b"/"
        path = raw_path.decode("ascii")
        client = self._addresses[0]
        if self._proxy is not None:
            client = (self._shared.proxies.client(self._proxy, headers), 0)
        return {
            "type": "http",
            "asgi": _ASGI,
            "http_version": http_version,
            "method": method,
            "scheme": "http",
            "path": unquote_to_bytes(raw_path).decode("utf-8", "replace") if "%" in path else path,
            "raw_path": raw_path,
            "query_string": url.query or b"",
            "root_path": "",
            "headers": headers,
            "client": client,
            "server": self._addresses[1],
            "extensions": {CONNECTION: self},
        }

    # --- exchanges ------------------------------------------------------------------------------------------------

    def _answer_read(self) -> bool:
        """Answer a GET directly. Return False for an unusual request or a slow client: the application answers it."""
        reads, head = self._shared.reads, self._head
        is_usual = self.seat.is_ordinary and self._may_read and self._writable is None and not self._direct_body
        if reads is None or not is_usual or self.transport.is_closing():
            return False
        try:
            parts = reads.read(head.url[len(reads.prefix) :].decode("latin-1"), head.headers)
        except Exception:  # noqa: BLE001 - the application answers, and reports the error if it has one too
            _log.exception("fast path failed: the application answers the request")
            return False
        if parts is None:
            return False
        self._direct_body, self._newest, self._may_read = None, None, False
        self._shared.set_busy(self)
        self._shared.set_idle(self)
        self._deadline_s = self._loop.time() + self._patience.head_s
        self.write(b"".join((_OK_DATE, self._shared.date(), *parts)))
        return True

    def _take(self, body: bytes) -> None:
        """Answer a POST directly if it is a usual request; otherwise pass it to the application."""
        route, self._direct_body = self._direct, None
        keep_alive = self._parser.should_keep_alive() and not self.seat.admission.is_single
        version = self._parser.get_http_version()
        exchange = DirectExchange(self._head.url, self._head.headers, body, version=version, keep_alive=keep_alive)
        self._head.begin()  # frees the headers before the next request
        self._current, self._newest = exchange, None
        self._deadline_s = None
        self._shared.begin_direct(self)
        is_taken = False
        try:
            is_taken = route is not None and route.take(
                exchange.url[len(route.prefix) :].decode("latin-1"),
                exchange.headers,
                body,
                lambda is_answer: self._answer(exchange, route.response if is_answer else None),
            )
        except Exception:  # noqa: BLE001 - the application answers, and reports the error if it has one too
            _log.exception("fast path failed: the application answers the request")
        if not is_taken:
            self._answer(exchange, None)

    def _answer(self, exchange: DirectExchange, response: bytes | None) -> None:
        """Send the prepared response; if there is none, pass the request to the application."""
        self._shared.end_direct()
        if exchange.is_disconnected or self.transport.is_closing():
            return
        if response is not None:
            exchange.is_response_complete = True
            self.write(self._shared.direct_response(response, keep_alive=exchange.keep_alive))
            self.exchange_completed()
            return
        scope = self._scope(exchange.version, "POST", exchange.url, exchange.headers)
        passed = Exchange(self, scope, keep_alive=exchange.keep_alive)
        passed.add_body(exchange.body)
        passed.complete_body()
        self._start(passed)

    def _start(self, exchange: Exchange) -> None:
        self._current = exchange
        self._deadline_s = None
        self._shared.set_busy(self)
        task = self._loop.create_task(self._run(exchange))
        self._shared.tasks.add(task)
        task.add_done_callback(self._shared.tasks.discard)

    async def _run(self, exchange: Exchange) -> None:
        scope, shared = exchange.scope, self._shared
        try:
            error = None if self.seat.is_ordinary else shared.rejection(self.seat, scope["path"])
            if error is None and self._proxy is not None:
                with shared.of_client(self.seat, scope) as error:
                    await self._respond(exchange, error)
            else:
                await self._respond(exchange, error)
        except Exception:  # noqa: BLE001 - an application must not end the server
            _log.exception("application failed")
        if exchange.is_response_complete or exchange.is_disconnected or self.transport.is_closing():
            return
        if exchange.is_response_started:
            self.transport.abort()  # otherwise the client would think that the response is complete
        else:
            self._write_error(HttpError("Internal error.", INTERNAL_ERROR))
            self.transport.close()

    async def _respond(self, exchange: Exchange, error: HttpError | None) -> None:
        if error is None:
            await self._shared.app(exchange.scope, exchange.receive, exchange.send)
        else:
            await self._send_error(exchange, error)

    def exchange_completed(self) -> None:
        """Start the next request or wait for it, or close the connection."""
        self._shared.set_idle(self)
        exchange = self._current
        if self.seat.address is not None and exchange is not None and self._is_trusted(exchange):
            self._shared.trust(self.seat)
        if exchange is None or self._is_streaming:
            self.transport.close()
        elif exchange.is_body_complete:
            self._finish(exchange)
        else:
            # Read the rest of the body first; otherwise the client could lose the response when the connection closes.
            self._deadline_s = self._loop.time() + self._patience.head_s
            self.resume_body()

    def _is_trusted(self, exchange: Exchange | DirectExchange) -> bool:
        """True if the response's status proves that the sender of the request is a trusted client."""
        return isinstance(exchange, DirectExchange) or (
            exchange.status == OK and self._shared.priority.is_trusted(exchange.scope["path"])
        )

    def _finish(self, exchange: Exchange | DirectExchange) -> None:
        if not exchange.keep_alive:
            self._close()
            return
        self._current = None
        if self._waiting:
            self._start(self._waiting.pop(0))
        else:
            self._deadline_s = self._loop.time() + self._patience.head_s
        self.resume_body()

    def _close(self) -> None:
        """Close the connection. If data was dropped, wait first, so that the client can read the last responses."""
        if not self._drops_data or self._is_streaming or self._is_half_closed or self.transport.is_closing():
            self.transport.close()
        else:
            self.transport.write_eof()
            self._loop.call_later(self._patience.linger_s, self._end_linger)

    def _end_linger(self) -> None:
        if self.transport.is_closing():
            return
        if self.transport.get_write_buffer_size():  # wait while the client reads; otherwise `_check_timeouts` aborts
            self._loop.call_later(self._patience.linger_s, self._end_linger)
        else:
            self.transport.abort()

    def write(self, data: bytes) -> None:
        self._written_bytes += len(data)
        self.transport.write(data)

    async def drain(self) -> None:
        if self._writable is not None:
            await asyncio.shield(self._writable)

    def pause_body(self) -> None:
        if not self._is_body_paused:
            self._is_body_paused = True
            self.transport.pause_reading()

    def resume_body(self) -> None:
        """Resume reading from the client, unless other requests wait to be answered."""
        if not self._waiting:
            self._resume_reading()

    def _resume_reading(self) -> None:
        if self._is_body_paused and not self.transport.is_closing():
            self._is_body_paused = False
            self.transport.resume_reading()

    def date(self) -> bytes:
        return self._shared.date()

    def shut_down(self) -> None:
        self._waiting.clear()
        if self._current is None or self._current.is_response_complete:
            self.transport.close()
        else:
            self._current.keep_alive = False

    # --- streams --------------------------------------------------------------------------------------------------

    @property
    def is_open(self) -> bool:
        return not self.transport.is_closing()

    @property
    def has_room(self) -> bool:
        return self._writable is None

    def watch_loss(self, act: Callable[[], None] | None, /) -> None:
        self._on_lost = act

    def begin_stream(self) -> None:
        """Begin a stream. Later requests on this connection are ignored."""
        self._is_streaming = self._drops_data = True
        self._waiting.clear()
        if self._is_half_closed:  # as in `eof_received`: a later disconnect would go unnoticed
            self.transport.abort()
        self.resume_body()  # to detect a disconnect
        if self._current is not None:
            self._current.keep_alive = False
        # The client may have disconnected already. Then the transport has no socket, or a socket that is closed.
        if hasattr(socket, "TCP_USER_TIMEOUT") and not self.transport.is_closing():  # Linux
            tcp_socket: socket.socket = self.transport.get_extra_info("socket")
            with suppress(OSError):
                tcp_socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, UNACKNOWLEDGED_MS)

    def abort(self) -> None:
        self.transport.abort()

    # --- errors and timeouts --------------------------------------------------------------------------------------

    def _reject(self, error: HttpError) -> None:
        """Close the connection after the earlier requests are answered or, if there are none, after an error response.

        With earlier requests, the client would take the error for the response to one of them.
        """
        _log.debug("request rejected", extra={"reason": str(error)})
        current, newest = self._current, self._newest
        if current is not None and current.is_body_complete and not self.transport.is_closing():
            if newest is not None and newest is not current and not newest.is_body_complete:
                self._waiting.pop()  # remove the rejected request
            (self._waiting[-1] if self._waiting else current).keep_alive = False
            self._drops_data = True
            self._resume_reading()
            return
        if current is None or (current is newest and not current.is_response_started):
            self._write_error(error)
        self.transport.close()

    def _write_error(self, error: HttpError) -> None:
        """Write an error response that belongs to no exchange. The caller then closes the connection."""
        status, headers, body = self._closing_response(error)
        self.write(format_head(status, [(b"date", self.date()), *headers]) + body)

    async def _send_error(self, exchange: Exchange, error: HttpError) -> None:
        """Answer a request with an error, without calling the application. The connection is then closed."""
        status, headers, body = self._closing_response(error)
        await exchange.send({"type": "http.response.start", "status": status, "headers": headers})
        await exchange.send({"type": "http.response.body", "body": body})

    def _closing_response(self, error: HttpError) -> tuple[int, list[Header], bytes]:
        """Return the status, headers and body of an error response after which the connection is closed."""
        response = self._shared.error_response(error)
        headers = [
            (b"content-type", response.content_type),
            (b"content-length", b"%d" % len(response.body)),
            *response.headers,
            (b"connection", b"close"),
        ]
        return response.status, headers, response.body

    def _check_timeouts(self) -> None:
        """Close the connection at its deadline. Abort it if the client does not read, even while it is being closed.

        One timer per connection that is set again whenever it fires is cheaper than a timer per request.
        """
        now_s = self._loop.time()
        unsent = self.transport.get_write_buffer_size()
        sent = self._written_bytes - unsent
        if not unsent:
            self._unread = None
        elif self._unread is None or self._unread[0] != sent:
            self._unread = (sent, now_s)
        elif now_s - self._unread[1] >= self._patience.send_s:
            self._shared.note(Excess.UNREAD)
            self.transport.abort()
            return
        if self._deadline_s is not None and now_s >= self._deadline_s:
            self._deadline_s = None
            if self._direct_body is not None:
                self._write_error(HttpError(_SLOW_BODY))
            self.transport.close()
        send_s = self._patience.send_s
        wait_s = send_s if self._deadline_s is None else min(send_s, self._deadline_s - now_s)
        self._timer = self._loop.call_later(wait_s, self._check_timeouts)


def _address(transport: asyncio.BaseTransport, name: str) -> tuple[str, int] | None:
    try:
        address = transport.get_extra_info(name)
    except OSError:  # raised if the client has already reset the connection
        return None
    return (str(address[0]), int(address[1])) if isinstance(address, tuple) and len(address) >= 2 else None
