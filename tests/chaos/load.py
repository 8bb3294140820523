"""Measure requests while something goes on: latencies and failures."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress

import msgspec

from tests.chaos.http_messages import send
from tests.chaos.observed import Answer

CALL_S = 60.0


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


async def ask(port: int, raw: bytes, timeout_s: float = CALL_S) -> Answer:
    """Send one request; the answer has status 0 if there was none."""
    with suppress(OSError, TimeoutError, asyncio.IncompleteReadError):
        async with asyncio.timeout(timeout_s):
            response = await send(port, raw)
        return Answer(time.monotonic(), response.status, response.json)
    return Answer(time.monotonic(), 0)


TABLE = ("| | requests | failed | median | p99 | maximum |", "|---|---:|---:|---:|---:|---:|")


@asynccontextmanager
async def requests(
    send_one: Callable[[], Awaitable[Answer]], *, clients: int, pause_s: float
) -> AsyncIterator[Measured]:
    """Send requests until the block ends, from several clients with a pause after each; requests under way finish."""
    measured, is_over = Measured(), asyncio.Event()

    async def client() -> None:
        while not is_over.is_set():
            began_s = time.monotonic()
            answer = await send_one()
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


async def measure(seconds: float, kinds: Mapping[str, Callable[[], Awaitable[Answer]]]) -> dict[str, Measured]:
    """Send requests of several kinds for some seconds, beside a process that only sleeps; return the figures by kind."""
    async with AsyncExitStack() as stack:
        measured = {
            name: await stack.enter_async_context(requests(send_one, clients=2, pause_s=0.05))
            for name, send_one in kinds.items()
        }
        measured["a process that only sleeps"] = await stack.enter_async_context(sleeper())
        await asyncio.sleep(seconds)
    return measured
