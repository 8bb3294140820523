"""Start other services on the fleet of one that plays matches: with an empty, another and a restored database.

Each is started while the matches of the first one are live, plays a match of its own, and stays for several sweeps. No
match may end, and the restored one must say that it knows no match for most servers.
"""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import sqlite3
import time
from collections.abc import Callable
from contextlib import AsyncExitStack, closing
from pathlib import Path

from matchpod.adapters.fleets.agones_servers import SERVER_LABEL
from matchpod.core.servers.orphaned_servers import UNKNOWN_MS
from tests.chaos.cluster import PATIENT_SPEED, Cluster
from tests.chaos.http_messages import format_request, send
from tests.chaos.plan import GameSpec, Json
from tests.chaos.pods import REGION, match_on_pods
from tests.chaos.receivers import Receivers
from tests.chaos.stores import PostgresServer, SqliteStore, Store
from tests.contract.agones_api import FakeAgones
from tests.contract.agones_cluster import agones_cluster, agones_region, secret_file
from tests.e2e.service.running_service import RunningService

MATCHES = 12
PODS = 20
POLL_S = 0.25
START_S = 240.0
END_S = 600.0
BESIDE_S = UNKNOWN_MS / 1000 + 2 * 60
"""How long the others stay at least: until the second sweep after the time in which servers must be unknown."""
LONG_ROUNDS = 24
FAST = 60.0
"""The speed of all games once the others have been there for long enough."""


class Stranger:
    """Another service on the same fleet."""

    def __init__(self, name: str, service: RunningService) -> None:
        self.name = name
        self.service = service
        self.withheld = 0
        self.foreign = 0

    async def start(self) -> None:
        """Start it; a restored database needs an explicit word, where this version knows it."""
        options: tuple[str, ...] = ()
        if (
            self.name == "restored"
            and "--restored" in (await asyncio.to_thread(self.service.run, "serve", "--help")).stdout
        ):
            options = ("--restored",)
        await asyncio.to_thread(self.service.start, *options)

    async def create(self, body: Json) -> int:
        """Create a match; return the status."""
        headers = {"Authorization": f"Bearer {self.service.key}", "Content-Type": "application/json"}
        request = format_request("POST", "/api/v1/matches", headers, json.dumps(body).encode())
        return (await send(self.service.port, request)).status

    async def read_metrics(self) -> None:
        """Read how many servers it withholds, and how many it takes for those of others."""
        text = (await send(self.service.port, format_request("GET", "/metrics", {}))).body.decode()
        for name in ("withheld", "foreign"):
            found = re.search(rf'^matchpod_servers_{name}{{region="{REGION}"}} (\d+)', text, re.MULTILINE)
            setattr(self, name, max(getattr(self, name), int(found[1]) if found else 0))


