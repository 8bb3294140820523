"""The capacity of a fleet in Agones, its faults, what the check of its settings finds wrong, and its metrics."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from matchpod.adapters.fleets.agones import AgonesFleet
from matchpod.adapters.fleets.agones_options import read_fleet_secret
from matchpod.adapters.kubernetes.client import KubernetesClient
from matchpod.adapters.kubernetes.cluster import ClusterSource
from matchpod.adapters.rcon_client import RconConsoles
from matchpod.app.measurement import RegionMeter
from matchpod.core.servers.server_loss import FleetReport
from matchpod.ports import Capacity, FleetUnavailableError
from matchpod.service.telemetry.metrics import AgonesMetrics
from matchpod.service.telemetry.prometheus import Registry
from tests.clocks import ManualClock
from tests.contract import agones_cluster
from tests.contract.agones_api import Fault
from tests.contract.agones_cluster import ALLOCATE, DELETE, OPTIONS, AgonesCluster, following, order, slot_of
from tests.waiting import until

cluster = agones_cluster.two_servers


async def test_capacity_is_known_with_and_without_a_watch(cluster: AgonesCluster) -> None:
    cluster.call_s = 1.0
    fleet = cluster.create()
    assert await fleet.capacity() == Capacity(ready=2, allocated=0, total=2)
    await fleet.allocate(order())
    assert await fleet.capacity() == Capacity(ready=1, allocated=1, total=2)
    async with following(fleet):
        assert await fleet.capacity() == Capacity(ready=1, allocated=1, total=2)
        reads = cluster.api.count_calls("get fleets")
        await fleet.capacity()
        assert cluster.api.count_calls("get fleets") == reads
        cluster.api.outage = Fault.HANG
        cluster.api.close_watches()
        await until(lambda: not fleet.is_followed)
        async with asyncio.timeout(5):
            assert (await fleet.capacity()).ready == 1
    cluster.api.outage = None
    with pytest.raises(FleetUnavailableError, match="There is no Fleet"):
        await cluster.create(fleet="cs2-us").capacity()


async def found_wrong(fleet: AgonesFleet) -> tuple[list[str], str | None]:
    """Return what is wrong with the settings of a fleet, which stops a service, and what may heal."""
    return list(await fleet.check()), fleet.fault


async def test_check_reports_a_missing_fleet_rights_and_a_short_secret(cluster: AgonesCluster, tmp_path: Path) -> None:
    cluster.api.forbidden = {DELETE, ALLOCATE}
    (tmp_path / "secret").write_bytes(b"short")
    fleet = cluster.create(fleet="cs2-us", read_secret=lambda: read_fleet_secret(tmp_path / "secret"))
    assert await found_wrong(fleet) == (
        [f"The fleet secret {tmp_path}/secret cannot be used: it has 5 bytes, at least 16 are needed."],
        "There is no Fleet cs2-us in the namespace default. Fleets there: cs2-eu."
        " The account of the service lacks the right to create gameserverallocations.allocation.agones.dev."
        " The account of the service lacks the right to delete gameservers.agones.dev.",
    )


async def test_check_reports_rights_as_far_as_they_are_known(cluster: AgonesCluster) -> None:
    cluster.api.forbidden = {"get fleets"}
    missing = "The account of the service lacks the right to get fleets.agones.dev"
    assert await found_wrong(cluster.create()) == ([], f"{missing}.")
    cluster.api.faults["create "] = [Fault.TEXT_503]  # the review of our rights
    wrong, fault = await found_wrong(cluster.create())
    assert wrong == []
    assert str(fault).startswith(f"{missing}: fleets.agones.dev")


async def test_cluster_without_agones_is_reported(cluster: AgonesCluster) -> None:
    cluster.api.has_agones = False
    fleet = cluster.create()
    wrong, fault = await found_wrong(fleet)
    assert wrong == []
    assert "is Agones installed there?" in str(fault)
    for call in (fleet.allocate(order()), fleet.servers(), fleet.capacity(), fleet.release("srv_1", "")):
        with pytest.raises(FleetUnavailableError, match="is Agones installed there"):
            await call
    assert await fleet.observe("srv_1", "cs2-eu-1") is FleetReport.UNKNOWN


@pytest.mark.parametrize(
    ("outage", "sentence"),
    [
        (Fault.CLOSE, "cannot be reached: Server disconnected without sending a response"),
        (Fault.BUSY_429, "Too many requests"),
        (Fault.HANG, "did not answer within 0.5 s"),
        (None, "rejected the credentials"),
    ],
)
async def test_check_records_what_may_heal_as_a_fault_until_it_has(
    cluster: AgonesCluster, outage: Fault | None, sentence: str
) -> None:
    tokens = cluster.api.tokens
    cluster.api.outage, cluster.api.tokens = outage, None if outage else set()
    fleet = cluster.create(check_s=0.5 if outage is Fault.HANG else 30.0)
    wrong, fault = await found_wrong(fleet)
    assert wrong == []
    assert sentence in str(fault)
    assert not str(fault).endswith(".."), "it is shown as one sentence"
    cluster.api.outage, cluster.api.tokens = None, tokens
    async with following(fleet):
        await until(lambda: fleet.fault is None)
        assert await fleet.allocate(order()) is not None


async def test_rights_are_reviewed_again_until_none_is_missing(cluster: AgonesCluster) -> None:
    cluster.api.forbidden = {DELETE}
    fleet = cluster.create(missing_fleet_poll_s=0.1)
    await fleet.check()
    async with following(fleet):
        await until(lambda: cluster.api.watches_opened)
        assert fleet.fault == "The account of the service lacks the right to delete gameservers.agones.dev."
        cluster.api.forbidden = set()
        await until(lambda: fleet.fault is None)


async def test_check_finds_nothing_wrong_or_unusable_settings(cluster: AgonesCluster) -> None:
    assert await found_wrong(cluster.create()) == ([], None)
    cluster.kubeconfig.unlink()
    wrong = f"The kubeconfig {cluster.kubeconfig} cannot be read: No such file or directory."
    assert await found_wrong(cluster.create()) == ([wrong], None)


async def test_every_right_of_the_role_is_used(cluster: AgonesCluster) -> None:
    await cluster.create(fleet="cs2-us").check()
    fleet = cluster.create()
    async with following(fleet):
        name = slot_of(await fleet.allocate(order()))
    assert await fleet.observe("srv_1", name) is FleetReport.ALIVE
    await fleet.release("srv_1", name)
    assert {call.right for call in cluster.api.calls if call.kind} == cluster.api.granted


async def test_calls_to_a_cluster_are_counted_by_region(cluster: AgonesCluster) -> None:
    registry, clock = Registry(), ManualClock(100_000)
    metrics = AgonesMetrics(registry)
    meter = RegionMeter(metrics, "eu", clock)
    assert metrics.watch_age_s.value("eu") == 0
    assert 'matchpod_agones_allocations_total{region="eu",outcome="none_ready"} 0\n' in registry.text()
    client = KubernetesClient(ClusterSource(kubeconfig=cluster.kubeconfig), meter=meter)
    fleet = AgonesFleet(OPTIONS, client, RconConsoles())
    try:
        clock.at_ms = 130_000
        meter.update()
        assert metrics.watch_age_s.value("eu") == 30, "the watch has never worked"
        async with following(fleet):
            meter.update()
            assert (metrics.relists.value("eu"), metrics.watch_age_s.value("eu")) == (1, 0)
            for number in range(2):
                assert await fleet.allocate(order(f"srv_{number}")) is not None
            assert await fleet.allocate(order("srv_2")) is None
            cluster.api.close_watches()
            await until(lambda: metrics.requests.value("eu", "watch", "200") >= 2)
            cluster.api.outage = Fault.CLOSE
            cluster.api.close_watches()
            await until(lambda: any(metrics.requests.value("eu", kind, "none") for kind in ("list", "watch")))
    finally:
        await fleet.close()
    outcomes = {one: metrics.allocations.value("eu", one) for one in ("allocated", "none_ready", "failed")}
    assert outcomes["allocated"] == 2
    assert outcomes["none_ready"] >= 1
    assert outcomes["failed"] == 0
    assert metrics.allocation_s.count("eu") == sum(outcomes.values())
    assert metrics.requests.value("eu", "create", "201") >= sum(outcomes.values())
