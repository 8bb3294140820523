"""A host of simulated servers that does nothing, and a log that must not be used."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from cs2_protocol.log_lines.reader import Line
from cs2_simulator.log_stream import GameHeaders
from cs2_simulator.outside import FetchResult, Upload


def no_headers() -> GameHeaders:
    raise AssertionError("unexpected post")


class NullOutside:
    """Implements `Outside`; fetching and reporting fail the test."""

    def fetch(self, url: str, headers: Mapping[str, str], done: Callable[[FetchResult], None]) -> None:
        raise AssertionError("unexpected fetch")

    def send_report(self, url: str, headers: Mapping[str, str], body: bytes) -> None:
        raise AssertionError("unexpected report")

    def upload(self, url: str, headers: Mapping[str, str], upload: Upload) -> None:
        raise AssertionError("unexpected upload")

    def exit(self, *, is_crash: bool) -> None:
        """Do nothing."""

    def hang(self) -> None:
        """Do nothing."""

    def set_speed(self, speed: float) -> None:
        """Do nothing: the test advances the clock."""

    def drop_rcon_connections(self) -> None:
        """Do nothing: there are no connections."""


class NoLog:
    """A log that must not be used."""

    def write(self, line: Line) -> None:
        raise AssertionError("line was written to the log, not returned")

    def begin_map(self) -> None:
        raise AssertionError("unexpected map load")
