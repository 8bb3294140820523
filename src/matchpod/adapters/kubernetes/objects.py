"""Define requests to the Kubernetes API, and the fields that we read from its objects.

Lists may be null, because Go encodes empty lists as null. All other fields of an object are ignored.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

import msgspec

from matchpod.adapters.kubernetes.cluster_meter import Verb

JSON = "application/json"


class ApiRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request to the API. `body` is encoded JSON."""

    method: str
    verb: Verb = Verb.GET
    path: str
    query: Mapping[str, str] = {}
    body: bytes | None = None
    content_type: str = JSON
    timeout_s: float


class AllocationState(StrEnum):
    """The result of an allocation."""

    ALLOCATED = "Allocated"
    UNALLOCATED = "UnAllocated"
    """No server is ready, or the namespace or the fleet does not exist."""
    CONTENTION = "Contention"
    """The chosen server was allocated by another process at the same time."""


class ServerState(StrEnum):
    """The states of a GameServer that we distinguish. A server goes through other states before Ready."""

    READY = "Ready"
    ALLOCATED = "Allocated"
    SHUTDOWN = "Shutdown"
    ERROR = "Error"
    UNHEALTHY = "Unhealthy"


class ObjectMeta(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""
    uid: str = ""
    resource_version: str = ""
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: Mapping[str, str] | None = None
    annotations: Mapping[str, str] | None = None


class StatusPort(msgspec.Struct, frozen=True):
    """A port of a server. A TCPUDP port is listed as two ports, named `NAME-tcp` and `NAME-udp`."""

    port: int
    name: str = ""


class NodeAddress(msgspec.Struct, frozen=True):
    """An address of a server's node, with its Kubernetes type, such as `ExternalIP`."""

    type: str = ""
    address: str = ""


class GameServerStatus(msgspec.Struct, frozen=True):
    state: str = ""
    ports: tuple[StatusPort, ...] | None = None
    address: str = ""
    addresses: tuple[NodeAddress, ...] | None = None


class AgonesServer(msgspec.Struct, frozen=True):
    metadata: ObjectMeta
    status: GameServerStatus = GameServerStatus()


class ListMeta(msgspec.Struct, frozen=True, rename="camel"):
    """The metadata of a list, or of a page of it: the version from which to watch, and the token for the next page."""

    resource_version: str = ""
    next_page: str = msgspec.field(default="", name="continue")


class ServerList(msgspec.Struct, frozen=True):
    metadata: ListMeta
    items: tuple[AgonesServer, ...] | None = None


class WatchEvent(msgspec.Struct, frozen=True):
    """An event of a watch. `object` is a Status if the type is ERROR, and a GameServer otherwise."""

    type: str
    object: msgspec.Raw


class AllocationStatus(msgspec.Struct, frozen=True, rename="camel"):
    state: AllocationState
    game_server_name: str = ""
    ports: tuple[StatusPort, ...] | None = None
    address: str = ""
    addresses: tuple[NodeAddress, ...] | None = None


class Allocation(msgspec.Struct, frozen=True):
    """The answer to an allocation (a GameServerAllocation)."""

    status: AllocationStatus


class FleetStatus(msgspec.Struct, frozen=True, rename="camel"):
    replicas: int = 0
    ready_replicas: int = 0
    allocated_replicas: int = 0


class FleetObject(msgspec.Struct, frozen=True):
    metadata: ObjectMeta
    status: FleetStatus = FleetStatus()


class FleetList(msgspec.Struct, frozen=True):
    metadata: ListMeta = ListMeta()
    items: tuple[FleetObject, ...] | None = None


class AccessStatus(msgspec.Struct, frozen=True):
    """The status of a SelfSubjectAccessReview."""

    allowed: bool = False


class AccessReview(msgspec.Struct, frozen=True):
    """The answer to the question whether our account has a right (a SelfSubjectAccessReview)."""

    status: AccessStatus
