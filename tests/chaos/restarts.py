"""Restart two replicas in turn, under load: no request may fail."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import cycle
from pathlib import Path

from tests.chaos.cluster import Cluster
from tests.chaos.load import TABLE, Measured, requests
from tests.chaos.observed import Answer
from tests.chaos.plan import GameSpec, Json
from tests.chaos.stores import open_store

READERS = 4
READ_PAUSE_S = 0.05
WRITE_PAUSE_S = 0.5
READ_PATHS = ("/api/v1/regions", "/api/v1/cs2/matches", "/api/v1/cs2/series", "/api/v1/servers/{id}")


async def measure_restarts(folder: Path, restarts: int, say: Callable[[str], None]) -> tuple[bool, list[str]]:
    """Restart replicas in turn; return whether all requests succeeded, and the figures."""
    async with open_store(folder) as store, Cluster(folder, store, replicas=2) as cluster:
        reads, writes = await _restart_under_load(cluster, restarts, say)
    return summary(restarts, reads, writes, say)


def summary(restarts: int, reads: Measured, writes: Measured, say: Callable[[str], None]) -> tuple[bool, list[str]]:
    """Return whether all requests succeeded, and the figures."""
    failed = sum(reads.failures.values()) + sum(writes.failures.values())
    say(f"{restarts} restarts, {len(reads.seconds) + len(writes.seconds)} requests, {failed} failed")
    if failed:
        say(f"statuses of failed requests: reads {dict(reads.failures)}, create and cancel {dict(writes.failures)}")
    lines = [f"Restarts: {restarts}.", "", *TABLE, reads.row("reads"), writes.row("create and cancel")]
    return not failed, lines


async def _restart_under_load(cluster: Cluster, restarts: int, say: Callable[[str], None]) -> tuple[Measured, Measured]:
    async with load(cluster, GameSpec("duel", 1).body(speed=1, is_lockstep=True)) as (reads, writes):
        for number in range(restarts):
            await cluster.replicas[number % 2].restart()
            await cluster.balancer.wait_until_ready(2)
            say(
                f"restart {number + 1} of {restarts}: {len(reads.seconds)} reads, {sum(reads.failures.values())} failed"
            )
    return reads, writes


@asynccontextmanager
async def load(cluster: Cluster, body: Json) -> AsyncIterator[tuple[Measured, Measured]]:
    """Read all the time, and create and cancel matches; yield the figures of both."""
    first = await cluster.call("POST", "/api/v1/matches", body)
    paths = cycle(path.format(id=first.json["serverId"]) for path in READ_PATHS)

    async def create_and_cancel() -> Answer:
        created = await cluster.call("POST", "/api/v1/matches", body)
        if created.status != 201:
            return created
        return await cluster.call("POST", f"/api/v1/servers/{created.json['serverId']}/cancel")

    async with AsyncExitStack() as stack:
        reading = requests(lambda: cluster.call("GET", next(paths)), clients=READERS, pause_s=READ_PAUSE_S)
        reads = await stack.enter_async_context(reading)
        yield reads, await stack.enter_async_context(requests(create_and_cancel, clients=1, pause_s=WRITE_PAUSE_S))
