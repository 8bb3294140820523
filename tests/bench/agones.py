"""Measure how long an allocation takes, and how long it takes until a new match has a server. Part of `make bench`.

Allocation: a bare call of Agones, and our fleet without and with the server's console. The three subjects take turns,
one call at a time, each with servers of its own. Matches: a service with such a region, from the request to the status
`running`, one match at a time; the servers have started already.

It uses the cluster of MATCHPOD_TEST_KUBECONFIG, which must run on this machine, or else the fake of the tests, which
shows only what our own code costs. Game servers are development servers; those with a console are simulated ones in a
process of their own.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import ssl
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext
from datetime import datetime
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter

import httpx

if __name__ == "__main__":
    # Run as a script: make `tests` importable from the checkout.
    sys.path[0] = str(Path(__file__).resolve().parents[2])

from matchpod.adapters.kubernetes.credentials import Login
from matchpod.adapters.kubernetes.kubeconfig import read_kubeconfig
from matchpod.adapters.kubernetes.objects import ServerState
from matchpod.adapters.kubernetes.tls import tls_context
from matchpod.ports import ServerOrder
from tests.bench.checkouts import bench_folder
from tests.chaos.cluster import Cluster
from tests.chaos.http_messages import format_request
from tests.chaos.plan import GameSpec
from tests.chaos.stores import SqliteStore
from tests.contract.agones_api import FakeAgones
from tests.contract.agones_cluster import agones_region, following, secret_file, write_kubeconfig
from tests.contract.agones_dev_servers import RUN_LABEL, VARIABLE, DevServers, dev_servers
from tests.contract.agones_game_servers import GameServers
from tests.contract.agones_http import serve

CALLS = 100
WARM_UP = 5
BATCH_WAIT_S = 0.02
"""How long the fake waits before it answers, as Agones does with `allocationBatchWaitTime=20ms`."""

PAUSE_S = 0.1
"""Pause before each allocation: the cluster is still busy with the one before, which would count for the next subject."""
TARGET_MS = 100.0
"""From the request to the status `running`, with a server that has started already."""

SUBJECT_LABEL = "matchpod.dev/bench-subject"
BARE, NO_CONSOLE, WHOLE = "bare", "no-console", "whole"
TITLES = {
    BARE: "bare call of Agones",
    NO_CONSOLE: "fleet, without the console",
    WHOLE: "fleet, password changed over RCON",
}

REGION = "cluster"
MATCH = "match, from the request to `running`"

Allocate = Callable[[int], Awaitable[None]]


class NoConsoles:
    """Consoles that answer at once, without a server."""

    async def open(self, host: str, port: int, password: str) -> NoConsoles:
        return self

    async def run(self, command: str, *, timeout_s: float = 10.0) -> str:
        return ""

    async def run_all(self, commands: Sequence[str], *, timeout_s: float = 10.0) -> list[str]:
        return [""] * len(commands)

    async def close(self) -> None:
        pass


async def simulate() -> None:
    """Start a simulated server per name read from the input, and print its port; end with the input."""
    servers = GameServers()
    loop = asyncio.get_running_loop()
    while name := (await loop.run_in_executor(None, sys.stdin.readline)).strip():
        print(await servers.start(name), flush=True)
    await servers.close()


@asynccontextmanager
async def simulated_servers() -> AsyncIterator[Callable[[str], Awaitable[int]]]:
    """Run simulated servers in a process of their own; yield what starts one by its name and returns its port."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, __file__, "--simulate"), stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdin
    assert process.stdout
    requests, answers = process.stdin, process.stdout

    async def start(name: str) -> int:
        requests.write(f"{name}\n".encode())
        return int(await answers.readline())

    try:
        yield start
    finally:
        requests.close()
        await process.wait()


@asynccontextmanager
async def bare_calls(kubeconfig: Path, servers: DevServers) -> AsyncIterator[Allocate]:
    """Yield what allocates by one plain HTTP request."""
    cluster = read_kubeconfig(kubeconfig)
    is_encrypted = cluster.server.startswith("https")
    verify: ssl.SSLContext | bool = tls_context(cluster, Login()) if is_encrypted else False
    headers = {"Authorization": f"Bearer {cluster.account.token}"}
    path = f"/apis/allocation.agones.dev/v1/namespaces/{cluster.namespace}/gameserverallocations"
    async with httpx.AsyncClient(base_url=cluster.server, headers=headers, verify=verify, trust_env=False) as client:

        async def allocate(number: int) -> None:
            labels = {RUN_LABEL: servers.run, SUBJECT_LABEL: BARE}
            spec = {
                "selectors": [{"matchLabels": labels, "gameServerState": "Ready"}],
                "metadata": {"labels": {"matchpod.dev/bench-call": f"bare-{number}"}},
            }
            body = {"apiVersion": "allocation.agones.dev/v1", "kind": "GameServerAllocation", "spec": spec}
            response = await client.post(path, json=body, timeout=30)
            assert response.json()["status"]["state"] == "Allocated", response.text

        yield allocate


@asynccontextmanager
async def fleet_calls(servers: DevServers, subject: str) -> AsyncIterator[Allocate]:
    """Yield what allocates by our fleet, which is followed as in the service."""
    consoles = NoConsoles() if subject == NO_CONSOLE else None
    fleet = servers.create(selector={RUN_LABEL: servers.run, SUBJECT_LABEL: subject}, consoles=consoles)

    async def allocate(number: int) -> None:
        order = ServerOrder(
            server_id=f"{subject}-{number}",
            slot="",
            map_name="de_nuke",
            game_type=0,
            game_mode=1,
            rcon_password="of the match",
        )
        assert await fleet.allocate(order) is not None

    async with following(fleet):
        yield allocate


