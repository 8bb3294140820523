"""A whole service for tests: a real process on its own data, port and regions, which can be killed and started again.

The port stays the same over restarts, because game servers know it. Whatever is left of its game servers in the end
is killed, and told.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from random import SystemRandom
from types import TracebackType
from typing import Any, NamedTuple, TypeVar

from matchpod.adapters.fleets.process_record import MARK_NAME
from matchpod.settings.table import SIMULATOR_COMMAND

START_S = 240.0
"""From the start of the process until it is ready: the machine may be busy with many game servers."""
STOP_S = 240.0
CALL_S = 120.0
WAIT_S = 400.0
POLL_S = 0.2

LEAST_PORT, GREATEST_PORT = 10_000, 32_000
"""Below the ports that the system gives to outgoing connections, which would be taken now and then."""

Json = dict[str, Any]
_T = TypeVar("_T")


class Answer(NamedTuple):
    """What the service answered."""

    status: int
    json: Any
    raw: bytes
    headers: Mapping[str, str]


class GameProcess(NamedTuple):
    """A process of a game server that the service's fleets started."""

    server_id: str
    pid: int

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal, if it is still there."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)


SHARED_KEY = "A" * 43 + "="
"""Of all services on a PostgreSQL: tests of one module share a schema, and what is sealed in it."""


