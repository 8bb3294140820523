"""Play matches on a fleet of simulated pods, while the API of their cluster, the pods and the replicas fail.

The judge believes only what the receivers of callbacks and the cluster saw: one outcome per match, lost only where its
pod was deleted, never two pods for one match for long, and no pod left allocated.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random

import msgspec

from matchpod.adapters.fleets.agones_servers import SERVER_LABEL
from tests.chaos.cluster import PATIENT_SPEED, Cluster
from tests.chaos.plan import GameSpec, Json
from tests.chaos.receivers import Receivers
from tests.chaos.stores import Store, open_store
from tests.contract.agones_api import FakeAgones, Fault
from tests.contract.agones_cluster import agones_cluster, agones_region, secret_file

REGION = "cluster"
SPEED = 20
POLL_S = 0.25
OUTAGE_S = 2.0
DOUBLE_S = 15.0
"""Two pods of one match are allowed for this long: a late answer may allocate a second one, which is deleted."""
STALL_S = 180.0
QUIET_S = 150.0
"""A pod without a match is found by a sweep, once a minute."""
FAULT_S = 1.0
"""Mean time between two faults."""
KILL_EVERY = 15
"""One of this many faults is the death of a replica."""
ALLOCATE = "create gameserverallocations"
DELETE = "delete gameservers"
ALLOCATION_FAULTS = (
    *(Fault.HANG_AFTER, Fault.CLOSE, Fault.CLOSE_AFTER, Fault.LATE, Fault.TEXT_500, Fault.TEXT_500_AFTER),
    *(Fault.TEXT_503, Fault.GARBAGE, Fault.CONTENTION, Fault.UNALLOCATED),
)
DELETION_FAULTS = (Fault.CLOSE, Fault.CLOSE_AFTER, Fault.TEXT_503)


class Size(msgspec.Struct, frozen=True):
    """How many matches are played, and on how many pods."""

    matches: int = 300
    pods: int = 50
    replicas: int = 2


def match_on_pods(seed: int, name: str, receivers: Receivers) -> Json:
    """Return the request for a match on a pod whose callback is received under its name."""
    return {
        **GameSpec("duel", seed).body(speed=SPEED, is_lockstep=False),
        "region": REGION,
        "externalMatchId": name,
        "callbackUrl": receivers.url(name),
    }


class Trial:
    """One run: what was done to the cluster, and what was seen."""

    def __init__(self, cluster: Cluster, api: FakeAgones, receivers: Receivers, *, seed: int) -> None:
        self.cluster = cluster
        self.api = api
        self.receivers = receivers
        self.random = Random(seed)
        self.faults: Counter[str] = Counter()
        self.violations: list[str] = []
        self.outcomes: Counter[str] = Counter()
        self._names: dict[str, str] = {}
        self._deleted: set[str] = set()
        self._double_since: dict[str, float] = {}
        self._next_fault_s = 0.0

    async def run(self, matches: int, say: Callable[[str], None]) -> None:
        """Create all matches, inject faults until all have ended, and judge."""
        creating = asyncio.create_task(self._create_all(matches))
        began_s = progress_s = time.monotonic()
        ended = 0
        while ended < matches:
            await asyncio.sleep(POLL_S)
            self._check_pods()
            await self._inject()
            now, before = time.monotonic(), ended
            ended = sum(bool(self.receivers.at(name)) for name in self._names.values())
            if ended != before:
                progress_s = now
                say(f"{now - began_s:.0f} s: {ended} of {matches} matches ended, {self.faults.total()} faults")
            elif now - progress_s > STALL_S:
                self.violations.append(f"{matches - ended} matches did not end")
                break
        await creating
        self.api.faults.clear()
        await self._wait_until_quiet()
        self._judge()

    async def _create_all(self, matches: int) -> None:
        for number in range(matches):
            name = f"match-{number}"
            body = match_on_pods(number, name, self.receivers)
            while True:
                answer = await self.cluster.call("POST", "/api/v1/matches", body, **{"Idempotency-Key": name})
                if answer.status == 201:
                    break
                await asyncio.sleep(POLL_S)  # no replica is ready, or the cluster is unreachable at the moment
            self._names[answer.json["serverId"]] = name

    # --- faults ---------------------------------------------------------------------------------------------------

    async def _inject(self) -> None:
        if time.monotonic() < self._next_fault_s:
            return
        self._next_fault_s = time.monotonic() + self.random.expovariate(1 / FAULT_S)
        kinds = ("allocate", "allocate", "allocate", "delete", "delete", "watch", "expire", "pod", "pod", "outage")
        kind = "kill" if (self.faults.total() + 1) % KILL_EVERY == 0 else self.random.choice(kinds)
        match kind:
            case "allocate":
                self.api.faults.setdefault(ALLOCATE, []).append(self.random.choice(ALLOCATION_FAULTS))
            case "delete":
                self.api.faults.setdefault(DELETE, []).append(self.random.choice(DELETION_FAULTS))
            case "watch":
                self.api.close_watches()
            case "expire":
                self.api.expire_versions()
            case "pod" if not self._delete_a_pod():
                return
            case "outage":
                self.api.outage = self.random.choice((Fault.TEXT_503, Fault.CLOSE))
                await asyncio.sleep(OUTAGE_S)
                self.api.outage = None
            case "kill":
                await self.random.choice(self.cluster.replicas).kill()
        self.faults[kind] += 1

    def _delete_a_pod(self) -> bool:
        """Delete the pod of a random match in any phase; stop after a sixth of the matches, so that most finish."""
        pods = self._pods()
        if len(self._deleted) * 6 > len(self._names) or not pods:
            return False
        server_id = self.random.choice(sorted(pods))
        self._deleted.add(server_id)
        for name in pods[server_id]:
            (self.api.delete if self.random.random() < 0.5 else self.api.fail)(name)
        return True

    # --- judging --------------------------------------------------------------------------------------------------

    def _pods(self) -> dict[str, list[str]]:
        """The pods of each match that are not being deleted."""
        found: dict[str, list[str]] = {}
        for name, server in self.api.objects.items():
            server_id = server["metadata"]["labels"].get(SERVER_LABEL)
            if server_id and "deletionTimestamp" not in server["metadata"]:
                found.setdefault(server_id, []).append(name)
        return found

    def _check_pods(self) -> None:
        now = time.monotonic()
        double = {server_id for server_id, names in self._pods().items() if len(names) > 1}
        self._double_since = {server_id: self._double_since.get(server_id, now) for server_id in double}
        for server_id, since in self._double_since.items():
            if now - since > DOUBLE_S and (violation := f"{server_id} has two pods") not in self.violations:
                self.violations.append(violation)

    async def _wait_until_quiet(self) -> None:
        deadline = time.monotonic() + QUIET_S
        while self._pods() and time.monotonic() < deadline:
            await asyncio.sleep(POLL_S)
        self.violations += [f"pods are left for {server_id}: {names}" for server_id, names in self._pods().items()]
        self.violations += [f"{name} is allocated" for name in self.api.names("Allocated")]

    def _judge(self) -> None:
        for server_id, name in self._names.items():
            arrivals = self.receivers.at(name)
            if len({arrival.request.body for arrival in arrivals}) > 1:
                self.violations.append(f"{name} has two outcomes")
            if not arrivals:
                continue
            outcome = arrivals[0].end
            self.outcomes[outcome] += 1
            is_allowed = outcome == "match_over" or (outcome == "server_lost" and server_id in self._deleted)
            if not is_allowed:
                self.violations.append(f"{name} ({server_id}) ended with {outcome}")
        if stray := self.receivers.stray():
            self.violations.append(f"callbacks of no match: {stray}")


class OnPods(msgspec.Struct, frozen=True):
    """A service on a fleet of pods, and who watches it."""

    cluster: Cluster
    api: FakeAgones
    receivers: Receivers
    store: Store


@asynccontextmanager
async def service_on_pods(folder: Path, *, pods: int, replicas: int) -> AsyncIterator[OnPods]:
    """Run replicas on PostgreSQL, with one region of pods."""
    async with (
        open_store(folder) as store,
        agones_cluster(folder, replicas=pods) as agones,
        Receivers() as receivers,
    ):
        regions = agones_region(REGION, agones.kubeconfig, secret_file(folder), speed=PATIENT_SPEED)
        async with Cluster(folder, store, replicas=replicas, regions=regions) as cluster:
            yield OnPods(cluster, agones.api, receivers, store)


async def play_on_pods(folder: Path, size: Size, seed: int, say: Callable[[str], None]) -> tuple[bool, list[str]]:
    """Run a trial; return whether nothing was violated, and the figures."""
    began_s = time.monotonic()
    async with service_on_pods(folder, pods=size.pods, replicas=size.replicas) as service:
        receivers = service.receivers
        trial = Trial(service.cluster, service.api, receivers, seed=seed)
        await trial.run(size.matches, say)
    for violation in trial.violations:
        say(f"VIOLATION: {violation}")
    rows = [
        ("matches", size.matches),
        ("pods", size.pods),
        ("replicas", size.replicas),
        ("seconds", round(time.monotonic() - began_s)),
        *((f"fault: {kind}", count) for kind, count in sorted(trial.faults.items())),
        *((f"outcome: {outcome}", count) for outcome, count in sorted(trial.outcomes.items())),
        ("callbacks received", receivers.count),
        ("violations", len(trial.violations)),
    ]
    return not trial.violations, ["| | |", "|---|---:|", *(f"| {name} | {value:,} |" for name, value in rows)]
