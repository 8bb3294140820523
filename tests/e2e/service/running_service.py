"""Run a service for tests: a real process with its own data, port and regions, which can be killed and restarted.

The port stays the same across restarts, because game servers send their logs to it. `close` kills the game servers that
are still running, and returns them.
"""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from random import SystemRandom
from types import TracebackType
from typing import Any, NamedTuple, TypeVar

from matchpod.adapters.fleets.process_record import MARK_NAME
from matchpod.settings.fleets import SIMULATOR_COMMAND
from tests import imported_service
from tests.first_key import first_key
from tests.imported_service import ForkedProcess

START_S = 240.0
"""Timeout from the start of the process until it is ready; the machine may be busy with many game servers."""
STOP_S = 240.0
CALL_S = 120.0
WAIT_S = 400.0
POLL_S = 0.2

MIN_PORT, MAX_PORT = 10_000, 32_000
"""Range of the ports for tests: below the ephemeral ports, which outgoing connections may use."""

Json = dict[str, Any]
_T = TypeVar("_T")


class Response(NamedTuple):
    status: int
    json: Any
    raw: bytes
    headers: Mapping[str, str]


class GameProcess(NamedTuple):
    """A game-server process that a fleet of the service started."""

    server_id: str
    pid: int

    def signal(self, number: signal.Signals) -> None:
        """Send the process a signal, if it still exists."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)


SHARED_KEY = "A" * 43 + "="
"""Secret key of all services on PostgreSQL: tests of one module share a schema and the secrets encrypted in it."""


class RunningService:
    """A `matchpod serve` process, started by `start` or `with`; two of them can share a data folder."""

    def __init__(
        self,
        folder: Path,
        *,
        regions: str | None = None,
        database_url: str | None = None,
        settings: Mapping[str, str] | None = None,
        data_dir: Path | None = None,
        key: str = "",
        sources: Mapping[str, str] | None = None,
    ) -> None:
        """`sources` are variables with which Python runs another version of the service."""
        self._sources = dict(sources or {})
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.data_dir = data_dir or folder / "data"
        self.data_dir.mkdir(mode=0o700, exist_ok=True)
        self.port = free_port_range(1)[0]
        self.key = key
        self._config = folder / "settings.toml"
        self._config.write_text(default_regions() if regions is None else regions)
        self._settings = dict(settings or {})
        if database_url is not None:
            self._settings["database_url"] = database_url
            self._settings["secret_key"] = SHARED_KEY
        self.process: subprocess.Popen[bytes] | ForkedProcess | None = None
        self._starts = 0

    def __enter__(self) -> RunningService:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _exc: BaseException | None, _tb: TracebackType | None
    ) -> None:
        self.close()

    def configure(self, regions: str, **settings: str) -> None:
        """Set the regions and change settings, for the next start."""
        self._config.write_text(regions)
        self._settings.update(settings)

    # --- the process ----------------------------------------------------------------------------------------------

    def start(self, *options: str) -> None:
        """Start the process, with the same data and port as before, and wait until it is ready."""
        self._starts += 1
        with self._output("out").open("wb") as out, self._output("err").open("wb") as err:
            self.process = imported_service.start(
                ["serve", *options],
                env=self.environment(),
                cwd=self.folder,
                stdout=out,
                stderr=err,
                is_imported=not self._sources,
            )
        wait_until(self._is_ready, "the service is ready", within_s=START_S)
        self.key = first_key(self.data_dir) or self.key

    def kill(self) -> None:
        """Kill the process, as a power failure would; its game servers keep running."""
        assert self.process is not None
        self.process.kill()
        self.process.wait(STOP_S)

    def terminate(self) -> tuple[int, float]:
        """Send SIGTERM and wait; return the exit code and the seconds until the exit."""
        assert self.process is not None
        began = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(STOP_S)
        return code, time.monotonic() - began

    def close(self) -> list[GameProcess]:
        """Kill the service and its game servers; return the game servers that were still running."""
        if self.process is not None and self.process.poll() is None:
            self.kill()
        left = self.server_processes()
        for game in left:
            game.signal(signal.SIGKILL)
        wait_until(lambda: not self.server_processes(), "all game servers have ended", within_s=STOP_S)
        return left

    def server_processes(self, server_id: str | None = None) -> list[GameProcess]:
        """Return the running game-server processes of this data folder, for all matches or for one."""
        found = [*_marked_processes(self.data_dir.resolve() / "fleets")]
        return [game for game in found if server_id is None or game.server_id == server_id]

    def log(self, start: int | None = None) -> list[Json]:
        """Return the log entries since the last start, or of the run with number `start`, counted from 1."""
        text = self._output("err", start).read_text(errors="replace")
        return [json.loads(line) for line in text.splitlines(True) if line.startswith("{") and line.endswith("}\n")]

    def run(self, *args: str) -> subprocess.CompletedProcess[str]:
        """Run another `matchpod` command with the same data."""
        return imported_service.run(
            args, env=self.environment(), cwd=self.folder, timeout=START_S, is_imported=not self._sources
        )

    def webhook_secret(self, organization: str = "demo") -> str:
        """Return the secret that signs the callbacks of an organization."""
        done = self.run("orgs", "webhook-secret", organization)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def environment(self) -> dict[str, str]:
        """Return the environment of a process that uses this service's data, without our own MATCHPOD_ variables."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("MATCHPOD_")}
        variables = {
            "config": str(self._config),
            "data_dir": str(self.data_dir),
            "port": str(self.port),
            "log_format": "json",
            "min_free_disk_mb": "off",  # the disk of a machine that runs tests may be almost full
            "silence_s": "10",  # tests wait until a hung server is lost
            **self._settings,
        }
        return {**kept, **self._sources, **{f"MATCHPOD_{name.upper()}": value for name, value in variables.items()}}

    def _output(self, kind: str, start: int | None = None) -> Path:
        return self.folder / f"{start or self._starts}.{kind}"

    def _is_ready(self) -> bool:
        assert self.process is not None
        output = self._output("err")
        assert self.process.poll() is None, f"the service exited:\n{output.read_text()}"
        try:
            return self.call("GET", "/readyz").status == 200
        except OSError:
            return False

    # --- the API --------------------------------------------------------------------------------------------------

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def call(
        self, method: str, path: str, body: object = None, *, headers: Mapping[str, str] | None = None
    ) -> Response:
        """Send one request with the API key, on a new connection."""
        content = None if body is None else json.dumps(body).encode()
        all_headers = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json", **(headers or {})}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=CALL_S)
        try:
            connection.request(method, path, content, all_headers)
            response = connection.getresponse()
            raw = response.read()
        finally:
            connection.close()
        is_json = "json" in response.headers.get("Content-Type", "")
        return Response(response.status, json.loads(raw) if is_json else None, raw, dict(response.headers))

    def create(self, settings: Mapping[str, object], *, region: str = "sandbox", **fields: object) -> Json:
        """Create a match with these `gameSettings`; other fields of the body have their API names."""
        body = {"region": region, "gameType": "cs2", "gameSettings": dict(settings), **fields}
        response = self.call("POST", "/api/v1/matches", body)
        assert response.status == 201, response.raw
        created: Json = response.json
        return created

    def get(self, server_id: str) -> Json:
        """Return a server with the live view of its match."""
        response = self.call("GET", f"/api/v1/servers/{server_id}")
        assert response.status == 200, response.raw
        found: Json = response.json
        return found

    def match(self, external_match_id: str) -> Json:
        response = self.call("GET", f"/api/v1/matches/{external_match_id}")
        assert response.status == 200, response.raw
        found: Json = response.json
        return found

    def cancel(self, server_id: str) -> Response:
        return self.call("POST", f"/api/v1/servers/{server_id}/cancel")

    def wait_for(self, server_id: str, condition: Callable[[Json], bool], *, within_s: float = WAIT_S) -> Json:
        """Poll a server until the condition is true; return the server."""
        last: list[Json] = []

        def poll() -> Json | None:
            last[:] = [self.get(server_id)]
            return last[0] if condition(last[0]) else None

        return wait_until(poll, lambda: f"condition for server {server_id}; last state: {last}", within_s=within_s)

    def wait_for_status(self, server_id: str, *statuses: str, within_s: float = WAIT_S) -> Json:
        """Poll a server until it has one of these statuses; return the server."""
        return self.wait_for(server_id, lambda server: server["status"] in statuses, within_s=within_s)

    def wait_until_released(self, *server_ids: str, within_s: float = WAIT_S) -> None:
        """Wait until these servers are released and their processes have ended."""
        wait_until(
            lambda: set(server_ids) <= self.released() and not any(map(self.server_processes, server_ids)),
            lambda: f"released: {server_ids}; still running: {self.server_processes()}",
            within_s=within_s,
        )

    def released(self) -> set[str]:
        runs = [self.log(number + 1) for number in range(self._starts)]
        return {str(entry["server_id"]) for run in runs for entry in run if entry["message"] == "server released"}


