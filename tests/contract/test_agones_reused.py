"""A server in Agones that put itself back into the pool (`SDK.Ready()`) gets no other match, and is deleted."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import nullcontext
from pathlib import Path

import pytest

from matchpod.adapters.fleets.agones import AgonesFleet
from matchpod.adapters.fleets.agones_servers import OWNER_LABEL, SERVER_LABEL
from matchpod.core.servers.server_loss import FleetReport
from matchpod.ports import Capacity
from tests.contract.agones_cluster import DELETE, GET, AgonesCluster, agones_cluster, following, order, playing, slot_of
from tests.contract.listed_servers import own_ids
from tests.waiting import until


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[AgonesCluster]:
    """A cluster whose fleets count every allocation as old, and notice nothing without their watch."""
    async with agones_cluster(tmp_path, replicas=2, gone_poll_s=3_600.0, fresh_s=0.0) as created:
        yield created


REPORT = "server not deleted: it was allocated again"


async def started(fleet: AgonesFleet, server_id: str = "srv_1") -> tuple[str, str]:
    """Start the server of a match; return its name, and what the row of the match has in `slot`."""
    server = await fleet.allocate(order(server_id))
    assert server is not None
    assert server.slot is not None
    return slot_of(server), server.slot


def take_over(cluster: AgonesCluster, name: str, owner: str) -> None:
    """Allocate a server to a match of an installation that selects by the label of the Fleet only."""
    cluster.api.objects[name]["metadata"]["labels"] |= {SERVER_LABEL: "srv_2", OWNER_LABEL: owner}
    cluster.api.set_state(name, "Allocated")


@pytest.mark.parametrize("is_followed", [True, False])
async def test_server_that_called_ready_gets_no_other_match(cluster: AgonesCluster, is_followed: bool) -> None:
    fleet = cluster.create(retry_s=0.0)
    name, _ = await started(fleet)
    cluster.api.sdk_ready(name)
    async with following(fleet) if is_followed else nullcontext():
        assert await fleet.capacity() == Capacity(ready=1, allocated=0, total=2) or not is_followed
        assert slot_of(await fleet.allocate(order("srv_2"))) != name
        assert await fleet.allocate(order("srv_3")) is None


async def test_login_is_tried_at_no_server_that_has_the_password_of_a_match(cluster: AgonesCluster) -> None:
    fleet = cluster.create()
    for server_id in ("srv_1", "srv_2"):
        cluster.api.sdk_ready(slot_of(await fleet.allocate(order(server_id))))
    assert await fleet.probe() is None


@pytest.mark.parametrize("state", ["Ready", "Reserved"])
async def test_server_that_is_no_longer_allocated_is_lost(cluster: AgonesCluster, state: str) -> None:
    fleet = cluster.create()
    async with playing(fleet) as server:
        cluster.api.set_state(server.name, state)
        async with asyncio.timeout(60):
            assert await server.lost == f"the GameServer is no longer allocated: its state is {state}"
        assert await fleet.observe("srv_1", server.slot) is FleetReport.GONE
    assert await fleet.observe("srv_1", server.slot) is FleetReport.GONE


async def test_server_is_not_lost_because_of_what_an_old_watch_shows(cluster: AgonesCluster) -> None:
    fleet = cluster.create()
    name, slot = await started(fleet)
    async with following(fleet):
        cluster.api.sdk_ready(name)
        await until(lambda: fleet.capacity_now.allocated == 0)
        cluster.api.objects[name]["status"]["state"] = "Allocated"  # no event
        reads = cluster.api.count_calls(GET)
        assert await fleet.observe("srv_1", slot) is FleetReport.ALIVE
        assert cluster.api.count_calls(GET) == reads + 1


async def test_server_is_not_lost_right_after_its_allocation(cluster: AgonesCluster) -> None:
    fleet = cluster.create(fresh_s=3_600.0)
    name, slot = await started(fleet)
    cluster.api.sdk_ready(name)
    assert await fleet.observe("srv_1", slot) is FleetReport.ALIVE
    successor = cluster.create(fresh_s=3_600.0)  # does not know when it was allocated
    assert await successor.observe("srv_1", slot) is FleetReport.ALIVE


# --- what is deleted --------------------------------------------------------------------------------------------------


async def test_server_that_called_ready_is_deleted_as_it_was_read(cluster: AgonesCluster) -> None:
    fleet = cluster.create()
    name, slot = await started(fleet)
    cluster.api.sdk_ready(name)
    metadata = dict(cluster.api.objects[name]["metadata"])
    await fleet.release("srv_1", slot)
    (body,) = [json.loads(call.body) for call in cluster.api.calls if call.right == DELETE]
    assert body["preconditions"] == {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]}
    assert cluster.names_of("srv_1") == []


@pytest.mark.parametrize("has_slot", [True, False])
async def test_server_that_is_taken_over_during_its_deletion_is_left_alone(
    cluster: AgonesCluster, has_slot: bool, caplog: pytest.LogCaptureFixture
) -> None:
    fleet = cluster.create()
    name, slot = await started(fleet)
    cluster.api.sdk_ready(name)
    cluster.api.before[DELETE] = lambda: take_over(cluster, name, "another")
    await fleet.release("srv_1", slot if has_slot else "")
    assert cluster.api.count_calls(DELETE) == 1
    assert cluster.names_of("srv_2") == [name]
    assert (REPORT in caplog.text) == has_slot


async def test_second_server_that_is_taken_over_during_its_deletion_is_left_alone(cluster: AgonesCluster) -> None:
    (kept, _), (second, _) = [await started(cluster.create()) for _ in range(2)]
    cluster.api.before[DELETE] = lambda: take_over(cluster, second, "another")
    found = await cluster.create().allocate(order(is_repeated=True))
    assert found is not None
    assert slot_of(found) == kept
    assert cluster.api.count_calls(DELETE) == 1
    assert cluster.names_of("srv_2") == [second]


async def test_server_that_changes_during_its_deletion_is_deleted_all_the_same(cluster: AgonesCluster) -> None:
    fleet = cluster.create()
    name, slot = await started(fleet)
    cluster.api.before[DELETE] = lambda: cluster.api.sdk_ready(name)
    await fleet.release("srv_1", slot)
    assert cluster.api.count_calls(DELETE) == 2
    assert cluster.names_of("srv_1") == []


@pytest.mark.parametrize("owner", ["another", "mp-0123456789abcdef"])
async def test_server_that_was_taken_over_is_left_alone_and_reported(
    cluster: AgonesCluster, owner: str, caplog: pytest.LogCaptureFixture
) -> None:
    fleet = cluster.create()
    name, slot = await started(fleet)
    cluster.api.sdk_ready(name)
    take_over(cluster, name, owner)
    assert await fleet.observe("srv_1", slot) is FleetReport.GONE
    await fleet.release("srv_1", slot)
    assert cluster.api.count_calls(DELETE) == 0
    (record,) = [one for one in caplog.records if one.message == REPORT]
    assert record.levelname == "WARNING"
    about = {"server_id": "srv_1", "slot": slot, "owner": owner, "allocated_to": "srv_2"}
    assert about.items() <= vars(record).items()
    listed = {one.server_id: one.owner for one in await fleet.servers()}
    assert listed == {"srv_2": owner}  # a sweep reports it


async def test_server_that_called_ready_again_after_it_was_taken_over_is_deleted(cluster: AgonesCluster) -> None:
    fleet = cluster.create()
    name, slot = await started(fleet)
    take_over(cluster, name, "another")
    cluster.api.sdk_ready(name)
    await fleet.release("srv_1", slot)
    assert cluster.names_of("srv_2") == []


async def test_sweep_finds_a_server_that_called_ready(cluster: AgonesCluster) -> None:
    fleet = cluster.create()
    cluster.api.sdk_ready(slot_of(await fleet.allocate(order())))
    assert await own_ids(fleet) == ["srv_1"]
