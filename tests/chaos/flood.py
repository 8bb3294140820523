"""Flood the service with the tokens of a few matches, and measure the API and the log posts of the others.

The posts of the flood are hostile: overlong lines, garbage, huge numbers, and bodies up to the size limit.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from itertools import cycle
from pathlib import Path
from random import Random

from tests.chaos.cluster import Cluster
from tests.chaos.http_messages import format_request
from tests.chaos.load import TABLE, Measured, ask, measure, requests
from tests.chaos.observed import Answer
from tests.chaos.plan import GameSpec
from tests.chaos.stores import SqliteStore

FLOODED = 3
"""Matches whose tokens flood."""
CLIENTS_PER_TOKEN = 4
OTHERS = 5
"""Matches whose log posts are measured."""
START_S = 180.0
LIMIT_BYTES = 1024 * 1024
_LINE = b'L 03/14/2026 - 20:03:20: "a<1><[U:1:1]><CT>" say "hello"\n'


def hostile_bodies(rng: Random) -> list[bytes]:
    """Return bodies that a hostile sender with a valid token may post."""
    return [
        b"L 03/14/2026 - 20:03:20: " + b"x" * 900_000 + b"\n",
        rng.randbytes(200_000),
        b'{"event":"series_end","matchid":1,"team1_series_score":' + b"9" * (LIMIT_BYTES - 100) + b"}",
        b'{"event":"round_end","damage":1e' + b"9" * 1000 + b"}",
        b"[" * 500_000,
        _LINE * 4_000,
        b"\n" * LIMIT_BYTES,
    ]


async def measure_flood(folder: Path, seconds: float, say: Callable[[str], None]) -> tuple[bool, list[str]]:
    """Measure without and with the flood; return whether no request failed, and the figures."""
    store = SqliteStore(folder / "data")
    async with Cluster(folder, store) as cluster:
        body = GameSpec("duel", 1).body(speed=1, is_lockstep=False)
        ids = [await cluster.create(body) for _ in range(FLOODED + OTHERS)]
        async with asyncio.timeout(START_S):
            for server_id in ids:  # their start would be measured too, and a second attempt has other tokens
                while (await cluster.call("GET", f"/api/v1/servers/{server_id}")).json["status"] != "running":
                    await asyncio.sleep(0.5)
        found = await store.log_tokens()
        tokens = [found[server_id] for server_id in ids]
        port = cluster.replicas[0].port
        say(f"{seconds:g} s without a flood")
        calm = await _measure(cluster, port, tokens[FLOODED:], seconds)
        say(f"{seconds:g} s with a flood of {FLOODED} tokens")
        async with AsyncExitStack() as stack:
            floods = [
                await stack.enter_async_context(requests(_flood(port, token), clients=CLIENTS_PER_TOKEN, pause_s=0.0))
                for token in tokens[:FLOODED]
            ]
            flooded = await _measure(cluster, port, tokens[FLOODED:], seconds)
        rows = [one.row(f"calm: {name}") for name, one in calm.items()]
        rows += [one.row(f"flood: {name}") for name, one in flooded.items()]
        rows += [flood.row(f"posts of flooding token {number}") for number, flood in enumerate(floods, 1)]
        for server_id in ids:
            await cluster.call("POST", f"/api/v1/servers/{server_id}/cancel")
    for row in rows:
        say(row)
    failed = sum(one.failures.total() for one in (*calm.values(), *flooded.values()))
    return not failed, [*TABLE, *rows]


async def _measure(cluster: Cluster, port: int, tokens: list[str], seconds: float) -> dict[str, Measured]:
    key = {"Authorization": f"Bearer {cluster.key}"}
    paths = ("/api/v1/regions", "/api/v1/cs2/matches", "/api/v1/cs2/series")
    reads = cycle(format_request("GET", path, key) for path in paths)
    posts = cycle(_post(token, _LINE * 20) for token in tokens)
    kinds = {"API": lambda: ask(port, next(reads)), "log posts of other matches": lambda: ask(port, next(posts))}
    return await measure(seconds, kinds)


def _post(token: str, body: bytes) -> bytes:
    return format_request("POST", f"/ingest/logs/{token}", {"Content-Type": "text/plain"}, body)


def _flood(port: int, token: str) -> Callable[[], Awaitable[Answer]]:
    bodies = cycle(_post(token, body) for body in hostile_bodies(Random(token)))
    return lambda: ask(port, next(bodies))
