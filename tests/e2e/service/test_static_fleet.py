"""Static servers are used by one match after another and are reset after each."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.contract.simulator_process import PASSWORD, SimulatorProcess
from tests.e2e.service.callback_receiver import CallbackReceiver
from tests.e2e.service.game_server import execute_at
from tests.e2e.service.running_service import Json, RunningService, players, short_match, static_region


class StaticFleet:
    """A service with two static servers that the test runs."""

    def __init__(self, service: RunningService, receiver: CallbackReceiver, servers: list[SimulatorProcess]) -> None:
        self.service = service
        self.receiver = receiver
        self.servers = servers

    def create(self, name: str, **fields: object) -> Json:
        """Create a match on one of the servers."""
        settings = short_match(serverPassword="sesame", **fields)
        return self.service.create(
            settings, region="static", externalMatchId=name, callbackUrl=self.receiver.url(f"/{name}")
        )

    def play(self, *names: str, **fields: object) -> list[int]:
        """Play matches to their end at the same time; return the ports of their servers."""
        created = [self.create(name, **fields) for name in names]
        running = [self.service.wait_for_status(one["serverId"], "running", "stopped") for one in created]
        for name in names:
            body = self.receiver.wait_for(f"/{name}")[0].json
            assert body["eventType"] == "match_over", body
            assert {player["steamId"] for player in body["result"]["overall"]} == set(players(4))
        self.service.wait_until_released(*(one["serverId"] for one in created))
        return [one["port"] for one in running]

    def assert_clean(self, port: int) -> None:
        """No state of a match is left on a server."""
        listeners, status, password, plugin = execute_at(
            port, PASSWORD, "logaddress_list_http", "status_json", "sv_password", "get5_status"
        )
        assert "http://" not in listeners
        assert all(player not in status for player in players(4))
        assert '"clients_human": 0' in status or '"clients_human":0' in status, status
        assert "sesame" not in password
        assert '"gamestate": 0' in plugin or "none" in plugin, plugin


@pytest.fixture(scope="module")
def database_url() -> None:
    """Use only SQLite: static fleets do not depend on the database, and storage is tested on both."""


@pytest.fixture(scope="module")
def fleet(database_url: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StaticFleet]:
    folder: Path = tmp_path_factory.mktemp("static")
    with ExitStack() as stack:
        servers = [stack.enter_context(SimulatorProcess()) for _ in range(2)]
        regions = static_region("static", [server.address for server in servers], PASSWORD)
        receiver = stack.enter_context(CallbackReceiver())
        service = stack.enter_context(RunningService(folder, regions=regions, database_url=database_url))
        yield StaticFleet(service, receiver, servers)


def test_each_server_is_used_by_two_matches_in_turn_and_is_clean_after_each(fleet: StaticFleet) -> None:
    ports = {server.port for server in fleet.servers}
    assert set(fleet.play("first", "second")) == ports
    for port in ports:
        fleet.assert_clean(port)
    assert set(fleet.play("third", "fourth", map="de_nuke", matchType="wingman")) == ports
    for port in ports:
        fleet.assert_clean(port)
    assert all(server.process.poll() is None for server in fleet.servers)
    assert [len(fleet.receiver.at(f"/{name}")) for name in ("first", "second", "third", "fourth")] == [1] * 4