@contextmanager
def two_replicas(folder: Path, database_url: str) -> Iterator[tuple[RunningService, RunningService]]:
    """Run two replicas with the same database and data folder, on different ports."""
    regions = default_regions()
    one, two = (
        RunningService(folder / name, database_url=database_url, regions=regions, data_dir=folder / "data")
        for name in ("one", "two")
    )
    with one:
        two.key = one.key
        with two:
            yield one, two


def has_score(server: Json) -> bool:
    """True if a round of the match on this server has been won."""
    match = server["match"]
    return bool(match) and match["score"]["team1"] + match["score"]["team2"] > 0


# --- match settings -------------------------------------------------------------------------------------------------

PATIENT_SPEED = 3
"""Speed of a region with timeouts ten times as long as in the default sandbox, so that no match times out on a slow
machine. How fast a game runs depends only on its `sim_speed`."""

_FIRST_PLAYER = 76561198000000001


def players(number: int, first: int = 0) -> list[str]:
    return [str(_FIRST_PLAYER + first + index) for index in range(number)]


def teams(size: int, first: int = 0) -> dict[str, Json]:
    listed = players(2 * size, first)
    return {
        "team1": {"name": "Reds", "players": listed[:size]},
        "team2": {"name": "Blues", "players": listed[size:]},
    }


