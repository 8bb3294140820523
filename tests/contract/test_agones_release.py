"""Servers in Agones that vanish are noticed, and released servers are deleted, whatever goes wrong in between."""

from __future__ import annotations

import asyncio
import json
from functools import partial

import pytest

from matchpod.adapters.fleets.agones_servers import EARLY_OWNER
from matchpod.core.servers.server_loss import FleetReport
from matchpod.ports import FleetError, FleetUnavailableError
from tests.contract import agones_cluster
from tests.contract.agones_api import Fault
from tests.contract.agones_cluster import (
    DELETE,
    GET,
    LIST,
    WATCH,
    AgonesCluster,
    count_lists,
    following,
    order,
    playing,
    slot_of,
)
from tests.contract.listed_servers import own_ids
from tests.waiting import until

cluster = agones_cluster.two_servers


async def test_watch_reports_a_crashed_server_and_observing_it_costs_no_call(cluster: AgonesCluster) -> None:
    fleet = cluster.create()
    async with playing(fleet) as server:
        reads = cluster.api.count_calls(GET)
        for _ in range(10):
            assert await fleet.observe("srv_1", server.slot) is FleetReport.ALIVE
        cluster.kill("srv_1")
        assert await server.lost == "the GameServer is in state Unhealthy"
        assert cluster.api.count_calls(GET) == reads
        assert await fleet.observe("srv_1", server.slot) is FleetReport.GONE


async def test_server_that_is_being_deleted_is_gone_although_the_end_of_it_is_late(cluster: AgonesCluster) -> None:
    cluster.api.finalize_s = 3600.0
    fleet = cluster.create()
    async with playing(fleet) as server:
        reads = cluster.api.count_calls(GET)
        cluster.api.delete(server.name)
        assert await server.lost == "the GameServer is being deleted"
        assert cluster.api.count_calls(GET) == reads
        assert await fleet.observe("srv_1", server.slot) is FleetReport.GONE
        await fleet.release("srv_1", server.slot)
        assert await own_ids(fleet) == []


@pytest.mark.parametrize("is_event", [False, True])
async def test_server_that_is_missing_after_the_history_was_lost_is_gone(
    cluster: AgonesCluster, is_event: bool
) -> None:
    cluster.api.is_gone_an_event = is_event
    fleet = cluster.create()
    async with playing(fleet) as server:
        cluster.api.remove_silently(server.name)
        cluster.api.expire_versions()
        assert await server.lost == "the GameServer was deleted"
        assert fleet.fault is None
    assert count_lists(cluster) == 2


def opened_since(cluster: AgonesCluster, count: int) -> bool:
    return cluster.api.watches_opened > count


async def test_closed_watches_are_opened_again_where_they_ended(cluster: AgonesCluster) -> None:
    fleet = cluster.create()
    async with playing(fleet) as server:
        for _ in range(3):
            opened = cluster.api.watches_opened
            cluster.api.close_watches()
            await until(partial(opened_since, cluster, opened))
        assert fleet.fault is None
        cluster.kill("srv_1")
        assert await server.lost
    assert count_lists(cluster) == 1


async def test_half_open_watch_is_given_up(cluster: AgonesCluster) -> None:
    cluster.watch_grace_s = 0.2
    async with playing(cluster.create()) as server:
        cluster.api.are_watches_frozen = True
        await until(lambda: cluster.api.watches_frozen)
        cluster.kill("srv_1")
        opened = cluster.api.watches_opened
        await until(lambda: cluster.api.watches_opened > opened)
        cluster.api.are_watches_frozen = False
        assert await server.lost


async def test_watch_that_never_opens_does_not_hide_that_a_server_is_gone(cluster: AgonesCluster) -> None:
    fleet = cluster.create()
    slot = slot_of(await fleet.allocate(order()))
    cluster.api.forbidden = {WATCH}
    async with following(fleet):
        assert fleet.fault is not None
        assert "lacks the right to watch gameservers.agones.dev" in fleet.fault
        waiting = asyncio.create_task(fleet.wait_gone("srv_1", slot))
        assert await fleet.observe("srv_1", slot) is FleetReport.ALIVE
        cluster.kill("srv_1")
        assert await waiting
        assert await fleet.observe("srv_1", slot) is FleetReport.GONE


async def test_server_is_not_gone_while_its_state_is_unknown(cluster: AgonesCluster) -> None:
    fleet = cluster.create()
    slot = slot_of(await fleet.allocate(order()))
    cluster.kill("srv_1")
    for fault in (Fault.CLOSE, Fault.TEXT_500, Fault.TEXT_503, Fault.GARBAGE):
        cluster.api.outage = fault
        assert await fleet.observe("srv_1", slot) is FleetReport.UNKNOWN
    cluster.api.outage = None
    assert await fleet.observe("srv_1", slot) is FleetReport.GONE


