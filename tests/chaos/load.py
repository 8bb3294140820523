"""Measure requests while something goes on: latencies and failures."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import msgspec

from tests.chaos.observed import Answer


class Measured(msgspec.Struct):
    """The latencies of requests, in seconds, and the statuses of those that failed."""

    seconds: list[float] = msgspec.field(default_factory=list)
    failures: Counter[int] = msgspec.field(default_factory=Counter)

    def percentile(self, share: float) -> float:
        """Return the latency that this share of the requests did not exceed, in ms."""
        ordered = sorted(self.seconds)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))] * 1000 if ordered else 0.0

    def row(self, name: str) -> str:
        """Return a row of a table: requests, failed, median, p99 and maximum."""
        failed = sum(self.failures.values())
        times = " | ".join(f"{self.percentile(share):,.0f} ms" for share in (0.5, 0.99, 1.0))
        return f"| {name} | {len(self.seconds):,} | {failed:,} | {times} |"


TABLE = ("| | requests | failed | median | p99 | maximum |", "|---|---:|---:|---:|---:|---:|")


@asynccontextmanager
async def requests(send: Callable[[], Awaitable[Answer]], *, clients: int, pause_s: float) -> AsyncIterator[Measured]:
    """Send requests until the block ends, from several clients with a pause after each; requests under way finish."""
    measured, is_over = Measured(), asyncio.Event()

    async def client() -> None:
        while not is_over.is_set():
            began_s = time.monotonic()
            answer = await send()
            measured.seconds.append(time.monotonic() - began_s)
            if not 200 <= answer.status < 300:
                measured.failures[answer.status] += 1
            await asyncio.sleep(pause_s)

    async with asyncio.TaskGroup() as group:
        for _ in range(clients):
            group.create_task(client())
        try:
            yield measured
        finally:
            is_over.set()


_SLEEP_S = 0.005
_SLEEP_UNTIL_CLOSED = f"""
import json, select, sys, time
late = []
while not select.select([sys.stdin], [], [], 0)[0]:
    began = time.monotonic()
    time.sleep({_SLEEP_S})
    late.append(time.monotonic() - began - {_SLEEP_S})
print(json.dumps(late))
"""


@asynccontextmanager
async def sleeper() -> AsyncIterator[Measured]:
    """Measure how late the machine wakes up a process that only sleeps: no other figure can be better than this."""
    measured, pipe = Measured(), asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", _SLEEP_UNTIL_CLOSED, stdin=pipe, stdout=pipe)
    try:
        yield measured
    finally:
        output, _ = await process.communicate(b"")  # closes its input, which ends it
        measured.seconds += json.loads(output)
