"""Requests that are answered without the application: frequent, small and all alike, such as log posts and polls.

They need neither an ASGI scope nor a task, which cost more than the work itself. Whatever is unusual about one takes
the way of all other requests.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

Answer = Callable[[bool], None]
"""Called once: with True to send the prepared response, with False to pass the request to the application."""


class Take(Protocol):
    """Takes a request."""

    def __call__(self, path_rest: str, headers: Sequence[tuple[bytes, bytes]], body: bytes, answer: Answer, /) -> bool:
        """Take a request and answer it later; False if the application has to answer it."""


class DirectRoute(msgspec.Struct, frozen=True, kw_only=True):
    """The POST requests below a path that `take` may answer."""

    prefix: bytes
    take: Take
    response: bytes
    """The body of the response, in JSON."""


Read = Callable[[str, Sequence[tuple[bytes, bytes]]], tuple[bytes, ...] | None]
"""Returns the parts of the response to a GET after its date; None if the application has to answer it.

Its arguments are the rest of the path, with the query string, and the headers.
"""


class ReadRoute(msgspec.Struct, frozen=True, kw_only=True):
    """The GET requests below a path that `read` may answer at once, with status 200."""

    prefix: bytes
    read: Read


class DirectExchange:
    """A request that was taken, with what is needed to pass it to the application after all."""

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
        """Note that the client disconnected: there is nothing to answer."""
        self.is_disconnected = True
