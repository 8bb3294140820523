"""Game servers in any cluster with Agones, without pods: each stands for a simulated server in this process.

Agones calls them development servers: an annotation gives their address, and they are ready at once. So the fleet can
be tested against a real control plane that has no nodes, if it runs on this machine.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import msgspec
import pytest

from matchpod.adapters.fleets.agones import AgonesFleet
from matchpod.adapters.fleets.agones_options import FLEET_LABEL, AgonesOptions
from matchpod.adapters.fleets.agones_servers import SERVER_LABEL
from matchpod.adapters.kubernetes.api_errors import ApiNotFoundError, ClusterConfigError
from matchpod.adapters.kubernetes.client import KubernetesClient
from matchpod.adapters.kubernetes.cluster import Cluster, ClusterSource
from matchpod.adapters.kubernetes.kubeconfig import read_kubeconfig
from matchpod.adapters.kubernetes.objects import ApiRequest, ServerState
from matchpod.adapters.kubernetes.transport import HttpTransport
from matchpod.adapters.rcon_client import RconConsoles
from matchpod.ports import Consoles
from tests.contract.agones_game_servers import SECRET, GameServers

VARIABLE = "MATCHPOD_TEST_KUBECONFIG"
SET_UP = "set-up"
"""The context whose account creates Fleets and game servers, so that the current one needs only the service's rights."""
HOST = "127.0.0.1"
RUN_LABEL = "matchpod.dev/test-run"
MERGE_PATCH = "application/merge-patch+json"


def given_kubeconfig() -> Path:
    """Return the kubeconfig of the cluster to test against; skip the test if none is given."""
    path = os.environ.get(VARIABLE)
    if not path:
        pytest.skip(f"{VARIABLE} names no kubeconfig of a cluster with Agones")
    return Path(path)


def set_up_cluster(kubeconfig: Path) -> Cluster:
    """Return the cluster with the account for the set-up, if the kubeconfig has one, else with its current one."""
    try:
        return read_kubeconfig(kubeconfig, SET_UP)
    except ClusterConfigError:
        return read_kubeconfig(kubeconfig)


class DevServers:
    """The game servers of one test, and fleets that use them."""

    def __init__(self, kubeconfig: Path, game_servers: GameServers) -> None:
        self.run = f"mp-{secrets.token_hex(4)}"
        self._source = ClusterSource(kubeconfig=kubeconfig)
        self.client = KubernetesClient(self._source)
        cluster = set_up_cluster(kubeconfig)
        self._path = f"/apis/agones.dev/v1/namespaces/{cluster.namespace}"
        self._transport = HttpTransport(cluster)
        self._game_servers = game_servers
        self._numbers = itertools.count(1)
        self._fleets: list[AgonesFleet] = []

    def create(self, *, consoles: Consoles | None = None, **changes: object) -> AgonesFleet:
        """Return another fleet, as if of another process."""
        options = AgonesOptions(
            fleet=self.run,
            region="test",
            owner=self.run,
            read_secret=lambda: SECRET,
            selector={RUN_LABEL: self.run},
            retry_s=5.0,
        )
        client = KubernetesClient(self._source)
        fleet = AgonesFleet(msgspec.structs.replace(options, **changes), client, consoles or RconConsoles())
        self._fleets.append(fleet)
        return fleet

    @property
    def labels(self) -> Mapping[str, str]:
        """The labels of all game servers of this test."""
        return {RUN_LABEL: self.run}

    def client_with(self, *, page_size: int) -> KubernetesClient:
        """Return another client, which reads lists in pages of this size."""
        return KubernetesClient(self._source, page_size=page_size)

    async def start(self, number: int) -> None:
        """Create a Fleet of this name without game servers of its own, and development servers."""
        template = {"spec": {"template": {"spec": {"containers": [{"name": "cs2", "image": "none"}]}}}}
        await self._post("fleets", {"spec": {"replicas": 0, "template": template}, "metadata": {"name": self.run}})
        for _ in range(number):
            await self.add()

    async def add(self) -> str:
        """Create a development server for a new simulated one, and return its name when it is ready."""
        name = f"{self.run}-{next(self._numbers)}"
        await self.register(name, await self._game_servers.start(name))
        await self._until_ready(name)
        return name

    async def register(self, name: str, port: int, labels: Mapping[str, str] | None = None) -> None:
        """Create a development server for a server on this machine that listens on a port."""
        ports = [
            {"name": "game", "portPolicy": "Static", "protocol": "TCPUDP", "containerPort": port, "hostPort": port}
        ]
        metadata = {
            "name": name,
            "labels": {RUN_LABEL: self.run, FLEET_LABEL: self.run, **(labels or {})},
            "annotations": {"agones.dev/dev-address": HOST},
        }
        template = {"spec": {"containers": [{"name": "cs2", "image": "none"}]}}
        await self._post("gameservers", {"metadata": metadata, "spec": {"ports": ports, "template": template}})

    async def kill(self, server_id: str) -> None:
        """Kill the server of a match, and delete its GameServer as Agones would."""
        for server in (await self.client.servers({RUN_LABEL: self.run, SERVER_LABEL: server_id})).items or ():
            self._game_servers.stop(server.metadata.name)
            await self.client.delete_server(server.metadata.name, uid=server.metadata.uid)

    async def make_ready(self, name: str) -> None:
        """Have Agones put a server back into the pool: `SDK.Ready()` in its pod requests it with this state."""
        body = msgspec.json.encode({"status": {"state": "RequestReady"}})
        path = f"{self._path}/gameservers/{name}"
        await self._transport.send(
            ApiRequest(method="PATCH", path=path, body=body, content_type=MERGE_PATCH, timeout_s=20)
        )
        await self._until_ready(name)

    async def names(self, server_id: str) -> list[str]:
        """Return the names of the game servers of a match that are not being deleted."""
        servers = (await self.client.servers({RUN_LABEL: self.run, SERVER_LABEL: server_id})).items or ()
        return sorted(one.metadata.name for one in servers if one.metadata.deletion_timestamp is None)

    async def close(self) -> None:
        """Delete everything that this test created."""
        for server in (await self.client.servers({RUN_LABEL: self.run})).items or ():
            with suppress(ApiNotFoundError):
                await self.client.delete_server(server.metadata.name, uid=server.metadata.uid)
        path = f"{self._path}/fleets/{self.run}"
        with suppress(ApiNotFoundError):
            await self._transport.send(ApiRequest(method="DELETE", path=path, timeout_s=20))
        for fleet in self._fleets:
            await fleet.close()
        await self.client.close()
        await self._transport.close()
        await self._game_servers.close()

    async def _until_ready(self, name: str) -> None:
        while (await self.client.server(name)).status.state != ServerState.READY:
            await asyncio.sleep(0.02)

    async def _post(self, kind: str, content: dict[str, object]) -> None:
        name = {"fleets": "Fleet", "gameservers": "GameServer"}[kind]
        body = msgspec.json.encode({"apiVersion": "agones.dev/v1", "kind": name, **content})
        await self._transport.send(ApiRequest(method="POST", path=f"{self._path}/{kind}", body=body, timeout_s=20))


@asynccontextmanager
async def dev_servers(kubeconfig: Path, *, number: int) -> AsyncIterator[DevServers]:
    """Provide development servers in the cluster of a kubeconfig, and delete them afterwards."""
    servers = DevServers(kubeconfig, GameServers())
    try:
        await servers.start(number)
        yield servers
    finally:
        await servers.close()
