"""Bind the listening socket and accept HTTP connections on it.

The socket is bound before anything else is built, because game servers are configured with its real port.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Final

from matchpod.app.resources import ResourcesError
from matchpod.web.asgi import Application
from matchpod.web.connection import Connections

BACKLOG: Final = 2048
"""Connections waiting to be accepted: a thousand game servers may post at the same moment."""
CLOSING_S: Final = 2
"""Time for requests in progress when the service stops; they are short."""


class HttpServer:
    """Serves an application on a bound socket until it is stopped."""

    def __init__(self, app: Application, *, on_listening: Callable[[], None]) -> None:
        self.connections = Connections(app)
        self._on_listening = on_listening
        self._stopping = asyncio.Event()

    async def serve(self, bound: socket.socket) -> None:
        """Accept connections until `stop`, then let requests in progress finish."""
        loop = asyncio.get_running_loop()
        server = await loop.create_server(self.connections, sock=bound, backlog=BACKLOG)
        try:
            self._on_listening()
            await self._stopping.wait()
        finally:
            server.close()
            await self.connections.close(CLOSING_S)

    def stop(self) -> None:
        """Stop accepting connections, close idle ones and let requests in progress finish."""
        self._stopping.set()


def bind(host: str, port: int) -> socket.socket:
    """Return a socket bound to this address, not listening yet; raise ResourcesError if that fails."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        bound = socket.socket(family, kind, protocol)
        try:
            # After a quick restart, connections of the last process are still in TIME_WAIT on the port.
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            bound.bind(address)
            bound.setblocking(False)  # noqa: FBT003 - no keyword arguments
        except OSError:
            bound.close()
            raise
    except (OSError, UnicodeError) as exc:  # UnicodeError: an invalid host name
        reason = exc.strerror if isinstance(exc, OSError) and exc.strerror else exc
        raise ResourcesError(f"The service cannot listen on {host} port {port}: {reason}.") from exc
    return bound


def port_of(bound: socket.socket) -> int:
    """Return the port that the socket is bound to."""
    port: int = bound.getsockname()[1]
    return port
