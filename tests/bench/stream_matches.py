"""Run many matches at once: one service on SQLite, and its game servers in one other process.

The region is a static fleet of the servers of `matchpod simulate --farm`. Players connect only a while after a match was
set up, so that all matches exist before the first one begins, and all begin at about the same time.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import time
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any

import msgspec

from matchpod.service.identity.identifiers import map_id
from tests.bench.checkouts import THIS, THIS_CHECKOUT, Checkout
from tests.bench.http_load import send_request
from tests.bench.pinned_process import PinnedProcess, cores, free_port
from tests.chaos.http_messages import format_request
from tests.first_key import first_key

START_S = 60.0
REGION = "bench"
RCON_PASSWORD = "bench-password"
FIRST_PLAYER = 76561198000000001
ACCOUNT_ZERO = 76561197960265728
PLAYERS = 10
PAGE = 1000
MINUTES_PER_TEN_ROUNDS = 9
"""Duration of a map per ten rounds of its limit, in minutes, if one side wins most rounds."""

RELAYED = "port"
"""The file with the port of the service, for its relay."""
_NGINX = """daemon off; worker_processes 1; pid {folder}/nginx.pid; error_log stderr;
events {{ worker_connections 4096; }}
http {{
  access_log off;
  client_body_temp_path {folder}/bodies;
  proxy_temp_path {folder}/proxied;
  server {{ listen 127.0.0.1:{port}; location / {{ proxy_pass http://127.0.0.1:{upstream}; }} }}
}}
"""


class Way(StrEnum):
    """How what game servers send reaches the service."""

    DIRECT = "direct"
    SEGMENTS = "segments"
    """In segments of 1,460 bytes, bodies after their heads, as on a real network."""
    NGINX = "nginx"
    """Through nginx, with its usual HTTP/1.0 to the service."""


FARM_SERVERS = 60
"""Maximum servers of a process: each of more posts less often than every 100 ms, and that delay would be measured."""

_LISTENING = re.compile(r"listening on 127\.0\.0\.1:(\d+)")
_ENDED_STREAMS = re.compile(r'^matchpod_streams_ended_total\{.*why="(\w+)"\} (\d+)', re.MULTILINE)


class Match(msgspec.Struct):
    """A created match."""

    server_id: str
    maps: list[str]
    """The ids of its maps, in order."""
    is_deathmatch: bool

    @classmethod
    def of(cls, created: dict[str, Any], settings: dict[str, Any]) -> Match:
        """Return the match for the response to its creation."""
        maps = [map_id(created["gameId"], index + 1) for index in range(3 if "seriesFormat" in settings else 1)]
        return cls(created["serverId"], maps, is_deathmatch=settings["matchType"] == "deathmatch")

    @property
    def stream(self) -> str:
        """The path of the stream of all its maps."""
        return f"/api/v1/servers/{self.server_id}/stream"

    def paths(self) -> list[str]:
        """Return the paths of its streams: the server's before each map's, so that half of the readers read the server's."""
        return [path for one in self.maps for path in (self.stream, map_stream(one))]


def map_stream(map_id: str) -> str:
    """Return the path of the stream of a map."""
    return f"/api/v1/cs2/matches/{map_id}/events/stream"


def game_settings(number: int, rounds: int) -> dict[str, Any]:
    """Return the settings of a match: of ten, one is a deathmatch, one a best of three, eight have one map.

    One side wins nearly every round, so that no match lasts much longer than the others because of overtime.
    """
    players = [str(FIRST_PLAYER + PLAYERS * number + seat) for seat in range(PLAYERS)]
    if number % 10 == 0:
        minutes = max(1, rounds * MINUTES_PER_TEN_ROUNDS // 10)
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


def with_simulator_cvars(
    settings: dict[str, Any], number: int, *, quiet_s: int, scenario: str | None = "one_sided"
) -> dict[str, Any]:
    """Return the settings with the simulator's variables: scenario, seed, and which players connect when."""
    variables: dict[str, object] = {} if scenario is None else {"sim_scenario": scenario}
    variables |= {"sim_seed": number + 1, "sim_roster_delay": quiet_s}
    if "players" in settings:  # otherwise the plugin's match file lists the players
        variables["sim_players"] = ",".join(str(int(one) - ACCOUNT_ZERO) for one in settings["players"])
    return {**settings, "customCvars": "\n".join(f"{name} {value}" for name, value in variables.items())}


def _farm_sizes(servers: int) -> list[int]:
    count = -(-servers // FARM_SERVERS)
    return [servers // count + (number < servers % count) for number in range(count)]


class Site:
    """A farm of simulated servers and a service that uses it; call `end` afterwards.

    The farm is always that of this checkout, so that services of different checkouts have the same load.
    """

    def __init__(
        self,
        folder: Path,
        servers: int,
        *,
        speed: float,
        checkout: Checkout = THIS_CHECKOUT,
        environment: Mapping[str, str] | None = None,
        way: Way = Way.DIRECT,
    ) -> None:
        self.folder = folder
        command = [sys.executable, "-m", "matchpod"]
        arguments = f"-port 0 --speed {speed} +map de_inferno +rcon_password {RCON_PASSWORD}"
        self.farms = [
            PinnedProcess(
                [*command, "simulate", "--farm", str(count), *arguments.split()],
                folder / f"farm{number}.log",
                on=cores()[1:],
            )
            for number, count in enumerate(_farm_sizes(servers))
        ]
        self.relay: PinnedProcess | None = None
        self._nginx_port: int | None = None
        try:
            self._write_region(folder, servers, speed)
            settings = {"MATCHPOD_DATA_DIR": str(folder), "MATCHPOD_PORT": "0"}
            if way is Way.SEGMENTS:
                self.relay = self._start_relay()
                settings["MATCHPOD_PUBLIC_URL"] = f"http://127.0.0.1:{self.relay.wait_for(_LISTENING.pattern, START_S)}"
            if way is Way.NGINX:
                self._nginx_port = free_port()
                settings["MATCHPOD_PUBLIC_URL"] = f"http://127.0.0.1:{self._nginx_port}"
            self.service = PinnedProcess(
                [checkout.python, "-m", "matchpod", "serve"],
                folder / "matchpod.log",
                environment={**settings, **(environment or {})},
                cwd=checkout.folder,
            )
        except BaseException:
            self._end_farms()
            raise

    def begin(self) -> None:
        """Wait until the service listens; set `key` and `port`."""
        self.port = int(self.service.wait_for(r"listening.*http://127\.0\.0\.1:(\d+)", START_S))
        self.key = first_key(self.folder) or ""
        (self.folder / RELAYED).write_text(str(self.port))
        if self._nginx_port is not None:
            self.relay = self._start_nginx(self._nginx_port)

    def end(self) -> None:
        self.service.end()
        self._end_farms()

    def _start_relay(self) -> PinnedProcess:
        program = [sys.executable, "-m", "tests.bench.relay", str(self.folder / RELAYED)]
        return PinnedProcess(program, self.folder / "relay.log", on=cores()[1:], cwd=THIS)

    def _start_nginx(self, port: int) -> PinnedProcess:
        config = self.folder / "nginx.conf"
        config.write_text(_NGINX.format(folder=self.folder, port=port, upstream=self.port))
        return PinnedProcess(["nginx", "-c", str(config)], self.folder / "nginx.log", on=cores()[1:])

    def _end_farms(self) -> None:
        if self.relay is not None:
            self.relay.end()
        for farm in self.farms:
            farm.end()

    def ports(self) -> list[str]:
        """Return the ports of the servers that listen."""
        return [port for farm in self.farms for port in _LISTENING.findall(farm.output())]

    def _write_region(self, folder: Path, servers: int, speed: float) -> None:
        deadline = time.monotonic() + START_S
        while len(ports := self.ports()) < servers:
            if time.monotonic() > deadline:
                raise RuntimeError(f"the farm did not start:\n{self.farms[0].output()[-2000:]}")
            time.sleep(0.1)
        listed = [f'{{ address = "127.0.0.1:{port}", rcon_password = "{RCON_PASSWORD}" }}' for port in ports]
        (folder / "matchpod.toml").write_text(
            f'[[regions]]\ncode = "{REGION}"\nspeed = {speed}\nallows_simulator = true\n'
            f'[regions.fleet]\nkind = "static"\nservers = [{", ".join(listed)}]\n'
        )

    # --- the API --------------------------------------------------------------------------------------------------

    async def create(self, number: int, *, rounds: int, quiet_s: int) -> Match:
        """Create a match with ten listed players, who connect `quiet_s` simulated seconds after its setup."""
        settings = game_settings(number, rounds)
        created = await self.create_with(with_simulator_cvars(settings, number, quiet_s=quiet_s))
        return Match.of(created, settings)

    async def create_with(self, settings: Mapping[str, Any], **fields: Any) -> dict[str, Any]:
        """Create a match with these game settings and other fields of its body; return the response."""
        body = {"region": REGION, "gameType": "cs2", "gameSettings": settings, **fields}
        created: dict[str, Any] = json.loads(
            await self._request("POST", "/api/v1/matches", 201, json.dumps(body).encode())
        )
        return created

    async def get(self, path: str) -> Any:
        return json.loads(await self._request("GET", path, 200))

    async def count_maps(self, status: str) -> int:
        return int((await self.get(f"/api/v1/cs2/matches?status={status}&pageSize=1"))["total"])

    async def wait_until_live(self, maps: float) -> None:
        """Wait until at least this many maps are being played."""
        while await self.count_maps("live") < maps:
            await asyncio.sleep(0.5)

    async def wait_until_running(self, matches: Sequence[Match]) -> None:
        async with asyncio.timeout(START_S):
            for match in matches:
                await self.running_server(match.server_id)

    async def running_server(self, server_id: str) -> Any:
        """Wait until a match is running; return what the API shows of its server."""
        while (server := await self.get(f"/api/v1/servers/{server_id}"))["status"] != "running":
            if server["status"] in ("failed", "stopped"):
                raise RuntimeError(f"{server_id} is {server['status']}")
            await asyncio.sleep(0.1)
        return server

    async def count_events(self, map_id: str) -> int:
        """Return how many events of a map are stored."""
        count, items = 0, [None] * PAGE
        while len(items) == PAGE:
            items = (await self.get(f"/api/v1/cs2/matches/{map_id}/events?afterSeq={count}&limit={PAGE}"))["items"]
            count += len(items)
        return count

    async def ended_streams(self) -> dict[str, int]:
        """Return the number of ended streams by reason, from the metrics of the service."""
        ended: dict[str, int] = {}
        for why, count in _ENDED_STREAMS.findall((await self._request("GET", "/metrics", 200)).decode()):
            ended[why] = ended.get(why, 0) + int(count)
        return ended

    async def _request(self, method: str, path: str, status: int, body: bytes = b"") -> bytes:
        headers = {"Authorization": f"Bearer {self.key}"} | ({"Content-Type": "application/json"} if body else {})
        return await send_request(self.port, format_request(method, path, headers, body), status)
