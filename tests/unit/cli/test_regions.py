"""`matchpod regions`: list, activate and deactivate regions."""

from __future__ import annotations

import asyncio

import pytest

from matchpod.adapters.sqlite import SqliteDatabase
from matchpod.cli.regions import app
from matchpod.settings.values import DATABASE_FILE
from matchpod.storage import slots
from tests.unit.cli import command_runner
from tests.unit.cli.command_runner import CommandRunner

runner = command_runner.runner

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
def two_regions(runner: CommandRunner) -> CommandRunner:
    """A command runner with two regions."""
    (runner.data_dir / "matchpod.toml").write_text(TWO_REGIONS)
    return runner


def test_regions_are_listed_in_the_order_of_the_settings(two_regions: CommandRunner) -> None:
    assert two_regions.json_output(app, "list") == [
        {
            "code": "eu",
            "name": "Europe [west]",
            "location": "Frankfurt",
            "isActive": True,
            "capacity": 3,
            "taken": 0,
            "ready": 3,
            "fault": None,
        },
        {
            "code": "us",
            "name": "America",
            "location": "Chicago",
            "isActive": True,
            "capacity": 1,
            "taken": 0,
            "ready": 1,
            "fault": None,
        },
    ]
    head, eu, us = (line.rstrip() for line in two_regions.output(app, "list").splitlines())
    assert head.split() == ["code", "name", "location", "active", "capacity", "taken", "ready", "fault"]
    assert eu.split() == ["eu", "Europe", "[west]", "Frankfurt", "yes", "3", "0", "3", "-"]
    assert us.split() == ["us", "America", "Chicago", "yes", "1", "0", "1", "-"]


def test_slots_in_use_are_counted(two_regions: CommandRunner) -> None:
    two_regions.output(app, "list")  # creates the database

    async def reserve() -> None:
        db = await SqliteDatabase.open(two_regions.data_dir / DATABASE_FILE)
        try:
            for server_id in ("srv_1", "srv_2"):
                await slots.reserve(db, "eu", server_id, ["27015", "27016", "27017"])
        finally:
            await db.close()

    asyncio.run(reserve())
    assert [(region["code"], region["taken"]) for region in two_regions.json_output(app, "list")] == [
        ("eu", 2),
        ("us", 0),
    ]


def test_activation_and_deactivation_are_stored(two_regions: CommandRunner) -> None:
    for command, is_active in (("deactivate", False), ("deactivate", False), ("activate", True)):
        assert two_regions.output(app, command, "us") == ""
        assert [region["isActive"] for region in two_regions.json_output(app, "list")] == [True, is_active]


def test_default_region_is_the_sandbox(runner: CommandRunner) -> None:
    assert [region["code"] for region in runner.json_output(app, "list")] == ["sandbox"]


@pytest.mark.parametrize("command", ["activate", "deactivate"])
def test_error_about_an_unknown_region_lists_the_known_ones(two_regions: CommandRunner, command: str) -> None:
    assert two_regions.error(app, command, "mars") == "Unknown region 'mars'. Known regions: eu, us."


@pytest.mark.parametrize("command", ["list", "activate", "deactivate"])
def test_every_command_has_help(runner: CommandRunner, command: str) -> None:
    assert command in runner.output(app, "--help")
    assert "Show this message" in runner.output(app, command, "--help")
