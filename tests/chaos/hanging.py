"""Measure the callbacks to a good receiver while very many callbacks go to receivers that hang."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

from tests.chaos.cluster import Cluster
from tests.chaos.load import TABLE, Measured
from tests.chaos.plan import GameSpec, Receiver
from tests.chaos.receivers import Receivers
from tests.chaos.stores import SqliteStore

GOOD = 50
GOOD_PAUSE_S = 0.2
ARRIVAL_S = 120.0
"""Timeout of a good callback."""


async def measure_receivers(folder: Path, hanging: int, say: Callable[[str], None]) -> tuple[bool, list[str]]:
    """Return whether all good callbacks arrived, and how long each took from its cancellation."""
    store = SqliteStore(folder / "data")
    async with Receivers() as receivers, Cluster(folder, store) as cluster:
        body = GameSpec("duel", 1).body(speed=1, is_lockstep=True)
        await _cancel_many(cluster, {**body, "callbackUrl": receivers.url("hanging", Receiver.HANG)}, hanging)
        say(f"{hanging} matches canceled whose receivers hang")
        measured = Measured()
        for number in range(GOOD):
            name = f"good-{number}"
            began_s = time.monotonic()
            await _cancel_many(cluster, {**body, "callbackUrl": receivers.url(name)}, 1)
            while not receivers.at(name) and time.monotonic() < began_s + ARRIVAL_S:
                await asyncio.sleep(0.01)
            measured.seconds.append(time.monotonic() - began_s)
            if not receivers.at(name):
                measured.failures[0] += 1
            await asyncio.sleep(GOOD_PAUSE_S)
        held = len(receivers.at("hanging"))
    say(f"{held} callbacks hang; {measured.row('good callbacks')}")
    lines = [f"Receivers that hang: {hanging:,}.", "", *TABLE, measured.row("create, cancel, callback received")]
    return not measured.failures, lines


async def _cancel_many(cluster: Cluster, body: dict[str, object], count: int) -> None:
    """Create matches and cancel each at once, a few at a time."""
    room = asyncio.Semaphore(8)

    async def create_and_cancel() -> None:
        async with room:
            created = await cluster.call("POST", "/api/v1/matches", body)
            assert created.status == 201, created
            canceled = await cluster.call("POST", f"/api/v1/servers/{created.json['serverId']}/cancel")
            assert canceled.status == 200, canceled

    await asyncio.gather(*(create_and_cancel() for _ in range(count)))
