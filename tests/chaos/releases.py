"""Freeze a replica while it releases static servers, until the next match is played on each: that must not notice.

Each server is a region of its own, so that its next match waits for it. Consoles are slow while servers are released, each
in its own way, so that one freeze hits many moments of the release.
"""

from __future__ import annotations

import asyncio
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from random import Random

import msgspec

from cs2_protocol.console_commands import LOG_LISTENERS, REMOVE_LOG_LISTENERS, STATUS_JSON, end_match_command
from tests.chaos.cluster import PATIENT_SPEED, Cluster
from tests.chaos.plan import GameSpec
from tests.chaos.receivers import Receivers
from tests.chaos.replica import Replica
from tests.chaos.static_servers import StaticServer, StaticServers
from tests.chaos.stores import Store, open_store
from tests.contract.simulator_process import PASSWORD
from tests.e2e.service.game_server import execute_at
from tests.e2e.service.running_service import static_region

SERVERS = 4
PLAYERS = 4
FAST, REAL, END = 15, 1, 200
"""Speeds of a game: until it is live, while it is observed, and to its end."""
DELAYS_S = (0.25, 0.6)
"""How long a command is on its way while servers are released."""
PAUSE_S = (1.0, 6.0)
"""A replica is frozen this long after it has begun to release a server: players are told within three seconds."""
FROZEN_S = (7.0, 9.0)
"""How long it is frozen: others take over after 3.5 to 5 s, and a command that is not answered for 10 s is given up."""
OBSERVE_S = 3.0
KEEP_CONSOLES = ("+sim_rcon_drop", "0")
"""Connections to a console outlive the load of a map: otherwise the next match would end those of the frozen replica."""
POLL_S = 0.1
END_S = 120.0
DISTURBING = (end_match_command(), "kickid", "sv_password", REMOVE_LOG_LISTENERS, "bot_kick")
"""Commands with which a server is released."""
TABLE = ("| freezes | releases frozen | matches after them | disturbed |", "|---:|---:|---:|---:|")
_ROWS = "SELECT id, phase, match_phase, lease_owner, tries FROM servers"


class Row(msgspec.Struct, frozen=True):
    """What the database has about a match."""

    phase: str
    match_phase: str | None
    pid: int | None
    """The process that holds the lease."""
    tries: int


class Checked(msgspec.Struct, frozen=True, kw_only=True):
    """What was seen of a match that began while the replica that released its server was frozen."""

    password: str
    log_token: str
    late: tuple[str, ...] = ()
    """What that replica sent to its server after it was thawed."""
    tries: int = 0
    """Attempts to start it that failed."""
    listeners: str
    players: int = PLAYERS
    found_password: str


def judge_checked(seen: Checked) -> list[str]:
    """Return how a match was disturbed."""
    found = [f"its server got {text!r} too late" for text in seen.late if text.startswith(DISTURBING)]
    if seen.tries:
        found.append(f"{seen.tries} attempts to start it failed")
    if seen.log_token not in seen.listeners:
        found.append(f"its log address is gone: {seen.listeners!r}")
    if seen.password not in seen.found_password:
        found.append(f"its password is gone: {seen.found_password!r}")
    if seen.players != PLAYERS:
        found.append(f"{seen.players} players are on its server")
    return found


def judge_result(bodies: list[bytes]) -> list[str]:
    """Return what is wrong with the callbacks of a match that was played to its end."""
    if len(bodies) != 1:
        return [f"{len(bodies)} callbacks arrived"]
    body = msgspec.json.decode(bodies[0])
    if body["eventType"] != "match_over":
        return [f"it ended with {body.get('reason')}"]
    return [] if all(played["complete"] for played in body["result"]["maps"]) else ["its result is not complete"]


def pid_of(port: int, pids: Iterable[int]) -> int | None:
    """Return which of these processes has a connection from a port of this machine."""
    rows = (line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:])
    sockets = {f"socket:[{row[9]}]" for row in rows if int(row[1].rpartition(":")[2], 16) == port}
    for pid in pids:
        with suppress(OSError):  # it has ended
            for link in Path(f"/proc/{pid}/fd").iterdir():
                with suppress(OSError):  # it is closed
                    if str(link.readlink()) in sockets:
                        return pid
    return None


