"""Game servers of Agones are read: whose they are, whether they are gone, where they are reached."""

from __future__ import annotations

import msgspec
import pytest

from matchpod.adapters.fleets.agones_options import ADDRESS_TYPES
from matchpod.adapters.fleets.agones_servers import (
    LAST_ALLOCATED,
    Place,
    choose_address,
    choose_port,
    gone_reason,
    is_allocated,
    is_ready,
    kept_server,
    place_of_server,
)
from matchpod.adapters.kubernetes.objects import AgonesServer, NodeAddress, ObjectMeta, ServerStatus, StatusPort


def server(name: str = "a", state: str = "Allocated", **metadata: object) -> AgonesServer:
    meta = msgspec.structs.replace(ObjectMeta(name=name), **metadata)
    return AgonesServer(metadata=meta, status=ServerStatus(state=state))


def place(*ports: tuple[str, int], addresses: tuple[tuple[str, str], ...] = (), address: str = "") -> Place:
    return Place(
        "a",
        address,
        tuple(NodeAddress(*one) for one in addresses),
        tuple(StatusPort(port, name) for name, port in ports),
    )


@pytest.mark.parametrize("state", ["Shutdown", "Error", "Unhealthy"])
def test_server_in_an_end_state_is_gone(state: str) -> None:
    assert gone_reason(server(state=state)) == f"the GameServer is in state {state}"


@pytest.mark.parametrize("state", ["PortAllocation", "Creating", "Scheduled", "Ready", "Reserved", "Allocated", ""])
def test_server_in_any_other_state_is_not_gone(state: str) -> None:
    assert gone_reason(server(state=state)) is None


def test_server_that_is_being_deleted_is_gone_in_any_state() -> None:
    deleted = server(deletion_timestamp="2026-11-15T00:00:00Z")
    assert gone_reason(deleted) == "the GameServer is being deleted"
    assert not is_allocated(deleted)
    assert not is_ready(server(state="Ready", deletion_timestamp="2026-11-15T00:00:00Z"))


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("2026-11-15T00:33:14.811798922Z", "2026-11-15T00:33:15Z"),
        ("2026-11-15T00:33:14.8Z", "2026-11-15T00:33:14.81Z"),
        ("2026-11-15T00:33:14Z", "2026-11-15T00:33:14.000000001Z"),
        ("2026-11-15T00:33:14.09Z", "2026-11-15T00:33:14.1Z"),
    ],
)
def test_server_of_the_first_allocation_is_kept(earlier: str, later: str) -> None:
    servers = [server("a", annotations={LAST_ALLOCATED: later}), server("b", annotations={LAST_ALLOCATED: earlier})]
    assert kept_server(servers, "").metadata.name == "b"
    assert kept_server(servers[::-1], "").metadata.name == "b"


def test_preferred_server_is_kept_and_otherwise_the_name_decides() -> None:
    servers = [server("b"), server("a")]
    assert kept_server(servers, "").metadata.name == "a"
    assert kept_server(servers, "b").metadata.name == "b"
    assert kept_server(servers, "c").metadata.name == "a"


def test_address_is_that_of_the_first_type_that_the_server_has() -> None:
    addresses = (("InternalIP", "10.0.0.1"), ("ExternalDNS", "node.example"), ("ExternalIP", "203.0.113.1"))
    assert choose_address(place(addresses=addresses, address="node.example"), ADDRESS_TYPES) == "203.0.113.1"
    assert choose_address(place(addresses=addresses[:2]), ADDRESS_TYPES) == "node.example"
    assert choose_address(place(addresses=addresses[:1], address="x"), ADDRESS_TYPES) == "10.0.0.1"
    assert choose_address(place(addresses=addresses), ("InternalIP",)) == "10.0.0.1"


def test_address_of_agones_is_used_if_no_type_fits() -> None:
    assert (
        choose_address(place(addresses=(("Hostname", "node-a"),), address="203.0.113.9"), ADDRESS_TYPES)
        == "203.0.113.9"
    )
    assert choose_address(place(addresses=(("ExternalIP", ""),)), ADDRESS_TYPES) is None


def test_port_is_half_of_a_double_one_then_the_named_one_then_the_first() -> None:
    double = place(("game-tcp", 7001), ("game-udp", 7002))
    assert (choose_port(double, "game", "udp"), choose_port(double, "game", "tcp")) == (7002, 7001)
    named = place(("tv", 7000), ("game", 7001))
    assert choose_port(named, "game", "udp") == 7001
    assert choose_port(place(("default", 7005)), "game", "udp") == 7005
    assert choose_port(place(), "game", "udp") is None


def test_lists_that_are_null_are_empty() -> None:
    text = b'{"metadata":{"name":"a","labels":null},"status":{"state":"Creating","ports":null,"addresses":null}}'
    assert place_of_server(msgspec.json.decode(text, type=AgonesServer)) == place()


def test_server_without_status_is_not_gone() -> None:
    assert gone_reason(msgspec.json.decode(b'{"metadata":{"name":"a"}}', type=AgonesServer)) is None
