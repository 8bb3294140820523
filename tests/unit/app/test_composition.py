"""Regions, fleets and limits built from the settings."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import httpx
import pytest

from matchpod.adapters.fleets.process import ProcessFleet
from matchpod.adapters.fleets.static import StaticFleet
from matchpod.adapters.rcon_client import RconConsoles
from matchpod.app import ResourcesError
from matchpod.app.composition import Service, check_fleets, compose, compose_regions, warn_of_denied_callbacks
from matchpod.app.resources import open_resources
from matchpod.service.identity.principals import Role, Scope
from matchpod.settings import load_settings
from tests.unit.web.sites import BODY

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
    sandbox, us = compose_regions(settings, RconConsoles(), installation="mp-1")
    assert (sandbox.code, sandbox.speed, sandbox.allows_simulator) == ("sandbox", 30, True)
    assert isinstance(sandbox.fleet, ProcessFleet)
    assert list(sandbox.fleet.slots) == ["27100", "27101", "27102"]
    assert (us.code, us.name, us.location, us.speed, us.allows_simulator) == ("us", "America", "Chicago", 1, False)
    assert isinstance(us.fleet, StaticFleet)
    assert list(us.fleet.slots) == ["192.0.2.1:27015"]


async def create_until_rejected(service: Service) -> tuple[int, httpx.Response]:
    """Create matches until one is rejected; return how many were created, and the rejection."""
    await service.access.create_organization("ours")
    key = await service.access.create_key("ours", role=Role.OWNER, scopes=list(Scope))
    transport = httpx.ASGITransport(app=service.web)
    headers = {"Authorization": f"Bearer {key.text}"}
    async with httpx.AsyncClient(transport=transport, base_url="http://matchpod.test", headers=headers) as client:
        for created in range(5):
            response = await client.post("/api/v1/matches", json=BODY)
            if response.status_code != 201:
                return created, response
    raise AssertionError("no match was rejected")


@pytest.mark.parametrize(
    ("setting", "value", "created", "status", "message"),
    [
        ("max_live_matches", "2", 2, 429, "2 matches that have not ended"),
        ("max_creations_per_minute", "3", 3, 429, "3 new matches per minute"),
        ("min_free_disk_mb", "1000000000", 0, 503, "The disk of the service is almost full"),
    ],
)
async def test_matches_beyond_a_limit_in_the_settings_are_rejected(
    tmp_path: Path, setting: str, value: str, created: int, status: int, message: str
) -> None:
    variables = {"MATCHPOD_DATA_DIR": str(tmp_path), "MATCHPOD_MIN_FREE_DISK_MB": "off"}
    settings = load_settings({**variables, f"MATCHPOD_{setting.upper()}": value}, lambda _: None)
    resources = await open_resources(settings)
    try:
        service = compose(resources, owner="me", ingest_base="http://127.0.0.1:1")
        service.readiness.mark_ready()
        number, rejected = await create_until_rejected(service)
        assert (number, rejected.status_code) == (created, status)
        assert message in rejected.json()["message"]
    finally:
        await resources.db.close()


def check(fleet: str) -> None:
    text = f'[[regions]]\ncode = "eu"\n[regions.fleet]\nkind = "process"\nports = "27100-27102"\n{fleet}\n'
    check_fleets(load_settings({}, lambda _: text.encode()))


def test_password_on_the_command_line_is_warned_about(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        check("")
        check('cfg_dir = "cfg"\ncommand = ["cs2", "{port}", "+exec", "{cfg}"]')
        assert caplog.records == []
        check('command = ["cs2", "{port}", "+rcon_password", "{rcon_password}"]')
    (record,) = caplog.records
    assert record.message.startswith("all users of this machine can read the RCON passwords in the process list;")
    assert vars(record)["region"] == "eu"


def test_user_that_servers_cannot_run_as_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    check(f"user = {os.geteuid()}")
    with pytest.raises(ResourcesError, match=r"^The servers of region eu cannot run as nix: there is no user nix\.$"):
        check('user = "nix"')
    monkeypatch.setattr(os, "geteuid", lambda: 54321)
    with pytest.raises(ResourcesError, match="cannot run as root: only root can start servers as another user"):
        check('user = "root"')


@pytest.mark.parametrize(
    ("settings", "is_warned"),
    [
        ({"PUBLIC_URL": "https://play.example"}, True),
        ({"PUBLIC_URL": "https://play.example", "CALLBACK_PRIVATE": "deny"}, False),
        ({"PUBLIC_URL": "https://play.example", "CALLBACK_PRIVATE": "allow"}, False),
        ({"PUBLIC_URL": "http://localhost:8080"}, False),
        ({"PUBLIC_URL": "https://play.example", "HOST": "0.0.0.0"}, False),
        ({}, False),
    ],
)
def test_warning_names_the_setting_if_the_public_url_alone_denies_private_callbacks(
    settings: dict[str, str], caplog: pytest.LogCaptureFixture, *, is_warned: bool
) -> None:
    warn_of_denied_callbacks(
        load_settings({f"MATCHPOD_{name}": text for name, text in settings.items()}, lambda _: None)
    )
    assert [record.levelno for record in caplog.records] == [logging.WARNING] * is_warned
    assert ("MATCHPOD_CALLBACK_PRIVATE" in caplog.text) is is_warned
