"""Measure how old what callers see is: from a line of the log to the event of a stream, from `Game Over` to the callback.

Two delays are reported: since the post with the line was received, and since the line was printed. A server says in each
post when it was sent, by the same clock as its lines; so the clocks of servers and of this process need not agree.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import NamedTuple

from cs2_protocol.log_clock import parse_stamp
from tests.bench.checkouts import percentile
from tests.bench.stream_matches import ACCOUNT_ZERO

_KILL = re.compile(
    rb'^L? ?(\d\d/\d\d/\d{4} - [\d:.]+)[ :-]+"[^"]*<\[U:1:(\d+)\]><\w+>"[^"]*killed "[^"]*<\[U:1:(\d+)\]>', re.M
)
_OVER = re.compile(rb"^L? ?(\d\d/\d\d/\d{4} - [\d:.]+)[ :-]+Game Over", re.M)
_ITEM = re.compile(rb"\ndata: (\{[^\n]*\"type\":\"kill\"[^\n]*\})\n\n")


class Entry(NamedTuple):
    """A stored log post."""

    server_id: str
    received_ms: int
    headers: bytes
    body: bytes


class Delay(NamedTuple):
    """A delay in milliseconds."""

    received_ms: float
    """Since the post was received."""
    printed_ms: float
    """Since the line was printed."""


class StreamWatch:
    """Reads the streams of some servers, and notes when each kill arrived."""

    def __init__(self, port: int, key: str) -> None:
        self._port = port
        self._key = key
        self._arrivals: list[tuple[str, str, str, float]] = []
        """Server, killer and victim, and when their item arrived."""
        self._tasks: list[asyncio.Task[None]] = []

    def begin(self, server_ids: Iterable[str]) -> None:
        self._tasks = [asyncio.create_task(self._read(one)) for one in server_ids]

    def clear(self) -> None:
        """Forget what has arrived so far, such as the items of the time before."""
        self._arrivals.clear()

    async def end(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _read(self, server_id: str) -> None:
        # HTTP/1.0, so that events are not split into chunks.
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        path = f"/api/v1/servers/{server_id}/stream"
        writer.write(f"GET {path} HTTP/1.0\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {self._key}\r\n\r\n".encode())
        seen = b""
        with suppress(ConnectionError):
            while data := await reader.read(65_536):
                now_ms, seen = time.time() * 1000, seen + data
                end = 0
                for found in _ITEM.finditer(seen):
                    item = json.loads(found[1])
                    killer, victim = item["killer"].get("steamId"), item["victim"].get("steamId")
                    self._arrivals.append((server_id, str(killer), str(victim), now_ms))
                    end = found.end() - 1
                seen = seen[max(end, len(seen) - 8_192) :]
        writer.close()

    def delays(self, entries: Iterable[Entry]) -> list[Delay]:
        """Return the delays of the kills that arrived, given the posts that were stored meanwhile."""
        printed: dict[tuple[str, str, str], list[tuple[int, float]]] = {}
        for entry in entries:
            for found in _KILL.finditer(entry.body):
                killer, victim = (str(ACCOUNT_ZERO + int(account)) for account in (found[2], found[3]))
                waited_ms = _waited_ms(entry, found[1])
                printed.setdefault((entry.server_id, killer, victim), []).append((entry.received_ms, waited_ms))
        delays = []
        for server_id, killer, victim, arrived_ms in self._arrivals:
            posts = [one for one in printed.get((server_id, killer, victim), ()) if one[0] <= arrived_ms + 1]
            if posts:
                received_ms, waited_ms = max(posts)
                delays.append(Delay(arrived_ms - received_ms, arrived_ms - received_ms + waited_ms))
        return delays


def callback_delays(entries: Iterable[Entry], arrived_ms: dict[str, float], *, speed: float) -> list[Delay]:
    """Return the delays of callbacks, given when each arrived by server, for games of some speed."""
    delays = []
    for entry in entries:
        found, end_ms = _OVER.search(entry.body), arrived_ms.get(entry.server_id)
        if found is not None and end_ms is not None:
            waited_ms = _waited_ms(entry, found[1]) / speed
            delays.append(Delay(end_ms - entry.received_ms, end_ms - entry.received_ms + waited_ms))
    return delays


def _waited_ms(entry: Entry, stamp: bytes) -> float:
    """Return how long a line waited in its game server, until the post was sent."""
    headers = json.loads(entry.headers)
    sent = parse_stamp(headers.get("X-Timestamp") or headers.get("x-timestamp") or "")
    printed = parse_stamp(stamp.decode())
    return float(sent - printed) if sent is not None and printed is not None else 0.0


def shares(delays: Sequence[Delay]) -> dict[str, float]:
    """Return the median, p99 and maximum of both delays, by name."""
    values = {"post": [one.received_ms for one in delays], "line": [one.printed_ms for one in delays]}
    return {
        f"{name} p{share * 100:.0f}": percentile(values[name], share) for name in values for share in (0.5, 0.99, 1.0)
    }
