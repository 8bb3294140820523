"""A static fleet validates its list, and cleans up a server only while it still belongs to that match."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from cs2_protocol.console_commands import LOG_LISTENERS, REMOVE_LOG_LISTENERS, STATUS, end_match_command
from matchpod.adapters.fleets.static import StaticFleet, StaticServer
from matchpod.adapters.rcon_client import RconConsoles
from tests.leases import FakeLease, LostError

ADDRESS = "192.0.2.1:27015"
CONNECT = "(connect)"
OWN, OTHER = "mp-00000000000000aa-own", "mp-00000000000000aa-other"
KICKS = ("kickid 2", "kickid 3")


@pytest.mark.parametrize("address", ["", "192.0.2.1", ":27015", "192.0.2.1:", "192.0.2.1:0", "192.0.2.1:65536", "a:²"])
def test_address_without_host_or_valid_port_is_rejected(address: str) -> None:
    with pytest.raises(ValueError):
        StaticFleet([StaticServer(address, "a")], RconConsoles())


def test_repr_omits_the_password() -> None:
    assert "sesame" not in repr(StaticServer("192.0.2.1:27015", "sesame"))


# --- release ----------------------------------------------------------------------------------------------------------


class FakeServer:
    """A server with two players and log addresses, its console, and what was sent to it."""

    def __init__(self, *listeners: str) -> None:
        self.listeners = listeners
        self.sent: list[str] = []

    async def open(self, host: str, port: int, password: str) -> FakeServer:
        self.sent.append(CONNECT)
        return self

    async def run(self, command: str, *, timeout_s: float = 10.0) -> str:
        self.sent.append(command)
        if command == LOG_LISTENERS:
            return "\n".join(self.listeners)
        if command == STATUS:
            rows = [f"{number} 00:40 9 0 active 0 192.0.2.9:1 'player {number}'\n" for number in (2, 3)]
            return f"---------players--------\n{''.join(rows)}#end\n"
        return ""

    async def run_all(self, commands: Sequence[str], *, timeout_s: float = 10.0) -> list[str]:
        return [await self.run(command) for command in commands]

    async def close(self) -> None:
        pass


def fleet_of(server: FakeServer) -> StaticFleet:
    return StaticFleet([StaticServer(ADDRESS, "secret")], server, owner="mp-00000000000000aa")


def log_url(token: str) -> str:
    return f"https://matchpod.example/ingest/logs/{token}"


@pytest.mark.parametrize(
    "listeners",
    [(), (log_url(OWN),), ("https://statistics.example/",), (log_url(OWN), log_url(OWN).replace("pod", "pod-2"))],
    ids=["no address", "its own", "of another program", "its own at two replicas"],
)
async def test_server_is_cleaned_up_unless_another_match_uses_it(listeners: tuple[str, ...]) -> None:
    server = FakeServer(*listeners)
    await fleet_of(server).release("srv_1", ADDRESS, FakeLease(OWN))
    assert server.sent[:4] == [CONNECT, LOG_LISTENERS, end_match_command(), STATUS]
    assert [command[: len(KICKS[0])] for command in server.sent[4:6]] == [*KICKS]
    assert REMOVE_LOG_LISTENERS in server.sent[6:]


@pytest.mark.parametrize(
    "listeners",
    [
        (log_url(OTHER),),
        (log_url("mp-00000000000000bb-other"),),
        (log_url("of_an_early_version"),),
        (log_url(OWN), log_url(OTHER)),
    ],
    ids=["of this installation", "of another one", "of an early version", "beside its own"],
)
async def test_server_that_another_match_uses_by_now_is_left_unchanged(
    listeners: tuple[str, ...], caplog: pytest.LogCaptureFixture
) -> None:
    server = FakeServer(*listeners)
    await fleet_of(server).release("srv_1", ADDRESS, FakeLease(OWN))
    assert server.sent == [CONNECT, LOG_LISTENERS]
    (record,) = caplog.records
    assert (record.message, vars(record)["slot"]) == ("server not cleaned up: another match uses it", ADDRESS)


async def test_process_that_is_frozen_sends_nothing_after_it_has_lost_its_lease() -> None:
    """Wherever that happens, also before the connection: the server may have its next match by then."""
    complete = FakeServer(log_url(OWN))
    await fleet_of(complete).release("srv_1", ADDRESS, FakeLease(OWN))
    for checks in range(len(complete.sent)):
        server = FakeServer(log_url(OWN))
        with pytest.raises(LostError):
            await fleet_of(server).release("srv_1", ADDRESS, FakeLease(OWN, valid_checks=checks))
        assert server.sent == complete.sent[:checks]
