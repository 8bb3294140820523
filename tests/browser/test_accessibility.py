"""Accessibility of pages that answer a form or need more than an address: faults, secrets, results, the overlay."""

from __future__ import annotations

import re
from typing import Any, Final

import pytest
from playwright.sync_api import Page, expect

from tests.browser import chromium
from tests.browser.chromium import DESK, PHONE
from tests.browser.conftest import Pages
from tests.browser.console_service import ConsoleService
from tests.e2e.service.running_service import cvars, short_match, wait_until

NOTHING_LISTENS: Final = "http://127.0.0.1:9/callback"
WAYS: Final = [(scheme, size) for scheme in ("light", "dark") for size in (DESK, PHONE)]


def open_wide(pages: Pages, address: str = "/console/create", **options: Any) -> Page:
    """Open a page in which axe can run."""
    return pages.open(address, bypass_csp=True, **options)


@pytest.mark.soak
@pytest.mark.parametrize(("scheme", "size"), WAYS)
def test_answers_to_forms(pages: Pages, scheme: str, size: dict[str, int]) -> None:
    pages.faults.expect("status of 400", "status of 401", "status of 403")
    page = open_wide(pages, color_scheme=scheme, viewport=size)
    page.get_by_role("button", name="Show as curl").click()
    page.wait_for_selector("#request")
    chromium.check(page)
    page.get_by_label("First map").fill("De Dust")
    page.get_by_label("Players of team 2").fill("x\n" + "y" * 300)
    page.get_by_role("button", name="Create the match").click()
    page.wait_for_selector("#faults")
    chromium.check(page)
    page.goto("/console/access")
    page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
    chromium.check(page)
    for box in page.locator("#new-key input[type=checkbox]").all():
        box.uncheck()
    page.get_by_role("button", name="Create the key").click()
    page.wait_for_selector("#faults")
    chromium.check(page)
    page.goto("/console/access")
    page.locator("summary", has_text="Reveal").click()
    page.get_by_role("button", name="Reveal the secret").click()
    page.wait_for_selector(".secret")
    chromium.check(page)
    for address in ("/console/matches?dateFrom=x&foo=1", "/console/deliveries?until=x", "/console/operator"):
        page.goto(address)
        chromium.check(page)
    page.context.clear_cookies()
    page.goto("/console/login")
    page.get_by_label("API key").fill("wrong")
    page.keyboard.press("Enter")
    page.wait_for_selector("#faults")
    chromium.check(page)


@pytest.mark.soak
def test_ruling(pages: Pages, service: ConsoleService) -> None:
    pages.faults.expect("status of 400")
    created = service.running.create(short_match(), region="sandbox", externalMatchId="ruled")
    server_id = str(created["serverId"])
    service.running.cancel(server_id)
    for scheme, size in WAYS:
        page = open_wide(pages, f"/console/matches/{server_id}", color_scheme=scheme, viewport=size)
        page.locator("#ruling summary.button").click()
        page.get_by_label("Reason").fill("W" * 500)
        page.get_by_role("button", name="Rule", exact=True).click()
        page.wait_for_selector("#faults")
        chromium.check(page)
        page.get_by_label("Winner").select_option("Reds")
        page.get_by_role("button", name="Rule", exact=True).click()
        page.get_by_text("The ruling counts from now on.").wait_for()
        chromium.check(page)


@pytest.mark.soak
def test_result_delivery_and_overlay(pages: Pages, service: ConsoleService) -> None:
    settings = short_match(customCvars=cvars(600, "full_match"))
    created = service.running.create(
        settings, region="sandbox", externalMatchId="finished", callbackUrl=NOTHING_LISTENS
    )
    server_id = str(created["serverId"])
    service.running.wait_for_status(server_id, "stopped")
    list_address = f"/api/v1/callbacks?serverId={server_id}"
    wait_until(lambda: service.running.call("GET", list_address).json["items"], "there is a callback", within_s=60)
    callback_id = service.running.call("GET", list_address).json["items"][0]["id"]
    for scheme, size in WAYS:
        page = open_wide(pages, f"/console/matches/{server_id}", color_scheme=scheme, viewport=size)
        page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
        expect(page.locator("figure.chart")).not_to_have_count(0)
        chromium.check(page)
        page.goto(f"/console/deliveries/{callback_id}")
        chromium.check(page)
        page.goto(f"/console/matches/{service.hostile[0]}")
        page.locator("summary", has_text="Overlay for OBS").click()
        page.get_by_role("button", name="Create the link").click()
        (address,) = set(re.findall(r"/overlay/[\w-]+", page.get_by_text("/overlay/").inner_text()))
        chromium.check(page)
        page.goto(address)
        chromium.check(page)
