"""Regions and fleets built from the settings."""

from __future__ import annotations

from pathlib import Path

from matchpod.adapters.fleets.process import ProcessFleet
from matchpod.adapters.fleets.static import StaticFleet
from matchpod.adapters.rcon_client import RconConsoles
from matchpod.app.composition import compose_regions
from matchpod.settings import load_settings

FILE = b"""
[[regions]]
code = "sandbox"
speed = 30
[regions.fleet]
kind = "process"
ports = "27100-27102"

[[regions]]
code = "us"
name = "America"
location = "Chicago"
[regions.fleet]
kind = "static"
servers = [{ address = "192.0.2.1:27015", rcon_password = "hidden" }]
"""


def test_regions_keep_the_order_of_the_settings_and_get_their_fleets(tmp_path: Path) -> None:
    settings = load_settings({"MATCHPOD_DATA_DIR": str(tmp_path)}, lambda _: FILE)
    sandbox, us = compose_regions(settings, RconConsoles())
    assert (sandbox.code, sandbox.speed, sandbox.allows_simulator) == ("sandbox", 30, True)
    assert isinstance(sandbox.fleet, ProcessFleet)
    assert list(sandbox.fleet.slots) == ["27100", "27101", "27102"]
    assert (us.code, us.name, us.location, us.speed, us.allows_simulator) == ("us", "America", "Chicago", 1, False)
    assert isinstance(us.fleet, StaticFleet)
    assert list(us.fleet.slots) == ["192.0.2.1:27015"]
