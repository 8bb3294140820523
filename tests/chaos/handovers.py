"""Restart replicas in turn, under load and while matches are played on pods: no request may fail, and the other replica
goes on with the matches at once.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import cycle
from pathlib import Path

import msgspec

from tests.chaos.cluster import Cluster
from tests.chaos.load import TABLE, Measured, requests
from tests.chaos.observed import Answer
from tests.chaos.plan import GameSpec, Json
from tests.chaos.pods import REGION, match_on_pods, service_on_pods
from tests.chaos.receivers import Receivers
from tests.chaos.replica import Replica
from tests.chaos.stores import Store

PODS = 12
"""More than matches at once, so that those of the load find one too."""
MATCHES = 8
POLL_S = 0.05
END_S = 600.0
READERS = 4
READ_PAUSE_S = 0.05
WRITE_PAUSE_S = 0.5
READ_PATHS = ("/api/v1/regions", "/api/v1/cs2/matches", "/api/v1/cs2/series", "/api/v1/servers/{id}")
LEASES = "SELECT id, lease_owner FROM servers WHERE phase = 'running'"


class Handovers:
    """Matches that are played one after another, and how long they were without a replica."""

    def __init__(
        self,
        cluster: Cluster,
        receivers: Receivers,
        store: Store,
        body: Callable[[int, str, Receivers], Json] = match_on_pods,
    ) -> None:
        """`body` returns the request for a match, from a seed and its name."""
        self.cluster = cluster
        self.receivers = receivers
        self.store = store
        self._body = body
        self._is_over = False
        self.names: list[str] = []
        self.outcomes: Counter[str] = Counter()
        self.seconds: list[float] = []

    async def play(self, at_once: int = MATCHES) -> None:
        """Play matches, several at a time, until told to stop; return when all of them have ended."""
        async with asyncio.TaskGroup() as group:
            for _ in range(at_once):
                group.create_task(self._play_on())

    def stop(self) -> None:
        """Begin no further match."""
        self._is_over = True

    def times(self) -> str:
        """Return how often matches were handed over, and how long that took."""
        taken = sorted(self.seconds)
        times = f"median {taken[len(taken) // 2]:.2f} s, longest {taken[-1]:.2f} s" if taken else "none"
        return f"{len(taken)} times; {times}"

    async def restart(self, replica: Replica) -> None:
        """Restart a replica, and measure how long it takes until the other one drives all its matches."""
        assert replica.process is not None
        leased = await self._leases()
        waiting = {server_id for server_id, pid in leased.items() if pid == replica.process.pid}
        restarting = asyncio.create_task(replica.restart())
        began_s = time.monotonic()
        stopped = (None, replica.process.pid)
        while waiting:
            await asyncio.sleep(POLL_S)
            now = await self._leases()
            done = {server_id for server_id in waiting if server_id not in now or now[server_id] not in stopped}
            self.seconds += [time.monotonic() - began_s] * len(done)
            waiting -= done
        await restarting

    async def _leases(self) -> dict[str, int | None]:
        """Return the process that drives each running match."""
        rows = msgspec.convert(await self.store.rows(LEASES), list[tuple[str, str | None]])
        return {server_id: int(owner.split(":")[1]) if owner else None for server_id, owner in rows}

    async def _play_on(self) -> None:
        while not self._is_over:
            name = f"match-{len(self.names)}"
            self.names.append(name)
            body = self._body(len(self.names), name, self.receivers)
            created = await self.cluster.call("POST", "/api/v1/matches", body)
            self.outcomes[await self._outcome(name) if created.status == 201 else f"HTTP {created.status}"] += 1

    async def _outcome(self, name: str) -> str:
        try:
            async with asyncio.timeout(END_S):
                while not (arrivals := self.receivers.at(name)):
                    await asyncio.sleep(POLL_S)
        except TimeoutError:
            return "none"
        return arrivals[0].end


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


def summary(restarts: int, reads: Measured, writes: Measured, say: Callable[[str], None]) -> tuple[bool, list[str]]:
    """Return whether all requests succeeded, and the figures."""
    failed = sum(reads.failures.values()) + sum(writes.failures.values())
    say(f"{restarts} restarts, {len(reads.seconds) + len(writes.seconds)} requests, {failed} failed")
    if failed:
        say(f"statuses of failed requests: reads {dict(reads.failures)}, create and cancel {dict(writes.failures)}")
    lines = [f"Restarts: {restarts}.", "", *TABLE, reads.row("reads"), writes.row("create and cancel")]
    return not failed, lines


async def measure_handovers(folder: Path, restarts: int, say: Callable[[str], None]) -> tuple[bool, list[str]]:
    """Restart replicas in turn; return whether no request failed and all matches were finished, and the figures."""
    async with service_on_pods(folder, pods=PODS, replicas=2) as service:
        cluster = service.cluster
        handovers = Handovers(cluster, service.receivers, service.store)
        playing = asyncio.create_task(handovers.play())
        async with load(cluster, {**GameSpec("duel", 1).body(speed=1, is_lockstep=False), "region": REGION}) as (
            reads,
            writes,
        ):
            for number in range(restarts):
                await handovers.restart(cluster.replicas[number % 2])
                await cluster.balancer.wait_until_ready(2)
                say(f"restart {number + 1} of {restarts}: {len(handovers.seconds)} matches handed over")
        handovers.stop()
        await playing
    is_clean, lines = summary(restarts, reads, writes, say)
    say(f"outcomes: {dict(handovers.outcomes)}")
    return is_clean and set(handovers.outcomes) == {"match_over"}, [
        *lines,
        "",
        f"Matches played: {handovers.outcomes.total()}, of which finished: {handovers.outcomes['match_over']}. Handed over "
        f"to the other replica: {handovers.times()}.",
    ]
