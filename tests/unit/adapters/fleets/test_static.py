"""The list of servers that run already is checked when it is read."""

from __future__ import annotations

import pytest

from matchpod.adapters.fleets.static import StaticFleet, StaticServer
from matchpod.adapters.rcon_client import RconConsoles


def test_slots_are_the_addresses() -> None:
    servers = [StaticServer("192.0.2.1:27015", "a"), StaticServer("[2001:db8::1]:27015", "b")]
    assert list(StaticFleet(servers, RconConsoles()).slots) == ["192.0.2.1:27015", "[2001:db8::1]:27015"]


@pytest.mark.parametrize("address", ["", "192.0.2.1", ":27015", "192.0.2.1:", "192.0.2.1:0", "192.0.2.1:65536", "a:²"])
def test_address_without_a_host_or_port_is_refused(address: str) -> None:
    with pytest.raises(ValueError):
        StaticFleet([StaticServer(address, "a")], RconConsoles())


def test_password_is_not_shown() -> None:
    assert "sesame" not in repr(StaticServer("192.0.2.1:27015", "sesame"))
