"""A fleet in Agones behaves the same with the fake API and with the cluster of a kubeconfig, if one is given.

Other tests try all of this with the fake API, so it is compared in `make soak` only.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from matchpod.adapters.fleets.agones_servers import ServerRef
from matchpod.adapters.kubernetes.api_errors import ApiNotFoundError, ConflictError
from matchpod.adapters.kubernetes.server_watch import went_back
from matchpod.core.servers.server_loss import FleetReport
from matchpod.ports import Capacity, FleetUnavailableError
from tests.contract.agones_api import FakeAgones
from tests.contract.agones_cluster import following, order, write_kubeconfig
from tests.contract.agones_dev_servers import DevServers, dev_servers, given_kubeconfig
from tests.contract.agones_game_servers import GameServers
from tests.contract.agones_http import serve
from tests.contract.fleet_servers import allocated, answer_of


@pytest.fixture(params=[pytest.param("fake", marks=pytest.mark.soak), "cluster"])
async def servers(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[DevServers]:
    if request.param == "cluster":
        async with dev_servers(given_kubeconfig(), number=2) as created:
            yield created
    else:
        async with (
            serve(FakeAgones(GameServers())) as url,
            dev_servers(write_kubeconfig(tmp_path / "kubeconfig", url, has_set_up=True), number=2) as created,
        ):
            yield created


async def test_servers_are_allocated_until_none_is_left_and_a_new_one_wakes(servers: DevServers) -> None:
    fleet = servers.create()
    async with following(fleet) as changed:
        matches = [await allocated(fleet, order(f"srv_{number}")) for number in range(2)]
        assert len({slot for _, slot in matches}) == 2
        assert "hello" in await answer_of(matches[0][0], "echo hello")
        while (await fleet.capacity()) != Capacity(ready=0, allocated=2, total=2):
            await asyncio.sleep(0.01)
        assert await fleet.allocate(order("srv_2")) is None
        changed.clear()
        await servers.add()
        await changed.wait()
        assert await fleet.allocate(order("srv_2")) is not None


async def test_missing_fleet_is_told_apart_from_a_full_one(servers: DevServers) -> None:
    with pytest.raises(FleetUnavailableError, match="There is no Fleet missing in the namespace"):
        await servers.create(fleet="missing", selector={}).allocate(order())


async def test_rejected_selector_is_reported(servers: DevServers) -> None:
    with pytest.raises(FleetUnavailableError, match="rejected the selector or labels"):
        await servers.create(selector={"tier": "not valid"}).allocate(order())


async def test_one_of_two_servers_of_a_match_is_kept(servers: DevServers) -> None:
    _, first = await allocated(servers.create(), order())
    await allocated(servers.create(), order())
    assert len(await servers.names("srv_1")) == 2
    found = await servers.create().allocate(order(is_repeated=True))
    assert found is not None
    assert found.slot == first
    assert await servers.names("srv_1") == [ServerRef.read(first).name]


async def test_server_is_deleted_only_if_it_is_the_one_that_is_meant(servers: DevServers) -> None:
    _, slot = await allocated(servers.create(), order())
    name = ServerRef.read(slot).name
    with pytest.raises(ConflictError):
        await servers.client.delete_server(name, uid="00000000-0000-0000-0000-000000000000")
    assert await servers.names("srv_1") == [name]
    with pytest.raises(ApiNotFoundError) as failed:
        await servers.client.delete_server("no-such-server", uid="x")
    assert not failed.value.is_missing_api


async def test_server_that_put_itself_back_into_the_pool_gets_no_other_match_and_is_deleted(
    servers: DevServers,
) -> None:
    fleet = servers.create(retry_s=0.0, fresh_s=0.0)
    _, slot = await allocated(fleet, order())
    name = ServerRef.read(slot).name
    before = (await servers.client.server(name)).metadata
    await servers.make_ready(name)
    _, other = await allocated(fleet, order("srv_2"))
    assert other != slot
    assert await fleet.allocate(order("srv_3")) is None
    assert await fleet.observe("srv_1", slot) is FleetReport.GONE
    with pytest.raises(ConflictError):
        await servers.client.delete_server(name, uid=before.uid, version=before.resource_version)
    await fleet.release("srv_1", slot)
    assert await servers.names("srv_1") == []


async def test_check_finds_nothing_wrong(servers: DevServers) -> None:
    fleet = servers.create()
    assert list(await fleet.check()) == []
    assert fleet.fault is None


async def test_list_is_read_in_pages(servers: DevServers) -> None:
    for _ in range(3):
        await servers.add()
    client = servers.client_with(page_size=2)
    try:
        listed = await client.servers(servers.labels)
        assert len(listed.items or ()) == 5
        # A later version: a page has that of its list, not that of the time when it is read.
        assert not went_back(listed.metadata.resource_version, await client.version(servers.labels))
    finally:
        await client.close()


async def test_server_without_the_label_of_its_match_is_released_by_name_and_uid(servers: DevServers) -> None:
    """As after a restored etcd: a server that was never allocated, but is in the row of a match."""
    ready = await servers.client.server(await servers.add())
    fleet, name = servers.create(), ready.metadata.name
    await fleet.release("srv_1", str(ServerRef(name, "00000000-0000-0000-0000-000000000000")))
    assert (await servers.client.server(name)).metadata.deletion_timestamp is None
    await fleet.release("srv_1", str(ServerRef(name, ready.metadata.uid)))
    assert await fleet.observe("srv_1", str(ServerRef(name, ready.metadata.uid))) is FleetReport.GONE
