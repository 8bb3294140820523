"""Consoles of servers in Agones: their passwords are replaced, and those that fail are reported."""

from __future__ import annotations

from pathlib import Path

import pytest

from matchpod.adapters.fleets.agones_console import first_password
from matchpod.adapters.fleets.agones_options import read_fleet_secret
from matchpod.adapters.fleets.agones_passwords import Fit
from matchpod.adapters.rcon_client import RconConsole, RconConsoles
from matchpod.ports import ConsoleAuthError, ConsoleFaultError, ConsoleLostError, FleetError, FleetUnavailableError
from matchpod.service.runner.machine_faults import causes_of
from tests.contract import agones_cluster
from tests.contract.agones_cluster import PASSWORD, AgonesCluster, order, slot_of
from tests.contract.agones_game_servers import SECRET
from tests.contract.listed_servers import own_ids

cluster = agones_cluster.two_servers


class CountingConsoles(RconConsoles):
    """Real consoles that remember the ports and passwords they were opened with, and may fail."""

    def __init__(self) -> None:
        super().__init__()
        self.ports: list[int] = []
        self.passwords: list[str] = []
        self.failures: list[Exception | None] = []

    async def open(self, host: str, port: int, password: str) -> RconConsole:
        self.ports.append(port)
        self.passwords.append(password)
        failure = self.failures.pop(0) if self.failures else None
        if failure is not None:
            raise failure
        return await super().open(host, port, password)


async def test_password_is_replaced_and_that_of_the_match_is_tried_first_in_a_repeated_allocation(
    cluster: AgonesCluster,
) -> None:
    consoles = CountingConsoles()
    server = await cluster.create(consoles=consoles).allocate(order())
    first = first_password(SECRET, slot_of(server))
    assert consoles.passwords == [first, PASSWORD]
    assert server is not None
    with pytest.raises(ConsoleAuthError):
        await RconConsoles().open(server.rcon_host, server.rcon_port, first)
    consoles.passwords.clear()
    await cluster.create(consoles=consoles).allocate(order(is_repeated=True))
    assert consoles.passwords == [PASSWORD]


async def test_console_that_lies_is_not_opened_again(cluster: AgonesCluster) -> None:
    consoles = CountingConsoles()
    consoles.failures = [ConsoleFaultError("packet size")] * 100
    with pytest.raises(FleetError, match="packet size") as failed:
        await cluster.create(consoles=consoles).allocate(order())
    assert any(isinstance(cause, ConsoleFaultError) for cause in causes_of(failed.value))
    assert len(consoles.passwords) == 1


async def test_repeated_allocation_sets_a_password_that_was_not_set(cluster: AgonesCluster) -> None:
    lost = CountingConsoles()
    lost.failures = [ConsoleLostError("no answer")] * 100
    with pytest.raises(FleetError, match=r"did not answer within 0\.3 s: no answer"):
        await cluster.create(consoles=lost, console_s=0.3).allocate(order())
    consoles = CountingConsoles()
    server = await cluster.create(consoles=consoles).allocate(order(is_repeated=True))
    assert consoles.passwords == [PASSWORD, first_password(SECRET, slot_of(server)), PASSWORD]


async def test_console_that_does_not_answer_is_opened_again(cluster: AgonesCluster) -> None:
    consoles = CountingConsoles()
    consoles.failures = [ConsoleLostError("loading a map"), None, ConsoleLostError("busy")]
    assert await cluster.create(consoles=consoles).allocate(order()) is not None
    assert len(consoles.passwords) == 4


async def test_other_secret_is_reported_and_counted_without_being_banned_and_the_server_released(
    cluster: AgonesCluster,
) -> None:
    consoles, fits = CountingConsoles(), list[Fit]()
    secret = b"another secret than that of the servers"
    fleet = cluster.create(consoles=consoles, on_password=fits.append, read_secret=lambda: secret)
    with pytest.raises(FleetUnavailableError, match="does the server have the same secret") as failed:
        await fleet.allocate(order())
    assert (len(consoles.passwords), fits, fleet.fault) == (1, [Fit.NONE], None)
    assert PASSWORD not in str(failed.value)
    assert await own_ids(fleet) == ["srv_1"]
    await fleet.release("srv_1", "")
    assert cluster.names_of("srv_1") == []


async def test_password_that_is_not_accepted_is_reported_without_being_banned(
    cluster: AgonesCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    consoles = CountingConsoles()
    for server in cluster.api.game_servers.running.values():
        monkeypatch.setattr(server, "execute", lambda *_: "")  # it executes no command
    with pytest.raises(FleetError, match="does not accept the password that was set"):
        await cluster.create(consoles=consoles).allocate(order())
    assert consoles.passwords.count(PASSWORD) == 3


@pytest.mark.parametrize(("password", "message"), [('x"; quit', "password cannot be set"), ("", "no RCON password")])
async def test_password_that_cannot_be_set_is_rejected(cluster: AgonesCluster, password: str, message: str) -> None:
    with pytest.raises(FleetError, match=message):
        await cluster.create().allocate(order(rcon_password=password))


async def test_secret_is_read_again_for_every_match(cluster: AgonesCluster, tmp_path: Path) -> None:
    path = tmp_path / "secret"
    fleet = cluster.create(read_secret=lambda: read_fleet_secret(path))
    with pytest.raises(FleetUnavailableError, match="cannot be read: No such file"):
        await fleet.allocate(order())
    path.write_bytes(SECRET)
    assert await fleet.allocate(order()) is not None