def cvars(speed: int = 300, scenario: str = "full_match", **more: object) -> str:
    """Return the `customCvars` of a simulated match, with a seed, so that every run of a test plays the same match.

    The speed is last: the others must be set before players join.
    """
    lines = {"sim_scenario": scenario, "sim_seed": 1, **more, "sim_speed": speed}
    return "\n".join(f"{name} {value}" for name, value in lines.items())


def short_match(**fields: object) -> Json:
    """Return `gameSettings` of a short competitive match, two against two; `fields` are added or replace others."""
    return {
        "matchType": "competitive",
        "map": "de_mirage",
        "maxRounds": 4,
        "freezeTime": 1,
        "teams": teams(2),
        "customCvars": cvars(),
        **fields,
    }


# --- regions --------------------------------------------------------------------------------------------------------


def region(code: str, ports: Sequence[int], *, speed: float = 30, command: Sequence[str] | None = None) -> str:
    """Return the settings of a region of simulated servers, or of servers started by `command`, on these ports."""
    lines = [
        "[[regions]]",
        f'code = "{code}"',
        f"speed = {speed}",
        "allows_simulator = true",
        "[regions.fleet]",
        'kind = "process"',
        f'ports = "{ports[0]}-{ports[-1]}"',
    ]
    if command is not None:
        lines.append(f"command = {json.dumps(list(command))}")
    return "\n".join([*lines, ""])


def static_region(code: str, addresses: Sequence[str], rcon_password: str, *, speed: float = 30) -> str:
    """Return the settings of a region of static servers."""
    listed = ", ".join(f'{{ address = "{address}", rcon_password = "{rcon_password}" }}' for address in addresses)
    head = f'[[regions]]\ncode = "{code}"\nspeed = {speed}\nallows_simulator = true\n'
    return f'{head}[regions.fleet]\nkind = "static"\nservers = [{listed}]\n'


def slow_command(wait_s: float) -> tuple[str, ...]:
    """Return the command of a simulator that starts after a delay."""
    program = f"import os, sys, time; time.sleep({wait_s}); os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
    return ("{python}", "-c", program, *SIMULATOR_COMMAND[1:])


def default_regions() -> str:
    """Return `sandbox`, with eight servers."""
    return region("sandbox", free_port_range(8), speed=PATIENT_SPEED)


_RESERVED: set[int] = set()
"""Ports that were already returned: they look free until their server starts."""


def free_port_range(number: int) -> range:
    """Return `number` consecutive ports that are currently free."""
    random = SystemRandom()
    min_port, max_port = _worker_ports()
    for _ in range(200):
        first = random.randrange(min_port, max_port - number)
        ports = range(first, first + number)
        if _RESERVED.isdisjoint(ports) and all(map(_is_free, ports)):
            _RESERVED.update(ports)
            return ports
    raise AssertionError(f"no {number} consecutive free ports found")


def _worker_ports() -> tuple[int, int]:
    """Return the port range of this worker: a port that another worker reserved may still look free."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    share = (MAX_PORT - MIN_PORT) // workers
    first = MIN_PORT + int(worker) * share
    return first, first + share


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


# --- waiting --------------------------------------------------------------------------------------------------------


def wait_until(poll: Callable[[], _T | None], what: str | Callable[[], str], *, within_s: float = WAIT_S) -> _T:
    """Call `poll` until its result is true; return the result. `what` describes the condition if it times out."""
    deadline = time.monotonic() + within_s
    while True:
        found = poll()
        if found:
            return found
        assert time.monotonic() < deadline, f"not within {within_s:g} s: {what if isinstance(what, str) else what()}"
        time.sleep(POLL_S)


def _marked_processes(fleets: Path) -> list[GameProcess]:
    """Return all processes whose environment has a mark of these fleets. Zombies have no environment."""
    prefix = f"{MARK_NAME}={fleets}/".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with suppress(OSError):  # it has ended, or belongs to another user
            variables = (entry / "environ").read_bytes().split(b"\0")
            marks = [variable for variable in variables if variable.startswith(prefix)]
            found += [GameProcess(mark.decode().rpartition(":")[2], int(entry.name)) for mark in marks]
    return found
