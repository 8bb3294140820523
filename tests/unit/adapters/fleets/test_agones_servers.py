"""Game servers of Agones are read: whose they are, whether they are gone, where they are reached."""

from __future__ import annotations

import msgspec
import pytest

from matchpod.adapters.fleets.agones_options import ADDRESS_TYPES, FLEET_LABEL, AgonesOptions
from matchpod.adapters.fleets.agones_servers import (
    EARLY_OWNER,
    LAST_ALLOCATED,
    OWNER_LABEL,
    REGION_LABEL,
    SERVER_LABEL,
    Place,
    ServerRef,
    choose_address,
    choose_port,
    gone_reason,
    is_allocated,
    is_left_over,
    is_ready,
    kept_server,
    listed_server,
    named_port,
    place_of_server,
)
from matchpod.adapters.kubernetes.objects import AgonesServer, GameServerStatus, NodeAddress, ObjectMeta, StatusPort


def server(name: str = "a", state: str = "Allocated", **metadata: object) -> AgonesServer:
    meta = msgspec.structs.replace(ObjectMeta(name=name), **metadata)
    return AgonesServer(metadata=meta, status=GameServerStatus(state=state))


def place(*ports: tuple[str, int], addresses: tuple[tuple[str, str], ...] = (), address: str = "") -> Place:
    return Place(
        "a",
        "uid-a",
        address,
        tuple(NodeAddress(*one) for one in addresses),
        tuple(StatusPort(port, name) for name, port in ports),
    )


@pytest.mark.parametrize(
    ("states", "is_gone"),
    [
        (["Shutdown", "Error", "Unhealthy"], True),
        (["PortAllocation", "Creating", "Scheduled", "Ready", "Reserved", "Allocated", ""], False),
    ],
)
def test_server_is_gone_in_an_end_state_only(states: list[str], is_gone: bool) -> None:
    for state in states:
        assert gone_reason(server(state=state)) == (f"the GameServer is in state {state}" if is_gone else None)
    assert gone_reason(msgspec.json.decode(b'{"metadata":{"name":"a"}}', type=AgonesServer)) is None


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
    assert (named_port(named, "tv", "udp"), named_port(named, "gotv", "udp")) == (7000, None)


def test_lists_that_are_null_are_empty() -> None:
    text = b'{"metadata":{"name":"a","uid":"uid-a","labels":null},"status":{"state":"Creating","ports":null,"addresses":null}}'
    assert place_of_server(msgspec.json.decode(text, type=AgonesServer)) == place()


def test_server_that_had_a_match_is_not_ready_for_another() -> None:
    assert is_ready(server(state="Ready"))
    assert not is_ready(server(state="Ready", labels={SERVER_LABEL: "srv_1"}))


OPTIONS = AgonesOptions(fleet="cs2", region="eu", owner="mp-1", read_secret=lambda: b"")
NOW_S = 1_794_873_600.0
"""2026-11-17T00:00:00Z."""


@pytest.mark.parametrize(("owner", "is_own"), [("mp-1", True), ("mp-2", False), (EARLY_OWNER, None)])
def test_owner_says_whose_server_it_is(owner: str, is_own: bool | None) -> None:
    labels = {OWNER_LABEL: owner, REGION_LABEL: "eu", SERVER_LABEL: "srv_1"}
    found = listed_server(server(labels=labels), OPTIONS, NOW_S)
    assert found is not None
    assert (found.server_id, found.is_own, found.owner) == ("srv_1", is_own, owner)


def test_servers_of_other_installations_are_listed_whatever_their_region() -> None:
    labels = {OWNER_LABEL: "mp-2", REGION_LABEL: "us", SERVER_LABEL: "srv_1"}
    assert listed_server(server(labels=labels), OPTIONS, NOW_S) is not None
    for owner in ("mp-1", EARLY_OWNER):
        assert listed_server(server(labels={**labels, OWNER_LABEL: owner}), OPTIONS, NOW_S) is None


def test_server_without_a_match_or_on_its_way_out_is_not_listed() -> None:
    labels = {OWNER_LABEL: "mp-1", REGION_LABEL: "eu"}
    assert listed_server(server(labels=labels), OPTIONS, NOW_S) is None
    leaving = server(labels={**labels, SERVER_LABEL: "srv_1"}, deletion_timestamp="2026-11-15T00:00:00Z")
    assert listed_server(leaving, OPTIONS, NOW_S) is None


@pytest.mark.parametrize(
    ("allocated", "created", "age_s"),
    [
        ("2026-11-16T23:59:00.123456789Z", "2026-11-01T00:00:00Z", 59.876544),
        (None, "2026-11-16T23:00:00Z", 3600),
        (None, None, 0),
        ("garbage", None, 0),
    ],
)
def test_age_counts_from_the_allocation(allocated: str | None, created: str | None, age_s: float) -> None:
    labels = {OWNER_LABEL: "mp-1", REGION_LABEL: "eu", SERVER_LABEL: "srv_1"}
    annotations = {LAST_ALLOCATED: allocated} if allocated else None
    one = server(labels=labels, annotations=annotations, creation_timestamp=created)
    found = listed_server(one, OPTIONS, NOW_S)
    assert found is not None
    assert found.age_s == pytest.approx(age_s, abs=1e-3)


@pytest.mark.parametrize("slot", ["", "cs2-eu-1", "cs2-eu-1/1b4e28ba-2fa1-11d2-883f-0016d3cca427"])
def test_slot_is_a_name_and_perhaps_a_uid(slot: str) -> None:
    assert str(ServerRef.read(slot)) == slot


def test_server_is_known_by_its_uid_unless_an_early_version_stored_only_its_name() -> None:
    assert ServerRef("a", "1").is_same(server("a", uid="1"))
    assert ServerRef("a").is_same(server("a", uid="1"))
    assert not ServerRef("a", "1").is_same(server("a", uid="2"))
    assert not ServerRef("a", "1").is_same(server("b", uid="1"))


def test_former_server_of_a_match_in_the_fleet_is_left_over_unless_it_is_allocated() -> None:
    fleet = {FLEET_LABEL: OPTIONS.fleet}
    assert is_left_over(server(state="Ready", labels=fleet), OPTIONS)
    assert is_left_over(server(state="Unhealthy", labels=fleet), OPTIONS)
    assert not is_left_over(server(state="Allocated", labels=fleet), OPTIONS)
    assert is_left_over(server(state="Ready", labels={**fleet, SERVER_LABEL: "srv_2"}), OPTIONS)
    assert not is_left_over(server(state="Allocated", labels={**fleet, SERVER_LABEL: "srv_2"}), OPTIONS)
    assert not is_left_over(server(state="Ready", labels={FLEET_LABEL: "another"}), OPTIONS)
    assert not is_left_over(server(state="Ready"), OPTIONS)