class Place:
    """A region with one server, and the match on it."""

    def __init__(self, code: str, server: StaticServer) -> None:
        self.code = code
        self.server = server
        self.name = ""
        self.server_id = ""
        """The current match and its id."""
        self.live_s: float | None = None
        """When it was seen to be live."""

    async def execute(self, *commands: str) -> list[str]:
        """Execute commands on the server, not through the proxy."""
        return await asyncio.to_thread(execute_at, self.server.port, PASSWORD, *commands)


class Releases:
    """One trial."""

    def __init__(self, cluster: Cluster, receivers: Receivers, store: Store, places: list[Place], *, seed: int) -> None:
        self._cluster = cluster
        self._receivers = receivers
        self._store = store
        self._places = places
        self._random = Random(seed)
        self._names: list[str] = []
        self.freezes = self.frozen = 0
        self.disturbed: dict[str, list[str]] = {}

    @property
    def matches(self) -> int:
        """How many matches followed a freeze."""
        return len(self._names) - len(self._places)

    async def begin(self) -> None:
        """Play the first match on each server."""
        for place in self._places:
            await self._create(place)
        await self._wait_until_live(END_S)

    async def freeze(self, say: Callable[[str], None]) -> None:
        """Let all games end, freeze a replica while it releases their servers, and observe the next matches."""
        ending = {}
        for place in self._places:
            ending[place.server_id] = place
            place.server.delay_s = self._random.uniform(*DELAYS_S)
            await self._create(place)
            await self._set_speed(place, END)
        replica = self._cluster.replicas[self.freezes % len(self._cluster.replicas)]
        assert replica.process is not None
        pid = replica.process.pid
        last = await self._freeze_releasing(replica, ending)
        self.freezes += 1
        self.frozen += len(last)
        for place in self._places:
            place.server.delay_s = 0.0
        frozen_s = self._random.uniform(*FROZEN_S)
        await self._wait_until_live(frozen_s)
        rows = await self._rows()
        thawed_s = time.monotonic()
        replica.signal(signal.SIGCONT)
        phases = Counter(rows[place.server_id].phase for place in self._places)
        say(
            f"freeze {self.freezes}: replica {replica.number} for {frozen_s:.1f} s in {len(last)} releases, after "
            f"{', '.join(last) or 'none'}; the next matches then: {dict(phases)}"
        )
        await self._wait_until_live(END_S)
        await asyncio.sleep(OBSERVE_S)
        for place in self._places:
            sent = [one.text for one in place.server.commands if one.pid == pid and one.at_s >= thawed_s]
            # One that no other replica drives may be driven by this one from now on.
            is_held = all(found[place.server_id].pid not in (None, pid) for found in (rows, await self._rows()))
            await self._check(place, sent if is_held else [])

    async def end(self) -> None:
        """Play all matches to their ends, and judge their results."""
        for place in self._places:
            await self._set_speed(place, END)
        deadline_s = time.monotonic() + END_S
        while not all(map(self._receivers.at, self._names)) and time.monotonic() < deadline_s:
            await asyncio.sleep(POLL_S)
        for name in self._names:
            self._note(name, judge_result([one.request.body for one in self._receivers.at(name)]))

    # --- single steps -------------------------------------------------------------------------------------------------

    async def _create(self, place: Place) -> None:
        """Create the next match of a place."""
        place.name = f"match-{len(self._names)}"
        place.live_s = None
        self._names.append(place.name)
        body = GameSpec("duel", len(self._names)).body(speed=FAST, is_lockstep=False)
        body["gameSettings"]["serverPassword"] = _password(place.name)
        body |= {"region": place.code, "externalMatchId": place.name, "callbackUrl": self._receivers.url(place.name)}
        place.server_id = await self._cluster.create(body)

    async def _set_speed(self, place: Place, speed: int) -> None:
        await place.execute(f"sim_speed {speed}")

    async def _rows(self) -> Mapping[str, Row]:
        found = msgspec.convert(await self._store.rows(_ROWS), list[tuple[str, str, str | None, str | None, int]])
        return {
            server_id: Row(phase, match_phase, int(owner.split(":")[1]) if owner else None, tries)
            for server_id, phase, match_phase, owner, tries in found
        }

    async def _freeze_releasing(self, replica: Replica, ending: Mapping[str, Place]) -> list[str]:
        """Freeze a replica some time after it has begun to release a server; return its last command to each of those
        that it is releasing then.
        """
        assert replica.process is not None
        pid, deadline_s = replica.process.pid, time.monotonic() + END_S
        while not await self._released_by(pid) and time.monotonic() < deadline_s:
            await asyncio.sleep(POLL_S)
        await asyncio.sleep(self._random.uniform(*PAUSE_S))
        replica.signal(signal.SIGSTOP)
        places = [ending[server_id] for server_id in await self._released_by(pid)]
        return [next((one.text for one in reversed(place.server.commands) if one.pid == pid), "?") for place in places]

    async def _released_by(self, pid: int) -> list[str]:
        return [
            server_id for server_id, row in (await self._rows()).items() if row.phase == "ending" and row.pid == pid
        ]

    async def _wait_until_live(self, within_s: float) -> None:
        """Wait until the current match of each place is live, and play it in real time from there on."""
        deadline_s = time.monotonic() + within_s
        while (waiting := [one for one in self._places if one.live_s is None]) and time.monotonic() < deadline_s:
            await asyncio.sleep(POLL_S)
            rows = await self._rows()
            for place in waiting:
                if rows[place.server_id].match_phase == "live":
                    await self._set_speed(place, REAL)
                    place.live_s = time.monotonic()

    async def _check(self, place: Place, late: Sequence[str]) -> None:
        if place.live_s is None:
            self._note(place.name, ["it was not live in time"])
            return
        listeners, status, password = await place.execute(LOG_LISTENERS, STATUS_JSON, "sv_password")
        checked = Checked(
            password=_password(place.name),
            log_token=(await self._store.log_tokens()).get(place.server_id, "no token"),
            late=tuple(late),
            tries=(await self._rows())[place.server_id].tries,
            listeners=listeners,
            players=msgspec.json.decode(status)["server"]["clients_human"],
            found_password=password,
        )
        self._note(place.name, judge_checked(checked))

    def _note(self, name: str, found: list[str]) -> None:
        if found:
            self.disturbed.setdefault(name, []).extend(found)


