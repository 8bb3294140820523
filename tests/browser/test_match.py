"""The page of a match in a browser: followed live to its result, with every action, and its overlay."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Pages
from tests.browser.console_service import ConsoleService
from tests.browser.test_wall import MATCH_MS, is_marked, mark


def act(page: Page, title: str, button: str) -> None:
    """Open an action, read what it will do, and do it."""
    page.locator("summary", has_text=title).click()
    expect(page.get_by_role("button", name=button)).to_be_visible()
    page.get_by_role("button", name=button).click()


@pytest.mark.soak
def test_match_is_followed_to_its_result_and_callback(pages: Pages, service: ConsoleService) -> None:
    server_id = service.create_match("semi-final", scenario="full_match", speed=60)
    page = pages.open(f"/console/matches/{server_id}")
    mark(page)
    expect(page.locator("#roster .dot.connected")).to_have_count(4, timeout=MATCH_MS)
    expect(page.locator("#actions .copy code").first).to_contain_text("connect 127.0.0.1:")
    expect(page.locator("#feed .kill").first).to_be_visible(timeout=MATCH_MS)
    expect(page.locator("#strip td.ct, #strip td.t, #strip .won").first).to_be_attached(timeout=MATCH_MS)
    assert is_marked(page)
    page.get_by_label("kills and deaths").uncheck()
    expect(page.locator("#feed .kill").first).to_be_hidden()
    expect(page.locator(".board").first).to_be_visible(timeout=MATCH_MS)  # it loads itself again at the end
    expect(page.locator("#heading")).to_contain_text(" won")
    expect(page.get_by_role("link", name="Result as JSON")).to_be_visible()
    with page.expect_download() as downloaded:
        page.get_by_role("link", name="Log of the server").click()
    assert "Game Over" in downloaded.value.path().read_text()


@pytest.mark.soak
def test_password_is_shown_once_and_recorded(pages: Pages, service: ConsoleService) -> None:
    page = pages.open(f"/console/matches/{service.hostile[0]}")
    act(page, "Show the RCON password", "Show the password")
    shown = page.locator(".notice code").inner_text()
    assert re.fullmatch("[0-9a-f]{32}", shown)
    page.goto(f"/console/matches/{service.hostile[0]}")
    assert shown not in page.content()
    page.goto("/console/access")
    expect(page.get_by_text("revealed a password").first).to_be_visible()
    assert shown not in page.content()


def test_overlay_follows_the_match_until_its_links_are_ended(pages: Pages, service: ConsoleService) -> None:
    server_id = service.create_open_match("streamed")
    page = pages.open(f"/console/matches/{server_id}")
    act(page, "Overlay for OBS", "Create the link")
    address = page.locator(".notice code").inner_text()
    overlay = pages.open(address, who=None)
    expect(overlay.locator("#board")).to_contain_text("starting soon")
    ground = "getComputedStyle(document.body).backgroundColor"
    assert overlay.evaluate(ground) == "rgba(0, 0, 0, 0)"
    service.running.cancel(server_id)
    expect(overlay.locator("#board")).to_contain_text("canceled")
    # The page loads itself again at the end of the match, which closes what is open on it.
    expect(page.get_by_role("heading", name="Files and deliveries")).to_be_visible()
    act(page, "End overlay links", "End the links")
    pages.faults.expect("404")
    expect(overlay.get_by_text("no data")).to_be_visible()
    expect(overlay.locator("#board")).to_be_hidden()
    overlay.reload()
    expect(overlay.get_by_role("alert")).to_contain_text("does not exist, or its link is no longer valid")
