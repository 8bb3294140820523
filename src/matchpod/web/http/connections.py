"""Track the open connections of a server, apply their limits, and close some when there are too many.

A connection is silent until it has sent a request head, and idle between two requests. When no ordinary slot is left, a
new connection replaces the connection that has been silent longest or, if no connection is silent, idle longest. Fresh
connections are replaced only when no slot at all is left, so that clients that connect at the same moment do not
displace each other.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from email.utils import formatdate
from typing import Final, Protocol

import msgspec

from matchpod.web.http.admission import (
    Admission,
    ConnectionLimits,
    Excess,
    PriorityPaths,
    Seat,
    address_group,
)
from matchpod.web.http.asgi import Application, Scope
from matchpod.web.http.direct import DirectRoute, ReadRoute
from matchpod.web.http.errors import UNAVAILABLE, HttpError
from matchpod.web.http.responses import Header, Response
from matchpod.web.http.trusted_proxies import TrustedProxies

LOOPBACK: Final = "loopback"
"""The key for counting loopback clients (in `admit`, trusted proxies too) together when a limit applies to them."""
RETRY_AFTER_S: Final = 5
"""Retry-After in seconds for rejected clients. Most requests are answered within this time."""
MAX_UNREAD_BYTES: Final = 32 * 1024 * 1024
"""Maximum number of unsent bytes to buffer for slow clients, over all connections. A typical response has a few
kilobytes, and large responses are sent in parts, so hundreds of slow clients can be served at the same time."""
WARNING_S: Final = 60.0
"""Minimum interval in seconds between two warnings of the same kind, so that clients cannot flood the log."""

_WARNINGS: Final = {
    Excess.LIMIT: "connections rejected: limit reached",
    Excess.ADDRESS: "connections rejected: limit of an address reached",
    Excess.IDLE: "idle connections closed: limit reached",
    Excess.FILES: "accepting connections paused",
}
_log = logging.getLogger(__name__)


class Patience(msgspec.Struct, frozen=True, kw_only=True):
    """The timeouts of connections in seconds, and the limit for unsent bytes."""

    head_s: float = 30.0
    """Timeout for a request head, from its first byte or from the start of the connection. It is also the idle timeout
    of connections, so it is longer than the usual time between two log posts."""
    fresh_s: float = 1.0
    """Time that a new connection has for its first request head before other connections may replace it; enough for a
    slow network."""
    send_s: float = 30.0
    """Timeout in seconds for clients that do not read: a connection ends if none of its unsent bytes could be sent for
    this time. It is checked at the same interval, so a client has up to twice the time."""
    linger_s: float = 2.0
    """Time before the server closes a connection on which it has dropped data. If a connection is closed with unread
    data, the system resets it, and a client that has not read the last responses would lose them."""
    unread_bytes: int = MAX_UNREAD_BYTES
    closing_s: float = 2.0
    """Timeout for requests in progress when the server stops. Most requests are short."""


class Connection(Protocol):
    """An open connection."""

    @property
    def seat(self) -> Seat:
        """The slot that the connection occupies."""

    def shut_down(self) -> None:
        """Close the connection. If a response is in progress, close it after that response."""

    def abort(self) -> None:
        """Close the connection at once, and drop all unsent data."""


class ConnectionCounts(Protocol):
    """Receives the metrics of connections."""

    def set_open(self, count: int, /) -> None:
        """Set the number of open connections."""

    def count_rejected(self, reason: Excess, /) -> None:
        """Count a connection that was rejected or closed early."""


class Connections:
    """The open connections of a server, with their limits and shared settings."""

    def __init__(
        self,
        app: Application,
        limits: ConnectionLimits,
        patience: Patience,
        *,
        priority: PriorityPaths,
        error_response: Callable[[HttpError], Response],
        counts: ConnectionCounts,
        direct: Sequence[DirectRoute] = (),
        reads: ReadRoute | None = None,
    ) -> None:
        self.app = app
        self.proxies = TrustedProxies(limits.trusted_proxies)
        self.max_pipelined = limits.pipelined
        self.patience = patience
        self.priority = priority
        self.error_response = error_response
        """Returns the response to an error. The connection is closed after that response."""
        self._direct = direct
        self.reads = reads
        self._direct_exchanges = 0
        self._all_answered = asyncio.Event()
        self._all_answered.set()
        self.open: set[Connection] = set()
        self.tasks: set[asyncio.Task[None]] = set()
        self._silent: dict[Connection, float] = {}
        """Connections that have not sent a request head yet, with the times when they were opened, oldest first."""
        self._idle: dict[Connection, None] = {}
        """Connections between two requests, longest idle first."""
        self._unread: dict[Connection, int] = {}
        """Connections whose clients read too slowly, with their numbers of unsent bytes; longest without progress
        first."""
        self._unread_bytes = 0
        self._admission = Admission(limits)
        self._probes = None if limits.probes is None else Admission(limits.probes, is_single=True)
        self._counts = counts
        self._warn_at_s: dict[Excess, float] = {}
        self._date = (0, b"")

    def date(self) -> bytes:
        """The value of the `date` header, which is formatted once per second."""
        now_s = int(time.time())
        if now_s != self._date[0]:
            self._date = (now_s, formatdate(now_s, usegmt=True).encode())
        return self._date[1]

    # --- state of a connection --------------------------------------------------------------------------------------

    def add(self, connection: Connection) -> None:
        self.open.add(connection)
        self._silent[connection] = time.monotonic()

    def set_idle(self, connection: Connection) -> None:
        """Record that a connection has no request in progress."""
        self._idle[connection] = None

    def set_busy(self, connection: Connection) -> None:
        self._idle.pop(connection, None)
        self._silent.pop(connection, None)

    def begin_direct(self, connection: Connection) -> None:
        """Record that a request on this connection is being answered without the application."""
        self.set_busy(connection)
        self._direct_exchanges += 1
        self._all_answered.clear()

    def end_direct(self) -> None:
        """End what `begin_direct` began: the request was answered, or was passed to the application."""
        self._direct_exchanges -= 1
        if not self._direct_exchanges:
            self._all_answered.set()

    def direct_route(self, url: bytes) -> DirectRoute | None:
        """Return the route for a POST to this URL if it may bypass the application; None if it may not."""
        for route in self._direct:
            if url.startswith(route.prefix):
                return route
        return None

    def direct_response(self, body: bytes, *, keep_alive: bool) -> bytes:
        return b"HTTP/1.1 200 OK\r\ndate: %b\r\n%bcontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (
            self.date(),
            b"" if keep_alive else b"connection: close\r\n",
            len(body),
            body,
        )

    def remove(self, connection: Connection) -> None:
        """Remove a connection that was closed. Calling it twice is fine."""
        self._idle.pop(connection, None)
        self._silent.pop(connection, None)
        self.remove_unread(connection)
        if connection in self.open:
            self.open.discard(connection)
            self.release(connection.seat)

    def add_unread(self, connection: Connection, size: int) -> None:
        """Record how many unsent bytes are buffered for a client.

        If the sum over all clients exceeds the limit, abort the connections that have made no progress for longest.
        """
        self.remove_unread(connection)
        self._unread[connection] = size
        self._unread_bytes += size
        while self._unread_bytes > self.patience.unread_bytes and len(self._unread) > 1:
            longest = next(iter(self._unread))
            self.remove_unread(longest)
            self.note(Excess.UNREAD)
            longest.abort()

    def remove_unread(self, connection: Connection) -> None:
        """Record that a client has read most of the bytes that were buffered for it."""
        self._unread_bytes -= self._unread.pop(connection, 0)

    async def close(self, within_s: float) -> None:
        """Close idle connections now, others after their responses; after `within_s`, abort those that are left."""
        for connection in tuple(self.open):
            connection.shut_down()
        began_s = time.monotonic()
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await self._all_answered.wait()
        if self.tasks:
            await asyncio.wait(self.tasks, timeout=max(0.0, within_s - (time.monotonic() - began_s)))
        for connection in tuple(self.open):
            connection.abort()
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)

    # --- limits -----------------------------------------------------------------------------------------------------

    @property
    def has_probe_places(self) -> bool:
        """True if probes have their own slots, so that `admit` needs the first bytes of a request to recognize them."""
        return self._probes is not None

    def admit(self, host: str, begin: bytes = b"") -> Seat | None:
        """Return a slot for a client at this address; None if its connection must be closed at once.

        `begin` has the first bytes of its request, as far as they have arrived.
        """
        address = None if self.proxies.has(host) else address_group(host)
        admission = self._admission
        if self._probes is not None:
            address = address or LOOPBACK
            admission = self._probes if self.priority.is_probe(begin) else admission
        if admission.is_barred(address):
            self.note(Excess.ADDRESS, address=address)
            return None
        if admission.is_crowded:
            self.close_idle(1, of=admission)
        if admission.is_full:
            self.close_idle(1, of=admission, even_fresh=True)
        if admission.is_full:
            self.note(Excess.LIMIT)
            return None
        seat = admission.enter(address)
        self._count_open()
        return seat

    def release(self, seat: Seat) -> None:
        seat.admission.leave(seat)
        self._count_open()

    def _count_open(self) -> None:
        self._counts.set_open(self._admission.open + (0 if self._probes is None else self._probes.open))

    def trust(self, seat: Seat) -> None:
        """Stop counting a connection toward its address, because its client has been authenticated."""
        seat.admission.trust(seat)

    def rejection(self, seat: Seat, path: str) -> HttpError | None:
        """Return the error for a request that is rejected because of too many connections; None if it is answered."""
        if self.priority.has(path):
            return None
        admission = seat.admission
        if admission.excess(seat) is Excess.LIMIT:
            self.close_idle(admission.open - admission.limits.ordinary, of=admission)
        reason = admission.excess(seat)
        if reason is None:
            return None
        if reason is Excess.ADDRESS:
            text = f"More than {admission.limits.of_address} connections are open from this address."
            return self._rejected(reason, f"{text} Close some, or reuse them.", address=seat.address)
        return self._rejected(reason, "The service has too many open connections. Retry later.")

    @contextmanager
    def of_client(self, seat: Seat, scope: Scope) -> Iterator[HttpError | None]:
        """Until the block ends, count a request through a trusted proxy toward the limit of its client.

        A proxy needs a connection for each request in progress. The block gets an error if the client has reached its
        limit, and None otherwise.
        """
        address = None if self.priority.has(scope["path"]) else self._counted(scope["client"][0], scope["headers"])
        if address is None:
            yield None
        elif not seat.admission.begin(address):
            text = f"More than {seat.admission.limits.of_address} requests of this address are in progress."
            yield self._rejected(Excess.ADDRESS, f"{text} End some first.", address=address)
        else:
            try:
                yield None
            finally:
                seat.admission.end(address)

    def _counted(self, host: str, headers: Sequence[Header]) -> str | None:
        """Return the key for counting a client's requests; None for a proxy's own requests, which have no limit."""
        if not self.proxies.has(host):
            return address_group(host)
        return (address_group(host) or LOOPBACK) if self.proxies.is_disputed(host, headers) else None

    def _rejected(self, reason: Excess, message: str, **fields: object) -> HttpError:
        self.note(reason, **fields)
        return HttpError(message, UNAVAILABLE, retry_after_s=RETRY_AFTER_S)

    def close_idle(self, count: int, *, of: Admission | None = None, even_fresh: bool = False) -> None:
        """Close at most `count` connections: silent connections that are no longer fresh, then idle ones, oldest first.

        With `even_fresh`, fresh silent connections are closed too; with `of`, only connections that `of` counts.
        """
        fresh_s = time.monotonic() - (0.0 if even_fresh else self.patience.fresh_s)
        silent = itertools.takewhile(lambda connection: self._silent[connection] <= fresh_s, self._silent)
        waiting: Iterator[Connection] = itertools.chain(silent, self._idle)
        if self._probes is not None and of is not None:
            waiting = filter(lambda connection: connection.seat.admission is of, waiting)
        for connection in tuple(itertools.islice(waiting, count)):
            self.remove(connection)
            connection.abort()
            self.note(Excess.IDLE)

    def note(self, reason: Excess, **fields: object) -> None:
        """Count a connection that was rejected or closed early. Log a warning, but only once per `WARNING_S`."""
        self._counts.count_rejected(reason)
        now_s = time.monotonic()
        warning = _WARNINGS.get(reason)
        if warning is not None and now_s >= self._warn_at_s.get(reason, now_s):
            self._warn_at_s[reason] = now_s + WARNING_S
            _log.warning(warning, extra={"open": self._admission.open, **fields})
