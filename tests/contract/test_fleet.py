"""Every fleet implements the Fleet port, tested with simulated servers in separate processes."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path

import msgspec
import pytest

from matchpod.adapters.fleets.static import StaticFleet, StaticServer
from matchpod.adapters.rcon_client import RconConsoles
from matchpod.core.servers.server_loss import FleetReport
from matchpod.ports import Fleet
from tests.contract import fleet_servers
from tests.contract.agones_cluster import agones_cluster
from tests.contract.agones_dev_servers import dev_servers, given_kubeconfig
from tests.contract.fleet_servers import SIMULATOR, allocated, answer_of, order, process_fleet, recorded_pid
from tests.contract.listed_servers import own_ids
from tests.contract.simulator_process import PASSWORD, SimulatorProcess, free_ports
from tests.leases import FakeLease, LostError
from tests.waiting import until

folder = fleet_servers.folder


class FleetHarness:
    """A fleet under test with two servers, and functions to create another instance of it and to kill a server."""

    def __init__(self, create: Callable[[], Fleet], kill: Callable[[str], Awaitable[None]], *, is_owner: bool) -> None:
        self.create = create
        self.kill = kill
        self.is_owner = is_owner
        """True if the fleet owns its servers: it starts, stops and lists them."""
        self.seen = FleetReport.ALIVE if is_owner else FleetReport.UNKNOWN
        """What it reports of a running server: it sees only its own processes."""
        self.fleet = create()


@contextmanager
def process_harness(folder: Path) -> Iterator[FleetHarness]:
    ports = free_ports(2)

    async def kill(server_id: str) -> None:
        os.kill(recorded_pid(folder, server_id), signal.SIGKILL)

    yield FleetHarness(lambda: process_fleet(folder, ports, command=SIMULATOR), kill=kill, is_owner=True)


@pytest.fixture(scope="module")
def simulators() -> Iterator[list[SimulatorProcess]]:
    """Two servers that an operator runs, also after the matches."""
    with SimulatorProcess() as first, SimulatorProcess() as second:
        yield [first, second]


@contextmanager
def static_harness(simulators: list[SimulatorProcess]) -> Iterator[FleetHarness]:
    servers = [StaticServer(one.address, PASSWORD) for one in simulators]
    killed: list[SimulatorProcess] = []

    async def kill(_server_id: str) -> None:
        simulators[0].kill()
        killed.append(simulators[0])

    yield FleetHarness(lambda: StaticFleet(servers, RconConsoles(), clean_pause_s=0.1), kill=kill, is_owner=False)
    for one in killed:
        one.__enter__()


@asynccontextmanager
async def agones_harness(tmp_path: Path) -> AsyncIterator[FleetHarness]:
    async with agones_cluster(tmp_path, replicas=2) as cluster:

        async def kill(server_id: str) -> None:
            cluster.kill(server_id)

        yield FleetHarness(cluster.create, kill=kill, is_owner=True)


@asynccontextmanager
async def cluster_harness() -> AsyncIterator[FleetHarness]:
    """Use the cluster of a kubeconfig, if one is given."""
    async with dev_servers(given_kubeconfig(), number=2) as servers:
        yield FleetHarness(servers.create, kill=servers.kill, is_owner=True)


@pytest.fixture(params=["processes", "static", "agones", "cluster"])
async def harness(request: pytest.FixtureRequest, folder: Path, tmp_path: Path) -> AsyncIterator[FleetHarness]:
    async with AsyncExitStack() as stack:
        match request.param:
            case "processes":
                yield stack.enter_context(process_harness(folder))
            case "static":
                yield stack.enter_context(static_harness(request.getfixturevalue("simulators")))
            case "agones":
                yield await stack.enter_async_context(agones_harness(tmp_path))
            case _:
                yield await stack.enter_async_context(cluster_harness())


async def until_gone(fleet: Fleet, server_id: str, slot: str) -> None:
    async def is_gone() -> bool:
        return await fleet.observe(server_id, slot) is FleetReport.GONE

    await until(is_gone)


async def test_two_matches_have_different_servers_which_are_listed_until_they_are_released(
    harness: FleetHarness,
) -> None:
    fleet = harness.fleet
    orders = [order(fleet, f"srv_{slot}", slot) for slot in range(2)]
    await fleet.release("srv_0", orders[0].slot)
    await fleet.release("srv_0", "no such slot")
    (first, first_slot), (second, second_slot) = await asyncio.gather(*(allocated(fleet, one) for one in orders))
    assert first.port != second.port
    assert "hello" in await answer_of(first, "echo hello")
    assert await fleet.observe("srv_0", first_slot) is harness.seen
    assert await own_ids(fleet) == (["srv_0", "srv_1"] if harness.is_owner else [])
    for _ in range(2):
        await fleet.release("srv_0", first_slot)
        assert await fleet.observe("srv_1", second_slot) is harness.seen
        assert await own_ids(fleet) == (["srv_1"] if harness.is_owner else [])
    await fleet.release("srv_1", second_slot)
    assert await own_ids(fleet) == []
    await fleet.close()


async def test_server_is_found_by_its_match_in_repeated_allocations_and_in_releases(harness: FleetHarness) -> None:
    server_order = order(harness.fleet)
    first, slot = await allocated(harness.fleet, server_order)
    await answer_of(first, "hostname the_same_one")
    repeated = msgspec.structs.replace(server_order, is_repeated=True)
    assert await harness.fleet.allocate(repeated) == first
    await harness.fleet.close()
    other = harness.create()
    assert await own_ids(other) == (["srv_1"] if harness.is_owner else [])
    assert await other.allocate(repeated) == first
    assert "the_same_one" in await answer_of(first, "hostname")
    await other.release("srv_1", "")
    assert await own_ids(other) == []
    assert await other.observe("srv_1", slot) is not FleetReport.ALIVE


async def test_server_is_not_released_once_the_lease_is_lost(harness: FleetHarness) -> None:
    server, slot = await allocated(harness.fleet, order(harness.fleet))
    await answer_of(server, "sv_password the_same_one")
    with pytest.raises(LostError):
        await harness.fleet.release("srv_1", slot, FakeLease(valid_checks=0))
    assert await harness.fleet.observe("srv_1", slot) is harness.seen
    assert "the_same_one" in await answer_of(server, "sv_password")
    await harness.fleet.release("srv_1", slot, FakeLease())


async def test_killed_server_is_detected_and_can_be_released(harness: FleetHarness) -> None:
    _, slot = await allocated(harness.fleet, order(harness.fleet))
    waiting = asyncio.create_task(harness.fleet.wait_gone("srv_1", slot))
    await asyncio.sleep(0)
    await harness.kill("srv_1")
    if harness.is_owner:
        async with asyncio.timeout(60):  # 2 s, on a busy machine
            assert await waiting
        await until_gone(harness.fleet, "srv_1", slot)
    else:
        assert await harness.fleet.observe("srv_1", slot) is FleetReport.UNKNOWN, "it may come back"
        waiting.cancel()
    await harness.fleet.release("srv_1", slot)
    assert await own_ids(harness.fleet) == []
