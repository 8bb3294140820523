"""A fleet whose secret is replaced: old servers are used, and servers with another secret do not use up the fleet."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from matchpod.adapters.fleets.agones import AgonesFleet
from matchpod.adapters.fleets.agones_passwords import MAX_MISMATCHES, Fit
from matchpod.adapters.rcon_client import RconConsole, RconConsoles
from matchpod.ports import FleetUnavailableError
from tests.contract.agones_cluster import ALLOCATE, AgonesCluster, agones_cluster, following, order
from tests.contract.agones_game_servers import SECRET
from tests.contract.fleet_servers import answer_of
from tests.contract.test_agones_consoles import CountingConsoles
from tests.waiting import until

NEW = b"the secret that replaces it"
REPLICAS = 7
STOPPED = "3 game servers in a row rejected the password that is derived from the fleet secret"


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[AgonesCluster]:
    async with agones_cluster(tmp_path, replicas=REPLICAS, read_s=0.05) as created:
        yield created


async def test_servers_with_the_previous_secret_are_used_like_others(cluster: AgonesCluster) -> None:
    fits: list[Fit] = []
    fleet = cluster.create(on_password=fits.append, read_secret=lambda: NEW, read_previous_secret=lambda: SECRET)
    old = await fleet.allocate(order("srv_old"))
    assert old is not None
    assert "hello" in await answer_of(old, "echo hello")
    cluster.api.game_servers.secret = NEW
    for name in cluster.api.names("Ready"):
        cluster.api.fail(name)
    await until(lambda: len(cluster.api.names("Ready")) == REPLICAS - 1)
    assert await fleet.allocate(order("srv_new")) is not None
    assert fits == [Fit.PREVIOUS, Fit.CURRENT]


async def test_fleet_goes_on_when_its_secret_changes(cluster: AgonesCluster) -> None:
    secrets = [NEW]
    fleet = cluster.create(read_secret=lambda: secrets[0])
    async with following(fleet):
        for name in cluster.api.names("Ready")[MAX_MISMATCHES:]:
            cluster.api.set_state(name, "Reserved")  # so that none waits and could be tried
        await stop(fleet)
        assert (fleet.fault or "").startswith(STOPPED)
        secrets[0] = SECRET
        await until(lambda: fleet.fault is None)
        await cluster.api.scale(REPLICAS + 1)
        assert await fleet.allocate(order("srv_next")) is not None


async def test_fleet_goes_on_when_a_waiting_server_fits_and_trying_it_costs_none(cluster: AgonesCluster) -> None:
    consoles, reads = CountingConsoles(), 0

    def read_secret() -> bytes:
        nonlocal reads
        reads += 1
        return NEW

    fleet = cluster.create(consoles=consoles, read_secret=read_secret)
    async with following(fleet):
        await stop(fleet)
        consoles.ports.clear()
        waiting = cluster.api.names("Ready")
        await until(lambda: len(consoles.ports) == len(waiting))
        before = reads
        await until(lambda: reads > before + len(waiting))  # each time a server may be tried
        assert len(set(consoles.ports)) == len(consoles.ports) == len(waiting), "each server is tried once"
        assert (fleet.fault or "").startswith(STOPPED)
        cluster.api.game_servers.secret = NEW
        await cluster.api.scale(REPLICAS + 1)
        await until(lambda: fleet.fault is None)
        assert cluster.api.count_calls(ALLOCATE) == MAX_MISMATCHES
        assert len(cluster.api.names("Ready")) == len(waiting) + 1


async def test_match_that_has_its_server_is_resumed_while_the_fleet_is_stopped(cluster: AgonesCluster) -> None:
    await cluster.create().allocate(order("srv_playing"))
    fleet = cluster.create(read_secret=lambda: NEW)
    await stop(fleet)
    assert await fleet.allocate(order("srv_playing", is_repeated=True)) is not None


class SilentConsoles(RconConsoles):
    """Consoles of which the first ones never answer."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0

    async def open(self, host: str, port: int, password: str) -> RconConsole:
        self.asked += 1
        if self.asked <= MAX_MISMATCHES:
            await asyncio.sleep(3600)
        return await super().open(host, port, password)


async def test_servers_that_do_not_answer_hold_up_the_others_for_a_moment_only(cluster: AgonesCluster) -> None:
    consoles = SilentConsoles()
    fleet = cluster.create(consoles=consoles, turn_s=0.2)
    hanging = [asyncio.create_task(fleet.allocate(order(f"srv_{number}"))) for number in range(MAX_MISMATCHES)]
    await until(lambda: consoles.asked == MAX_MISMATCHES)
    assert await fleet.allocate(order("srv_next")) is not None
    for task in hanging:
        task.cancel()
    await asyncio.gather(*hanging, return_exceptions=True)


async def test_after_a_server_that_fits_others_are_tried_without_waiting(cluster: AgonesCluster) -> None:
    consoles = SilentConsoles()
    fleet = cluster.create(consoles=consoles, turn_s=3600.0)
    consoles.asked = MAX_MISMATCHES  # the first one answers
    assert await fleet.allocate(order("srv_first")) is not None
    consoles.asked = 0
    orders = [asyncio.create_task(fleet.allocate(order(f"srv_{number}"))) for number in range(MAX_MISMATCHES + 1)]
    async with asyncio.timeout(60):
        await until(lambda: any(task.done() for task in orders))
    for task in orders:
        task.cancel()
    await asyncio.gather(*orders, return_exceptions=True)


async def test_secret_that_cannot_be_read_any_more_is_a_fault_until_it_can(cluster: AgonesCluster) -> None:
    faults = [""]

    def read() -> bytes:
        if faults[0]:
            raise ValueError(faults[0])
        return SECRET

    fleet = cluster.create(read_secret=read)
    async with following(fleet):
        faults[0] = "The fleet secret x cannot be read: Permission denied."
        await until(lambda: fleet.fault == faults[0])
        faults[0] = ""
        await until(lambda: fleet.fault is None)


async def test_probe_tells_whether_a_waiting_server_fits_without_allocating_it(cluster: AgonesCluster) -> None:
    assert await cluster.create().probe() is None
    assert await cluster.create(read_secret=lambda: NEW, read_previous_secret=lambda: SECRET).probe() is None
    fault = await cluster.create(read_secret=lambda: NEW).probe()
    assert fault == "A waiting game server rejected the password of the fleet secret."
    assert len(cluster.api.names("Ready")) == REPLICAS


async def stop(fleet: AgonesFleet) -> None:
    orders = [fleet.allocate(order(f"srv_{number}")) for number in range(MAX_MISMATCHES)]
    outcomes = await asyncio.gather(*orders, return_exceptions=True)
    assert {type(one) for one in outcomes} == {FleetUnavailableError}
