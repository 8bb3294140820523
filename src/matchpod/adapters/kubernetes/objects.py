"""Requests to the Kubernetes API as values, and its objects with the fields that are read.

Lists may be null, as Go writes an empty one. Everything else in an object is ignored.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

import msgspec

from matchpod.adapters.kubernetes.cluster_meter import Verb

JSON = "application/json"


class ApiRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What to send, and how long it may take; `body` is JSON."""

    method: str
    verb: Verb = Verb.GET
    path: str
    query: Mapping[str, str] = {}
    body: bytes | None = None
    content_type: str = JSON
    timeout_s: float


class AllocationState(StrEnum):
    """What became of an allocation."""

    ALLOCATED = "Allocated"
    UNALLOCATED = "UnAllocated"
    """No server is ready; also if the namespace or the fleet does not exist."""
    CONTENTION = "Contention"
    """The chosen server was allocated by another process at the same time."""


class ServerState(StrEnum):
    """The states of a GameServer that mean something to us; there are others before Ready."""

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
    """A port of a server. A port of protocol TCPUDP appears as two, `NAME-tcp` and `NAME-udp`."""

    port: int
    name: str = ""


class NodeAddress(msgspec.Struct, frozen=True):
    """An address of the node of a server; the type is that of Kubernetes, such as `ExternalIP`."""

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
    """The metadata of a list or one page of it: the version from which to watch, and where the next page begins."""

    resource_version: str = ""
    next_page: str = msgspec.field(default="", name="continue")


class ServerList(msgspec.Struct, frozen=True):
    metadata: ListMeta
    items: tuple[AgonesServer, ...] | None = None


class WatchEvent(msgspec.Struct, frozen=True):
    """One line of a watch; the object is a GameServer, or a Status if the type is ERROR."""

    type: str
    object: msgspec.Raw


class AllocationStatus(msgspec.Struct, frozen=True, rename="camel"):
    state: AllocationState
    game_server_name: str = ""
    ports: tuple[StatusPort, ...] | None = None
    address: str = ""
    addresses: tuple[NodeAddress, ...] | None = None


class Allocation(msgspec.Struct, frozen=True):
    """A GameServerAllocation."""

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
    """A SelfSubjectAccessReview: whether we may do something."""

    status: AccessStatus
