"""Post the plugin's events, with simulated delivery faults: lost, duplicated or late events.

MatchZy starts one task per event, without retries and without a guaranteed order. `sim_report_faults` is the percentage
of events that are lost. The same percentage is duplicated, and the same percentage is sent late.
"""

from __future__ import annotations

import re

from cs2_simulator.outside import Outside
from cs2_simulator.play.arena import Arena
from cs2_simulator.plugin import reports

CONTENT_TYPE = "application/json; charset=utf-8"

LATE_MS = 30_000
"""Milliseconds after which a late event is sent, unless the next event comes first: the late event then follows it."""

_PER_CENT = 100

_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_BODY_HEADER = re.compile(r"content-.*|allow|expires|last-modified", re.IGNORECASE)


def is_header(name: str, value: str) -> bool:
    """True if .NET accepts this header. .NET does not send a request with an invalid header."""
    if not _HEADER_NAME.fullmatch(name) or _BODY_HEADER.fullmatch(name):
        return False
    return value.isascii() and not any(char in value for char in "\r\n\0")


class ReportSender:
    """Posts events to the configured URL. If no URL is configured, nothing is sent."""

    def __init__(self, arena: Arena, outside: Outside) -> None:
        self._arena = arena
        self._outside = outside
        self._late: list[tuple[str, dict[str, str], bytes]] = []
        self._count = 0
        self.url = ""
        self.header_name = ""
        self.header_value = ""

    def send(self, payload: reports.Payload) -> None:
        """Post an event. At random, lose, duplicate or delay it."""
        if not self.url or (self.header_name and not is_header(self.header_name, self.header_value)):
            return
        post = (self.url, self._headers(), reports.encode(payload))
        overtaken, self._late = self._late, []
        share = self._arena.variables.number("sim_report_faults") / _PER_CENT
        self._count += 1
        roll = self._arena.rng("reports", self._count, payload["matchid"]).random() if share else 1.0
        if roll >= 3 * share:
            self._outside.send_report(*post)
        elif roll >= 2 * share:
            self._late.append(post)
            self._arena.agenda.call_in(LATE_MS, self._send_late)
        elif roll >= share:
            self._outside.send_report(*post)
            self._outside.send_report(*post)
        for late in overtaken:
            self._outside.send_report(*late)

    def _send_late(self) -> None:
        late, self._late = self._late, []
        for post in late:
            self._outside.send_report(*post)

    def _headers(self) -> dict[str, str]:
        headers = {"Content-Type": CONTENT_TYPE}
        if self.header_name:
            headers[self.header_name] = self.header_value
        return headers