class Strangers:
    """One trial."""

    def __init__(self, store: Store, cluster: Cluster, api: FakeAgones, receivers: Receivers) -> None:
        self._store = store
        self._cluster = cluster
        self._api = api
        self._receivers = receivers
        self.violations: list[str] = []
        self.names = [f"match-{number}" for number in range(MATCHES)]

    async def play_one(self) -> None:
        """Play a match to its end, so that the database that is copied has one."""
        await self._create("first", GameSpec("duel", 1).body(speed=60, is_lockstep=False))
        await self._until(lambda: bool(self._receivers.at("first")), END_S, "the first match has ended")
        # Else the copy would send its callback too.
        while await self._store.rows("SELECT id FROM callbacks WHERE delivered_at_ms IS NULL"):
            await asyncio.sleep(POLL_S)

    def copy_database(self, original: Path, copy: Path) -> None:
        """Copy database and key, as a backup does."""
        copy.mkdir(mode=0o700, parents=True)
        shutil.copy2(original / "secret.key", copy / "secret.key")
        with (
            closing(sqlite3.connect(original / "matchpod.sqlite3")) as source,
            closing(sqlite3.connect(copy / "matchpod.sqlite3")) as target,
        ):
            source.backup(target)
        (copy / "matchpod.sqlite3").chmod(0o600)

    async def begin(self) -> dict[str, str]:
        """Create the matches, wait until each has a pod, and return the pods by match."""
        for number, name in enumerate(self.names):
            body = GameSpec("duel", number).body(speed=1, is_lockstep=False)
            body["gameSettings"]["maxRounds"] = LONG_ROUNDS
            await self._create(name, body)
        await self._until(lambda: len(self.pods()) == MATCHES, START_S, "all matches have a pod")
        return self.pods()

    async def watch(self, strangers: list[Stranger], pods: dict[str, str], say: Callable[[str], None]) -> None:
        """Let the others stay for several sweeps; all matches must keep their pods."""
        began_s, said_s = time.monotonic(), 0.0
        while time.monotonic() - began_s < BESIDE_S:
            await asyncio.sleep(POLL_S)
            lost = {name for server_id, name in pods.items() if self.pods().get(server_id) != name}
            if lost:
                self.violations.append(f"pods of live matches are gone: {sorted(lost)}")
                return
            if time.monotonic() - said_s > 30:
                said_s = time.monotonic()
                for one in strangers:
                    await one.read_metrics()
                seen = ", ".join(f"{one.name}: {one.foreign} foreign, {one.withheld} withheld" for one in strangers)
                say(f"{said_s - began_s:.0f} s: {len(self.pods())} pods in use; {seen}")
        for one in strangers:
            await one.read_metrics()

    async def end(self, names: list[str]) -> None:
        """Play everything to its end; each match must have one callback, with a result."""

        def are_over() -> bool:
            for server in self._api.game_servers.running.values():
                server.set_speed(FAST)
            return all(self._receivers.at(name) for name in names)

        await self._until(are_over, END_S, "all matches have ended")
        await self._until(lambda: not self.pods(), START_S, "all pods are released")
        for name in names:
            bodies = [json.loads(arrival.request.body) for arrival in self._receivers.at(name)]
            kinds = [str(body.get("reason", body["eventType"])) for body in bodies]
            if kinds != ["match_over"]:
                self.violations.append(f"{name} ended with {kinds}")

    def judge(self, strangers: list[Stranger]) -> None:
        """Check what the others said."""
        for one in strangers:
            kind = "withheld" if one.name == "restored" else "foreign"
            if getattr(one, kind) < MATCHES:
                self.violations.append(f"{one.name} reported {getattr(one, kind)} servers as {kind}")
            if one.name != "restored" and one.withheld:
                self.violations.append(f"{one.name} withholds {one.withheld} servers of others")

    def pods(self) -> dict[str, str]:
        """The pods in use that are not being deleted, by the id of their match."""
        labelled = {
            name: server["metadata"]["labels"].get(SERVER_LABEL)
            for name, server in self._api.objects.items()
            if "deletionTimestamp" not in server["metadata"]
        }
        return {server_id: name for name, server_id in labelled.items() if server_id}

    async def _create(self, name: str, body: Json) -> None:
        body |= {"region": REGION, "externalMatchId": name, "callbackUrl": self._receivers.url(name)}
        answer = await self._cluster.call("POST", "/api/v1/matches", body)
        assert answer.status == 201, answer

    async def _until(self, is_done: Callable[[], bool], within_s: float, what: str) -> None:
        deadline_s = time.monotonic() + within_s
        while not is_done():
            if time.monotonic() > deadline_s:
                self.violations.append(f"not true after {within_s:g} s: {what}")
                return
            await asyncio.sleep(POLL_S)


async def measure_strangers(folder: Path, say: Callable[[str], None]) -> tuple[bool, list[str]]:
    """Run a trial on SQLite; one of the others is on PostgreSQL. Return whether nothing was violated, and the figures."""
    async with AsyncExitStack() as stack:
        server = PostgresServer(folder / "postgres")
        stack.callback(server.close)
        agones = await stack.enter_async_context(agones_cluster(folder, replicas=PODS))
        receivers = await stack.enter_async_context(Receivers())
        regions = agones_region(REGION, agones.kubeconfig, secret_file(folder), speed=PATIENT_SPEED)
        data_dir = folder / "data"
        store = SqliteStore(data_dir)
        cluster = await stack.enter_async_context(Cluster(folder, store, regions=regions))
        trial = Strangers(store, cluster, agones.api, receivers)
        await trial.play_one()
        trial.copy_database(data_dir, folder / "restored" / "data")
        pods = await trial.begin()
        say(f"{MATCHES} matches are live")
        urls = {"empty": None, "mistyped": (await server.create_store()).url, "restored": None}
        strangers = [
            Stranger(name, RunningService(folder / name, regions=regions, database_url=url, key=cluster.key))
            for name, url in urls.items()
        ]
        for one in strangers:
            stack.callback(one.service.close)
            await one.start()
            status = await one.create(match_on_pods(99, one.name, receivers))
            if status != 201:
                trial.violations.append(f"{one.name} created no match: {status}")
        await trial.watch(strangers, pods, say)
        listed = await asyncio.to_thread(strangers[-1].service.run, "regions", "list", "--json")
        say(f"regions list of the restored one: {listed.stdout}")
        await trial.end(["first", *trial.names, *(one.name for one in strangers)])
        trial.judge(strangers)
    for violation in trial.violations:
        say(f"VIOLATION: {violation}")
    rows = [
        ("live matches of the first service", MATCHES),
        ("seconds beside each other", round(BESIDE_S)),
        *(
            (f"{one.name} database: servers {kind}", getattr(one, kind))
            for one in strangers
            for kind in ("foreign", "withheld")
        ),
        ("matches of the others", len(strangers)),
        ("callbacks received", receivers.count),
        ("violations", len(trial.violations)),
    ]
    return not trial.violations, ["| | |", "|---|---:|", *(f"| {name} | {value:,} |" for name, value in rows)]
