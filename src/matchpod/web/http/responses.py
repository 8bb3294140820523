"""Responses, whole or in parts, and the connection that a response in parts is written to."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Final, Protocol

import msgspec

JSON = "application/json"
EVENT_STREAM = "text/event-stream"

CONNECTION: Final = "connection"
"""The scope extension through which a stream gets its connection."""

Header = tuple[bytes, bytes]


class Packable(Protocol):
    """A body that is kept, with its compressed form once that was needed."""

    packed: bytes | None


class Response(msgspec.Struct, frozen=True):
    """A complete response; length and request id are added when it is sent."""

    body: bytes
    status: int = 200
    content_type: bytes = JSON.encode()
    headers: tuple[Header, ...] = ()
    is_shared: bool = False
    """True if many requests get this same body: its compressed form is kept."""
    packable: Packable | None = None
    """Where the compressed form of a body is kept that is only for some callers."""


class PartedResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A response whose body is read and sent part by part: large, but never as a whole in memory."""

    parts: AsyncIterator[bytes]
    """The parts are read while the client reads. They should have up to 64 KiB: a few are in memory at a time."""
    content_type: bytes
    headers: tuple[Header, ...] = ()
    status: int = 200
    length: int | None = None
    """The bytes of all parts, if that is known; such a response is not compressed."""


class StreamConnection(Protocol):
    """The connection under a stream, under a response in parts, or of a request that waits."""

    @property
    def is_open(self) -> bool:
        """False once nothing can be sent anymore."""

    @property
    def has_room(self) -> bool:
        """True if sending does not have to wait for the client."""

    def watch_loss(self, act: Callable[[], None] | None, /) -> None:
        """Call `act` when the connection is lost; None to call nothing any longer."""

    def begin_stream(self) -> None:
        """Switch to streaming: later requests on this connection are ignored."""

    def abort(self) -> None:
        """Drop the connection with all unsent data."""
