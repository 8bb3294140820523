"""The wrapper with the SDK server of Agones itself, in its local mode, which needs no cluster.

MATCHPOD_TEST_SDK_SERVER is the path of the program `sdk-server`, built from the source of Agones (`cmd/sdk-server`).
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path

import pytest

from gameserver_tests.process.fake_sdk import NAME, FakeSdk
from gameserver_tests.process.wrapper_process import SECRET, SIMULATE, TIMEOUT_S, Wrapper, free_ports, wait_until
from matchpod_gameserver.password import bootstrap_password
from simulator_tests.rcon_client import RconClient

PROGRAM = os.environ.get("MATCHPOD_TEST_SDK_SERVER")
pytestmark = pytest.mark.skipif(
    PROGRAM is None, reason="set MATCHPOD_TEST_SDK_SERVER to the path of Agones' sdk-server to run this"
)


class LocalSdkServer:
    """A running `sdk-server --local` whose GameServer has one port for both protocols."""

    def __init__(self, folder: Path, http_port: int, game_port: int) -> None:
        self.port, self.game_port = http_port, game_port
        self._log = folder / "sdk.log"
        grpc_port, health_port = free_ports(2)
        file = folder / "gameserver.json"
        ports = [{"name": name, "port": game_port} for name in ("game-tcp", "game-udp")]
        server = {
            "apiVersion": "agones.dev/v1",
            "kind": "GameServer",
            "metadata": {"name": NAME, "namespace": "default"},
            "spec": {"health": {"periodSeconds": 5}},
            "status": {"state": "Scheduled", "address": "127.0.0.1", "ports": ports},
        }
        file.write_text(json.dumps(server))
        numbers = ("--http-port", http_port, "--grpc-port", grpc_port, "--health-port", health_port)
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                [str(PROGRAM), "--local", "--address", "127.0.0.1", "-f", str(file), *map(str, numbers)],
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    @property
    def log(self) -> str:
        return self._log.read_text()

    @property
    def state(self) -> str:
        return str(json.loads(request(self.port, "GET", "/gameserver")[1])["status"]["state"])


def request(port: int, method: str, path: str) -> tuple[int, bytes]:
    connection = HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)
    try:
        connection.request(method, path, "{}" if method == "POST" else None, {"Content-Type": "application/json"})
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def start(tmp_path: Path) -> tuple[Wrapper, LocalSdkServer]:
    """Start the wrapper, and the SDK server after it."""
    http_port, game_port = free_ports(2)
    wrapper = Wrapper(tmp_path, http_port, "--", *SIMULATE)
    wrapper.wait_for("waiting for the Agones SDK")
    return wrapper, LocalSdkServer(tmp_path, http_port, game_port)


@pytest.fixture
def running(tmp_path: Path) -> Iterator[tuple[Wrapper, LocalSdkServer]]:
    wrapper, sdk = start(tmp_path)
    yield wrapper, sdk
    if wrapper.popen.poll() is None:
        wrapper.stop()
    sdk.process.terminate()
    sdk.process.wait(TIMEOUT_S)


def test_simulated_server_becomes_ready_and_healthy(running: tuple[Wrapper, LocalSdkServer]) -> None:
    wrapper, sdk = running
    wrapper.wait_for("game server ready")
    assert sdk.state == "Ready"
    assert sdk.log.count("Ready request has been received!") == 1
    wait_until(lambda: sdk.log.count("Health Ping Received!") >= 3, "health reported")
    with RconClient(sdk.game_port) as console:
        assert console.log_in(bootstrap_password(SECRET, NAME))
    assert wrapper.stop() == 0
    pings = sdk.log.count("Health Ping Received!")
    assert sdk.state == "Ready"
    assert sdk.log.count("Health Ping Received!") == pings


def test_fake_answers_as_the_sdk_server(running: tuple[Wrapper, LocalSdkServer]) -> None:
    wrapper, sdk = running
    wrapper.wait_for("game server ready")
    with FakeSdk({"game-tcp": sdk.game_port, "game-udp": sdk.game_port}) as fake:
        fake.state = "Ready"
        for method, path in (("POST", "/ready"), ("POST", "/health"), ("GET", "/gameserver"), ("GET", "/none")):
            ours, theirs = request(fake.port, method, path), request(sdk.port, method, path)
            assert ours[0] == theirs[0], path
            assert _shape(json.loads(ours[1])).items() <= _shape(json.loads(theirs[1])).items(), path


def _shape(value: object, path: str = "") -> dict[str, str]:
    """Return the names of all fields with the types of their values, and the values that both sides must share."""
    if isinstance(value, dict):
        return {name: kind for key, item in value.items() for name, kind in _shape(item, f"{path}.{key}").items()}
    if isinstance(value, list):
        return {name: kind for item in value for name, kind in _shape(item, f"{path}[]").items()}
    return {path: f"{value}" if path in (".object_meta.name", ".status.state") else type(value).__name__}
