"""Define the interface of a simulated server to its host process: HTTP requests, exit, speed. It uses no sockets."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Protocol

import msgspec


class FetchResult(msgspec.Struct, frozen=True):
    """Result of an HTTP request. If there was no response, `status` is None and `reason` is the cause."""

    status: int | None
    body: bytes = b""
    reason: str = ""


class Upload(msgspec.Struct, frozen=True):
    """A file to be uploaded with POST. `blocks` yields its content."""

    size: int
    blocks: Callable[[], Iterator[bytes]]
    stops_after: int | None = None
    """Number of bytes of the file after which the connection breaks; None if it does not break."""
    bytes_per_s: float = math.inf


class Outside(Protocol):
    """Actions that a simulated server can request from the process that hosts it."""

    def fetch(self, url: str, headers: Mapping[str, str], done: Callable[[FetchResult], None]) -> None:
        """GET a URL and call `done` later, or never if the server ends first. The game is frozen until the response."""

    def send_report(self, url: str, headers: Mapping[str, str], body: bytes) -> None:
        """POST a plugin event once, without a retry. The game does not wait for the response."""

    def upload(self, url: str, headers: Mapping[str, str], upload: Upload) -> None:
        """POST a file once, without a retry. The game does not wait for the response."""

    def exit(self, *, is_crash: bool) -> None:
        """End the server: after sending its last log lines, or immediately if it is a crash."""

    def hang(self) -> None:
        """Stop responding forever, with all sockets open: no answers, no log posts, and a stopped clock."""

    def set_speed(self, speed: float) -> None:
        """Run the simulated clock `speed` times as fast as real time from now on."""

    def drop_rcon_connections(self) -> None:
        """Close all RCON connections. The game does this at a map change and after a password change."""
