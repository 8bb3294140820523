"""The types of responses, whole or in parts, and of the connection of a stream."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Final, Protocol

import msgspec

JSON = "application/json"
EVENT_STREAM = "text/event-stream"

CONNECTION: Final = "connection"
"""Name of the extension in the ASGI scope that has the connection of a request."""

Header = tuple[bytes, bytes]


class Packable(Protocol):
    """A cached body. Once a client has requested it in compressed form, that form is cached too."""

    packed: bytes | None


class Response(msgspec.Struct, frozen=True):
    """A complete response. Its length and the request id are added when it is sent."""

    body: bytes
    status: int = 200
    content_type: bytes = JSON.encode()
    headers: tuple[Header, ...] = ()
    is_shared: bool = False
    """True if many requests get the same body, so that the compressed body is cached."""
    packable: Packable | None = None
    """The cache entry of a body that only some callers may get. It also stores the compressed body."""


class PartedResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A response whose body is read and sent part by part, so that a large body is never in memory as a whole."""

    parts: AsyncIterator[bytes]
    """The parts of the body. They should be small, because a few of them are in memory at a time."""
    content_type: bytes
    headers: tuple[Header, ...] = ()
    status: int = 200
    length: int | None = None
    """Total size of all parts in bytes; None if it is unknown. A response of known size is not compressed."""


class StreamConnection(Protocol):
    """What a stream, a response in parts or a waiting request needs from its connection."""

    @property
    def is_open(self) -> bool:
        """True until the connection is closed or closing."""

    @property
    def has_room(self) -> bool:
        """True if data can be sent without waiting for the client."""

    def watch_loss(self, act: Callable[[], None] | None, /) -> None:
        """Call `act` when the connection is lost. None removes a previous `act`."""

    def begin_stream(self) -> None:
        """Begin a stream. Later requests on this connection are ignored."""

    def abort(self) -> None:
        """Close the connection at once, and drop all unsent data."""
