"""Measure how many simulated servers fit on one core: a farm at 30 times speed. Part of `make bench`.

The farm is one process on one core; a receiver on another core counts its posts. The cost of the farm is its CPU time,
so on a busy machine it is slower, but the measured cost of a line stays the same.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

if __name__ == "__main__":
    # Run as a script: import from the checkout, not from this folder.
    sys.path[0] = str(Path(__file__).resolve().parents[2])

from cs2_protocol.log_clock import parse_stamp
from tests.bench.stream_matches import MeasuredProcess

SERVERS = 500
SPEED = 30
DETAIL = "+mp_logdetail 3 +mp_logdetail_items 1 +mp_logmoney 1"
"""The full log, as in a match."""
SETTLE_S = 15.0
"""Time for players to connect and warm up: 7.5 simulated minutes."""
MEASURE_S = 30.0

_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_TOKEN = re.compile(rb"\r\nx-server-instance-token: *(\w+)", re.IGNORECASE)
_STAMP = re.compile(rb"\r\nx-timestamp: *([^\r]+)", re.IGNORECASE)
_ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"


@dataclass
class Counts:
    """Totals of the posts received so far."""

    lines: int = 0
    posts: int = 0
    size: int = 0
    clocks: dict[bytes, bytes] = field(default_factory=dict)
    """The newest time stamp of each server, by its instance token."""

    def seconds(self) -> dict[bytes, float]:
        """Return the simulated time of each server, in seconds."""
        stamps = {token: parse_stamp(stamp.decode()) for token, stamp in self.clocks.items()}
        return {token: ms / 1000 for token, ms in stamps.items() if ms is not None}


class Receiver(asyncio.Protocol):
    """Counts posts and answers 200."""

    def __init__(self, counts: Counts) -> None:
        self._counts = counts
        self._waiting = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._waiting += data
        while (end := self._waiting.find(b"\r\n\r\n")) >= 0:
            head = self._waiting[:end]
            length, token, stamp = _LENGTH.search(head), _TOKEN.search(head), _STAMP.search(head)
            assert length is not None
            assert token is not None
            assert stamp is not None
            whole = end + 4 + int(length[1])
            if len(self._waiting) < whole:
                return
            self._counts.posts += 1
            self._counts.size += whole
            self._counts.lines += self._waiting.count(b"\n", end + 4, whole)
            self._counts.clocks[token[1]] = stamp[1]
            self._waiting = self._waiting[whole:]
            self._transport.write(_ANSWER)


def start_farm(port: int) -> MeasuredProcess:
    """Start the farm on its own core; its servers post to a port."""
    arguments = f"simulate --farm {SERVERS} -port 0 --speed {SPEED} --quiet +rcon_password bench +log on {DETAIL}"
    command = [sys.executable, "-m", "matchpod", *arguments.split()]
    return MeasuredProcess([*command, "+logaddress_add_http", f"http://127.0.0.1:{port}/"], Path(os.devnull))


async def measure() -> None:
    loop, counts = asyncio.get_running_loop(), Counts()
    listening = await loop.create_server(lambda: Receiver(counts), "127.0.0.1", 0, backlog=SERVERS)
    farm = start_farm(listening.sockets[0].getsockname()[1])
    try:
        await asyncio.sleep(SETTLE_S)
        begin_s, cpu_s, before = loop.time(), farm.cpu_s(), counts.seconds()
        lines, posts, size = counts.lines, counts.posts, counts.size
        await asyncio.sleep(MEASURE_S)
        real_s, used_s, after = loop.time() - begin_s, farm.cpu_s() - cpu_s, counts.seconds()
        passed = [after[token] - clock for token, clock in before.items()]
        speed = sum(passed) / len(passed) / real_s
        new_lines = counts.lines - lines
        print(f"\nfarm: {len(after)} servers in one process on one core, requested speed {SPEED}x")
        print(f"{'speed reached':40}{speed:>12.1f}x")
        print(f"{'share of the core':40}{used_s / real_s:>12.0%}")
        print(f"{'log lines per second':40}{new_lines / real_s:>12,.0f}")
        print(f"{'log lines per second of CPU':40}{new_lines / used_s:>12,.0f}")
        print(f"{'servers per core at this speed':40}{len(passed) * real_s / used_s * speed / SPEED:>12,.0f}")
        print(f"{'posts per second':40}{(counts.posts - posts) / real_s:>12,.0f}")
        print(f"{'MB per second':40}{(counts.size - size) / real_s / 1e6:>12.1f}")
        print(f"{'memory per server':40}{farm.resident_mb() / SERVERS * 1000:>10,.0f} KB")
    finally:
        farm.end()
        listening.close()


def main() -> None:
    asyncio.run(measure())


if __name__ == "__main__":
    main()
