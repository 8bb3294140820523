"""Measure the requests per second of the API, compared with bare Starlette and Express 5. Part of `make bench`.

The servers take turns on one core, and the load comes from another. Those that are not being measured are paused, so
that none slows down another. Results are medians over the rounds. Express is skipped if Node is not installed. For each
round of creating matches, Matchpod is restarted, so that it has one match to drive and not thousands.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import platform
import shutil
import signal
import statistics
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from time import process_time

import uvloop

if __name__ == "__main__":
    # Run as a script: make `tests` importable from the checkout.
    sys.path[0] = str(Path(__file__).resolve().parents[2])

from tests.bench.http_load import CONNECTIONS, Load, run_load, send_request
from tests.bench.pinned_process import PinnedProcess, cores, free_port
from tests.first_key import first_key

ROUNDS = 5
ROUND_S = 1.0
WARM_UP_S = 0.5
"""Unmeasured load per server and route, while Node compiles hot code and all servers fill caches."""

SETTLE_S = 1.5
"""Time for Matchpod to allocate its only game server to the first match and to mark the others as pending."""

SERVERS = 50
"""Number of matches that are created beforehand; their servers are then requested in turn."""

START_S = 30.0
NPM_S = 300
"""Timeout of `npm install`: the SQLite module of Node may have to be compiled."""

REGION = "bench"
OTHER_KEY = "mk_live_" + "b" * 43
RCON_PASSWORD = "bench-password"
EXPRESS_FOLDER = Path(__file__).parent / "express"

BARE = "bare Starlette"
MATCHPOD = "Matchpod"
EXPRESS = "Express 5"
GET = "get server"
CREATE = "create match"

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


@dataclass
class Measurement:
    """The measurement of one server on one route in one round."""

    requests_per_s: float
    cpu_us: float
    """CPU time of the server per request."""
    load_share: float
    """CPU share of the load generator; near 1, the generator would be the bottleneck."""


class Subject:
    """A server under test, with its requests and measurements."""

    def __init__(self, name: str, start: Callable[[], Running], *, is_restarted: bool = False) -> None:
        self.name = name
        self.measurements: dict[str, list[Measurement]] = {GET: [], CREATE: []}
        self._start = start
        self._is_restarted = is_restarted

    async def start(self, servers: int) -> None:
        """Start the process, create the matches whose servers are requested later, and pause the process."""
        self.running = self._start()
        create = _request("POST /api/v1/matches", self.running.key, json.dumps(MATCH, separators=(",", ":")).encode())
        created = [json.loads(await send_request(self.running.port, create, b"201")) for _ in range(servers)]
        reads = [_request(f"GET /api/v1/servers/{server['serverId']}", self.running.key) for server in created]
        self._loads = {GET: Load(itertools.cycle(reads), b"200"), CREATE: Load(itertools.repeat(create), b"201")}
        await asyncio.sleep(SETTLE_S if self._is_restarted else 0)
        self.running.process.send(signal.SIGSTOP)

    async def measure(self, route: str, seconds: float) -> Measurement:
        """Measure for some seconds; the process is paused before and after."""
        if self._is_restarted and route == CREATE:
            self.running.end()
            await self.start(servers=1)
        process = self.running.process
        process.send(signal.SIGCONT)
        server_s, load_s = process.cpu_s(), process_time()
        counted = await run_load(self.running.port, self._loads[route], seconds)
        server_s, load_s = process.cpu_s() - server_s, process_time() - load_s
        process.send(signal.SIGSTOP)
        return Measurement(
            counted.requests / counted.seconds, server_s / counted.answers * 1e6, load_s / counted.seconds
        )


class Running:
    """A running server process and its API key."""

    def __init__(self, process: PinnedProcess, key: str, *others: PinnedProcess) -> None:
        self.process = process
        self.key = key
        self._others = others

    @cached_property
    def port(self) -> int:
        """The port that the server listens on; waits until it does."""
        return int(self.process.wait_for(r"(?:listening|running on).*http://127\.0\.0\.1:(\d+)", START_S))

    def end(self) -> None:
        """Stop the process and its helper processes."""
        for process in (self.process, *self._others):
            process.end()


def _request(line: str, key: str, body: bytes = b"") -> bytes:
    head = f"{line} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {key}\r\nAccept: application/json\r\n"
    if body:
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    return head.encode() + b"\r\n" + body


def start_bare(folder: Path) -> Running:
    """Start the server with constant responses."""
    process = PinnedProcess([sys.executable, str(Path(__file__).with_name("bare_api.py"))], folder / "bare.log")
    return Running(process, OTHER_KEY)


def start_matchpod(folder: Path) -> Running:
    """Start the service on SQLite. It has one game server, so all matches but one are pending, for up to a day."""
    own, game_port = Path(tempfile.mkdtemp(dir=folder)), free_port()
    # No players connect to this game server, so it uses almost no CPU.
    arguments = f"simulate -port {game_port} +map de_inferno +rcon_password {RCON_PASSWORD} --scenario no_show"
    command = [sys.executable, "-m", "matchpod"]
    game_server = PinnedProcess([*command, *arguments.split()], own / "game_server.log", on=cores()[1:])
    region = (
        f'[[regions]]\ncode = "{REGION}"\n[regions.fleet]\nkind = "static"\n'
        f'servers = [{{ address = "127.0.0.1:{game_port}", rcon_password = "{RCON_PASSWORD}" }}]\n'
    )
    (own / "matchpod.toml").write_text(region)
    settings = {"MATCHPOD_DATA_DIR": str(own), "MATCHPOD_PORT": "0", "MATCHPOD_PENDING_S": "86400"}
    process = PinnedProcess([*command, "serve"], own / "matchpod.log", environment=settings)
    running = Running(process, "", game_server)
    try:
        process.wait_for("listening", START_S)
        running.key = first_key(own) or ""
        game_server.wait_for(r"listening on 127\.0\.0\.1", START_S)
    except RuntimeError:
        running.end()
        raise
    return running


def start_express(folder: Path) -> Running:
    """Start the server with the same two routes in Node."""
    settings = {"NODE_ENV": "production", "BENCH_KEY": OTHER_KEY, "BENCH_REGION": REGION}
    settings["BENCH_FOLDER"] = str(folder)
    command = ["node", str(EXPRESS_FOLDER / "server.mjs")]
    return Running(PinnedProcess(command, folder / "express.log", environment=settings), OTHER_KEY)


def has_express(folder: Path) -> bool:
    """Install Express if necessary; return False if Node is missing or the installation fails."""
    npm = shutil.which("npm")
    if shutil.which("node") is None or npm is None:
        print("Express skipped: Node is not installed", file=sys.stderr)
        return False
    if (EXPRESS_FOLDER / "node_modules" / "express").is_dir():
        return True
    print("installing Express, which may take minutes", file=sys.stderr)
    install = [npm, "install", "--no-package-lock", "--no-audit", "--no-fund", "--silent"]
    installing = PinnedProcess(install, folder / "npm.log", on=cores(), cwd=EXPRESS_FOLDER)
    if installing.wait(NPM_S) == 0:
        return True
    print(f"Express skipped: npm could not install it\n{installing.output()[-2000:]}", file=sys.stderr)
    return False


async def measure(subjects: list[Subject]) -> None:
    """Measure all rounds of one route, then of the other."""
    for route in (GET, CREATE):
        for subject in subjects:
            await subject.measure(route, WARM_UP_S)
        for _ in range(ROUNDS):
            for subject in subjects:
                subject.measurements[route].append(await subject.measure(route, ROUND_S))


async def run(subjects: list[Subject]) -> None:
    """Start all servers, measure them, and stop those that were started."""
    started: list[Subject] = []
    try:
        for subject in subjects:
            await subject.start(SERVERS)
            started.append(subject)
        await measure(subjects)
    finally:
        for subject in started:
            subject.running.end()


def print_figures(subjects: list[Subject]) -> None:
    """Print the results, one section per route."""
    print(f"\napi: {CONNECTIONS} connections, {ROUNDS} rounds of {ROUND_S:g} s; Python {platform.python_version()}")
    for subject in subjects:
        if subject.name == EXPRESS:
            print(f"{EXPRESS}: {subject.running.process.wait_for(r'(node .*)', START_S)}")
    print(
        f"{'':24}{'requests/s':>12}{'slowest-fastest':>18}{'speed, bare = 1':>17}{'us of CPU':>11}{'CPU, bare = 1':>15}"
    )
    for route in (GET, CREATE):
        print(route)
        for subject in subjects:
            _print_row(subject, subjects[0], route)
    shares = [one.load_share for subject in subjects for route in (GET, CREATE) for one in subject.measurements[route]]
    print(f"the load generator used up to {max(shares):.0%} of its core")


def _print_row(subject: Subject, bare: Subject, route: str) -> None:
    measurements = subject.measurements[route]
    pairs = list(zip(measurements, bare.measurements[route], strict=True))
    speeds = [one.requests_per_s for one in measurements]
    speed, cpu_us = statistics.median(speeds), statistics.median(one.cpu_us for one in measurements)
    speed_ratio = statistics.median(one.requests_per_s / other.requests_per_s for one, other in pairs)
    cpu_ratio = statistics.median(one.cpu_us / other.cpu_us for one, other in pairs)
    spread, name = f"{min(speeds):,.0f}-{max(speeds):,.0f}", f"  {subject.name}"
    print(f"{name:24}{speed:>12,.0f}{spread:>18}{speed_ratio:>17.2f}{cpu_us:>11,.0f}{cpu_ratio:>15.1f}")


def main() -> None:
    """Run the benchmark and print the results."""
    if len(cores()) < 2:
        print("API benchmark skipped: the load generator needs its own core", file=sys.stderr)
        return
    with tempfile.TemporaryDirectory(prefix="matchpod-bench-") as name:
        folder = Path(name)
        subjects = [
            Subject(BARE, lambda: start_bare(folder)),
            Subject(MATCHPOD, lambda: start_matchpod(folder), is_restarted=True),
        ]
        if has_express(folder):
            subjects.append(Subject(EXPRESS, lambda: start_express(folder)))
        uvloop.run(run(subjects))
        print_figures(subjects)


if __name__ == "__main__":
    main()
