"""A fleet in Agones whose etcd was restored from a backup, or whose watch missed something, finds out and recovers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from matchpod.adapters.fleets.agones_servers import SERVER_LABEL, ServerRef
from matchpod.adapters.rcon_client import RconConsoles
from matchpod.core.servers.server_loss import FleetReport
from matchpod.ports import Capacity, ConsoleAuthError, FleetUnavailableError
from tests.contract.agones_api import Fault
from tests.contract.agones_cluster import (
    ALLOCATE,
    DELETE,
    LIST,
    PASSWORD,
    WATCH,
    AgonesCluster,
    agones_cluster,
    count_lists,
    following,
    order,
    playing,
)
from tests.contract.fleet_servers import allocated
from tests.waiting import until

WAIT_S = 60.0


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[AgonesCluster]:
    """A cluster whose fleets notice nothing without their watch."""
    async with agones_cluster(tmp_path, replicas=2, gone_poll_s=3_600.0) as created:
        yield created


async def reason_of(waiting: asyncio.Task[str]) -> str:
    async with asyncio.timeout(WAIT_S):
        return await waiting


@pytest.mark.parametrize("is_restarted", [True, False])
async def test_match_whose_server_is_back_in_the_pool_is_lost_and_leaves_no_server_with_its_password(
    cluster: AgonesCluster, is_restarted: bool
) -> None:
    fleet, backup = cluster.create(), cluster.api.back_up()
    async with playing(fleet) as server:
        port = cluster.api.game_servers.running[server.name].options.port
        if is_restarted:  # as the manual of etcd wants it
            cluster.api.outage = Fault.CLOSE
            cluster.api.close_watches()
            await until(lambda: fleet.fault)
        cluster.api.restore(backup)
        cluster.api.outage = None
        assert await reason_of(server.lost) == "the GameServer belongs to another match or to none"
        assert await fleet.observe("srv_1", server.slot) is FleetReport.GONE
        assert await fleet.capacity() == Capacity(ready=2, allocated=0, total=2)
        await fleet.release("srv_1", server.slot)
        await until(lambda: server.name not in cluster.api.objects)
        calls = cluster.api.count_calls(ALLOCATE)
        await until(lambda: fleet.capacity_now.ready == 2)
        next_server, _ = await allocated(fleet, order("srv_2"))
        assert cluster.api.count_calls(ALLOCATE) == calls + 1
        with pytest.raises(ConsoleAuthError):
            await RconConsoles().open(next_server.rcon_host, next_server.rcon_port, PASSWORD + "x")
        assert next_server.port != port


async def test_servers_are_listed_after_a_lost_connection_although_versions_have_caught_up(
    cluster: AgonesCluster,
) -> None:
    backup = cluster.api.back_up()
    fleet = cluster.create()
    async with playing(fleet) as server:
        cluster.api.outage = Fault.CLOSE
        cluster.api.close_watches()
        await until(lambda: fleet.fault)
        cluster.api.restore(backup)
        (other,) = set(cluster.api.names("Ready")) - {server.name}
        for _ in range(20):
            cluster.api.set_state(other, "Ready")
        cluster.api.outage = None
        assert await reason_of(server.lost) == "the GameServer belongs to another match or to none"


async def test_servers_are_listed_now_and_then_although_the_watch_works(cluster: AgonesCluster) -> None:
    fleet = cluster.create(relist_s=1.0)
    async with playing(fleet) as server:
        cluster.api.remove_silently(server.name)
        assert await reason_of(server.lost) == "the GameServer was deleted"
        assert fleet.fault is None


async def test_watch_of_a_busy_server_goes_on_where_it_ended(cluster: AgonesCluster) -> None:
    fleet = cluster.create()
    async with following(fleet):
        opened = cluster.api.watches_opened
        cluster.api.faults[WATCH] = [Fault.BUSY_429]
        cluster.api.close_watches()
        await until(lambda: cluster.api.watches_opened > opened)
        await until(lambda: fleet.fault is None)
        assert count_lists(cluster) == 1


async def test_cluster_that_does_not_answer_is_not_asked_for_each_server(cluster: AgonesCluster) -> None:
    fleet = cluster.create()
    async with playing(fleet) as server:
        cluster.api.outage = Fault.CLOSE
        cluster.api.close_watches()
        await until(lambda: fleet.fault)
        before = cluster.api.count_calls("get gameservers")
        for _ in range(10):
            assert await fleet.observe("srv_1", server.slot) is FleetReport.UNKNOWN
        assert cluster.api.count_calls("get gameservers") == before
        cluster.api.outage = None
        await until(lambda: fleet.fault is None)
        assert await fleet.observe("srv_1", server.slot) is FleetReport.ALIVE


# --- which server a release deletes ---------------------------------------------------------------------------------


async def test_release_by_another_process_finds_the_server_without_its_label(cluster: AgonesCluster) -> None:
    backup = cluster.api.back_up()
    _, slot = await allocated(cluster.create(), order())
    cluster.api.restore(backup)
    await cluster.create().release("srv_1", slot)
    assert ServerRef.read(slot).name not in cluster.api.names("Ready")


@pytest.mark.parametrize("what", ["other server of that name", "other match", "other program", "other fleet"])
async def test_release_leaves_a_server_alone_that_is_not_its_own(cluster: AgonesCluster, what: str) -> None:
    backup = cluster.api.back_up()
    _, slot = await allocated(cluster.create(), order())
    cluster.api.restore(backup)
    name = ServerRef.read(slot).name
    server = cluster.api.objects[name]
    match what:
        case "other server of that name":
            server["metadata"]["uid"] = "another"
        case "other match":
            server["metadata"]["labels"][SERVER_LABEL] = "srv_2"
            server["status"]["state"] = "Allocated"
        case "other program":
            server["status"]["state"] = "Allocated"
        case _:
            server["metadata"]["labels"]["agones.dev/fleet"] = "another"
    await cluster.create().release("srv_1", slot)
    assert cluster.api.count_calls(DELETE) == 0


async def test_release_of_a_labelled_server_reads_no_single_server(cluster: AgonesCluster) -> None:
    fleet = cluster.create()
    _, slot = await allocated(fleet, order())
    before = len(cluster.api.calls)
    await fleet.release("srv_1", slot)
    assert [call.right for call in cluster.api.calls[before:]] == [LIST, DELETE, LIST]


async def test_release_is_given_up_at_once_while_the_cluster_is_known_to_be_unusable(cluster: AgonesCluster) -> None:
    fleet = cluster.create(release_s=3_600.0)
    async with playing(fleet) as server:
        cluster.api.outage = Fault.CLOSE
        cluster.api.close_watches()
        await until(lambda: fleet.fault)
        with pytest.raises(FleetUnavailableError, match="cannot be reached"):
            async with asyncio.timeout(WAIT_S):
                await fleet.release("srv_1", server.slot)
        cluster.api.outage = None
        await until(lambda: fleet.fault is None)
        await fleet.release("srv_1", server.slot)
        assert cluster.names_of("srv_1") == []
