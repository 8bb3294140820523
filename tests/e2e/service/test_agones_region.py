"""A service with regions on Kubernetes: faults in their settings, and a cluster that fails later."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

from tests.chaos.cluster import Cluster
from tests.chaos.http_messages import Response, format_request, send
from tests.chaos.plan import GameSpec
from tests.chaos.stores import SqliteStore
from tests.contract.agones_cluster import agones_cluster, agones_region, secret_file, write_kubeconfig
from tests.e2e.serve_process import serving
from tests.waiting import until

SPEED = 100
WAIT_S = 180.0
UNREACHABLE = "http://127.0.0.1:1"


class Client:
    """A client of the only replica of a service."""

    def __init__(self, service: Cluster) -> None:
        self._port = service.replicas[0].port
        self._headers = {"Authorization": f"Bearer {service.key}", "Content-Type": "application/json"}

    async def send_creation(self, code: str, *, speed: int = SPEED) -> Response:
        body = {**GameSpec("duel", 1).body(speed=speed, is_lockstep=False), "region": code}
        return await self._ask("POST", "/api/v1/matches", json.dumps(body).encode())

    async def create(self, code: str, *, speed: int = SPEED) -> str:
        return str((await self.send_creation(code, speed=speed)).json["serverId"])

    async def status(self, server_id: str) -> str:
        shown = (await self._ask("GET", f"/api/v1/servers/{server_id}")).json
        assert shown["reason"] is None
        return str(shown["status"])

    async def is_over(self, server_id: str) -> bool:
        return await self.status(server_id) == "stopped"

    async def has_started(self, server_id: str) -> bool:
        return await self.status(server_id) in ("running", "stopped")

    async def faults(self) -> dict[str, str]:
        """Return why regions are inactive, as the readiness probe says it."""
        warnings = (await self._ask("GET", "/readyz")).json.get("warnings", [])
        found = (re.fullmatch(r"Region (\w+) is inactive: (.*)", one) for one in warnings)
        return {one[1]: one[2] for one in found if one is not None}

    async def is_active(self, code: str, *, expected: bool = True) -> bool:
        listed = (await self._ask("GET", "/api/v1/regions")).json
        return next(one["isActive"] for one in listed if one["code"] == code) is expected

    async def _ask(self, method: str, path: str, body: bytes = b"") -> Response:
        return await send(self._port, format_request(method, path, self._headers, body))


async def test_start_fails_with_one_sentence_per_fault_of_the_settings(tmp_path: Path) -> None:
    secret = secret_file(tmp_path)
    async with agones_cluster(tmp_path, replicas=0) as cluster:
        good = cluster.kubeconfig
        (tmp_path / "short").write_bytes(b"short")
        (tmp_path / "broken").write_text("clusters: [")
        regions = (
            agones_region("context", good, secret, context="nowhere"),
            agones_region("secret", good, tmp_path / "missing", fleet="cs2-secret"),
            agones_region("short", good, tmp_path / "short", fleet="cs2-short"),
            agones_region("file", tmp_path / "missing", secret),
            agones_region("broken", tmp_path / "broken", secret),
            agones_region("fleet", good, secret, fleet="cs2-us"),
            agones_region("cluster", write_kubeconfig(tmp_path / "unreachable", UNREACHABLE), secret),
            agones_region("good", good, secret),
        )
        (tmp_path / "settings.toml").write_text("".join(regions))
        with serving(tmp_path / "service", config=str(tmp_path / "settings.toml")) as service:
            assert await asyncio.to_thread(service.wait) == 1
    lines = [line.removeprefix("matchpod: ") for line in service.err.splitlines() if line.startswith("matchpod: ")]
    broken = lines.pop(4)
    assert broken.startswith(f"Region broken: The kubeconfig {tmp_path}/broken cannot be used: ")
    assert lines == [
        f"Region context: The kubeconfig {good} cannot be used: it has no context 'nowhere'; its contexts: test.",
        f"Region secret: The fleet secret {tmp_path}/missing cannot be read: No such file or directory.",
        f"Region short: The fleet secret {tmp_path}/short cannot be used: it has 5 bytes, at least 16 are needed.",
        f"Region file: The kubeconfig {tmp_path}/missing cannot be read: No such file or directory.",
    ]


async def test_start_goes_on_without_regions_that_may_heal_and_a_match_waits_for_one_that_does(tmp_path: Path) -> None:
    secret = secret_file(tmp_path)
    async with agones_cluster(tmp_path, replicas=1) as pods:
        url = pods.kubeconfig.read_text().split('server: "')[1].split('"')[0]
        good, speed = pods.kubeconfig, SPEED
        regions = (
            agones_region("namespace", good, secret, namespace="nowhere"),
            agones_region("fleet", good, secret, speed=speed, fleet="cs2-us"),
            agones_region("cluster", write_kubeconfig(tmp_path / "unreachable", UNREACHABLE), secret),
            agones_region("token", write_kubeconfig(tmp_path / "rejected", url, token="wrong"), secret),
            agones_region("good", good, secret, speed=speed),
        )
        async with Cluster(tmp_path, SqliteStore(tmp_path / "data"), regions="".join(regions)) as service:
            client = Client(service)
            assert await client.faults() == {
                "namespace": "There is no Fleet cs2-eu in the namespace nowhere. The namespace has no Fleets.",
                "fleet": "There is no Fleet cs2-us in the namespace default. Fleets there: cs2-eu.",
                "cluster": f"{UNREACHABLE} cannot be reached: Connection refused.",
                "token": "The cluster rejected the credentials of the service: Unauthorized (HTTP 401).",
            }
            assert [await client.is_active(code) for code in ("fleet", "cluster", "good")] == [False, False, True]
            waiting = await client.create("fleet")
            played = await client.create("good")
            await until(lambda: client.has_started(played), "the match in the healthy region has started")
            assert await client.status(waiting) == "pending"
            await pods.api.scale(1, fleet="cs2-us")
            await until(lambda: client.has_started(waiting), "the match that waited has started")
            assert await client.is_active("fleet")
