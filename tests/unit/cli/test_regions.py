"""`matchpod regions`, as an operator uses it."""

from __future__ import annotations

import asyncio

import pytest

from matchpod.adapters.sqlite import SqliteDatabase
from matchpod.cli.regions import app
from matchpod.settings.values import DATABASE_FILE
from matchpod.storage import slots
from tests.unit.cli import office as offices
from tests.unit.cli.office import Office

office = offices.office

TWO_REGIONS = """
[[regions]]
code = "eu"
name = "Europe [west]"
location = "Frankfurt"
[regions.fleet]
kind = "process"
ports = "27015-27017"

[[regions]]
code = "us"
name = "America"
location = "Chicago"
[regions.fleet]
kind = "static"
servers = [{ address = "192.0.2.1:27015", rcon_password = "hidden" }]
"""


@pytest.fixture
def world(office: Office) -> Office:
    """An office with two regions."""
    (office.data_dir / "matchpod.toml").write_text(TWO_REGIONS)
    return office


def test_regions_are_listed_in_the_order_of_the_settings(world: Office) -> None:
    assert world.listed(app, "list") == [
        {"code": "eu", "name": "Europe [west]", "location": "Frankfurt", "isActive": True, "capacity": 3, "taken": 0},
        {"code": "us", "name": "America", "location": "Chicago", "isActive": True, "capacity": 1, "taken": 0},
    ]
    head, eu, us = (line.rstrip() for line in world.done(app, "list").splitlines())
    assert head.split() == ["code", "name", "location", "active", "capacity", "taken"]
    assert eu.split() == ["eu", "Europe", "[west]", "Frankfurt", "yes", "3", "0"]
    assert us.split() == ["us", "America", "Chicago", "yes", "1", "0"]


def test_places_that_are_taken_are_counted(world: Office) -> None:
    world.done(app, "list")  # makes the database

    async def take() -> None:
        db = await SqliteDatabase.open(world.data_dir / DATABASE_FILE)
        try:
            for server_id in ("srv_1", "srv_2"):
                await slots.reserve(db, "eu", server_id, ["27015", "27016", "27017"])
        finally:
            await db.close()

    asyncio.run(take())
    assert [(region["code"], region["taken"]) for region in world.listed(app, "list")] == [("eu", 2), ("us", 0)]


def test_a_region_stays_as_it_was_switched(world: Office) -> None:
    for command, is_active in (("deactivate", False), ("deactivate", False), ("activate", True)):
        assert world.done(app, command, "us") == ""
        assert [region["isActive"] for region in world.listed(app, "list")] == [True, is_active]


def test_a_region_without_settings_is_the_sandbox(office: Office) -> None:
    assert [region["code"] for region in office.listed(app, "list")] == ["sandbox"]


@pytest.mark.parametrize("command", ["activate", "deactivate"])
def test_an_unknown_region_is_answered_with_the_known_ones(world: Office, command: str) -> None:
    assert world.refused(app, command, "mars") == "There is no region 'mars'; known: eu, us."


@pytest.mark.parametrize("command", ["list", "activate", "deactivate"])
def test_every_command_explains_itself(office: Office, command: str) -> None:
    assert command in office.done(app, "--help")
    assert "Show this message" in office.done(app, command, "--help")
