"""Find regions whose game servers cannot reach the service at their configured URL.

Only faults that the settings themselves reveal are reported: the URL is an address of this machine or of the cluster,
but the game servers are on other machines or outside of the cluster.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto
from typing import Final, assert_never
from urllib.parse import urlsplit

from matchpod.core.requests.addresses import is_loopback, is_public
from matchpod.settings import (
    AgonesFleetSettings,
    FleetSettings,
    ProcessFleetSettings,
    Settings,
    StaticFleetSettings,
)

_POD: Final = "kubernetes.default.svc"
"""The host name of the Kubernetes API inside a cluster. The cluster's domain may follow it."""


class _Place(Enum):
    """Where the game servers of a region are."""

    HERE = auto()
    """On this machine, or not known to be anywhere else."""
    CLUSTER = auto()
    """In the service's own cluster, or in a network that may be part of it."""
    ELSEWHERE = auto()


def unreachable_log_urls(settings: Settings, base: str) -> Sequence[str]:
    """Return a sentence per region whose servers cannot reach their URL; `base` is for regions that set no URL."""
    urls = settings.log_urls
    found = ((region, urls.get(region.code, base)) for region in settings.regions)
    return [
        f"Region {region.code}: its game servers cannot reach the service at {url}, {problem}. Set MATCHPOD_LOG_URL, "
        "or log_url of the region, to a URL that they can reach."
        for region, url in found
        if (problem := _problem(url, _place_of(region.fleet)))
    ]


def _problem(url: str, place: _Place) -> str | None:
    host = (urlsplit(url).hostname or "").removesuffix(".")
    if place is not _Place.HERE and is_loopback(host):
        return "which is this machine only"
    if place is _Place.ELSEWHERE and (host.endswith((".svc", ".cluster.local")) or ".svc." in host):
        return "which is a name in a cluster that they are not in"
    return None


def _place_of(fleet: FleetSettings) -> _Place:
    match fleet:
        case ProcessFleetSettings():
            return _Place.HERE
        case StaticFleetSettings():
            hosts = {server.address.rpartition(":")[0].strip("[]") for server in fleet.servers}
            if any(map(is_public, hosts)):
                return _Place.ELSEWHERE
            return _Place.HERE if all(map(is_loopback, hosts)) else _Place.CLUSTER
        case AgonesFleetSettings():
            return _place_of_cluster(fleet)
        case _:
            assert_never(fleet)


def _place_of_cluster(fleet: AgonesFleetSettings) -> _Place:
    if fleet.kubeconfig is None:
        return _Place.CLUSTER
    # Imported here, because most installations have no cluster.
    from matchpod.adapters.kubernetes.api_errors import ClusterConfigError
    from matchpod.adapters.kubernetes.kubeconfig import read_kubeconfig

    try:
        host = urlsplit(read_kubeconfig(fleet.kubeconfig, fleet.context).server).hostname or ""
    except ClusterConfigError:  # `check` of the fleet reports the fault
        return _Place.HERE
    if is_loopback(host):
        return _Place.HERE
    return _Place.CLUSTER if host == _POD or host.startswith(f"{_POD}.") else _Place.ELSEWHERE