async def register(
    servers: DevServers, number: int, start: Callable[[str], Awaitable[int]], subjects: Iterable[str]
) -> None:
    """Create the development servers of subjects, and wait until they are ready."""
    started_s = perf_counter()
    for subject in subjects:
        for index in range(number):
            name = f"{servers.run}-{subject}-{index}"
            port = await start(name) if subject == WHOLE else 27015
            await servers.register(name, port, {SUBJECT_LABEL: subject})
    while True:
        listed = await servers.client.servers({RUN_LABEL: servers.run})
        if all(one.status.state == ServerState.READY for one in listed.items or ()):
            break
        await asyncio.sleep(0.5)
    print(f"{len(listed.items or ())} game servers ready after {perf_counter() - started_s:.1f} s", flush=True)


async def measure_allocations(kubeconfig: Path, calls: int) -> dict[str, list[float]]:
    """Return the times of all calls in milliseconds, by subject."""
    async with AsyncExitStack() as stack:
        servers = await stack.enter_async_context(dev_servers(kubeconfig, number=0))
        start = await stack.enter_async_context(simulated_servers())
        await register(servers, calls + WARM_UP, start, TITLES)
        subjects = {BARE: await stack.enter_async_context(bare_calls(kubeconfig, servers))}
        for subject in (NO_CONSOLE, WHOLE):
            subjects[subject] = await stack.enter_async_context(fleet_calls(servers, subject))
        times_ms: dict[str, list[float]] = {subject: [] for subject in subjects}
        for number in range(calls + WARM_UP):
            for subject, allocate in subjects.items():
                await asyncio.sleep(PAUSE_S)
                started_s = perf_counter()
                await allocate(number)
                times_ms[subject].append((perf_counter() - started_s) * 1000)
        return {subject: times[WARM_UP:] for subject, times in times_ms.items()}


async def measure_matches(kubeconfig: Path, matches: int) -> list[float]:
    """Return how long each match took from the request to the status `running`, in milliseconds."""
    async with AsyncExitStack() as stack:
        servers = await stack.enter_async_context(dev_servers(kubeconfig, number=0))
        start = await stack.enter_async_context(simulated_servers())
        await register(servers, matches + WARM_UP, start, [WHOLE])
        folder = stack.enter_context(bench_folder())
        region = agones_region(REGION, kubeconfig, secret_file(folder), fleet=servers.run)
        service = await stack.enter_async_context(Cluster(folder, SqliteStore(folder / "data"), regions=region))
        events = await stack.enter_async_context(running_events(service))
        times_ms = [await until_running(service, events, number) for number in range(matches + WARM_UP)]
        return times_ms[WARM_UP:]


@asynccontextmanager
async def running_events(service: Cluster) -> AsyncIterator[asyncio.Queue[tuple[str, float]]]:
    """Read the stream of the organization; yield a queue of the servers that run, and since when.

    The time is that of the service, on the same machine: streams collect events for a moment.
    """
    reader, writer = await asyncio.open_connection("127.0.0.1", service.replicas[0].port)
    writer.write(format_request("GET", "/api/v1/stream", {"Authorization": f"Bearer {service.key}"}))
    events: asyncio.Queue[tuple[str, float]] = asyncio.Queue()

    async def read() -> None:
        while line := await reader.readline():
            if line.startswith(b"data: ") and (event := json.loads(line[6:]))["type"] == "server_running":
                events.put_nowait((event["serverId"], datetime.fromisoformat(event["at"]).timestamp()))

    task = asyncio.create_task(read())
    try:
        yield events
    finally:
        task.cancel()
        writer.close()


async def until_running(service: Cluster, events: asyncio.Queue[tuple[str, float]], number: int) -> float:
    """Create a match, wait until it runs, and cancel it; return the milliseconds until it ran."""
    body = {**GameSpec("duel", number).body(speed=1, is_lockstep=False), "region": REGION}
    started_s = time.time()
    created = await service.call("POST", "/api/v1/matches", body)
    assert created.status == 201, created.json
    server_id, at_s = await events.get()
    assert server_id == created.json["serverId"]
    await service.call("POST", f"/api/v1/servers/{server_id}/cancel")
    return (at_s - started_s) * 1000


@asynccontextmanager
async def fake_cluster() -> AsyncIterator[Path]:
    """Serve the fake, and yield a kubeconfig for it."""
    api = FakeAgones(GameServers())
    api.allocate_s = BATCH_WAIT_S
    with bench_folder() as folder:
        async with serve(api) as url:
            yield write_kubeconfig(folder / "kubeconfig", url, has_set_up=True)


async def main(calls: int) -> None:
    given = os.environ.get(VARIABLE)
    async with nullcontext(Path(given)) if given else fake_cluster() as kubeconfig:
        times_ms = await measure_allocations(kubeconfig, calls)
        running_ms = await measure_matches(kubeconfig, calls)
    print(f"{calls} of each kind, {'the given cluster' if given else 'the fake'}")
    print("| | p50 ms | p95 ms | longest ms |\n|---|---:|---:|---:|")
    for title, times in [(TITLES[subject], times) for subject, times in times_ms.items()] + [(MATCH, running_ms)]:
        parts = quantiles(times, n=100, method="inclusive")
        print(f"| {title} | {parts[49]:.1f} | {parts[94]:.1f} | {max(times):.1f} |")
    print(f"match running in {TARGET_MS:.0f} ms (p50): {'reached' if median(running_ms) <= TARGET_MS else 'missed'}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=CALLS, help=f"calls of each kind (default {CALLS})")
    parser.add_argument("--simulate", action="store_true", help=argparse.SUPPRESS)
    parsed = parser.parse_args()
    asyncio.run(simulate() if parsed.simulate else main(parsed.calls))
