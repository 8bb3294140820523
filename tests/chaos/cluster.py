"""Run replicas of the service on one database, behind a balancer, with regions of simulated servers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path

from matchpod.settings.fleets import SIMULATOR_COMMAND
from tests.chaos.balancer import Balancer
from tests.chaos.http_messages import format_request
from tests.chaos.load import ask
from tests.chaos.log_faults import LogFaults
from tests.chaos.observed import Answer, Death
from tests.chaos.plan import HASTY, SANDBOX, STATIC
from tests.chaos.replica import Replica
from tests.chaos.static_servers import StaticServers
from tests.chaos.stores import Store
from tests.contract.simulator_process import PASSWORD
from tests.e2e.service.running_service import GameProcess, RunningService, free_port_range, region, static_region

PORTS = 40
"""Game servers of the sandbox: fewer than matches, so that some wait, and more than a process drives without ticks."""
HASTY_PORTS = 4
HASTY_SPEED = 30
PATIENT_SPEED = 1.01
"""The timeouts of a match are divided by the speed of its region, so none ends a match on a busy machine. Not 1: then
the clock of a server that runs ahead would be taken for one whose time zone changed."""
SERVER_COMMAND = (*SIMULATOR_COMMAND, "+sim_roster_delay", "3000")
"""Players come late unless the match says otherwise, which is its last setting: if the service is killed between two
settings, no game begins with half of them."""
SILENCE_S = 30
"""The default: other tests give up a silent server earlier."""


class Cluster:
    """The replicas and their balancer; a context manager that ends them and all their game servers."""

    def __init__(
        self,
        folder: Path,
        store: Store,
        *,
        replicas: int = 1,
        static_servers: int = 0,
        seed: int = 0,
        regions: str | None = None,
        bugs: Path | None = None,
        sources: Mapping[str, str] | None = None,
        late_polls: int = 1,
        is_forgetful: bool = False,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        """`sources` are variables with which Python runs another version of the service; `is_forgetful`: see Replica."""
        self.data_dir = folder / "data"
        self.deaths: list[Death] = []
        self.replicas: list[Replica] = []
        self.key = ""
        self.log_faults = LogFaults(seed)
        self.static = StaticServers(static_servers)
        self._own_regions = regions
        self._bugs = bugs
        self._sources = sources
        self._late_polls = late_polls
        self._is_forgetful = is_forgetful
        self._services = [
            RunningService(
                folder / f"replica{number}",
                regions="",
                database_url=store.url,
                data_dir=self.data_dir,
                settings={"silence_s": str(SILENCE_S), **(settings or {})},
            )
            for number in range(replicas)
        ]
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Cluster:
        try:
            await self._start()
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def _start(self) -> None:
        ports = [service.port for service in self._services]
        self.balancer = await self._stack.enter_async_context(
            Balancer(ports, self.log_faults, late_polls=self._late_polls)
        )
        self._stack.callback(self._services[0].close)  # kills the game servers that are left
        await self._stack.enter_async_context(self.static)
        regions = self._own_regions or _regions([server.address for server in self.static.servers])
        for number, service in enumerate(self._services):
            service.configure(regions, public_url=self.balancer.url)
            replica = Replica(number, service, self.deaths, self._bugs, self._sources, is_forgetful=self._is_forgetful)
            self.replicas.append(await self._stack.enter_async_context(replica))
        self.key = self.replicas[0].first_key()
        await self.balancer.wait_until_ready(len(self.replicas))

    async def webhook_secret(self) -> str:
        """Return the secret that signs callbacks."""
        return await asyncio.to_thread(self._services[0].webhook_secret)

    def game_processes(self, server_id: str | None = None) -> list[GameProcess]:
        """Return the running game servers, of all matches or of one."""
        return self._services[0].server_processes(server_id)

    async def call(self, method: str, path: str, body: object = None, **headers: str) -> Answer:
        """Send one request through the balancer; the answer has status 0 if there was none."""
        content = b"" if body is None else json.dumps(body).encode()
        all_headers = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json", **headers}
        return await ask(self.balancer.port, format_request(method, path, all_headers, content))

    async def create(self, body: object) -> str:
        """Create a match; return the id of its server."""
        created = await self.call("POST", "/api/v1/matches", body)
        assert created.status == 201, created
        return str(created.json["serverId"])


def _regions(static_addresses: list[str]) -> str:
    ports = free_port_range(PORTS + HASTY_PORTS)
    patient = region(SANDBOX, ports[HASTY_PORTS:], speed=PATIENT_SPEED, command=SERVER_COMMAND)
    hasty = region(HASTY, ports[:HASTY_PORTS], speed=HASTY_SPEED, command=SERVER_COMMAND)
    static = static_region(STATIC, static_addresses, PASSWORD, speed=PATIENT_SPEED) if static_addresses else ""
    return patient + hasty + static
