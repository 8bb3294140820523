"""Types for requests that are answered without the application, because they are frequent and small, such as log posts.

These need neither an ASGI scope nor a task, which would cost more than the work itself. The application still answers
such a request if anything about it is unusual.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

Answer = Callable[[bool], None]
"""Called once: with True to send the prepared response, with False to pass the request to the application."""


class Take(Protocol):
    """The function that answers the requests of a direct route."""

    def __call__(self, path_rest: str, headers: Sequence[tuple[bytes, bytes]], body: bytes, answer: Answer, /) -> bool:
        """Accept a request and call `answer` later; False if the application has to answer the request."""


class DirectRoute(msgspec.Struct, frozen=True, kw_only=True):
    """The POST requests below a path that `take` may answer."""

    prefix: bytes
    take: Take
    response: bytes
    """The body of the response, in JSON."""


Read = Callable[[str, Sequence[tuple[bytes, bytes]]], tuple[bytes, ...] | None]
"""Returns the parts of the response to a GET that follow the `date` header; None if the application has to answer.

Its arguments are the rest of the path, with the query string, and the headers.
"""


class ReadRoute(msgspec.Struct, frozen=True, kw_only=True):
    """The GET requests below a path that `read` may answer at once, with status 200."""

    prefix: bytes
    read: Read


class DirectExchange:
    """A request that is being answered directly, with everything needed to pass it to the application after all."""

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
        """Note that the client disconnected, so that no response is sent."""
        self.is_disconnected = True
