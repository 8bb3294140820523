"""How many requests a second does the API answer? Matchpod beside bare Starlette and Express 5: `make bench`.

Each server has one core, the load comes from another. They take turns, and those whose turn it is not are stopped, so
that none is slowed down by another's work. Figures are medians over the turns. Express is left out without Node.
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
from dataclasses import dataclass, field
from pathlib import Path
from time import process_time

import uvloop

if __name__ == "__main__":
    # Run as a file, Python looks for imports beside it; `tests` is found from the checkout.
    sys.path[0] = str(Path(__file__).resolve().parents[2])

from tests.bench.http_load import CONNECTIONS, Load, ask, run_load
from tests.bench.pinned_process import PinnedProcess, cores, free_port

ROUNDS = 5
ROUND_S = 1.5
WARM_UP_S = 0.7
"""For each server and route, not counted: Node compiles what runs often, and everybody fills caches."""

SETTLE_S = 3.0
"""In which Matchpod gives its only game server to the first match and tells the others to wait."""

SERVERS = 50
"""Made beforehand, to be asked for in turn."""

START_S = 30.0
NPM_S = 300
"""The SQLite module of Node may have to be compiled."""

REGION = "bench"
KEY_OF_OTHERS = "mk_live_" + "b" * 43
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
class Turn:
    """One round of one server on one route."""

    requests_a_second: float
    cpu_us: float
    """CPU time of the server for one request."""
    load_share: float
    """Of its core, what the load took: near 1 the load itself would be the limit."""


@dataclass
class Subject:
    """A server that runs, and what it is asked."""

    name: str
    process: PinnedProcess
    key: str
    loads: dict[str, Load] = field(default_factory=dict)
    turns: dict[str, list[Turn]] = field(default_factory=lambda: {GET: [], CREATE: []})

    async def prepare(self) -> None:
        """Make the servers that are asked for later; every one is tried once."""
        body = json.dumps(MATCH, separators=(",", ":")).encode()
        create = _request("POST /api/v1/matches", self.key, body)
        made = [json.loads(await ask(self.process.port, create, b"201")) for _ in range(SERVERS)]
        paths = [f"GET /api/v1/servers/{server['serverId']}" for server in made]
        reads = [_request(path, self.key) for path in paths]
        for read in reads:
            await ask(self.process.port, read, b"200")
        self.loads = {GET: Load(itertools.cycle(reads), b"200"), CREATE: Load(itertools.repeat(create), b"201")}

    async def take_turn(self, route: str, seconds: float) -> Turn:
        """Answer for a while; stopped before and after."""
        self.process.send(signal.SIGCONT)
        server_s, load_s = self.process.cpu_s(), process_time()
        counted = await run_load(self.process.port, self.loads[route], seconds)
        server_s, load_s = self.process.cpu_s() - server_s, process_time() - load_s
        self.process.send(signal.SIGSTOP)
        return Turn(counted.requests / counted.seconds, server_s / counted.answers * 1e6, load_s / counted.seconds)


def _request(line: str, key: str, body: bytes = b"") -> bytes:
    head = f"{line} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {key}\r\nAccept: application/json\r\n"
    if body:
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    return head.encode() + b"\r\n" + body


def start_bare(folder: Path) -> PinnedProcess:
    """Constant answers."""
    return PinnedProcess([sys.executable, str(Path(__file__).with_name("bare_api.py"))], folder / "bare.log")


def start_game_server(folder: Path, port: int) -> PinnedProcess:
    """The only game server of the region: nobody ever comes to it, so it costs next to nothing."""
    words = f"simulate -port {port} +map de_inferno +rcon_password {RCON_PASSWORD} --scenario no_show"
    return PinnedProcess([sys.executable, "-m", "matchpod", *words.split()], folder / "game_server.log", on=cores()[1:])


def start_matchpod(folder: Path, game_port: int) -> PinnedProcess:
    """The service as it comes, on SQLite. Its region has one game server, so that all matches but one stay pending."""
    region = (
        f'[[regions]]\ncode = "{REGION}"\n[regions.fleet]\nkind = "static"\n'
        f'servers = [{{ address = "127.0.0.1:{game_port}", rcon_password = "{RCON_PASSWORD}" }}]\n'
    )
    (folder / "matchpod.toml").write_text(region)
    settings = {"MATCHPOD_DATA_DIR": str(folder), "MATCHPOD_PORT": "0", "MATCHPOD_PENDING_S": "86400"}
    return PinnedProcess([sys.executable, "-m", "matchpod", "serve"], folder / "matchpod.log", environment=settings)


def start_express(folder: Path) -> PinnedProcess | None:
    """The same two routes in Node; None where Node or its packages are not to be had."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        print("Express is left out: Node is not installed", file=sys.stderr)
        return None
    if not (EXPRESS_FOLDER / "node_modules" / "express").is_dir():
        print("installing Express, once; this may take a minute", file=sys.stderr)
        install = [npm, "install", "--no-package-lock", "--no-audit", "--no-fund", "--silent"]
        installing = PinnedProcess(install, folder / "npm.log", on=cores(), cwd=EXPRESS_FOLDER)
        if installing.wait(NPM_S) != 0:
            print(f"Express is left out: npm could not install it\n{installing.output()[-2000:]}", file=sys.stderr)
            return None
    settings = {"NODE_ENV": "production", "BENCH_KEY": KEY_OF_OTHERS, "BENCH_REGION": REGION}
    settings["BENCH_FOLDER"] = str(folder)
    command = [node, str(EXPRESS_FOLDER / "server.mjs")]
    return PinnedProcess(command, folder / "express.log", environment=settings)