class RunningService:
    """`matchpod serve` from `start` (or `with`) on; two of them share data when they get the same data folder."""

    def __init__(
        self,
        folder: Path,
        *,
        regions: str | None = None,
        database_url: str | None = None,
        settings: Mapping[str, str] | None = None,
        data_dir: Path | None = None,
        key: str = "",
    ) -> None:
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
        self.process: subprocess.Popen[bytes] | None = None
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

    # --- the process ----------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start it, on the same data and port as before, and wait until it is ready."""
        self._starts += 1
        with self._output("out").open("wb") as out, self._output("err").open("wb") as err:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "matchpod", "serve"],
                stdout=out,
                stderr=err,
                stdin=subprocess.DEVNULL,
                env=self.environment(),
                cwd=self.folder,
            )
        wait_until(self._is_ready, "the service is ready", within_s=START_S)
        found = re.search(r"mk_live_[\w-]{43}", self._output("out").read_text())
        self.key = found[0] if found else self.key

    def kill(self) -> None:
        """End the process as a power cut would; its game servers go on."""
        assert self.process is not None
        self.process.kill()
        self.process.wait(STOP_S)

    def terminate(self) -> tuple[int, float]:
        """Ask it to end; answers exit code and seconds."""
        assert self.process is not None
        began = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(STOP_S)
        return code, time.monotonic() - began

    def close(self) -> list[GameProcess]:
        """End everything; answers the game servers that were left and had to be killed."""
        if self.process is not None and self.process.poll() is None:
            self.kill()
        left = self.server_processes()
        for game in left:
            game.signal(signal.SIGKILL)
        wait_until(lambda: not self.server_processes(), "game servers are gone", within_s=STOP_S)
        return left

    def server_processes(self, server_id: str | None = None) -> list[GameProcess]:
        """The game-server processes of this data folder, of all matches or of one."""
        found = [*_marked(self.data_dir.resolve() / "fleets")]
        return [game for game in found if server_id is None or game.server_id == server_id]

    def log(self, start: int | None = None) -> list[Json]:
        """What the service said since its last start, or in its first, second … run."""
        said = self._output("err", start).read_text(errors="replace")
        return [json.loads(line) for line in said.splitlines(True) if line.startswith("{") and line.endswith("}\n")]

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Another command of `matchpod` on the same data."""
        return subprocess.run(
            [sys.executable, "-m", "matchpod", *words],
            capture_output=True,
            text=True,
            env=self.environment(),
            cwd=self.folder,
            timeout=START_S,
            check=False,
        )

    def webhook_secret(self, organization: str = "demo") -> str:
        """What signs the callbacks of an organization."""
        done = self.run("orgs", "webhook-secret", organization)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def environment(self) -> dict[str, str]:
        """Of a process that uses this service's data; nothing of ours leads it elsewhere."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("MATCHPOD_")}
        given = {
            "config": str(self._config),
            "data_dir": str(self.data_dir),
            "port": str(self.port),
            "log_format": "json",
            **self._settings,
        }
        return {**kept, **{f"MATCHPOD_{name.upper()}": value for name, value in given.items()}}

    def _output(self, kind: str, start: int | None = None) -> Path:
        return self.folder / f"{start or self._starts}.{kind}"

    def _is_ready(self) -> bool:
        assert self.process is not None
        said = self._output("err")
        assert self.process.poll() is None, f"the service ended:\n{said.read_text()}"
        try:
            return self.call("GET", "/readyz").status == 200
        except OSError:
            return False

    # --- the API --------------------------------------------------------------------------------------------------

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}"

    def call(self, method: str, path: str, body: object = None, *, headers: Mapping[str, str] | None = None) -> Answer:
        """One request, on a connection of its own, with the key."""
        content = None if body is None else json.dumps(body).encode()
        sent = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json", **(headers or {})}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=CALL_S)
        try:
            connection.request(method, path, content, sent)
            answer = connection.getresponse()
            raw = answer.read()
        finally:
            connection.close()
        is_json = "json" in answer.headers.get("Content-Type", "")
        return Answer(answer.status, json.loads(raw) if is_json else None, raw, dict(answer.headers))

    def create(self, settings: Mapping[str, object], *, region: str = "sandbox", **fields: object) -> Json:
        """A new match with these `gameSettings`; further fields of the body by their names in the API."""
        body = {"region": region, "gameType": "cs2", "gameSettings": dict(settings), **fields}
        answer = self.call("POST", "/api/v1/matches", body)
        assert answer.status == 201, answer.raw
        made: Json = answer.json
        return made

    def get(self, server_id: str) -> Json:
        """A server with its live match."""
        answer = self.call("GET", f"/api/v1/servers/{server_id}")
        assert answer.status == 200, answer.raw
        found: Json = answer.json
        return found

    def match(self, external_match_id: str) -> Json:
        """A match by its caller's id."""
        answer = self.call("GET", f"/api/v1/matches/{external_match_id}")
        assert answer.status == 200, answer.raw
        found: Json = answer.json
        return found

    def cancel(self, server_id: str) -> Answer:
        """Ask for the end of a match."""
        return self.call("POST", f"/api/v1/servers/{server_id}/cancel")

    def wait_for(self, server_id: str, is_so: Callable[[Json], bool], *, within_s: float = WAIT_S) -> Json:
        """The first look at a server of which this is true."""
        seen: list[Json] = []

        def look() -> Json | None:
            seen[:] = [self.get(server_id)]
            return seen[0] if is_so(seen[0]) else None

        return wait_until(look, lambda: f"server {server_id} gets there; last seen: {seen}", within_s=within_s)

    def wait_for_status(self, server_id: str, *statuses: str, within_s: float = WAIT_S) -> Json:
        """The first look at a server that has one of these statuses."""
        return self.wait_for(server_id, lambda server: server["status"] in statuses, within_s=within_s)

    def wait_until_released(self, *server_ids: str, within_s: float = WAIT_S) -> None:
        """Return when the servers of these matches are gone, processes and all."""
        wait_until(
            lambda: set(server_ids) <= self.released() and not any(map(self.server_processes, server_ids)),
            lambda: f"released: {server_ids}; left: {self.server_processes()}",
            within_s=within_s,
        )

    def released(self) -> set[str]:
        """Servers that this service has released, in any of its runs."""
        runs = [self.log(number + 1) for number in range(self._starts)]
        return {str(entry["server_id"]) for run in runs for entry in run if entry["message"] == "server released"}


# --- what is played -------------------------------------------------------------------------------------------------

PATIENT = 3
"""Of a region: its matches wait ten times as long as those of the sandbox that is there out of the box. Their games run
as fast as their own `sim_speed` says. So a slow machine ends no match that is not meant to end."""

_FIRST_PLAYER = 76561198000000001


