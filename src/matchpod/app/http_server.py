"""Bind the listening socket and accept HTTP connections on it, even when the process runs out of file descriptors.

The socket is bound before anything else is built, because game servers are configured with its real port. This module
accepts connections itself, because the event loops do it badly without free descriptors: uvloop uses all CPU time for
retries or drops waiting clients, and asyncio logs thousands of tracebacks.
"""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Callable, Sequence
from typing import Final

from matchpod.app.resources import ResourcesError
from matchpod.service.telemetry.metrics import ConnectionMetrics
from matchpod.service.telemetry.prometheus import Registry
from matchpod.web.errors import connection_error_response
from matchpod.web.http.admission import PROBE_BYTES, ConnectionLimits, Excess, PriorityPaths, Seat
from matchpod.web.http.asgi import Application
from matchpod.web.http.connection import ApiConnection
from matchpod.web.http.connections import Connections, Patience
from matchpod.web.http.direct import DirectRoute, ReadRoute

BACKLOG: Final = 2048
"""Maximum number of connections that wait to be accepted; a thousand game servers may post at the same moment."""
ACCEPTED_AT_ONCE: Final = 16
"""Maximum number of connections to accept per iteration of the event loop. Each takes a tenth of a millisecond."""
DEFER_S: Final = 1
"""On ports with slots for probes: time in seconds for which the system waits for the first bytes of a request before it
passes on the connection."""
ACCEPT_PAUSE_S: Final = 0.5
"""Delay in seconds before the next `accept` after one has failed for lack of a descriptor. Other connections or files
may be closed during that time."""
CLOSED_IN_PAUSE: Final = 16
"""Number of idle connections to close when there is no free descriptor, so that other parts of the service get
descriptors."""

PRIORITY: Final = PriorityPaths(
    trusted="/ingest/", probes=frozenset({"/healthz", "/readyz"}), others=frozenset({"/metrics"})
)
"""Paths of priority requests: those of game servers, probes, and scrapes of the metrics."""
DEFAULT_LIMITS: Final = ConnectionLimits(total=512)
"""Limits for servers other than the service's main port. Many systems limit the open files of a process to 1,024."""
DEFAULT_PATIENCE: Final = Patience()


class HttpServer:
    """Serves an application on a bound socket until it is stopped."""

    def __init__(
        self,
        app: Application,
        *,
        on_listening: Callable[[], None],
        limits: ConnectionLimits = DEFAULT_LIMITS,
        metrics: ConnectionMetrics | None = None,
        patience: Patience = DEFAULT_PATIENCE,
        accept_pause_s: float = ACCEPT_PAUSE_S,
        direct: Sequence[DirectRoute] = (),
        reads: ReadRoute | None = None,
    ) -> None:
        metrics = metrics or ConnectionMetrics(Registry())
        metrics.rejected.preset(Excess)
        self.connections = Connections(
            app,
            limits,
            patience,
            priority=PRIORITY,
            error_response=connection_error_response,
            counts=metrics,
            direct=direct,
            reads=reads,
        )
        self._accept_pause_s = accept_pause_s
        self._closing_s = patience.closing_s
        self._on_listening = on_listening
        self._stopping = asyncio.Event()
        self._opening: set[asyncio.Task[None]] = set()
        self._resuming: asyncio.TimerHandle | None = None

    async def serve(self, bound: socket.socket) -> None:
        """Accept connections until `stop` is called, then let requests in progress finish."""
        bound.listen(BACKLOG)
        if self.connections.has_probe_places and hasattr(socket, "TCP_DEFER_ACCEPT"):  # Linux
            bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_DEFER_ACCEPT, DEFER_S)
        self._resume(bound)
        try:
            self._on_listening()
            await self._stopping.wait()
        finally:
            if self._resuming is not None:
                self._resuming.cancel()
            asyncio.get_running_loop().remove_reader(bound)
            bound.close()
            await asyncio.gather(*self._opening)
            await self.connections.close(self._closing_s)

    def stop(self) -> None:
        """Stop accepting connections, close idle connections and let requests in progress finish."""
        self._stopping.set()

    def _resume(self, bound: socket.socket) -> None:
        asyncio.get_running_loop().add_reader(bound, self._accept, bound)

    def _accept(self, bound: socket.socket) -> None:
        """Accept waiting connections. Connections above the limit are closed at once."""
        for _ in range(ACCEPTED_AT_ONCE):
            try:
                client, (host, *_) = bound.accept()
            except (BlockingIOError, InterruptedError):
                return
            except ConnectionError:
                continue  # the client has already reset the connection
            except OSError as exc:
                self._pause(bound, exc)
                return
            begin = _peek(client) if self.connections.has_probe_places else b""
            seat = self.connections.admit(host, begin)
            if seat is None:
                client.close()
                continue
            client.setblocking(False)  # noqa: FBT003 - no keyword arguments
            task = asyncio.get_running_loop().create_task(self._open(client, seat))
            self._opening.add(task)
            task.add_done_callback(self._opening.discard)

    async def _open(self, client: socket.socket, seat: Seat) -> None:
        connection = ApiConnection(self.connections, seat)
        try:
            await asyncio.get_running_loop().connect_accepted_socket(lambda: connection, client)
        except OSError:  # the client has already reset the connection
            client.close()
            self.connections.release(seat)

    def _pause(self, bound: socket.socket, exc: OSError) -> None:
        loop = asyncio.get_running_loop()
        loop.remove_reader(bound)
        self._resuming = loop.call_later(self._accept_pause_s, self._resume, bound)
        self.connections.note(Excess.FILES, cause=exc.strerror)
        self.connections.close_idle(CLOSED_IN_PAUSE)


def _peek(client: socket.socket) -> bytes:
    """Return the first bytes of a request, as far as they have arrived; they can still be received later."""
    try:
        return client.recv(PROBE_BYTES, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except OSError:
        return b""


def bind(host: str, port: int, setting: str = "MATCHPOD_PORT") -> socket.socket:
    """Return a socket that is bound to this address, but not listening yet; raise ResourcesError if that fails.

    `setting` is the variable that sets the port; the error text names it.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        bound = socket.socket(family, kind, protocol)
        try:
            # Allow binding while connections of the previous process are still in TIME_WAIT, after a quick restart.
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            bound.bind(address)
            bound.setblocking(False)  # noqa: FBT003 - no keyword arguments
        except OSError:
            bound.close()
            raise
    except (OSError, UnicodeError) as exc:  # UnicodeError is raised for an invalid host name
        reason = exc.strerror if isinstance(exc, OSError) and exc.strerror else exc
        is_used = isinstance(exc, OSError) and exc.errno == errno.EADDRINUSE
        advice = f" Stop the program that uses it, or set {setting} to another port." if is_used else ""
        raise ResourcesError(f"The service cannot listen on {host} port {port}: {reason}.{advice}") from exc
    return bound


def port_of(bound: socket.socket) -> int:
    port: int = bound.getsockname()[1]
    return port