def start_all(folder: Path, running: list[PinnedProcess]) -> list[Subject]:
    """Start everybody; `running` are those that must be ended, whatever happens."""
    express = start_express(folder)
    running += [express] if express else []
    game_port = free_port()
    running.append(start_game_server(folder, game_port))
    running[-1].wait_for(r"listening on 127\.0\.0\.1", START_S)
    running.append(bare := start_bare(folder))
    running.append(matchpod := start_matchpod(folder, game_port))
    for process in (bare, matchpod, *([express] if express else [])):
        process.port = int(process.wait_for(r"http://127\.0\.0\.1:(\d+)", START_S))
    key = matchpod.wait_for(r"(mk_live_[\w-]{43})", START_S)
    subjects = [Subject(BARE, bare, KEY_OF_OTHERS), Subject(MATCHPOD, matchpod, key)]
    if express is not None:
        version = express.wait_for(r"(node .*)", START_S)
        subjects.append(Subject(f"{EXPRESS} ({version})", express, KEY_OF_OTHERS))
    return subjects


async def measure(subjects: list[Subject]) -> None:
    """All the turns: reading first, as what is created is looked after from then on."""
    for subject in subjects:
        await subject.prepare()
    await asyncio.sleep(SETTLE_S)
    for subject in subjects:
        subject.process.send(signal.SIGSTOP)
    for route in (GET, CREATE):
        for subject in subjects:
            await subject.take_turn(route, WARM_UP_S)
        for _ in range(ROUNDS):
            for subject in subjects:
                subject.turns[route].append(await subject.take_turn(route, ROUND_S))


def print_figures(subjects: list[Subject]) -> None:
    """The table, a part a route."""
    print(f"\napi: {CONNECTIONS} connections, {ROUNDS} rounds of {ROUND_S} s; Python {platform.python_version()}")
    print(f"{'':40}{'requests/s':>12}{'us of CPU each':>16}{'speed, bare = 1':>17}{'slowest-fastest':>19}")
    for route in (GET, CREATE):
        print(route)
        for subject in subjects:
            turns = subject.turns[route]
            speeds = [turn.requests_a_second for turn in turns]
            pairs = zip(turns, subjects[0].turns[route], strict=True)
            ratio = statistics.median(turn.requests_a_second / bare.requests_a_second for turn, bare in pairs)
            cpu_us = statistics.median(turn.cpu_us for turn in turns)
            spread = f"{min(speeds):,.0f}-{max(speeds):,.0f}"
            name, median = f"  {subject.name}", statistics.median(speeds)
            print(f"{name:40}{median:>12,.0f}{cpu_us:>16.0f}{ratio:>17.2f}{spread:>19}")
    shares = [turn.load_share for subject in subjects for turns in subject.turns.values() for turn in turns]
    print(f"the load took up to {max(shares):.0%} of its core")


def main() -> None:
    """Measure and print."""
    if len(cores()) < 2:
        print("the API is not measured: the load needs a core of its own", file=sys.stderr)
        return
    running: list[PinnedProcess] = []
    with tempfile.TemporaryDirectory(prefix="matchpod-bench-") as folder:
        try:
            subjects = start_all(Path(folder), running)
            uvloop.run(measure(subjects))
            print_figures(subjects)
        finally:
            for process in reversed(running):
                process.end()


if __name__ == "__main__":
    main()
