"""Interface between a simulated server and its host process: HTTP requests, exit, speed. No sockets."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Protocol

import msgspec


class FetchResult(msgspec.Struct, frozen=True):
    """Result of an HTTP request. Status is None if there was no response; `reason` then says why."""

    status: int | None
    body: bytes = b""
    reason: str = ""


class Upload(msgspec.Struct, frozen=True):
    """A file that is posted; `blocks` yields its content."""

    size: int
    blocks: Callable[[], Iterator[bytes]]
    stops_after: int | None = None
    """After how many bytes of the file the connection breaks; None if it does not."""
    bytes_per_s: float = math.inf


class Outside(Protocol):
    """What a simulated server can request from the process that hosts it."""

    def fetch(self, url: str, headers: Mapping[str, str], done: Callable[[FetchResult], None]) -> None:
        """GET a URL and call `done` later, or never if the server ends first. The game is frozen meanwhile."""

    def send_report(self, url: str, headers: Mapping[str, str], body: bytes) -> None:
        """POST a plugin event once, without waiting and without checking whether it arrives."""

    def upload(self, url: str, headers: Mapping[str, str], upload: Upload) -> None:
        """POST a file once, without waiting and without checking whether it arrives."""

    def exit(self, *, is_crash: bool) -> None:
        """End the server: after sending its last log lines, or immediately if it crashes."""

    def hang(self) -> None:
        """Stop responding forever with all sockets open: no answers, no log, and the clock stops."""

    def set_speed(self, speed: float) -> None:
        """Run simulated time `speed` times as fast as real time from now on."""

    def drop_rcon_connections(self) -> None:
        """Close all RCON connections, as a map change or a new password does."""
