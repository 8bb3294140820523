"""Static servers: each is used by one match after the other and is clean after each of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.contract.simulator_process import PASSWORD, SimulatorProcess
from tests.e2e.service.callback_receiver import CallbackReceiver
from tests.e2e.service.game_server import ask_at
from tests.e2e.service.running_service import Json, RunningService, cvars, players, short_match, static_region


class Lent:
    """A service that uses two servers of ours."""

    def __init__(self, service: RunningService, receiver: CallbackReceiver, servers: list[SimulatorProcess]) -> None:
        self.service = service
        self.receiver = receiver
        self.servers = servers

    def create(self, name: str, **fields: object) -> Json:
        """A match on one of them."""
        settings = short_match(serverPassword="sesame", **fields)
        return self.service.create(
            settings, region="lent", externalMatchId=name, callbackUrl=self.receiver.url(f"/{name}")
        )

    def play(self, *names: str, **fields: object) -> list[int]:
        """Matches played to their end at the same time; answers the ports they were played on."""
        made = [self.create(name, **fields) for name in names]
        running = [self.service.wait_for_status(one["serverId"], "running", "stopped") for one in made]
        for name in names:
            told = self.receiver.wait_for(f"/{name}")[0].json
            assert told["eventType"] == "match_over", told
            assert {player["steamId"] for player in told["result"]["overall"]} == set(players(4))
        self.service.wait_until_released(*(one["serverId"] for one in made))
        return [one["port"] for one in running]

    def assert_clean(self, port: int) -> None:
        """Nothing of a match is left on a server."""
        listeners, status, password, plugin = ask_at(
            port, PASSWORD, "logaddress_list_http", "status_json", "sv_password", "get5_status"
        )
        assert "http://" not in listeners
        assert all(player not in status for player in players(4))
        assert '"clients_human": 0' in status or '"clients_human":0' in status, status
        assert "sesame" not in password
        assert '"gamestate": 0' in plugin or "none" in plugin, plugin


@pytest.fixture(scope="module")
def database_url() -> None:
    """SQLite alone: what is tried here does not depend on the database, whose own tests try it on both."""


@pytest.fixture(scope="module")
def lent(database_url: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lent]:
    folder: Path = tmp_path_factory.mktemp("static")
    with ExitStack() as held:
        servers = [held.enter_context(SimulatorProcess()) for _ in range(2)]
        regions = static_region("lent", [server.address for server in servers], PASSWORD)
        receiver = held.enter_context(CallbackReceiver())
        service = held.enter_context(RunningService(folder, regions=regions, database_url=database_url))
        yield Lent(service, receiver, servers)


def test_two_servers_play_two_matches_each(lent: Lent) -> None:
    ports = {server.port for server in lent.servers}
    assert set(lent.play("first", "second")) == ports
    for port in ports:
        lent.assert_clean(port)
    assert set(lent.play("third", "fourth", map="de_nuke", matchType="wingman")) == ports
    for port in ports:
        lent.assert_clean(port)
    assert all(server.process.poll() is None for server in lent.servers)
    assert [len(lent.receiver.at(f"/{name}")) for name in ("first", "second", "third", "fourth")] == [1] * 4


def test_a_third_match_waits_for_the_first_server_that_is_free(lent: Lent) -> None:
    long = {"maxRounds": 30, "customCvars": cvars(30)}
    held = [lent.create(f"held-{number}", **long) for number in range(2)]
    running = [lent.service.wait_for_status(one["serverId"], "running") for one in held]
    third = lent.create("waiting")
    lent.service.wait_for_status(third["serverId"], "pending")
    assert lent.service.cancel(held[0]["serverId"]).status == 200
    got = lent.service.wait_for(third["serverId"], lambda server: server["port"] is not None)
    assert got["port"] == running[0]["port"]
    assert lent.receiver.wait_for("/waiting")[0].json["eventType"] == "match_over"
    assert lent.service.cancel(held[1]["serverId"]).status == 200
    lent.service.wait_until_released(*(one["serverId"] for one in (*held, third)))
    for server in lent.servers:
        lent.assert_clean(server.port)


def test_variables_of_the_game_mode_are_not_left_from_the_match_before(lent: Lent) -> None:
    def friendly_fire_and_buy_time() -> list[list[str]]:
        return [ask_at(server.port, PASSWORD, "mp_friendlyfire", "mp_buytime") for server in lent.servers]

    odd = {"customCvars": cvars(mp_friendlyfire=0, mp_buytime=77)}
    lent.play("odd-1", "odd-2", **odd)
    made = [lent.create(f"plain-{number}", customCvars=cvars(30, "no_show")) for number in range(2)]
    for one in made:
        lent.service.wait_for_status(one["serverId"], "running")
    for friendly_fire, buy_time in friendly_fire_and_buy_time():
        assert "77" not in buy_time
        assert "true" in friendly_fire
    for one in made:
        assert lent.service.cancel(one["serverId"]).status == 200
    lent.service.wait_until_released(*(one["serverId"] for one in made))


def test_a_server_that_dies_is_lost_and_the_other_goes_on(lent: Lent) -> None:
    made = lent.create("dies", maxRounds=30, customCvars=cvars(30))
    running = lent.service.wait_for_status(made["serverId"], "running")
    dying = next(server for server in lent.servers if server.port == running["port"])
    dying.process.kill()
    told = lent.receiver.wait_for("/dies")[0].json
    assert told["reason"] == "server_lost"
    lent.service.wait_until_released(made["serverId"])
    (port,) = lent.play("survivor")
    assert port != running["port"]
