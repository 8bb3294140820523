"""The page of a match that has ended, and of a deathmatch: who has won, numbers, leads, rulings, and the same match again."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import pytest
from playwright.sync_api import expect

from tests.browser import chromium
from tests.browser.chromium import DESK
from tests.browser.conftest import Pages
from tests.browser.console_service import FAST, ConsoleService
from tests.e2e.service.running_service import cvars, players

PASSWORD: Final = "join-4711"
CALLBACK: Final = "http://127.0.0.1:9/callback"


@pytest.fixture(scope="module")
def ended_id(service: ConsoleService) -> str:
    """A match that was played to its end, in which one player is reported by the anti-cheat."""
    listed = players(10, first=600)
    teams = {
        "team1": {"name": "Owls", "players": listed[:5]},
        "team2": {"name": "Foxes", "players": listed[5:]},
    }
    settings = {
        "matchType": "competitive",
        "map": "de_mirage",
        "serverPassword": PASSWORD,
        "teams": teams,
        "customCvars": cvars(600, "cheater", sim_seed=2),
    }
    created = service.running.create(
        settings, region=FAST, externalMatchId="over", callbackUrl=CALLBACK, callbackAuthToken="token-0815"
    )
    server_id = str(created["serverId"])
    service.running.wait_for_status(server_id, "stopped")
    return server_id


@pytest.fixture(scope="module")
def deathmatch_id(service: ConsoleService) -> Iterator[str]:
    """A deathmatch that is played for longer than the test takes."""
    service.cancel_hostile_matches()
    settings = {"matchType": "deathmatch", "map": "de_mirage", "customCvars": cvars(3)}
    created = service.running.create(settings, region=FAST, externalMatchId="everyone for themselves")
    server_id = str(created["serverId"])
    yield server_id
    service.running.cancel(server_id)


def test_ended_match_names_its_winner_and_has_all_numbers(pages: Pages, ended_id: str) -> None:
    page = pages.open(f"/console/matches/{ended_id}", viewport=DESK, bypass_csp=True)
    winner = page.locator("#heading p", has_text="winner").locator("bdi.name").inner_text()
    expect(page.locator("#heading .phase")).to_contain_text(f"{winner} won")
    expect(page.locator(".team-row", has_text=winner).locator(".chip")).to_have_text("won")
    leads = page.locator("#leads")
    expect(leads.get_by_role("heading")).to_have_text("Anti-cheat leads")
    assert leads.bounding_box()["y"] < page.locator(".board").bounding_box()["y"]  # type: ignore[index]
    heads = page.locator(".board thead th").all_inner_texts()
    assert ("TRD" in heads, "TK" in heads) == (True, False)
    row = page.locator(".board tbody tr:not(.team-row)").first
    assert row.locator("td").nth(heads.index("HS") - 1).inner_text().endswith("%")
    steam_id = row.locator("[data-copy]").get_attribute("data-copy") or ""
    expect(row.get_by_role("link")).to_have_attribute("href", f"https://steamcommunity.com/profiles/{steam_id}")
    expect(page.locator("#order")).to_contain_text(CALLBACK)
    expect(page.locator("#feed .kill .assist").first).to_be_visible()
    page.set_viewport_size({"width": 390, "height": 844})
    page.get_by_text("What the columns mean").click()
    expect(page.get_by_text("Trade kills")).to_be_visible()
    chromium.check(page)


def test_ended_match_is_ruled_and_created_again(pages: Pages, service: ConsoleService, ended_id: str) -> None:
    pages.faults.expect("status of 400")
    page = pages.open(f"/console/matches/{ended_id}")
    page.locator("#ruling summary.button").click()
    page.get_by_label("Winner").select_option("Foxes")
    page.get_by_role("button", name="Rule", exact=True).click()
    expect(page.locator("#heading p", has_text="winner").locator("bdi.name")).to_have_text("Foxes")
    page.goto("/console/matches?search=over")
    expect(page.locator(".list .won")).to_have_text("Foxes")
    page.goto(f"/console/matches/{ended_id}")
    page.locator("summary", has_text="Create it again").click()
    form = page.get_by_role("form", name="Create it again")
    form.get_by_role("button").click()
    expect(page.locator(".wrong")).to_have_count(2)
    form.locator("[name=serverPassword]").fill("join-4712")
    form.locator("[name=without-callbackAuthToken]").check()
    form.get_by_role("button").click()
    page.wait_for_url(lambda url: ended_id not in url)
    expect(page.get_by_role("heading", level=1)).to_have_text("over")
    expect(page.locator("#actions .connect code")).to_contain_text("; password join-4712")
    join = page.get_by_role("link", name="Join")
    assert (join.get_attribute("href") or "").startswith("steam://connect/127.0.0.1:")
    service.running.cancel(page.url.rpartition("/")[2])


def test_live_deathmatch_has_its_numbers_and_no_others(pages: Pages, deathmatch_id: str) -> None:
    page = pages.open(f"/console/matches/{deathmatch_id}", viewport=DESK, bypass_csp=True)
    expect(page.locator("#feed .kill").first).to_be_visible()
    assert page.locator("#roster thead th").all_inner_texts() == ["Player", "K", "D", "A", "HS", "K/D"]
    expect(page.locator("#roster tbody tr").first.locator("td").first).not_to_have_text("0")
    expect(page.locator("#lifecycle")).not_to_contain_text(re.compile(r"(?<!\d)0:0(?!\d)"))  # a score, not a time
    chromium.check(page)
    page.set_viewport_size({"width": 390, "height": 844})
    chromium.check(page)
