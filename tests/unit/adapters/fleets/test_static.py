"""The server list of a static fleet is validated."""

from __future__ import annotations

import pytest

from matchpod.adapters.fleets.static import StaticFleet, StaticServer
from matchpod.adapters.rcon_client import RconConsoles


def test_slot_names_are_the_addresses() -> None:
    servers = [StaticServer("192.0.2.1:27015", "a"), StaticServer("[2001:db8::1]:27015", "b")]
    assert list(StaticFleet(servers, RconConsoles()).slots) == ["192.0.2.1:27015", "[2001:db8::1]:27015"]


@pytest.mark.parametrize("address", ["", "192.0.2.1", ":27015", "192.0.2.1:", "192.0.2.1:0", "192.0.2.1:65536", "a:²"])
def test_address_without_host_or_valid_port_is_rejected(address: str) -> None:
    with pytest.raises(ValueError):
        StaticFleet([StaticServer(address, "a")], RconConsoles())


def test_repr_omits_the_password() -> None:
    assert "sesame" not in repr(StaticServer("192.0.2.1:27015", "sesame"))
