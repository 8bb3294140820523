"""Read the owner, match, state and addresses of GameServer objects of Agones. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

import msgspec

from matchpod.adapters.fleets.agones_options import AgonesOptions
from matchpod.adapters.kubernetes import objects
from matchpod.ports import ListedServer

SERVER_LABEL = "matchpod.dev/server-id"
REGION_LABEL = "matchpod.dev/region"
OWNER_LABEL = "matchpod.dev/owner"

EARLY_OWNER = "matchpod"
"""The value of the owner label in early versions, the same for all installations. Servers with this label may still be
in use."""

LAST_ALLOCATED = "agones.dev/last-allocated"
"""The annotation with the time when a server was last allocated."""

_END_STATES = frozenset({objects.ServerState.SHUTDOWN, objects.ServerState.ERROR, objects.ServerState.UNHEALTHY})


class ServerRef(msgspec.Struct, frozen=True):
    """Name and UID of the game server of a match, as stored in the `slot` column of the match.

    Labels alone do not identify the server: they are lost if etcd is restored from a backup made before the allocation.
    The UID is empty if it is unknown, as in rows of early versions.
    """

    name: str
    uid: str = ""

    @classmethod
    def read(cls, slot: str) -> ServerRef:
        name, _, uid = slot.partition("/")
        return cls(name, uid)

    def __str__(self) -> str:
        """Return the text to store in `slot`."""
        return f"{self.name}/{self.uid}" if self.uid else self.name

    def is_same(self, server: objects.AgonesServer) -> bool:
        """True if this is the referenced server. If the UID is unknown, only the name is compared."""
        return self.name == server.metadata.name and self.uid in ("", server.metadata.uid)


class Place(msgspec.Struct, frozen=True):
    """The name, UID, addresses and ports of an allocated game server."""

    name: str
    uid: str
    address: str
    addresses: tuple[objects.NodeAddress, ...]
    ports: tuple[objects.StatusPort, ...]


def match_labels(options: AgonesOptions, server_id: str) -> dict[str, str]:
    return {**lookup_labels(options, server_id), OWNER_LABEL: options.owner}


def lookup_labels(options: AgonesOptions, server_id: str) -> dict[str, str]:
    """Return the labels that select the servers of a match. The caller must drop servers that are not `may_be_ours`."""
    return {REGION_LABEL: options.region, SERVER_LABEL: server_id}


def may_be_ours(server: objects.AgonesServer, options: AgonesOptions) -> bool:
    """True for a server of this region whose owner label is ours or EARLY_OWNER, the label of early versions."""
    return has_labels(server, {REGION_LABEL: options.region}) and owner_of(server) in (options.owner, EARLY_OWNER)


def owner_of(server: objects.AgonesServer) -> str:
    """Return the owner of a server; empty if it was not allocated by Matchpod."""
    return (server.metadata.labels or {}).get(OWNER_LABEL, "")


def listed_server(server: objects.AgonesServer, options: AgonesOptions, now_s: float) -> ListedServer | None:
    """Return a server for a sweep; None if it has no match, is being deleted, or is in another of our regions."""
    server_id, owner = server_id_of(server), owner_of(server)
    is_elsewhere = owner in (options.owner, EARLY_OWNER) and not may_be_ours(server, options)
    if not server_id or server.metadata.deletion_timestamp is not None or is_elsewhere:
        return None
    is_own = True if owner == options.owner else None if owner == EARLY_OWNER else False
    return ListedServer(server_id=server_id, is_own=is_own, owner=owner, age_s=_age_s(server, now_s))


def has_labels(server: objects.AgonesServer, labels: Mapping[str, str]) -> bool:
    own = server.metadata.labels or {}
    return all(own.get(name) == value for name, value in labels.items())


def server_id_of(server: objects.AgonesServer) -> str | None:
    """Return the id of the match that a server was allocated for; None if it was not allocated for a match."""
    return (server.metadata.labels or {}).get(SERVER_LABEL)


def is_of_match(server: objects.AgonesServer, options: AgonesOptions, server_id: str) -> bool:
    return may_be_ours(server, options) and server_id_of(server) == server_id


def is_left_over(server: objects.AgonesServer, options: AgonesOptions) -> bool:
    """True if the former server of a match is in our fleet and not allocated. The label of the match is not compared.

    After a restore of etcd, the server has lost that label. If it is allocated, another match or program uses it.
    """
    return not is_allocated(server) and has_labels(server, options.server_labels)


def gone_reason(server: objects.AgonesServer) -> str | None:
    """Return why a server can no longer be used; None if it can be used."""
    if server.metadata.deletion_timestamp is not None:
        return "the GameServer is being deleted"
    if server.status.state in _END_STATES:
        return f"the GameServer is in state {server.status.state}"
    return None


def is_ready(server: objects.AgonesServer) -> bool:
    """True if a server can be allocated. A server that has already had a match cannot."""
    is_waiting = server.status.state == objects.ServerState.READY and server_id_of(server) is None
    return is_waiting and server.metadata.deletion_timestamp is None


def is_allocated(server: objects.AgonesServer) -> bool:
    """True if a server is allocated and can be used."""
    return server.status.state == objects.ServerState.ALLOCATED and server.metadata.deletion_timestamp is None


def kept_server(servers: Sequence[objects.AgonesServer], preferred: str) -> objects.AgonesServer:
    """Return the server that a match with several servers keeps: the preferred server, or else the first allocated.

    Every process makes the same choice.
    """
    return min(
        servers, key=lambda server: (server.metadata.name != preferred, _allocated_at(server), server.metadata.name)
    )


def place_of_server(server: objects.AgonesServer) -> Place:
    """Return the addresses and ports of a game server."""
    status = server.status
    about = server.metadata
    return Place(about.name, about.uid, status.address, status.addresses or (), status.ports or ())


def place_of_allocation(status: objects.AllocationStatus, uid: str) -> Place:
    """Return the addresses and ports of a server that was just allocated."""
    return Place(status.game_server_name, uid, status.address, status.addresses or (), status.ports or ())


def choose_address(place: Place, types: Sequence[str]) -> str | None:
    """Return the server's address of the most preferred type, or else the address that Agones chose, or None."""
    for wanted in types:
        for address in place.addresses:
            if address.type == wanted and address.address:
                return address.address
    return place.address or None