def _password(name: str) -> str:
    return f"pass-{name}"


async def measure_releases(folder: Path, freezes: int, seed: int, say: Callable[[str], None]) -> tuple[bool, list[str]]:
    """Freeze replicas in turn; return True if every match was undisturbed, and the figures."""
    async with open_store(folder) as store, Receivers() as receivers, StaticServers(SERVERS, *KEEP_CONSOLES) as static:
        places = [Place(f"place{number}", server) for number, server in enumerate(static.servers)]
        regions = "".join(
            static_region(place.code, [place.server.address], PASSWORD, speed=PATIENT_SPEED) for place in places
        )
        async with Cluster(folder, store, replicas=2, regions=regions) as cluster:
            for place in places:
                place.server.find_pid = lambda port: pid_of(
                    port, [one.process.pid for one in cluster.replicas if one.process]
                )
            trial = Releases(cluster, receivers, store, places, seed=seed)
            await trial.begin()
            for _ in range(freezes):
                await trial.freeze(say)
            await trial.end()
    for name, texts in trial.disturbed.items():
        say(f"VIOLATION: {name}: {'; '.join(texts)[:1000]}")
    if not trial.frozen:
        say("VIOLATION: no release was frozen")
    row = f"| {trial.freezes} | {trial.frozen} | {trial.matches} | {len(trial.disturbed)} |"
    say(row)
    return not trial.disturbed and trial.frozen > 0, [*TABLE, row]
