"""A cluster for tests of a fleet in Agones: the fake API with game servers, and fleets that use it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest

from matchpod.adapters.fleets.agones import AgonesFleet
from matchpod.adapters.fleets.agones_options import AgonesOptions
from matchpod.adapters.fleets.agones_passwords import Fit
from matchpod.adapters.fleets.agones_servers import SERVER_LABEL
from matchpod.adapters.kubernetes.client import KubernetesClient
from matchpod.adapters.kubernetes.cluster import ClusterSource
from matchpod.adapters.rcon_client import RconConsoles
from matchpod.ports import Consoles, GameServer, SecretTrials, ServerOrder
from tests.contract.agones_api import FLEET, NAMESPACE, SET_UP_TOKEN, FakeAgones
from tests.contract.agones_dev_servers import SET_UP
from tests.contract.agones_game_servers import SECRET, GameServers
from tests.contract.agones_http import serve
from tests.waiting import until

TOKEN = "a-token"
PASSWORD = "pass of the match"
ALLOCATE = "create gameserverallocations"
LIST = "list gameservers"
WATCH = "watch gameservers"
GET = "get gameservers"
DELETE = "delete gameservers"
OPTIONS = AgonesOptions(
    fleet=FLEET,
    region="eu",
    owner="mp-0123456789abcdef",
    read_secret=lambda: SECRET,
    address_types=("InternalIP",),
    retry_s=30.0,
    settle_s=0.2,
    console_s=60.0,
    check_s=30.0,
)


class AgonesCluster:
    """The fake API, and fleets that use it."""

    def __init__(self, api: FakeAgones, kubeconfig: Path, options: AgonesOptions = OPTIONS) -> None:
        self.api = api
        self.kubeconfig = kubeconfig
        self._options = options
        self.call_s = 30.0
        """Time limits of the next fleets; long, so that only a test that shortens them sees a timeout."""
        self.allocate_s = 30.0
        self.watch_grace_s = 30.0
        self._fleets: list[AgonesFleet] = []

    def create(
        self,
        *,
        consoles: Consoles | None = None,
        on_password: Callable[[Fit], None] = lambda _: None,
        trials: SecretTrials | None = None,
        **changes: object,
    ) -> AgonesFleet:
        """Return another fleet, as if of another process."""
        options = msgspec.structs.replace(self._options, **changes)
        fleet = AgonesFleet(options, self.client(), consoles or RconConsoles(), on_password, trials=trials)
        self._fleets.append(fleet)
        return fleet

    def client(self) -> KubernetesClient:
        return KubernetesClient(
            ClusterSource(kubeconfig=self.kubeconfig),
            call_s=self.call_s,
            allocate_s=self.allocate_s,
            watch_s=2,
            watch_grace_s=self.watch_grace_s,
        )

    def names_of(self, server_id: str) -> list[str]:
        """Return the names of all game servers of a match that are not being deleted."""
        return sorted(
            name
            for name, server in self.api.objects.items()
            if server["metadata"]["labels"].get(SERVER_LABEL) == server_id
            and "deletionTimestamp" not in server["metadata"]
        )

    def kill(self, server_id: str) -> None:
        (name,) = self.names_of(server_id)
        self.api.fail(name)

    async def close(self) -> None:
        for fleet in self._fleets:
            await fleet.close()


@asynccontextmanager
async def agones_cluster(folder: Path, *, replicas: int, **intervals: float) -> AsyncIterator[AgonesCluster]:
    """Serve a cluster with one Fleet of this size; its fleets have these intervals, as in their options."""
    api = FakeAgones(GameServers())
    async with serve(api) as url:
        api.tokens = {TOKEN}
        options = msgspec.structs.replace(OPTIONS, **intervals)
        cluster = AgonesCluster(api, write_kubeconfig(folder / "kubeconfig", url), options)
        await api.scale(replicas)
        try:
            yield cluster
        finally:
            await cluster.close()


@asynccontextmanager
async def following(fleet: AgonesFleet) -> AsyncIterator[asyncio.Event]:
    """Follow a fleet; the event is set at each change. Begins when the watch is open."""
    changed = asyncio.Event()
    task = asyncio.create_task(fleet.follow(changed.set))
    try:
        await until(lambda: fleet.is_followed or fleet.fault)
        yield changed
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


class Playing(NamedTuple):
    """A server of the match `srv_1`."""

    name: str
    slot: str
    lost: asyncio.Task[str]
    """Ends with the reason why the server is gone."""


@asynccontextmanager
async def playing(fleet: AgonesFleet) -> AsyncIterator[Playing]:
    """Follow a fleet in which `srv_1` has a server, as the watch has seen, and wait for the loss of that."""
    async with following(fleet):
        server = await fleet.allocate(order())
        assert server is not None
        assert server.slot is not None
        await until(lambda: fleet.holds("srv_1"))
        lost = asyncio.create_task(fleet.wait_gone("srv_1", server.slot))
        await asyncio.sleep(0)
        yield Playing(slot_of(server), server.slot, lost)
        lost.cancel()
        await asyncio.gather(lost, return_exceptions=True)


@pytest.fixture
async def two_servers(tmp_path: Path) -> AsyncIterator[AgonesCluster]:
    """A cluster with a Fleet of two servers."""
    async with agones_cluster(tmp_path, replicas=2) as created:
        yield created


def order(server_id: str = "srv_1", **changes: object) -> ServerOrder:
    plain = ServerOrder(
        server_id=server_id, slot="", map_name="de_nuke", game_type=0, game_mode=1, rcon_password=PASSWORD
    )
    return msgspec.structs.replace(plain, **changes)


def slot_of(server: GameServer | None) -> str:
    """Return the name of a server, as rows of early versions have it in `slot`; now its UID follows."""
    assert server is not None
    assert server.slot is not None
    name, uid = server.slot.split("/")
    assert uid == f"uid-{name}"
    return name


def count_lists(cluster: AgonesCluster) -> int:
    """Count the lists of all servers, without those that only ask for the version."""
    return sum(call.right == LIST and call.query["limit"] != "1" for call in cluster.api.calls)


def secret_file(folder: Path) -> Path:
    path = folder / "fleet.secret"
    path.write_bytes(SECRET)
    return path


def agones_region(code: str, kubeconfig: Path, secret: Path, *, speed: float = 1, **fields: str) -> str:
    """Return the settings of a region whose servers come from a cluster; further fields are those of its fleet."""
    fleet = {"kind": "agones", "fleet": FLEET, "kubeconfig": str(kubeconfig), "secret_file": str(secret), **fields}
    lines = "\n".join(f"{name} = {json.dumps(value)}" for name, value in fleet.items())
    return f"""
[[regions]]
code = "{code}"
speed = {speed}
allows_simulator = true
[regions.fleet]
{lines}
address_types = ["InternalIP"]
"""


def write_kubeconfig(
    path: Path, url: str, *, token: str = TOKEN, namespace: str = NAMESPACE, has_set_up: bool = False
) -> Path:
    """Write a kubeconfig for the account of the service, and for that of the set-up if wanted."""
    accounts = {"test": token, **({SET_UP: SET_UP_TOKEN} if has_set_up else {})}
    users = "\n".join(f'- {{name: {name}, user: {{token: "{own}"}}}}' for name, own in accounts.items())
    contexts = "\n".join(
        f"- {{name: {name}, context: {{cluster: fake, user: {name}, namespace: {namespace}}}}}" for name in accounts
    )
    path.write_text(
        f"""
apiVersion: v1
kind: Config
current-context: test
clusters:
- {{name: fake, cluster: {{server: "{url}"}}}}
users:
{users}
contexts:
{contexts}
""",
        encoding="utf-8",
    )
    return path
