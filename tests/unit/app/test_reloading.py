"""The lists of static fleets are read again; invalid settings change nothing."""

from __future__ import annotations

import logging

import pytest

from matchpod.adapters.fleets.static import StaticFleet
from matchpod.adapters.rcon_client import RconConsoles
from matchpod.app.reloading import ServerLists, static_servers
from matchpod.service.regions.regions import Region, Regions
from matchpod.settings import Settings, StaticFleetSettings, load_settings
from tests.unit.service.test_access_rules import NoDatabase

BASE = "https://matchpod.example"


def text_of(*servers: str, more: str = "") -> str:
    listed = ", ".join(f'{{ address = "{address}", rcon_password = "x" }}' for address in servers)
    return f'{more}\n[[regions]]\ncode = "eu"\n[regions.fleet]\nkind = "static"\nservers = [{listed}]\n'


def settings_of(text: str) -> Settings:
    return load_settings({}, lambda _: text.encode())


class World:
    """The fleet of a region whose settings are `text`."""

    def __init__(self, text: str) -> None:
        self.text = text
        settings = settings_of(text)
        fleet = settings.regions[0].fleet
        assert isinstance(fleet, StaticFleetSettings)
        self.fleet = StaticFleet(static_servers(fleet), RconConsoles())
        regions = Regions([Region(code="eu", name="eu", location="", fleet=self.fleet)], NoDatabase())
        self.lists = ServerLists(settings, regions, load=lambda: settings_of(self.text), base=BASE)


def test_list_is_replaced(caplog: pytest.LogCaptureFixture) -> None:
    world = World(text_of("8.8.4.4:1", "8.8.4.4:2"))
    world.text = text_of("8.8.4.4:2", "cs3.example:27015", "[2001:db8::7]:3")
    with caplog.at_level(logging.INFO):
        world.lists.read_again()
    assert world.fleet.slots == ("8.8.4.4:2", "cs3.example:27015", "[2001:db8::7]:3")
    (record,) = caplog.records
    assert (vars(record)["added"], vars(record)["removed"]) == (["[2001:db8::7]:3", "cs3.example:27015"], ["8.8.4.4:1"])


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (text_of("8.8.4.4"), 'regions[1].fleet.servers[1].address in var/matchpod.toml is "8.8.4.4"'),
        (text_of("8.8.4.4:1", more="prot = 80"), "prot in var/matchpod.toml is not a known key"),
        (text_of("8.8.4.4:1", more='log_url = "http://127.0.0.1:8080"'), "cannot reach the service"),
        ("[[regions", "var/matchpod.toml"),
    ],
)
def test_invalid_settings_keep_the_list_and_say_why(text: str, sentence: str, caplog: pytest.LogCaptureFixture) -> None:
    world = World(text_of("8.8.4.4:1"))
    world.text = text
    world.lists.read_again()
    assert world.fleet.slots == ("8.8.4.4:1",)
    (record,) = caplog.records
    assert (record.message, sentence in vars(record)["error"]) == ("settings not reloaded", True)


def test_other_changes_are_reported_and_wait_for_the_next_start(caplog: pytest.LogCaptureFixture) -> None:
    world = World(text_of("8.8.4.4:1"))
    world.text = text_of("8.8.4.4:2", more="port = 9000")
    world.lists.read_again()
    assert world.fleet.slots == ("8.8.4.4:2",)
    assert [record.message for record in caplog.records] == [
        "other settings have changed too: they take effect at the next start"
    ]


def test_region_that_is_gone_keeps_its_servers() -> None:
    world = World(text_of("8.8.4.4:1"))
    world.text = text_of("8.8.4.4:2").replace('"eu"', '"us"')
    world.lists.read_again()
    assert world.fleet.slots == ("8.8.4.4:1",)
