"""What does a simulated server ask of the world? Requests over HTTP, and its own death. Sockets are elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

import msgspec


class Fetched(msgspec.Struct, frozen=True):
    """What came of a request; status None when there was no answer, with the reason in words."""

    status: int | None
    body: bytes = b""
    reason: str = ""


class Outside(Protocol):
    """The world outside one server."""

    def fetch(self, url: str, headers: Mapping[str, str], done: Callable[[Fetched], None]) -> None:
        """GET a URL and call `done`, later or never if the server is gone. The game stands still until then."""

    def send_report(self, url: str, headers: Mapping[str, str], body: bytes) -> None:
        """POST a plugin event, once, without waiting; whether it arrives is nobody's concern."""

    def exit(self, *, is_crash: bool) -> None:
        """End the server: with its last log lines sent, or at once and without a word."""

    def hang(self) -> None:
        """Stop for good with all sockets open: no answer, no log, no time."""

    def set_speed(self, speed: float) -> None:
        """Let simulated time run so many times as fast as real time from now on."""

    def drop_consoles(self) -> None:
        """Cut all RCON connections, as a map change or another password does."""