def choose_port(place: Place, name: str, protocol: str) -> int | None:
    """Return the port with this name, or else the server's first port."""
    found = named_port(place, name, protocol)
    return place.ports[0].port if found is None and place.ports else found


def named_port(place: Place, name: str, protocol: str) -> int | None:
    """Return the port named `NAME-PROTOCOL` (half of a TCPUDP port), or else `NAME`."""
    for wanted in (f"{name}-{protocol}", name):
        for port in place.ports:
            if port.name == wanted:
                return port.port
    return None


def console_of(place: Place, options: AgonesOptions) -> tuple[str, int] | None:
    """Return host and port of a server's console; None if either is missing."""
    host = choose_address(place, options.console_address_types or options.address_types)
    port = choose_port(place, options.console_port_name or options.port_name, "tcp")
    return None if host is None or port is None else (host, port)


def _age_s(server: objects.AgonesServer, now_s: float) -> float:
    """Return the age of a server in seconds since its allocation, or else since its creation; 0 if both are unknown."""
    text = (server.metadata.annotations or {}).get(LAST_ALLOCATED) or server.metadata.creation_timestamp
    try:
        return now_s - datetime.fromisoformat(text or "").timestamp()
    except ValueError:
        return 0.0


def _allocated_at(server: objects.AgonesServer) -> tuple[str, str]:
    # The fraction of a second has up to nine digits, without trailing zeros. Padding makes the texts comparable.
    text = (server.metadata.annotations or {}).get(LAST_ALLOCATED, "").removesuffix("Z")
    seconds, _, fraction = text.partition(".")
    return seconds, fraction.ljust(9, "0")