def players(number: int, first: int = 0) -> list[str]:
    """Return this many player ids."""
    return [str(_FIRST_PLAYER + first + index) for index in range(number)]


def teams(size: int, first: int = 0) -> dict[str, Json]:
    """Two teams of this size."""
    listed = players(2 * size, first)
    return {
        "team1": {"name": "Reds", "players": listed[:size]},
        "team2": {"name": "Blues", "players": listed[size:]},
    }


def cvars(speed: int = 300, scenario: str = "full_match", **more: object) -> str:
    """`customCvars` of a simulated match. The speed last: what is said before it must hold before anybody comes."""
    lines = {"sim_scenario": scenario, **more, "sim_speed": speed}
    return "\n".join(f"{name} {value}" for name, value in lines.items())


def short_match(**fields: object) -> Json:
    """A competitive match of a few rounds with a roster of two against two; other fields of `gameSettings`."""
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
    """A region of simulated servers on these ports, which lie side by side; or of what this command starts."""
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
    """Return a region of static servers."""
    listed = ", ".join(f'{{ address = "{address}", rcon_password = "{rcon_password}" }}' for address in addresses)
    head = f'[[regions]]\ncode = "{code}"\nspeed = {speed}\nallows_simulator = true\n'
    return f'{head}[regions.fleet]\nkind = "static"\nservers = [{listed}]\n'


BROKEN_COMMAND = ("{python}", "-c", "raise SystemExit('no game here')", "{port}", "{rcon_password}")
"""A server that ends at once."""


def slow_command(wait_s: float) -> tuple[str, ...]:
    """A simulator that begins to start only after a while."""
    program = f"import os, sys, time; time.sleep({wait_s}); os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
    return ("{python}", "-c", program, *SIMULATOR_COMMAND[1:])


def default_regions(sandbox_ports: int = 8, *, speed: float = PATIENT) -> str:
    """`sandbox`, whose matches wait as long as this speed says; `hasty`, where waits are short; `tiny` with one server; `broken`, whose servers never start; `slow`, whose servers start in 20 s."""
    ports = free_port_range(sandbox_ports + 8)
    return "".join(
        (
            region("sandbox", ports[8:], speed=speed),
            region("hasty", ports[6:8]),
            region("tiny", ports[:1]),
            region("broken", ports[1:3], command=BROKEN_COMMAND),
            region("slow", ports[3:6], command=slow_command(20)),
        )
    )


_GIVEN: set[int] = set()
"""Ports handed out already: they are free until their server starts."""


def free_port_range(number: int) -> range:
    """Return consecutive ports that are free now."""
    random = SystemRandom()
    least, greatest = _own_ports()
    for _ in range(200):
        first = random.randrange(least, greatest - number)
        ports = range(first, first + number)
        if _GIVEN.isdisjoint(ports) and all(map(_is_free, ports)):
            _GIVEN.update(ports)
            return ports
    raise AssertionError(f"no {number} free ports side by side")


def _own_ports() -> tuple[int, int]:
    """Where tests run side by side each process has ports of its own: what one was given is not yet listened on."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    share = (GREATEST_PORT - LEAST_PORT) // workers
    least = LEAST_PORT + int(worker) * share
    return least, least + share


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


# --- waiting --------------------------------------------------------------------------------------------------------


def wait_until(look: Callable[[], _T | None], what: str | Callable[[], str], *, within_s: float = WAIT_S) -> _T:
    """The first answer of `look` that is true."""
    deadline = time.monotonic() + within_s
    while True:
        found = look()
        if found:
            return found
        assert time.monotonic() < deadline, f"not within {within_s:g} s: {what if isinstance(what, str) else what()}"
        time.sleep(POLL_S)


def _marked(fleets: Path) -> list[GameProcess]:
    """Return all processes marked by these fleets; zombies have no mark."""
    begin = f"{MARK_NAME}={fleets}/".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with suppress(OSError):  # it has ended, or belongs to another user
            words = (entry / "environ").read_bytes().split(b"\0")
            marks = [word for word in words if word.startswith(begin)]
            found += [GameProcess(mark.decode().rpartition(":")[2], int(entry.name)) for mark in marks]
    return found