async def test_server_of_another_match_is_not_that_of_this_one(cluster: AgonesCluster) -> None:
    fleet = cluster.create()
    slot = slot_of(await fleet.allocate(order("srv_2")))
    assert await fleet.observe("srv_1", slot) is FleetReport.GONE
    assert await fleet.observe("srv_2", slot) is FleetReport.ALIVE
    assert await fleet.observe("srv_2", "") is FleetReport.ALIVE
    assert await fleet.observe("srv_1", "") is FleetReport.GONE
    assert await fleet.wait_gone("srv_1", slot)
    await fleet.release("srv_1", slot)
    assert cluster.names_of("srv_2") == [slot]


# --- release and sweeps -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", [Fault.CLOSE_AFTER, Fault.TEXT_503, Fault.HANG_AFTER], ids=lambda f: f.name)
async def test_release_is_repeated_until_it_is_confirmed(cluster: AgonesCluster, fault: Fault) -> None:
    cluster.call_s = 0.5 if fault is Fault.HANG_AFTER else 30.0
    fleet = cluster.create()
    slot = slot_of(await fleet.allocate(order()))
    cluster.api.faults = {DELETE: [fault], LIST: [Fault.CLOSE]}
    await fleet.release("srv_1", slot)
    assert cluster.names_of("srv_1") == []


async def test_release_that_cannot_be_confirmed_fails(cluster: AgonesCluster) -> None:
    fleet = cluster.create(release_s=0.5)
    slot = slot_of(await fleet.allocate(order()))
    cluster.api.outage = Fault.TEXT_503
    with pytest.raises(FleetError, match="is not confirmed"):
        await fleet.release("srv_1", slot)
    cluster.api.outage = None
    cluster.api.forbidden = {DELETE}
    with pytest.raises(FleetUnavailableError, match=r"lacks the right to delete gameservers\.agones\.dev"):
        await fleet.release("srv_1", slot)
    cluster.api.forbidden = set()
    await fleet.release("srv_1", slot)
    assert cluster.names_of("srv_1") == []


async def test_release_deletes_all_servers_of_a_match_by_their_uids(cluster: AgonesCluster) -> None:
    slots = [slot_of(await cluster.create().allocate(order())) for _ in range(2)]
    uids = {cluster.api.objects[slot]["metadata"]["uid"] for slot in slots}
    await cluster.create().release("srv_1", slots[0])
    assert cluster.names_of("srv_1") == []
    bodies = [json.loads(call.body) for call in cluster.api.calls if call.right == DELETE]
    assert {body["preconditions"]["uid"] for body in bodies} == uids


async def test_sweep_finds_servers_of_this_region_and_owner_only(cluster: AgonesCluster) -> None:
    await cluster.api.scale(4)
    await cluster.create(region="us").allocate(order("srv_us"))
    await cluster.create(owner="another").allocate(order("srv_other"))
    fleet = cluster.create()
    await fleet.allocate(order("srv_1"))
    assert await own_ids(fleet) == ["srv_1"]
    assert [(one.server_id, one.owner) for one in await fleet.servers() if not one.is_own] == [("srv_other", "another")]
    for server_id in ("srv_us", "srv_other", "srv_1"):
        await fleet.release(server_id, "")
    assert cluster.names_of("srv_us")
    assert cluster.names_of("srv_other")
    assert await own_ids(fleet) == []


async def test_sweep_finds_servers_of_a_fleet_that_is_no_longer_configured(cluster: AgonesCluster) -> None:
    await cluster.create().allocate(order())
    successor = cluster.create(fleet="cs2-new")
    assert await own_ids(successor) == ["srv_1"]
    await successor.release("srv_1", "")
    assert cluster.names_of("srv_1") == []


async def test_match_that_an_early_version_started_goes_on_after_an_upgrade(cluster: AgonesCluster) -> None:
    """All servers had the same owner then; their matches know them by name."""
    slot = slot_of(await cluster.create(owner=EARLY_OWNER).allocate(order()))
    fleet = cluster.create()
    assert [(one.server_id, one.is_own) for one in await fleet.servers()] == [("srv_1", None)]
    assert await fleet.observe("srv_1", slot) is FleetReport.ALIVE
    assert slot_of(await fleet.allocate(order(is_repeated=True, slot=slot))) == slot
    async with following(fleet):
        assert fleet.holds("srv_1")
        waiting = asyncio.create_task(fleet.wait_gone("srv_1", slot))
        await fleet.release("srv_1", slot)
        assert await waiting
    assert cluster.names_of("srv_1") == []
