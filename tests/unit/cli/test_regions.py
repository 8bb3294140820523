"""`matchpod regions`: list, activate and deactivate regions."""

from __future__ import annotations

import time
from functools import partial

import pytest

from matchpod.cli import regions
from matchpod.cli.regions import app
from matchpod.core.servers.server_loss import Silence
from matchpod.ports import Database
from matchpod.service.region_checks import requests
from matchpod.storage import heartbeats, region_checks, resting_slots, withheld_servers
from tests.contract.agones_cluster import agones_region, secret_file, write_kubeconfig
from tests.contract.test_storage_servers import take_slot
from tests.unit.cli.command_runner import CommandRunner
from tests.unit.cli.test_matches import on_database

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
    (runner.data_dir / "matchpod.toml").write_text(TWO_REGIONS)
    return runner


def test_regions_are_listed_in_the_order_of_the_settings(two_regions: CommandRunner) -> None:
    same = {"isActive": True, "taken": 0, "withheld": 0, "fault": None, "notice": None}
    assert two_regions.json_output(app, "list") == [
        {"code": "eu", "name": "Europe [west]", "location": "Frankfurt", "capacity": 3, "ready": 3, **same},
        {"code": "us", "name": "America", "location": "Chicago", "capacity": 1, "ready": 1, **same},
    ]
    head, eu, us = (line.rstrip() for line in two_regions.output(app, "list").splitlines())
    columns = ["code", "name", "location", "active", "capacity", "taken", "ready", "withheld", "fault", "notice"]
    assert head.split() == columns
    assert eu.split() == ["eu", "Europe", "[west]", "Frankfurt", "yes", "3", "0", "3", "0", "-", "-"]
    assert us.split() == ["us", "America", "Chicago", "yes", "1", "0", "1", "0", "-", "-"]


def test_slots_in_use_are_counted(two_regions: CommandRunner) -> None:
    async def reserve(db: Database) -> None:
        for server_id, slot in (("srv_1", "27015"), ("srv_2", "27016")):
            await take_slot(db, "eu", slot, server_id)

    on_database(two_regions, reserve)
    assert [region["taken"] for region in two_regions.json_output(app, "list")] == [2, 0]


def test_servers_that_the_service_finds_silent_or_that_rest_are_shown(two_regions: CommandRunner) -> None:
    silences = {f"srv_{number}": Silence(region="us", host=f"host {number}", since_ms=-25_000) for number in (1, 2)}

    async def store(db: Database, age_ms: int) -> None:
        await heartbeats.store_silences(db, "service", silences, int(time.time() * 1000) - age_ms)
        await db.write([resting_slots.rest("eu", "27100", "srv_9", 0)])

    on_database(two_regions, partial(store, age_ms=-60_000))  # so that the machine may be busy
    eu, us = [region["notice"] for region in two_regions.json_output(app, "list")]
    assert eu == (
        "The server 27100 gets no other match until 1970-01-01T00:05:00.000Z:"
        " it sent invalid data or too much data over its console in srv_9."
    )
    assert str(us).startswith("2 servers have given no sign of life since ")
    on_database(two_regions, partial(store, age_ms=heartbeats.DEAD_MS + 1))
    assert [region["notice"] for region in two_regions.json_output(app, "list")] == [eu, None], "it has stopped"


def test_activation_and_deactivation_are_stored(two_regions: CommandRunner) -> None:
    for command, is_active in (("deactivate", False), ("deactivate", False), ("activate", True)):
        assert two_regions.output(app, command, "us") == ""
        assert [region["isActive"] for region in two_regions.json_output(app, "list")] == [True, is_active]


def test_region_whose_cluster_cannot_be_reached_is_inactive_with_its_reason(runner: CommandRunner) -> None:
    folder = runner.data_dir
    kubeconfig = write_kubeconfig(folder / "kubeconfig", "http://127.0.0.1:1")
    bad_context = agones_region("context", kubeconfig, secret_file(folder), context="nowhere")
    unreachable = agones_region("cluster", kubeconfig, secret_file(folder))
    (folder / "matchpod.toml").write_text(bad_context + unreachable + TWO_REGIONS)
    listed = {region["code"]: region for region in runner.json_output(app, "list")}
    assert [listed[code]["isActive"] for code in ("context", "cluster", "eu")] == [False, False, True]
    assert listed["context"]["fault"] == (
        f"The kubeconfig {kubeconfig} cannot be used: it has no context 'nowhere'; its contexts: test."
    )
    assert listed["cluster"]["fault"] == "http://127.0.0.1:1 cannot be reached: Connection refused."
    assert listed["cluster"]["capacity"] is None
    assert listed["eu"]["fault"] is None


def test_servers_that_wait_for_a_confirmation_are_shown_and_confirmed(two_regions: CommandRunner) -> None:
    assert two_regions.output(app, "sweep", "eu") == ""

    async def check(db: Database, are_confirmed: list[bool]) -> None:
        await withheld_servers.add(db, "eu", ["srv_1", "srv_2"], 1_700_000_000_000)
        found = (await withheld_servers.withheld_servers(db))["eu"]
        assert [one.is_confirmed for one in found] == are_confirmed

    neither, both = (partial(check, are_confirmed=[is_confirmed] * 2) for is_confirmed in (False, True))
    on_database(two_regions, neither)
    assert [region["withheld"] for region in two_regions.json_output(app, "list")] == [2, 0]
    head, first, _ = two_regions.output(app, "sweep", "eu").splitlines()
    assert head.split() == ["server", "withheld", "since", "confirmed"]
    assert first.split() == ["srv_1", "2023-11-14", "22:13", "no"]
    on_database(two_regions, neither)  # nothing is confirmed without --yes
    assert two_regions.output(app, "sweep", "us", "--yes") == ""
    on_database(two_regions, neither)
    two_regions.output(app, "sweep", "eu", "--yes")
    on_database(two_regions, both)


def test_check_waits_after_the_last_one_and_says_that_no_service_runs(
    two_regions: CommandRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(region_checks, "STALE_MS", 100)
    monkeypatch.setattr(requests, "PAUSE_MS", 1_000)
    monkeypatch.setattr(regions, "CHECK_POLL_S", 0.01)
    for notes in ([], ["matchpod: the previous check was seconds ago; waiting"]):
        done = two_regions.invoke(app, "check", "us")
        assert (done.exit_code, done.stdout) == (3, "")
        *before, last = done.stderr.splitlines()
        assert before == notes
        assert last.endswith("is the service running with this database?")


@pytest.mark.parametrize("command", ["activate", "deactivate", "sweep"])
def test_error_about_an_unknown_region_lists_the_known_ones(two_regions: CommandRunner, command: str) -> None:
    assert two_regions.error(app, command, "mars") == "Unknown region 'mars'. Known regions: eu, us."
