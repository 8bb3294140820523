"""Measure how many simulated servers fit on one core: a farm at 30 times speed. Part of `make bench`.

The farm is one process on one core; a receiver on another core counts its posts. The cost of the farm is its CPU time,
so on a busy machine it is slower, but the measured cost of a line stays the same.
"""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

if __name__ == "__main__":
    # Run as a script: import from the checkout, not from this folder.
    sys.path[0] = str(Path(__file__).resolve().parents[2])

from cs2_protocol.log_clock import parse_stamp
from tests.bench.pinned_process import PinnedProcess
from tests.chaos.http_messages import read_request

SERVERS = 500
SPEED = 30
DETAIL = "+mp_logdetail 3 +mp_logdetail_items 1 +mp_logmoney 1"
"""The full log, as in a match."""
SETTLE_S = 15.0
"""Time for players to connect and warm up: 7.5 simulated minutes."""
MEASURE_S = 30.0


@dataclass
class Counts:
    """Totals of the posts received so far."""

    lines: int = 0
    posts: int = 0
    size: int = 0
    clocks: dict[str, str] = field(default_factory=dict)
    """The newest time stamp of each server, by its instance token."""

    def seconds(self) -> dict[str, float]:
        """Return the simulated time of each server, in seconds."""
        stamps = {token: parse_stamp(stamp) for token, stamp in self.clocks.items()}
        return {token: ms / 1000 for token, ms in stamps.items() if ms is not None}


async def receive(counts: Counts, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Count the posts on a connection and answer 200."""
    # Cancelled at the end only: nothing waits for this task.
    with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
        while (request := await read_request(reader)) is not None:
            counts.posts += 1
            counts.size += len(request.raw)
            counts.lines += request.body.count(b"\n")
            counts.clocks[request.headers["x-server-instance-token"]] = request.headers["x-timestamp"]
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
    writer.close()


def start_farm(port: int) -> PinnedProcess:
    """Start the farm on its own core; its servers post to a port."""
    arguments = f"simulate --farm {SERVERS} -port 0 --speed {SPEED} --quiet +rcon_password bench +log on {DETAIL}"
    command = [sys.executable, "-m", "matchpod", *arguments.split()]
    return PinnedProcess([*command, "+logaddress_add_http", f"http://127.0.0.1:{port}/"], Path(os.devnull))


async def measure() -> None:
    loop, counts = asyncio.get_running_loop(), Counts()
    listening = await asyncio.start_server(partial(receive, counts), "127.0.0.1", 0, backlog=SERVERS)
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
