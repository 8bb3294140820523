"""Replace two replicas of the last release by this version one after the other, back, and again, while matches are
played on a static fleet and requests arrive all the time: no match may be lost, and no request may fail.
"""

from __future__ import annotations

import asyncio
import subprocess
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import msgspec

from tests.chaos.cluster import PATIENT_SPEED, Cluster
from tests.chaos.handovers import Handovers
from tests.chaos.plan import STATIC, GameSpec, Json
from tests.chaos.receivers import Receivers
from tests.chaos.restarts import load, summary
from tests.chaos.static_servers import START_S
from tests.chaos.stores import PostgresServer, Store
from tests.contract.simulator_process import PASSWORD, SIMULATE
from tests.e2e.service.running_service import free_port_range, static_region
from tests.last_release import VERSION, extract

SPARE_SERVERS = 4
"""For the matches of the load, which are canceled at once."""
SPEED = 5
"""Of the games: a match takes about a minute."""
REST_S = 15.0
"""How long both versions work before the next replica is replaced: some matches end, and others begin."""
LATE_POLLS = 3
"""As usual for proxies: one late answer does not take the only other replica out while one is replaced."""
NEW: Mapping[str, str] = {}


class Upgraded(msgspec.Struct, frozen=True):
    """Replicas of the last release on a farm of game servers, with the receivers and the store that observe them."""

    cluster: Cluster
    receivers: Receivers
    store: Store
    old: Mapping[str, str]
    """The variables with which Python runs the last release."""


async def measure_upgrade(
    folder: Path, matches: int, say: Callable[[str], None], *, rest_s: float = REST_S
) -> tuple[bool, list[str]]:
    """Upgrade, roll back and upgrade again; return True if nothing was lost or failed, and the figures."""
    async with _last_release(folder, matches) as service:
        cluster = service.cluster
        handovers = Handovers(cluster, service.receivers, service.store, body=_match)
        playing = asyncio.create_task(handovers.play(matches))
        async with load(cluster, _body(0)) as (reads, writes):
            await asyncio.sleep(rest_s)
            say(f"{VERSION}, {VERSION}: {await _numbers(service)}")
            migrated = await asyncio.to_thread(cluster.replicas[0].service.run, "migrate")
            say(f"matchpod migrate: {migrated.stdout.strip() or migrated.stderr}")
            steps = [(NEW, 0), (NEW, 1), (service.old, 0), (service.old, 1), (NEW, 0), (NEW, 1)]
            for sources, number in steps:
                cluster.replicas[number].sources = sources
                await handovers.restart(cluster.replicas[number])
                await cluster.balancer.wait_until_ready(2)
                await asyncio.sleep(rest_s)
                names = [VERSION if one.sources else "this version" for one in cluster.replicas]
                say(f"{', '.join(names)}: {await _numbers(service)}")
        handovers.stop()
        await playing
        is_clean, lines = summary(len(steps), reads, writes, say)
        violations = _violations(service, handovers) + await _stored_violations(service, handovers)
        for violation in violations:
            say(f"VIOLATION: {violation}")
        posts = f"{cluster.balancer.forwarded:,} requests and log posts went through the balancer, of which"
        posts += f" {cluster.balancer.failed:,} failed."
    say(f"outcomes: {dict(handovers.outcomes)}; {posts}")
    taken = sorted(handovers.seconds)
    times = f"median {taken[len(taken) // 2]:.2f} s, longest {taken[-1]:.2f} s" if taken else "none"
    is_clean = is_clean and not violations and not cluster.balancer.failed
    return is_clean and set(handovers.outcomes) == {"match_over"}, [
        *lines,
        "",
        f"Matches played: {handovers.outcomes.total()}, {matches} at a time, of which finished:"
        f" {handovers.outcomes['match_over']}, with one callback each. Handed over: {len(taken)} times; {times}. {posts}",
    ]


@asynccontextmanager
async def _last_release(folder: Path, matches: int) -> AsyncIterator[Upgraded]:
    old = await asyncio.to_thread(extract, folder / "last-release")
    server = PostgresServer(folder / "postgres")
    try:
        store = await server.create_store()
        async with _farm(matches + SPARE_SERVERS) as addresses, Receivers() as receivers:
            regions = static_region(STATIC, addresses, PASSWORD, speed=PATIENT_SPEED)
            async with Cluster(
                folder, store, replicas=2, regions=regions, sources=old, late_polls=LATE_POLLS
            ) as cluster:
                yield Upgraded(cluster, receivers, store, old)
    finally:
        server.close()


@asynccontextmanager
async def _farm(servers: int) -> AsyncIterator[list[str]]:
    """Run simulated servers in one process; yield their addresses."""
    ports = free_port_range(servers)
    args = (
        f"-port {ports[0]} +rcon_password {PASSWORD} --farm {servers} --speed 1 --quiet +sim_roster_delay 3000".split()
    )
    process = await asyncio.create_subprocess_exec(*SIMULATE, *args, stdout=subprocess.DEVNULL)
    try:
        async with asyncio.timeout(START_S):
            for port in ports:
                await _wait_for(port)
        yield [f"127.0.0.1:{port}" for port in ports]
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


async def _wait_for(port: int) -> None:
    while True:
        with suppress(OSError):
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.close()
            return
        await asyncio.sleep(0.1)


def _body(seed: int) -> Json:
    return {**GameSpec("duel", seed).body(speed=SPEED, is_lockstep=False), "region": STATIC}


def _match(seed: int, name: str, receivers: Receivers) -> Json:
    return {**_body(seed), "externalMatchId": name, "callbackUrl": receivers.url(name)}


async def _numbers(service: Upgraded) -> str:
    """Return how many matches each process drives, and how many have ended."""
    rows = await service.store.rows("SELECT phase, lease_owner, COUNT(*) FROM servers GROUP BY 1, 2 ORDER BY 1, 2")
    driven = [count for phase, owner, count in rows if phase == "running" and owner is not None]
    return f"{' and '.join(map(str, driven)) or 'no'} matches driven, {service.receivers.count} callbacks received"


def _violations(service: Upgraded, handovers: Handovers) -> list[str]:
    counts = Counter({name: len(service.receivers.at(name)) for name in handovers.names})
    return [f"{name}: {count} callbacks" for name, count in counts.items() if count != 1]


async def _stored_violations(service: Upgraded, handovers: Handovers) -> list[str]:
    """Check through the API that every match can be read and has a result of a complete log."""
    violations = []
    for name in handovers.names:
        answer = await service.cluster.call("GET", f"/api/v1/matches/{name}")
        if answer.status != 200 or answer.json.get("result") is None:
            violations.append(f"{name}: status {answer.status}, {answer.json}")
        elif answer.json.get("logComplete") is False:
            violations.append(f"{name}: its log is not complete")
    return violations
