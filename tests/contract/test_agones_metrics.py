"""Calls to a cluster are counted: allocations, lists, requests by their answers, and the age of the watch."""

from __future__ import annotations

from matchpod.adapters.fleets.agones import AgonesFleet
from matchpod.adapters.kubernetes.client import KubernetesClient
from matchpod.adapters.kubernetes.cluster import ClusterSource
from matchpod.adapters.rcon_client import RconConsoles
from matchpod.app.measurement import RegionMeter
from matchpod.service.telemetry.metrics import AgonesMetrics
from matchpod.service.telemetry.prometheus import Registry
from tests.clocks import ManualClock
from tests.contract import agones_cluster
from tests.contract.agones_api import Fault
from tests.contract.agones_cluster import OPTIONS, AgonesCluster, following, order
from tests.waiting import until

cluster = agones_cluster.two_servers


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
