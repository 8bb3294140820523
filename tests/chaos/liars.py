"""Let the servers of a static fleet lie over RCON, and measure the API for another organization and the memory.

Each server tells one lie (`tests.lying_server`), to one match after the other, until it rests.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from itertools import cycle
from pathlib import Path

from tests.chaos.http_messages import format_request
from tests.chaos.load import TABLE, Measured, ask, measure
from tests.e2e.service.running_service import Json, RunningService, short_match, static_region
from tests.lying_server import CVARS, FAULTS, HOST, Lie, lying_servers

MATCH_S = 10.0
"""How long a match is left with a server whose lie is within the limits; then it is canceled."""
POLL_S = 0.5
MAX_GROWTH_MB = 50
RESTS = "canceled: the server rests"


async def measure_liars(folder: Path, seconds: float, say: Callable[[str], None]) -> tuple[bool, list[str]]:
    """Measure without and with lying servers; return whether their matches failed as they should, and the figures."""
    with lying_servers(list(Lie)) as ports:
        regions = "".join(static_region(lie, [f"{HOST}:{port}"], "x") for lie, port in zip(Lie, ports, strict=True))
        service = RunningService(folder / "service", regions=regions)
        await asyncio.to_thread(service.start)
        try:
            return await _measure(service, seconds, say)
        finally:
            await asyncio.to_thread(service.close)


async def _measure(service: RunningService, seconds: float, say: Callable[[str], None]) -> tuple[bool, list[str]]:
    await asyncio.to_thread(service.run, "orgs", "create", "others")
    created = await asyncio.to_thread(service.run, "keys", "create", "--org", "others", "--role", "owner")
    key = created.stdout.split()[0]
    await _load(service, key, 2.0)  # the first requests of a process are slower
    say(f"{seconds:g} s without lies")
    before_mb = _memory_mb(service)
    calm = await _load(service, key, seconds)
    say(f"{seconds:g} s with {len(Lie)} servers that lie")
    async with _matches(service) as ends:
        lied = await _load(service, key, seconds)
        after_mb, peak_mb = _memory_mb(service), _memory_mb(service, "VmHWM")
    rows = [*TABLE, *(one.row(f"before: {name}") for name, one in calm.items())]
    rows += [one.row(f"during: {name}") for name, one in lied.items()]
    rows += ["", f"Memory of the service: {before_mb} MB before, {after_mb} MB after, {peak_mb} MB at most.", ""]
    rows += ["| lie | matches | ended as |", "|---|---:|---|"]
    for lie in Lie:
        texts = "; ".join(f"{text} ({count})" for text, count in ends[lie].most_common())
        rows.append(f"| {lie} | {sum(ends[lie].values())} | {texts} |")
    for row in rows:
        say(row)
    failed = sum(one.failures.total() for one in (*calm.values(), *lied.values()))
    is_clean = not failed and peak_mb - before_mb < MAX_GROWTH_MB and all(_has_failed(ends[lie]) for lie in FAULTS)
    return is_clean, rows


def _has_failed(ends: Counter[str]) -> bool:
    """True if each match of a server failed, until it got no other one."""
    return set(ends) > {RESTS} and all(text.startswith("failed: The server sent") for text in set(ends) - {RESTS})


def _memory_mb(service: RunningService, field: str = "VmRSS") -> int:
    assert service.process is not None
    status = Path(f"/proc/{service.process.pid}/status").read_text()
    return int(status.partition(f"{field}:")[2].split()[0]) // 1024


async def _load(service: RunningService, key: str, seconds: float) -> dict[str, Measured]:
    paths = ("/api/v1/regions", "/api/v1/cs2/matches", "/api/v1/servers")
    reads = cycle(format_request("GET", path, {"Authorization": f"Bearer {key}"}) for path in paths)
    health = format_request("GET", "/healthz", {})
    kinds = {
        "API, another organization": lambda: ask(service.port, next(reads)),
        "/healthz": lambda: ask(service.port, health),
    }
    return await measure(seconds, kinds)


@asynccontextmanager
async def _matches(service: RunningService) -> AsyncIterator[dict[Lie, Counter[str]]]:
    """Play one match after the other on each server until the block ends; return how they ended."""
    ends = {lie: Counter[str]() for lie in Lie}
    tasks = [asyncio.create_task(_play(service, lie, ends[lie])) for lie in Lie]
    try:
        yield ends
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _play(service: RunningService, lie: Lie, ends: Counter[str]) -> None:
    settings = short_match(customCvars=CVARS)
    while True:
        created = await _call(
            service, "POST", "/api/v1/matches", {"region": lie, "gameType": "cs2", "gameSettings": settings}
        )
        path = f"/api/v1/servers/{created['serverId']}"
        with suppress(TimeoutError):
            async with asyncio.timeout(MATCH_S):
                while (server := await _call(service, "GET", path))["status"] != "failed":
                    if server["status"] == "pending" and lie in FAULTS:
                        await _call(service, "POST", f"{path}/cancel")
                        ends[RESTS] += 1
                        return
                    await asyncio.sleep(POLL_S)
                ends[f"failed: {server['error']}"] += 1
                continue
        await _call(service, "POST", f"{path}/cancel")
        ends["canceled: not ready"] += 1


async def _call(service: RunningService, method: str, path: str, body: object = None) -> Json:
    content = b"" if body is None else json.dumps(body).encode()
    headers = {"Authorization": f"Bearer {service.key}", "Content-Type": "application/json"}
    found: Json = (await ask(service.port, format_request(method, path, headers, content))).json
    return found
