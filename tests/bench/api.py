"""How many requests a second does the API answer? Matchpod beside bare Starlette and Express 5: `make bench`.

Each server has one core, the load comes from another. They take turns, and those whose turn it is not are stopped, so
that none is slowed down by another's work. Figures are medians over the turns. Express is left out without Node.
Matchpod looks after what it created, so for each turn of creating it begins anew: with one match, not with thousands.
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
    # Run as a file, Python looks for imports beside it; `tests` is found from the checkout.
    sys.path[0] = str(Path(__file__).resolve().parents[2])

from tests.bench.http_load import CONNECTIONS, Load, ask, run_load
from tests.bench.pinned_process import PinnedProcess, cores, free_port

ROUNDS = 5
ROUND_S = 1.0
WARM_UP_S = 0.5
"""For each server and route, not counted: Node compiles what runs often, and everybody fills caches."""

SETTLE_S = 1.5
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


class Subject:
    """A server that runs, and what it is asked."""

    def __init__(self, name: str, start: Callable[[], Running], *, is_renewed: bool = False) -> None:
        self.name = name
        self.turns: dict[str, list[Turn]] = {GET: [], CREATE: []}
        self._start = start
        self._is_renewed = is_renewed

    async def start(self, servers: int) -> None:
        """Start it, and make the servers that are asked for later."""
        self.running = self._start()
        create = _request("POST /api/v1/matches", self.running.key, json.dumps(MATCH, separators=(",", ":")).encode())
        made = [json.loads(await ask(self.running.port, create, b"201")) for _ in range(servers)]
        reads = [_request(f"GET /api/v1/servers/{server['serverId']}", self.running.key) for server in made]
        self._loads = {GET: Load(itertools.cycle(reads), b"200"), CREATE: Load(itertools.repeat(create), b"201")}
        await asyncio.sleep(SETTLE_S if self._is_renewed else 0)
        self.running.process.send(signal.SIGSTOP)

    async def take_turn(self, route: str, seconds: float) -> Turn:
        """Answer for a while; stopped before and after."""
        if self._is_renewed and route == CREATE:
            self.running.end()
            await self.start(servers=1)
        process = self.running.process
        process.send(signal.SIGCONT)
        server_s, load_s = process.cpu_s(), process_time()
        counted = await run_load(self.running.port, self._loads[route], seconds)
        server_s, load_s = process.cpu_s() - server_s, process_time() - load_s
        process.send(signal.SIGSTOP)
        return Turn(counted.requests / counted.seconds, server_s / counted.answers * 1e6, load_s / counted.seconds)


class Running:
    """A process that answers, and the key it takes."""

    def __init__(self, process: PinnedProcess, key: str, *others: PinnedProcess) -> None:
        self.process = process
        self.key = key
        self._others = others

    @cached_property
    def port(self) -> int:
        """Where it listens; waits until it does."""
        return int(self.process.wait_for(r"(?:listening|running on).*http://127\.0\.0\.1:(\d+)", START_S))

    def end(self) -> None:
        """End it, and what runs for it."""
        for process in (self.process, *self._others):
            process.end()


def _request(line: str, key: str, body: bytes = b"") -> bytes:
    head = f"{line} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {key}\r\nAccept: application/json\r\n"
    if body:
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    return head.encode() + b"\r\n" + body


def start_bare(folder: Path) -> Running:
    """Constant answers."""
    process = PinnedProcess([sys.executable, str(Path(__file__).with_name("bare_api.py"))], folder / "bare.log")
    return Running(process, KEY_OF_OTHERS)


def start_matchpod(folder: Path) -> Running:
    """The service as it comes, on SQLite. Its region has one game server, so that all matches but one stay pending."""
    own, game_port = Path(tempfile.mkdtemp(dir=folder)), free_port()
    # Nobody ever comes to this game server, so it costs next to nothing.
    words = f"simulate -port {game_port} +map de_inferno +rcon_password {RCON_PASSWORD} --scenario no_show"
    command = [sys.executable, "-m", "matchpod"]
    game_server = PinnedProcess([*command, *words.split()], own / "game_server.log", on=cores()[1:])
    region = (
        f'[[regions]]\ncode = "{REGION}"\n[regions.fleet]\nkind = "static"\n'
        f'servers = [{{ address = "127.0.0.1:{game_port}", rcon_password = "{RCON_PASSWORD}" }}]\n'
    )
    (own / "matchpod.toml").write_text(region)
    settings = {"MATCHPOD_DATA_DIR": str(own), "MATCHPOD_PORT": "0", "MATCHPOD_PENDING_S": "86400"}
    process = PinnedProcess([*command, "serve"], own / "matchpod.log", environment=settings)
    running = Running(process, "", game_server)
    try:
        running.key = process.wait_for(r"(mk_live_[\w-]{43})", START_S)
        game_server.wait_for(r"listening on 127\.0\.0\.1", START_S)
    except RuntimeError:
        running.end()
        raise
    return running


def start_express(folder: Path) -> Running:
    """The same two routes in Node."""
    settings = {"NODE_ENV": "production", "BENCH_KEY": KEY_OF_OTHERS, "BENCH_REGION": REGION}
    settings["BENCH_FOLDER"] = str(folder)
    command = ["node", str(EXPRESS_FOLDER / "server.mjs")]
    return Running(PinnedProcess(command, folder / "express.log", environment=settings), KEY_OF_OTHERS)


def has_express(folder: Path) -> bool:
    """True where Node is, and Express, which is installed if need be."""
    npm = shutil.which("npm")
    if shutil.which("node") is None or npm is None:
        print("Express is left out: Node is not installed", file=sys.stderr)
        return False
    if (EXPRESS_FOLDER / "node_modules" / "express").is_dir():
        return True
    print("installing Express, once; this may take minutes", file=sys.stderr)
    install = [npm, "install", "--no-package-lock", "--no-audit", "--no-fund", "--silent"]
    installing = PinnedProcess(install, folder / "npm.log", on=cores(), cwd=EXPRESS_FOLDER)
    if installing.wait(NPM_S) == 0:
        return True
    print(f"Express is left out: npm could not install it\n{installing.output()[-2000:]}", file=sys.stderr)
    return False


async def measure(subjects: list[Subject]) -> None:
    """All the turns of one route, then of the other."""
    for route in (GET, CREATE):
        for subject in subjects:
            await subject.take_turn(route, WARM_UP_S)
        for _ in range(ROUNDS):
            for subject in subjects:
                subject.turns[route].append(await subject.take_turn(route, ROUND_S))


async def run(subjects: list[Subject]) -> None:
    """Start everybody, measure, and end whoever was started."""
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
    """The table, a part a route."""
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
    shares = [turn.load_share for subject in subjects for turns in subject.turns.values() for turn in turns]
    print(f"the load took up to {max(shares):.0%} of its core")


def _print_row(subject: Subject, bare: Subject, route: str) -> None:
    turns, pairs = subject.turns[route], list(zip(subject.turns[route], bare.turns[route], strict=True))
    speeds = [turn.requests_a_second for turn in turns]
    speed, cpu_us = statistics.median(speeds), statistics.median(turn.cpu_us for turn in turns)
    speed_ratio = statistics.median(turn.requests_a_second / other.requests_a_second for turn, other in pairs)
    cpu_ratio = statistics.median(turn.cpu_us / other.cpu_us for turn, other in pairs)
    spread, name = f"{min(speeds):,.0f}-{max(speeds):,.0f}", f"  {subject.name}"
    print(f"{name:24}{speed:>12,.0f}{spread:>18}{speed_ratio:>17.2f}{cpu_us:>11,.0f}{cpu_ratio:>15.1f}")


def main() -> None:
    """Measure and print."""
    if len(cores()) < 2:
        print("the API is not measured: the load needs a core of its own", file=sys.stderr)
        return
    with tempfile.TemporaryDirectory(prefix="matchpod-bench-") as name:
        folder = Path(name)
        subjects = [
            Subject(BARE, lambda: start_bare(folder)),
            Subject(MATCHPOD, lambda: start_matchpod(folder), is_renewed=True),
        ]
        if has_express(folder):
            subjects.append(Subject(EXPRESS, lambda: start_express(folder)))
        uvloop.run(run(subjects))
        print_figures(subjects)


if __name__ == "__main__":
    main()
