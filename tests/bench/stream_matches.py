"""Where do a hundred matches at once come from? One service on SQLite, and its game servers in one other process.

The region is a static fleet: `matchpod simulate --farm` has all its servers. Nobody comes to a match for a while after it
was set up, so that all of them are there before the first begins, and all begin at about the same time.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from matchpod.service.history.naming import map_id
from tests.bench.http_load import ask
from tests.bench.pinned_process import PinnedProcess, cores
from tests.bench.watched_service import NOTES, SAMPLES

START_S = 60.0
REGION = "bench"
RCON_PASSWORD = "bench-password"
FIRST_PLAYER = 76561198000000001
ACCOUNT_ZERO = 76561197960265728
PLAYERS = 10
PAGE = 1000
MINUTES_OF_ROUNDS = 9
"""How many minutes ten rounds of the limit last, when one side wins most of those that are played."""

_LISTENING = re.compile(r"listening on 127\.0\.0\.1:(\d+)")
_COUNTED = re.compile(r'^matchpod_streams_ended_total\{.*why="(\w+)"\} (\d+)', re.MULTILINE)


class MeasuredProcess(PinnedProcess):
    """A process whose memory is of interest too."""

    def resident_mb(self) -> float:
        """Memory it holds."""
        pages = int(Path(f"/proc/{self._process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6

    def loop_cpu_s(self) -> float:
        """CPU time of its first thread, which has the event loop."""
        return sum(self._times(f"task/{self._process.pid}/"))

    def kernel_cpu_s(self) -> float:
        """The part of its CPU time that the kernel took."""
        return self._times()[1]

    def _times(self, folder: str = "") -> tuple[float, float]:
        fields = Path(f"/proc/{self._process.pid}/{folder}stat").read_text().rpartition(")")[2].split()
        ticks = os.sysconf("SC_CLK_TCK")
        return int(fields[11]) / ticks, int(fields[12]) / ticks


class Timeline(msgspec.Struct, rename="camel"):
    """A page of a polled timeline, its items as they are."""

    items: list[msgspec.Raw]


class Match(msgspec.Struct):
    """A match that was created."""

    server_id: str
    maps: list[str]
    """The ids of its maps, in order."""
    is_deathmatch: bool

    @classmethod
    def of(cls, made: dict[str, Any], settings: dict[str, Any]) -> Match:
        """What was answered when a match of these settings was created."""
        maps = [map_id(made["gameId"], place + 1) for place in range(3 if "seriesFormat" in settings else 1)]
        return cls(made["serverId"], maps, is_deathmatch=settings["matchType"] == "deathmatch")

    def paths(self) -> list[str]:
        """Its streams: that of the server before that of each map, so that half of those who take turns read it."""
        whole = f"/api/v1/servers/{self.server_id}/stream"
        return [path for one in self.maps for path in (whole, f"/api/v1/cs2/matches/{one}/events/stream")]


def game_settings(number: int, rounds: int) -> dict[str, Any]:
    """One in ten is a deathmatch, where most happens, one a series of three maps, the others are of one map.

    One side wins nearly every round, so no match goes into overtime and lasts far longer than the others.
    """
    players = [str(FIRST_PLAYER + PLAYERS * number + seat) for seat in range(PLAYERS)]
    if number % 10 == 0:
        minutes = max(1, rounds * MINUTES_OF_ROUNDS // 10)
        return {"matchType": "deathmatch", "map": "de_inferno", "dmRoundMinutes": minutes, "players": players}
    settings: dict[str, Any] = {
        "matchType": "competitive",
        "map": "de_inferno",
        "maxRounds": rounds,
        "teams": {
            "team1": {"name": "Reds", "players": players[: PLAYERS // 2]},
            "team2": {"name": "Blues", "players": players[PLAYERS // 2 :]},
        },
    }
    if number % 10 == 5:
        settings |= {"seriesFormat": "bo3", "maps": ["de_nuke", "de_mirage"], "maxRounds": rounds // 2}
    return settings


def simulated(settings: dict[str, Any], number: int, *, quiet_s: int) -> dict[str, Any]:
    """The same, with what a simulated server has to know: chance, and when who comes."""
    variables = {"sim_scenario": "one_sided", "sim_seed": number + 1, "sim_roster_delay": quiet_s}
    if "players" in settings:  # else the plugin's match file says who comes
        variables["sim_players"] = ",".join(str(int(one) - ACCOUNT_ZERO) for one in settings["players"])
    return {**settings, "customCvars": "\n".join(f"{name} {value}" for name, value in variables.items())}


def ended_streams(metrics: bytes) -> dict[str, int]:
    """How many streams ended, by why, as the metrics of a service say."""
    ended: dict[str, int] = {}
    for why, count in _COUNTED.findall(metrics.decode()):
        ended[why] = ended.get(why, 0) + int(count)
    return ended


class Site:
    """A farm and a service that plays on it; to be ended."""

    def __init__(self, folder: Path, servers: int, *, speed: float, is_sampled: bool = False) -> None:
        command = [sys.executable, "-m", "matchpod"]
        words = f"simulate --farm {servers} -port 0 --speed {speed} +map de_inferno +rcon_password {RCON_PASSWORD}"
        self.farm = MeasuredProcess([*command, *words.split()], folder / "farm.log", on=cores()[1:])
        self.notes = folder / "notes.txt"
        self.samples = folder / "samples.txt"
        try:
            self._write_region(folder, servers, speed)
            settings = {"MATCHPOD_DATA_DIR": str(folder), "MATCHPOD_PORT": "0", NOTES: str(self.notes)}
            if is_sampled:
                settings[SAMPLES] = str(self.samples)
            # As a module, so that `tests` is found from the checkout.
            program = [sys.executable, "-m", "tests.bench.watched_service"]
            self.service = MeasuredProcess(
                program, folder / "matchpod.log", environment=settings, cwd=Path(__file__).resolve().parents[2]
            )
        except BaseException:
            self.farm.end()
            raise

    def begin(self) -> None:
        """Wait until the service listens."""
        self.key = self.service.wait_for(r"(mk_live_[\w-]{43})", START_S)
        self.port = int(self.service.wait_for(r"listening.*http://127\.0\.0\.1:(\d+)", START_S))

    def end(self) -> None:
        """End both processes."""
        self.service.end()
        self.farm.end()

    def _write_region(self, folder: Path, servers: int, speed: float) -> None:
        deadline = time.monotonic() + START_S
        while len(ports := _LISTENING.findall(self.farm.output())) < servers:
            if time.monotonic() > deadline:
                raise RuntimeError(f"the farm did not start:\n{self.farm.output()[-2000:]}")
            time.sleep(0.1)
        listed = [f'{{ address = "127.0.0.1:{port}", rcon_password = "{RCON_PASSWORD}" }}' for port in ports]
        (folder / "matchpod.toml").write_text(
            f'[[regions]]\ncode = "{REGION}"\nspeed = {speed}\nallows_simulator = true\n'
            f'[regions.fleet]\nkind = "static"\nservers = [{", ".join(listed)}]\n'
        )

    # --- the API --------------------------------------------------------------------------------------------------

    async def create(self, number: int, *, rounds: int, quiet_s: int) -> Match:
        """A match of ten listed players, who come so many (simulated) seconds after everything is set up."""
        settings = game_settings(number, rounds)
        asked = {"region": REGION, "gameType": "cs2", "gameSettings": simulated(settings, number, quiet_s=quiet_s)}
        made = json.loads(await self._ask("POST /api/v1/matches", b"201", json.dumps(asked).encode()))
        return Match.of(made, settings)

    async def get(self, path: str) -> Any:
        """What is at a path."""
        return json.loads(await self._ask(f"GET {path}", b"200"))

    async def open_maps(self) -> int:
        """How many maps are not over yet."""
        pages = [await self.get(f"/api/v1/cs2/matches?status={status}&pageSize=1") for status in ("upcoming", "live")]
        return sum(int(page["total"]) for page in pages)

    async def wait_until_running(self, matches: Sequence[Match]) -> None:
        """Return when all of them have their servers."""
        async with asyncio.timeout(START_S):
            for match in matches:
                while (status := (await self.get(f"/api/v1/servers/{match.server_id}"))["status"]) != "running":
                    if status in ("failed", "stopped"):
                        raise RuntimeError(f"{match.server_id} is {status}")
                    await asyncio.sleep(0.1)

    async def timeline(self, of: str) -> list[bytes]:
        """The items of a map, polled."""
        items: list[bytes] = []
        while True:
            path = f"/api/v1/cs2/matches/{of}/events?afterSeq={len(items)}&limit={PAGE}"
            page = msgspec.json.decode(await self._ask(f"GET {path}", b"200"), type=Timeline).items
            items += map(bytes, page)
            if len(page) < PAGE:
                return items

    async def ended_streams(self) -> dict[str, int]:
        """How many streams ended, by why."""
        return ended_streams(await self._ask("GET /metrics", b"200"))

    async def _ask(self, line: str, status: bytes, body: bytes = b"") -> bytes:
        head = f"{line} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {self.key}\r\n"
        if body:
            head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        return await ask(self.port, head.encode() + b"\r\n" + body, status)
