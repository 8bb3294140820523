"""Where does the service listen, and who takes the requests? A socket of our own, handed to uvicorn.

The socket is bound before anything else is made, because game servers are told its real port.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Final

import uvicorn
from starlette.types import ASGIApp

from matchpod.app.ground import GroundError
from matchpod.web.connection import ApiConnection

BACKLOG: Final = 2048
"""Connections that wait to be accepted: a thousand game servers may post at the same moment."""
KEEP_ALIVE_S: Final = 30
"""Longer than the pause between two log posts of a match, so that a game server keeps its connection."""
CLOSING_S: Final = 2
"""For requests under way when the service stops; they are short."""


class HttpServer(uvicorn.Server):
    """uvicorn without its own idea of signals: whoever started it decides when it stops."""

    def __init__(self, config: uvicorn.Config, on_listening: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_listening = on_listening

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Leave the signals alone."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen, and say so."""
        await super().startup(sockets)
        self._on_listening()

    def stop(self) -> None:
        """Take no more connections, close those that idle, let requests under way end."""
        self.should_exit = True


def make_server(web: ASGIApp, *, on_listening: Callable[[], None]) -> HttpServer:
    """The HTTP server, to be run by `serve(sockets=[…])`; tells when connections are accepted."""
    return HttpServer(server_config(web), on_listening)


def server_config(web: ASGIApp, *, log_level: str | None = None) -> uvicorn.Config:
    """How uvicorn is to serve: HTTP only, with limits on every connection, and silently; `log_level` is its own."""
    return uvicorn.Config(
        web,
        http=ApiConnection,
        ws="none",
        interface="asgi3",
        lifespan="off",
        log_config=None,
        log_level=log_level,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        backlog=BACKLOG,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=CLOSING_S,
    )


def bind(host: str, port: int) -> socket.socket:
    """A socket on this address, which does not accept anything yet; GroundError when it cannot be had."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        bound = socket.socket(family, kind, protocol)
        try:
            # A service that starts again right away finds the leftovers of its last connections on the port.
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            bound.bind(address)
            bound.setblocking(False)  # noqa: FBT003 - takes no names
        except OSError:
            bound.close()
            raise
    except (OSError, UnicodeError) as exc:  # UnicodeError: a name that no resolver takes
        reason = exc.strerror if isinstance(exc, OSError) and exc.strerror else exc
        raise GroundError(f"The service cannot listen on {host} port {port}: {reason}.") from exc
    return bound


def port_of(bound: socket.socket) -> int:
    """The port it really has."""
    port: int = bound.getsockname()[1]
    return port
