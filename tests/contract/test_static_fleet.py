"""Servers of a fixed list are cleaned up after each match, and are never gone while they are in the list."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import msgspec
import pytest

from cs2_protocol.console_commands import LOG_LISTENERS, STATUS
from matchpod.adapters.fleets.static import StaticFleet, StaticServer
from matchpod.adapters.rcon_client import RconConsoles, probe_port
from matchpod.core.servers.server_loss import FleetReport
from matchpod.ports import ConsoleFaultError, FleetError
from matchpod.service.runner.machine_faults import is_machine_fault
from tests.contract.fleet_servers import HOST, answer_of, order, players_on
from tests.contract.listed_servers import own_ids
from tests.contract.simulator_process import PASSWORD, SimulatorProcess
from tests.leases import FakeLease, LostError
from tests.lying_server import Lie, LyingServer
from tests.open_files import no_more_files


@pytest.fixture(scope="module")
def simulator() -> Iterator[SimulatorProcess]:
    """A running server, which each test leaves as it found it."""
    with SimulatorProcess() as started:
        yield started


def fleet_of(address: str, password: str = PASSWORD, consoles: RconConsoles | None = None) -> StaticFleet:
    return StaticFleet([StaticServer(address, password)], consoles or RconConsoles(), clean_pause_s=0.01)


async def test_released_server_is_cleaned_up_also_by_another_process(simulator: SimulatorProcess) -> None:
    first, second = fleet_of(simulator.address), fleet_of(simulator.address)
    server = await first.allocate(order(first))
    await answer_of(server, "sv_password secret")
    await answer_of(server, 'logaddress_add_http "http://127.0.0.1:9/"')
    while len(await players_on(server)) < 10:
        await asyncio.sleep(0.1)
    await second.release("srv_1", simulator.address)  # as if the second process had claimed the ended match
    assert await players_on(server) == ()
    assert "secret" not in await answer_of(server, "sv_password")
    assert "127.0.0.1:9" not in await answer_of(server, "logaddress_list_http")
    assert await probe_port(HOST, simulator.port)


async def test_servers_are_not_swept(simulator: SimulatorProcess) -> None:
    fleet = fleet_of(simulator.address)
    server = await fleet.allocate(order(fleet))
    await answer_of(server, "sv_password secret")
    assert await own_ids(fleet) == []
    await fleet.release("srv_1", "")  # like a sweep, which does not know the slot
    assert "secret" in await answer_of(server, "sv_password")
    await fleet.release("srv_1", simulator.address)


async def test_server_with_another_password_or_address_is_not_allocated(simulator: SimulatorProcess) -> None:
    fleet = fleet_of(simulator.address, "another")
    with pytest.raises(FleetError):
        await fleet.allocate(order(fleet))
    with pytest.raises(FleetError, match=r"this fleet has no server 192\.0\.2\.1:1"):
        await fleet.allocate(msgspec.structs.replace(order(fleet), slot="192.0.2.1:1"))
    await fleet.release("srv_1", simulator.address)
    assert await fleet.observe("srv_1", simulator.address) is FleetReport.UNKNOWN
    assert await fleet.observe("srv_1", "192.0.2.1:1") is FleetReport.GONE, "it is no longer in the list"


async def test_server_that_lies_is_not_allocated_and_released_after_one_attempt(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with LyingServer(Lie.HUGE_STATUS, about=LOG_LISTENERS) as port:
        fleet = fleet_of(f"{HOST}:{port}")
        with pytest.raises(FleetError, match="packet size") as failed:
            await fleet.allocate(order(fleet))
        assert isinstance(failed.value.__cause__, ConsoleFaultError)
    async with LyingServer(Lie.EMPTY_PACKETS, about=STATUS) as port:
        await fleet_of(f"{HOST}:{port}").release("srv_1", f"{HOST}:{port}")
        assert [record.message for record in caplog.records] == ["server not cleaned up: console fault"]


async def test_cleanup_has_a_time_limit() -> None:
    async with LyingServer(Lie.DRIP, about=STATUS) as port:
        server = StaticServer(f"{HOST}:{port}", PASSWORD)
        fleet = StaticFleet([server], RconConsoles(), clean_pause_s=0.01, clean_s=0.1)
        async with asyncio.timeout(8):  # a single answer may take 10 s
            await fleet.release("srv_1", server.address)


async def test_hanging_server_is_not_gone_and_can_be_released_unless_the_lease_is_lost() -> None:
    with SimulatorProcess() as one:
        patient = fleet_of(one.address)
        await patient.allocate(order(patient))
        one.freeze()
        fleet = fleet_of(one.address, consoles=RconConsoles(open_s=0.3))
        assert await fleet.observe("srv_1", one.address) is FleetReport.UNKNOWN
        with pytest.raises(LostError):
            await fleet.release("srv_1", one.address, FakeLease(valid_checks=1))
        await fleet.release("srv_1", one.address)
        assert await own_ids(fleet) == []


async def test_machine_without_files_is_told_apart_from_a_server_that_is_down() -> None:
    with SimulatorProcess() as server:
        fleet = fleet_of(server.address)
        (slot,) = fleet.slots
        with no_more_files():
            assert await fleet.observe("srv_1", slot) is FleetReport.UNKNOWN
            with pytest.raises(FleetError, match="Too many open files") as failed:
                await fleet.allocate(order(fleet))
            await fleet.release("srv_1", slot)
        assert is_machine_fault(failed.value)
    with pytest.raises(FleetError) as failed:
        await fleet.allocate(order(fleet))
    assert not is_machine_fault(failed.value)
    assert await fleet.observe("srv_1", slot) is FleetReport.UNKNOWN


async def test_host_name_and_ipv6_address_are_used(simulator: SimulatorProcess) -> None:
    fleet = fleet_of(f"localhost:{simulator.port}")
    server = await fleet.allocate(order(fleet))
    assert (server.ip, server.rcon_host) == ("127.0.0.1", "localhost"), "players get an address"
    unknown = fleet_of("nowhere.invalid:27015")
    with pytest.raises(FleetError, match=r"the host name nowhere\.invalid cannot be resolved"):
        await unknown.allocate(order(unknown))
    waiting = fleet_of("[::1]:27015").waiting_server("[::1]:27015")
    assert waiting is not None
    assert (waiting.rcon_host, waiting.rcon_port) == ("::1", 27015)


async def test_server_that_left_the_list_keeps_its_match_until_it_is_released(simulator: SimulatorProcess) -> None:
    fleet, other = fleet_of(simulator.address), "192.0.2.7:27015"
    server = await fleet.allocate(order(fleet))
    await answer_of(server, "sv_password secret")
    fleet.replace_servers([StaticServer(other, PASSWORD)])
    assert (fleet.slots, await fleet.observe("srv_1", simulator.address)) == ((other,), FleetReport.UNKNOWN)
    await fleet.release("srv_1", simulator.address)
    assert "secret" not in await answer_of(server, "sv_password"), "it was cleaned up"
    assert await fleet.observe("srv_1", simulator.address) is FleetReport.GONE


async def test_server_may_come_back_into_the_list_with_another_password(simulator: SimulatorProcess) -> None:
    fleet = fleet_of(simulator.address, "wrong")
    fleet.replace_servers([])
    fleet.replace_servers([StaticServer(simulator.address, PASSWORD)])
    assert (await fleet.allocate(order(fleet))).rcon_password == PASSWORD


async def test_follower_is_told_of_another_list(simulator: SimulatorProcess) -> None:
    fleet, told = fleet_of(simulator.address), asyncio.Event()
    following = asyncio.create_task(fleet.follow(told.set))
    await asyncio.sleep(0)
    fleet.replace_servers([])
    assert told.is_set()
    following.cancel()
