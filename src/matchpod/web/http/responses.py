"""The types of responses, whole or in parts, and of the connection that streams are written to."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Final, Protocol

import msgspec

JSON = "application/json"
EVENT_STREAM = "text/event-stream"

CONNECTION: Final = "connection"
"""The name of the ASGI scope extension with the connection of a request."""

Header = tuple[bytes, bytes]


class Packable(Protocol):
    """A cached body, with its compressed form once a client has requested it."""

    packed: bytes | None


class Response(msgspec.Struct, frozen=True):
    """A complete response; length and request id are added when it is sent."""

    body: bytes
    status: int = 200
    content_type: bytes = JSON.encode()
    headers: tuple[Header, ...] = ()
    is_shared: bool = False
    """True if many requests get the same body, so that its compressed form is cached."""
    packable: Packable | None = None
    """The cached form of a body that only some callers may get; it also stores the compressed body."""


class PartedResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A response whose body is read and sent part by part, so that a large body is never in memory as a whole."""

    parts: AsyncIterator[bytes]
    """The parts, which should have at most 64 KiB. A few of them are in memory at a time."""
    content_type: bytes
    headers: tuple[Header, ...] = ()
    status: int = 200
    length: int | None = None
    """The total size of all parts, if it is known; such a response is not compressed."""


class StreamConnection(Protocol):
    """The connection of a stream, of a response in parts, or of a waiting request."""

    @property
    def is_open(self) -> bool:
        """False once the connection is closed or closing."""

    @property
    def has_room(self) -> bool:
        """True if sending does not have to wait for the client."""

    def watch_loss(self, act: Callable[[], None] | None, /) -> None:
        """Call `act` when the connection is lost; None removes the callback."""

    def begin_stream(self) -> None:
        """Switch to streaming, so that later requests on this connection are ignored."""

    def abort(self) -> None:
        """Drop the connection with all unsent data."""
