"""Types for frequent and small requests, such as log posts, which are answered without calling the application.

They need neither an ASGI scope nor a task, which would cost more than the work itself. If anything about a request is
unusual, the application answers it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

Answer = Callable[[bool], None]
"""Called once: with True to send the prepared response, or with False to pass the request to the application."""


class Take(Protocol):
    """Handles the requests of a `DirectRoute`."""

    def __call__(self, path_rest: str, headers: Sequence[tuple[bytes, bytes]], body: bytes, answer: Answer, /) -> bool:
        """Accept a request and call `answer` later, or return False if the application has to answer the request."""


class DirectRoute(msgspec.Struct, frozen=True, kw_only=True):
    """The POST requests below a path that `take` may handle."""

    prefix: bytes
    take: Take
    response: bytes
    """The JSON body of the response."""


Read = Callable[[str, Sequence[tuple[bytes, bytes]]], tuple[bytes, ...] | None]
"""Returns the parts of the response to a GET that follow its `date` header; None if the application has to answer.

The arguments are the rest of the path (with the query string) and the headers.
"""


class ReadRoute(msgspec.Struct, frozen=True, kw_only=True):
    """The GET requests below a path that `read` may answer with status 200."""

    prefix: bytes
    read: Read


class DirectExchange:
    """A request that may be answered without the application. It has all that is needed to call the application."""

    __slots__ = ("body", "headers", "is_disconnected", "is_response_complete", "keep_alive", "url", "version")

    is_body_complete = True
    is_response_started = False

    def __init__(
        self, url: bytes, headers: list[tuple[bytes, bytes]], body: bytes, *, version: str, keep_alive: bool
    ) -> None:
        self.url = url
        self.headers = headers
        self.body = body
        self.version = version
        self.keep_alive = keep_alive
        self.is_disconnected = False
        self.is_response_complete = False

    def disconnect(self) -> None:
        """Record that the client has disconnected, so that no response is sent."""
        self.is_disconnected = True
