"""Replace two replicas of the last release by this version one after the other, back, and again, while matches are
played on a static fleet and requests arrive all the time: no match may be lost, and no request may fail.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path

from tests.chaos.cluster import PATIENT_SPEED, Cluster
from tests.chaos.handovers import Handovers, load, summary
from tests.chaos.plan import STATIC, GameSpec, Json
from tests.chaos.receivers import Receivers
from tests.chaos.static_servers import Farm
from tests.chaos.stores import open_store
from tests.contract.simulator_process import PASSWORD
from tests.e2e.service.running_service import static_region
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


async def measure_upgrade(
    folder: Path, matches: int, say: Callable[[str], None], *, rest_s: float = REST_S
) -> tuple[bool, list[str]]:
    """Upgrade, roll back and upgrade again; return True if nothing was lost or failed, and the figures."""
    old = await asyncio.to_thread(extract, folder / "last-release")
    async with AsyncExitStack() as stack:
        store = await stack.enter_async_context(open_store(folder))
        farm = await stack.enter_async_context(Farm(matches + SPARE_SERVERS))
        receivers = await stack.enter_async_context(Receivers())
        regions = static_region(STATIC, farm.addresses, PASSWORD, speed=PATIENT_SPEED)
        cluster = await stack.enter_async_context(
            Cluster(folder, store, replicas=2, regions=regions, sources=old, late_polls=LATE_POLLS)
        )
        handovers = Handovers(cluster, receivers, store, body=_match)
        playing = asyncio.create_task(handovers.play(matches))
        async with load(cluster, _body(0)) as (reads, writes):
            await asyncio.sleep(rest_s)
            say(f"{VERSION}, {VERSION}: {await _numbers(handovers)}")
            migrated = await asyncio.to_thread(cluster.replicas[0].service.run, "migrate")
            say(f"matchpod migrate: {migrated.stdout.strip() or migrated.stderr}")
            steps = [(NEW, 0), (NEW, 1), (old, 0), (old, 1), (NEW, 0), (NEW, 1)]
            for sources, number in steps:
                cluster.replicas[number].sources = sources
                await handovers.restart(cluster.replicas[number])
                await cluster.balancer.wait_until_ready(2)
                await asyncio.sleep(rest_s)
                names = [VERSION if one.sources else "this version" for one in cluster.replicas]
                say(f"{', '.join(names)}: {await _numbers(handovers)}")
        handovers.stop()
        await playing
        is_clean, lines = summary(len(steps), reads, writes, say)
        violations = await _violations(handovers)
        for violation in violations:
            say(f"VIOLATION: {violation}")
        posts = f"{cluster.balancer.forwarded:,} requests and log posts went through the balancer, of which"
        posts += f" {cluster.balancer.failed:,} failed."
    say(f"outcomes: {dict(handovers.outcomes)}; {posts}")
    is_clean = is_clean and not violations and not cluster.balancer.failed
    return is_clean and set(handovers.outcomes) == {"match_over"}, [
        *lines,
        "",
        f"Matches played: {handovers.outcomes.total()}, {matches} at a time, of which finished:"
        f" {handovers.outcomes['match_over']}, with one callback each. Handed over: {handovers.times()}. {posts}",
    ]


def _body(seed: int) -> Json:
    return {**GameSpec("duel", seed).body(speed=SPEED, is_lockstep=False), "region": STATIC}


def _match(seed: int, name: str, receivers: Receivers) -> Json:
    return {**_body(seed), "externalMatchId": name, "callbackUrl": receivers.url(name)}


async def _numbers(handovers: Handovers) -> str:
    """Return how many matches each process drives, and how many have ended."""
    rows = await handovers.store.rows("SELECT phase, lease_owner, COUNT(*) FROM servers GROUP BY 1, 2 ORDER BY 1, 2")
    driven = [count for phase, owner, count in rows if phase == "running" and owner is not None]
    return f"{' and '.join(map(str, driven)) or 'no'} matches driven, {handovers.receivers.count} callbacks received"


async def _violations(handovers: Handovers) -> list[str]:
    """Check that every match has one callback, and that the API has a result of its complete log."""
    violations = []
    for name in handovers.names:
        if (count := len(handovers.receivers.at(name))) != 1:
            violations.append(f"{name}: {count} callbacks")
        answer = await handovers.cluster.call("GET", f"/api/v1/matches/{name}")
        if answer.status != 200 or answer.json.get("result") is None:
            violations.append(f"{name}: status {answer.status}, {answer.json}")
        elif answer.json.get("logComplete") is False:
            violations.append(f"{name}: its log is not complete")
    return violations
