"""Measure what requests of callers cost, compared with a bare ASGI application and Express 5. Part of `make bench`.

Requests are: get the server of a live match, with and without gzip, and create a match. The figure is CPU time of the
server per request. Servers take turns on one core, the load comes from another; ratios are within a round, so what
disturbs one round disturbs both sides. The bare application sends the bytes that Matchpod sent. Express is skipped if
Node is not installed. To create matches, Matchpod is restarted in each round, so that it does not have thousands.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gzip
import itertools
import json
import shutil
import statistics
import sys
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import process_time

import uvloop

if __name__ == "__main__":
    # Run as a script: make `tests` importable from the checkout.
    sys.path[0] = str(Path(__file__).resolve().parents[2])

from tests.bench.bare_api import CREATED, GZIP, PLAIN
from tests.bench.cadence import play_fast, settings_of
from tests.bench.checkouts import THIS, Checkout, Machine, add_argument, bench_folder, checkouts
from tests.bench.http_load import CONNECTIONS, Load, run_load, send_request
from tests.bench.pinned_process import PinnedProcess, cores, require_two_cores
from tests.bench.stream_matches import REGION, Site
from tests.chaos.http_messages import format_request, send

ROUNDS = 7
ROUND_S = 5.0
"""Long enough for the compiler of Node, which is at its best after some seconds."""
WARM_UP_S = 2.0
"""Unmeasured load per server and route, while Node compiles hot code and all servers fill caches."""

MATCHES = 5
"""Live matches at the speed of real games, whose servers are requested in turn."""
FAST_S = 12.0
"""How long they are played faster first, so that there are rounds and statistics to show."""
LIVE_S = 120.0
QUIET_S = 0.25
QUIET_SHARE = 0.1
"""A service is done with what was created when it uses less of a core than this."""
MAX_QUIET_S = 30.0
START_S = 30.0
NPM_S = 300
"""Timeout of `npm install`: the SQLite module of Node may have to be compiled."""

OTHER_KEY = "mk_live_" + "b" * 43
EXPRESS_FOLDER = Path(__file__).parent / "express"

BARE = "bare ASGI on uvicorn"
EXPRESS = "Express 5"
EXPRESS_ALL_ROWS = "Express 5, same rows"
GET = "get server"
GET_GZIP = "get server, gzip"
CREATE = "create match"
ROUTES = (GET, GET_GZIP, CREATE)

PLAYERS = [str(76561197960265728 + 1000 + number) for number in range(10)]
MATCH = {
    "region": REGION,
    "gameType": "cs2",
    "callbackUrl": "http://127.0.0.1:9/callback",
    "callbackAuthToken": "Bearer of-the-caller",
    "externalMatchId": "bench-match-000001",
    "gameSettings": {
        "matchType": "competitive",
        "map": "de_inferno",
        "maps": ["de_nuke", "de_mirage"],
        "seriesFormat": "bo3",
        "freezeTime": 15,
        "maxRounds": 24,
        "teams": {
            "team1": {"name": "Reds", "players": PLAYERS[:5]},
            "team2": {"name": "Blues", "players": PLAYERS[5:]},
        },
    },
}
MATCH_BODY = json.dumps(MATCH, separators=(",", ":")).encode()


@dataclass
class Measurement:
    """The measurement of one server on one route in one round."""

    requests_per_s: float
    cpu_us: float
    """CPU time of the server per request."""
    load_share: float
    """CPU share of the load generator; near 1, the generator would be the bottleneck."""


class Subject(ABC):
    """A server under test, with its measurements."""

    name: str
    routes: tuple[str, ...] = ROUTES

    def __init__(self) -> None:
        self.measurements: dict[str, list[Measurement]] = {route: [] for route in ROUTES}

    @abstractmethod
    async def measure(self, route: str, seconds: float) -> Measurement:
        """Measure a route for some seconds."""


class OtherServer(Subject):
    """A server that is not Matchpod: one process, and the ids of servers that it knows."""

    def __init__(self, name: str, process: PinnedProcess, routes: tuple[str, ...] = ROUTES) -> None:
        super().__init__()
        self.name = name
        self.process = process
        self.routes = routes
        self._port = int(process.wait_for(r"(?:listening|running on).*http://127\.0\.0\.1:(\d+)", START_S))

    async def measure(self, route: str, seconds: float) -> Measurement:
        """Create some servers and request them, or create more."""
        created = [json.loads(await send_request(self._port, _create(OTHER_KEY), 201)) for _ in range(MATCHES)]
        ids = [server["serverId"] for server in created]
        return await _measure(self.process, self._port, _load(route, OTHER_KEY, ids), seconds)


class Matchpod(Subject):
    """The service from a given checkout, with live matches; restarted before each creation benchmark."""

    def __init__(self, checkout: Checkout, folder: Path) -> None:
        super().__init__()
        self.name = "Matchpod" if checkout.label == "this" else f"Matchpod, {checkout.label}"
        self._checkout = checkout
        self._folder = folder
        self._ids: list[str] = []

    async def start(self) -> None:
        """Start the service and bring some matches to play."""
        self._site = self._begin(MATCHES)
        created = [await self._site.create_with(settings_of(number + 1)) for number in range(MATCHES)]
        self._ids = [one["serverId"] for one in created]
        async with asyncio.timeout(LIVE_S):
            running = [await self._site.running_server(server_id) for server_id in self._ids]
            await self._site.wait_until_live(MATCHES)
        await asyncio.gather(*(play_fast(server["port"], FAST_S) for server in running))

    async def record(self, folder: Path) -> None:
        """Write the responses that the bare application sends, and the live view that Express sends."""
        server_id, key, port = self._ids[0], self._site.key, self._site.port
        for name, accept in ((PLAIN, ""), (GZIP, "gzip")):
            response = await send(port, _get(server_id, key, accept))
            (folder / name).write_bytes(response.raw)
        body = (folder / PLAIN).read_bytes().partition(b"\r\n\r\n")[2]
        packed = (folder / GZIP).read_bytes().partition(b"\r\n\r\n")[2]
        print(f"the response has {len(body):,} bytes, {len(packed):,} with gzip", file=sys.stderr)
        if json.loads(gzip.decompress(packed))["serverId"] != json.loads(body)["serverId"]:
            raise RuntimeError("the compressed response differs")
        (folder / "live.json").write_bytes(body)
        with self._fresh() as site:
            (folder / CREATED).write_bytes((await send(site.port, _create(site.key))).raw)

    async def measure(self, route: str, seconds: float) -> Measurement:
        """Request the servers of live matches in turn, or create matches with a new service."""
        if route != CREATE:
            load = _load(route, self._site.key, self._ids)
            return await _measure(self._site.service, self._site.port, load, seconds)
        with self._fresh() as site:
            await site.create_with(settings_of(1))  # takes the only game server
            await _quiet(site.service)
            return await _measure(site.service, site.port, _load(route, site.key, ()), seconds)

    def end(self) -> None:
        self._site.end()

    @contextlib.contextmanager
    def _fresh(self) -> Iterator[Site]:
        """A service with one game server, on a new database."""
        site = self._begin(1)
        try:
            yield site
        finally:
            site.end()

    def _begin(self, servers: int) -> Site:
        folder = Path(tempfile.mkdtemp(dir=self._folder))
        environment = {"MATCHPOD_PENDING_S": "86400"}
        site = Site(folder, servers, speed=1.0, checkout=self._checkout, environment=environment)
        try:
            site.begin()
        except RuntimeError:
            site.end()
            raise
        return site


def _create(key: str) -> bytes:
    headers = {"Authorization": f"Bearer {key}", "Accept": "application/json", "Content-Type": "application/json"}
    return format_request("POST", "/api/v1/matches", headers, MATCH_BODY)


def _get(server_id: str, key: str, accept: str) -> bytes:
    headers = {"Authorization": f"Bearer {key}", "Accept": "application/json"}
    return format_request(
        "GET", f"/api/v1/servers/{server_id}", headers | ({"Accept-Encoding": accept} if accept else {})
    )


def _load(route: str, key: str, ids: Sequence[str]) -> Load:
    if route == CREATE:
        return Load(itertools.repeat(_create(key)), b"201")
    accept = "gzip, deflate" if route == GET_GZIP else ""
    return Load(itertools.cycle([_get(server_id, key, accept) for server_id in ids]), b"200")


async def _measure(process: PinnedProcess, port: int, load: Load, seconds: float) -> Measurement:
    """Measure the CPU time of a load, with all that the server still does about it afterwards."""
    server_s, load_s = process.cpu_s(), process_time()
    counted = await run_load(port, load, seconds)
    load_s = process_time() - load_s
    await _quiet(process)
    server_s = process.cpu_s() - server_s
    return Measurement(counted.requests / counted.seconds, server_s / counted.answers * 1e6, load_s / counted.seconds)


async def _quiet(process: PinnedProcess) -> None:
    """Wait until a process has done what it was given."""
    async with asyncio.timeout(MAX_QUIET_S):
        while True:
            before_s = process.cpu_s()
            await asyncio.sleep(QUIET_S)
            if process.cpu_s() - before_s < QUIET_SHARE * QUIET_S:
                return


def start_bare(folder: Path) -> OtherServer:
    """Start the application that sends recorded responses."""
    command = [sys.executable, "-m", "tests.bench.bare_api"]
    process = PinnedProcess(command, folder / "bare.log", environment={"BENCH_ANSWERS": str(folder)}, cwd=THIS)
    return OtherServer(BARE, process)


def start_express(folder: Path, name: str, rows: str) -> OtherServer:
    """Start the server with the same routes in Node; `rows` are those of a creation, one or all."""
    settings = {"NODE_ENV": "production", "BENCH_KEY": OTHER_KEY, "BENCH_REGION": REGION, "BENCH_ROWS": rows}
    settings |= {"BENCH_FOLDER": tempfile.mkdtemp(dir=folder), "BENCH_LIVE": str(folder / "live.json")}
    command = ["node", str(EXPRESS_FOLDER / "server.mjs")]
    process = PinnedProcess(command, folder / f"express-{rows}.log", environment=settings)
    return OtherServer(name, process, ROUTES if rows == "one" else (CREATE,))


def has_express(folder: Path) -> bool:
    """Install Express if necessary; return False if Node is missing or the installation fails."""
    npm = shutil.which("npm")
    if shutil.which("node") is None or npm is None:
        print("Express skipped: Node is not installed", file=sys.stderr)
        return False
    if all((EXPRESS_FOLDER / "node_modules" / name).is_dir() for name in ("express", "compression")):
        return True
    print("installing Express, which may take minutes", file=sys.stderr)
    install = [npm, "install", "--no-package-lock", "--no-audit", "--no-fund", "--silent"]
    installing = PinnedProcess(install, folder / "npm.log", on=cores(), cwd=EXPRESS_FOLDER)
    if installing.wait(NPM_S) == 0:
        return True
    print(f"Express skipped: npm could not install it\n{installing.output()[-2000:]}", file=sys.stderr)
    return False


async def run(
    folder: Path, compared: Sequence[Checkout], *, rounds: int, routes: Sequence[str] = ROUTES
) -> list[Subject]:
    """Start all servers, measure them in turns, and stop those that were started."""
    services: list[Matchpod] = []
    others: list[OtherServer] = []
    try:
        for checkout in compared:
            (folder / checkout.label).mkdir()
            service = Matchpod(checkout, folder / checkout.label)
            await service.start()
            services.append(service)
        await services[-1].record(folder)
        others.append(start_bare(folder))
        if has_express(folder):
            others.append(start_express(folder, EXPRESS, "one"))
            others.append(start_express(folder, EXPRESS_ALL_ROWS, "all"))
            print(f"{EXPRESS}: {others[-1].process.wait_for(r'(node .*)', START_S)}", file=sys.stderr)
        subjects: list[Subject] = [others[0], *services, *others[1:]]
        for route in routes:
            await _measure_route([one for one in subjects if route in one.routes], route, rounds)
    finally:
        for service in services:
            service.end()
        for other in others:
            other.process.end()
    return subjects


async def _measure_route(subjects: Sequence[Subject], route: str, rounds: int) -> None:
    for one in subjects:
        await one.measure(route, WARM_UP_S)
    for _ in range(rounds):
        for one in subjects:
            one.measurements[route].append(await one.measure(route, ROUND_S))


def print_figures(subjects: Sequence[Subject]) -> None:
    """Print the results, one section per route."""
    print(f"{'':26}{'us of CPU':>11}{'least-most':>14}{'requests/s':>12}{'bare = 1':>10}{'Express = 1':>13}")
    for route in ROUTES:
        if subjects[0].measurements[route]:
            print(route)
        for one in subjects:
            if one.measurements[route]:
                _print_row(one, subjects, route)
    shares = [one.load_share for each in subjects for route in ROUTES for one in each.measurements[route]]
    print(f"the load generator used up to {max(shares):.0%} of its core")


def _print_row(one: Subject, subjects: Sequence[Subject], route: str) -> None:
    costs = [each.cpu_us for each in one.measurements[route]]
    speed = statistics.median(each.requests_per_s for each in one.measurements[route])
    spread = f"{min(costs):,.0f}-{max(costs):,.0f}"
    ratios = [_speed_ratio(one, subjects, route, name) for name in (BARE, EXPRESS)]
    print(f"  {one.name:24}{statistics.median(costs):>11,.0f}{spread:>14}{speed:>12,.0f}{ratios[0]:>10}{ratios[1]:>13}")


def _speed_ratio(one: Subject, subjects: Sequence[Subject], route: str, name: str) -> str:
    """How many requests it answers in the CPU time in which the other answers one."""
    other = next((each for each in subjects if each.name == name), None)
    if other is None:
        return ""
    pairs = zip(other.measurements[route], one.measurements[route], strict=True)
    return f"{statistics.median(theirs.cpu_us / ours.cpu_us for theirs, ours in pairs):.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    add_argument(parser)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--route", choices=ROUTES, action="append", help="measure only this; may be repeated")
    given = parser.parse_args()
    require_two_cores("API benchmark", "the load generator needs its own core")
    machine = Machine()
    with bench_folder() as folder:
        measured = run(folder, checkouts(given.against), rounds=given.rounds, routes=given.route or ROUTES)
        subjects = uvloop.run(measured)
    print(
        f"\napi: {CONNECTIONS} connections, {given.rounds} rounds of {ROUND_S:g} s, {MATCHES} live matches\n"
        f"{machine.text()}"
    )
    print_figures(subjects)


if __name__ == "__main__":
    main()
