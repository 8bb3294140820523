"""Stall a host with many game servers, refuse consoles, and end single servers: which matches are lost, and when."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import msgspec

from matchpod.adapters.fleets.agones_servers import SERVER_LABEL
from tests.chaos.cluster import PATIENT_SPEED, Cluster
from tests.chaos.plan import SANDBOX, GameSpec, Json
from tests.chaos.receivers import Receivers
from tests.chaos.static_servers import NEVER_S, Farm, StaticServer, StaticServers
from tests.chaos.stores import open_store
from tests.contract.agones_api import FakeAgones
from tests.contract.agones_cluster import agones_cluster, agones_region, secret_file
from tests.contract.simulator_process import PASSWORD
from tests.e2e.service.game_server import execute_at
from tests.e2e.service.running_service import free_port_range, region, static_region

FARM, SINGLE, PODS = "farm", "single", "pods"
STALLS_S = (12.0, 25.0, 60.0)
NOTICED_S = 40.0
"""A stall of this length must be noticed: a console is asked 10 s after the last sign of life of its server."""
REFUSED_S = 29.0
PHASES = ("waiting_for_players", "live", "paused", "between_maps")
FAST = 15
"""Speed of a game until it has reached the phase of the trial; then it is played in real time."""
POLL_S = 0.2
REACH_S = 240.0
HEARD_S = 60.0
ASKED_S, SILENCE_S = 10.0, 30.0
"""A quiet server is asked after the first time, and lost when it has not answered for the second one."""
SLACK_S = 10.0
"""For the pause between two probes, an unanswered question and a busy machine."""
AT_ONCE_S = 2.0
TABLE = ("| trial | matches | lost | noticed after |", "|---|---:|---:|---:|")


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """What a trial showed."""

    trial: str
    matches: int
    lost: int
    expected: int = 0
    noticed_s: float | None = None
    limit_s: float | None = None
    is_said: bool = True
    """False if the region did not say that its servers fell silent together."""

    @property
    def is_clean(self) -> bool:
        """True if exactly the expected matches were lost, and in time."""
        is_in_time = self.limit_s is None or (self.noticed_s is not None and self.noticed_s <= self.limit_s)
        return self.lost == self.expected and is_in_time and self.is_said

    def line(self) -> str:
        noticed = "" if self.noticed_s is None else f"{self.noticed_s:.1f} s"
        return f"| {self.trial} | {self.matches} | {self.lost} | {noticed} |"


class Played(msgspec.Struct, frozen=True):
    """A match in the phase of a trial."""

    server_id: str
    name: str


class Trials:
    """A service with all three kinds of fleets, and its matches."""

    def __init__(
        self, cluster: Cluster, receivers: Receivers, *, farm: Farm, single: Sequence[StaticServer], api: FakeAgones
    ) -> None:
        self._cluster = cluster
        self._receivers = receivers
        self._farm = farm
        self._single = {server.address.rpartition(":")[2]: server for server in single}
        self._api = api
        self._count = 0

    async def stall_farm(self, stalls_s: Sequence[float]) -> list[Row]:
        """Stall the farm for each of these times, with matches in several phases: none may be lost."""
        phases = [PHASES[number % 3] for number in range(len(self._farm.ports))]
        played = await asyncio.gather(*(self._play(FARM, phase) for phase in phases))
        rows = []
        for seconds in stalls_s:
            noticed = asyncio.create_task(self._wait_for_notice(seconds))
            await self._farm.stall(seconds)
            await self._wait_until_heard(played)
            is_said = await noticed
            trial = f"host of all servers stalls for {seconds:g} s"
            rows.append(self._row(trial, played, is_said=is_said or seconds < NOTICED_S))
        await self._cancel(played)
        return rows

    async def refuse_consoles(self) -> list[Row]:
        """Refuse all connections to the console of one server in each phase: none may be lost."""
        rows = []
        for phase in PHASES:
            played = await self._play(SINGLE, phase)
            server = self._single[str((await self._server(played))["port"])]
            await server.refuse(REFUSED_S)
            await self._wait_until_heard([played])
            rows.append(self._row(f"console refused for {REFUSED_S:g} s, {phase.replace('_', ' ')}", [played]))
            await self._cancel([played])
        return rows

    async def end_servers(self) -> list[Row]:
        """End one server of each fleet, in each way: it is lost in time."""
        hung_s = ASKED_S + SILENCE_S + SLACK_S
        return [
            await self._end("process of one server killed", SANDBOX, self._kill, AT_ONCE_S),
            await self._end("pod of one server deleted", PODS, self._delete, AT_ONCE_S),
            await self._end("process of one server hangs", SANDBOX, self._hang, hung_s),
            await self._end("one static server killed, which its fleet cannot see", SINGLE, self._kill_static, hung_s),
        ]

    # --- single steps -------------------------------------------------------------------------------------------------

    async def _play(self, code: str, phase: str) -> Played:
        """Create a match and wait until it is in a phase."""
        self._count += 1
        name, is_series = f"match-{self._count}", phase == "between_maps"
        body = GameSpec("series" if is_series else "duel", self._count).body(speed=FAST, is_lockstep=False)
        if phase == PHASES[0]:
            body["gameSettings"]["customCvars"] += f"\nsim_roster_delay {NEVER_S}"
        elif not is_series:
            body["gameSettings"]["maxRounds"] = 30
        body |= {"region": code, "externalMatchId": name, "callbackUrl": self._receivers.url(name)}
        played = Played(await self._cluster.create(body), name)
        if phase == "paused":
            await self._wait_for(played, "live")
            await self._execute(played, "mp_pause_match")
        await self._wait_for(played, phase)
        if phase != PHASES[0]:
            await self._execute(played, "sim_speed 1")
        return played

    async def _server(self, played: Played) -> Json:
        deadline_s = time.monotonic() + REACH_S
        while (answer := await self._cluster.call("GET", f"/api/v1/servers/{played.server_id}")).status != 200:
            assert time.monotonic() < deadline_s, answer  # a busy machine may answer late
            await asyncio.sleep(POLL_S)
        found: Json = answer.json
        return found

    async def _wait_for(self, played: Played, phase: str) -> None:
        deadline_s = time.monotonic() + REACH_S
        while (server := await self._server(played))["phase"] != phase:
            assert time.monotonic() < deadline_s, f"{played} is not {phase}: {server}"
            await asyncio.sleep(POLL_S)

    async def _execute(self, played: Played, command: str) -> None:
        server = await self._server(played)
        single = self._single.get(str(server["port"]))
        port = server["port"] if single is None else single.port
        await asyncio.to_thread(execute_at, port, server["rconPassword"] or PASSWORD, command)

    async def _wait_until_heard(self, played: Sequence[Played]) -> None:
        """Wait until each match has ended or its server has sent something from now on."""
        since = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S}"
        deadline_s = time.monotonic() + HEARD_S
        for one in played:
            while not self._receivers.at(one.name) and ((await self._server(one))["lastHeardAt"] or "") <= since:
                assert time.monotonic() < deadline_s, f"{one} is silent"
                await asyncio.sleep(POLL_S)

    async def _wait_for_notice(self, within_s: float) -> bool:
        """Wait until the region of the farm says that its servers fell silent together."""
        deadline_s = time.monotonic() + within_s
        while time.monotonic() < deadline_s:
            regions = await self._cluster.call("GET", "/api/v1/regions")
            notices = [one["notice"] for one in regions.json or () if one["code"] == FARM]
            if any("fell silent together" in (notice or "") for notice in notices):
                return True
            await asyncio.sleep(POLL_S)
        return False

    async def _cancel(self, played: Sequence[Played]) -> None:
        for one in played:
            await self._cluster.call("POST", f"/api/v1/servers/{one.server_id}/cancel")

    async def _end(self, trial: str, code: str, end: Callable[[Played], Awaitable[None]], limit_s: float) -> Row:
        played = await self._play(code, "live")
        await end(played)
        began_s = time.monotonic()
        while not (arrivals := self._receivers.at(played.name)):
            assert time.monotonic() < began_s + REACH_S, f"{trial}: not noticed"
            await asyncio.sleep(POLL_S)
        return self._row(trial, [played], expected=1, noticed_s=arrivals[0].at_s - began_s, limit_s=limit_s)

    async def _kill(self, played: Played) -> None:
        self._cluster.game_processes(played.server_id)[0].signal(signal.SIGKILL)

    async def _hang(self, played: Played) -> None:
        self._cluster.game_processes(played.server_id)[0].signal(signal.SIGSTOP)

    async def _delete(self, played: Played) -> None:
        for name, one in self._api.objects.items():
            if one["metadata"]["labels"].get(SERVER_LABEL) == played.server_id:
                self._api.delete(name)
                return
        raise AssertionError(f"{played} has no pod")

    async def _kill_static(self, played: Played) -> None:
        await self._single[str((await self._server(played))["port"])].kill()

    def _row(self, trial: str, played: Sequence[Played], **fields: object) -> Row:
        ends = [arrivals[0].end for one in played if (arrivals := self._receivers.at(one.name))]
        return msgspec.convert(
            {"trial": trial, "matches": len(played), "lost": ends.count("server_lost"), **fields}, Row
        )


async def measure_stalls(
    folder: Path, database: str, servers: int, say: Callable[[str], None]
) -> tuple[bool, list[str]]:
    """Run all trials; return whether every match was lost or kept as promised, and the figures."""
    folder.mkdir()
    async with _open_trials(folder, database, servers) as trials:
        rows: list[Row] = []
        for part in (partial(trials.stall_farm, STALLS_S), trials.refuse_consoles, trials.end_servers):
            found = await part()
            for row in found:
                say(row.line())
            rows += found
    is_clean = all(row.is_clean for row in rows)
    return is_clean, [*TABLE, *(row.line() for row in rows)]


@asynccontextmanager
async def _open_trials(folder: Path, database: str, servers: int) -> AsyncIterator[Trials]:
    async with AsyncExitStack() as stack:
        store = await stack.enter_async_context(open_store(folder, database))
        agones = await stack.enter_async_context(agones_cluster(folder, replicas=1))
        receivers = await stack.enter_async_context(Receivers())
        farm = await stack.enter_async_context(Farm(servers))
        single = (await stack.enter_async_context(StaticServers(2))).servers
        regions = (
            region(SANDBOX, free_port_range(2), speed=PATIENT_SPEED)
            + static_region(FARM, farm.addresses, PASSWORD, speed=PATIENT_SPEED)
            + static_region(SINGLE, [server.address for server in single], PASSWORD, speed=PATIENT_SPEED)
            + agones_region(PODS, agones.kubeconfig, secret_file(folder), speed=PATIENT_SPEED)
        )
        cluster = await stack.enter_async_context(Cluster(folder, store, regions=regions))
        yield Trials(cluster, receivers, farm=farm, single=single, api=agones.api)
