"""The console on a phone: all of the menu, and names that are not broken inside words."""

from __future__ import annotations

from typing import Final

import pytest
from playwright.sync_api import Page, expect

from tests.browser import chromium
from tests.browser.chromium import DESK, PHONE
from tests.browser.conftest import Pages
from tests.browser.console_service import ConsoleService
from tests.e2e.service.running_service import players

ITEMS: Final = ("Live", "Matches", "Create", "Deliveries", "Webhooks", "Regions", "Access")
NAME: Final = "spring-cup/quarter-final/1 rematch"
TEAMS: Final = ("Bayerische Motorsportfreunde", "Kungsträdgårdens Bollklubb")
LONG_ORGANIZATION: Final = "The Extraordinarily Longwinded Association of Counterstrike"

_BROKEN_WORDS = """(selector) => [...document.querySelectorAll(selector)].flatMap((one) => {
  const texts = document.createTreeWalker(one, NodeFilter.SHOW_TEXT), broken = [];
  while (texts.nextNode()) for (const word of texts.currentNode.data.matchAll(/[^\\s\\/-]+/g)) {
    const range = document.createRange();
    range.setStart(texts.currentNode, word.index);
    range.setEnd(texts.currentNode, word.index + word[0].length);
    const lines = new Set([...range.getClientRects()].filter((box) => box.width).map((box) => Math.round(box.top)));
    if (lines.size > 1) broken.push(word[0]);
  }
  return broken;
})"""
"""Returns the words in elements that are on more than one line; hyphens and slashes end a word."""


def test_every_item_of_the_menu_can_be_tapped_and_its_page_fits_and_needs_no_scripts(pages: Pages) -> None:
    page = pages.open(viewport=PHONE, java_script_enabled=False)
    for item in ITEMS:
        link = page.locator("header nav").get_by_role("link", name=item, exact=True)
        box = link.bounding_box()
        assert box is not None
        assert box["x"] >= 0, item
        assert box["x"] + box["width"] <= PHONE["width"], item
        assert box["height"] >= 24, item
        link.click(timeout=5_000)
        expect(page.get_by_role("heading", level=1)).to_contain_text(item)
        assert chromium.overflow(page) <= 0, item


def test_names_are_not_broken_inside_words(pages: Pages, service: ConsoleService) -> None:
    listed = players(4)
    teams = {
        team: {"name": name, "players": listed[2 * at : 2 * at + 2]}
        for at, (team, name) in enumerate(zip(("team1", "team2"), TEAMS, strict=True))
    }
    server_id = service.create_open_match(NAME, teams=teams)
    page = pages.open("/console/matches")
    row = f"tr:has([href$='{server_id}'])"
    expect(page.locator(row)).to_contain_text(TEAMS[0])
    check_words(page, f"{row} bdi")
    page.goto(f"/console/matches/{server_id}")
    expect(page.get_by_role("heading", level=1)).to_have_text(NAME)
    check_words(page, "h1, .role")
    service.running.cancel(server_id)


def check_words(page: Page, selector: str) -> None:
    """Check that no word is broken in windows of different widths, and nothing is wider than they are."""
    for width in (PHONE["width"], 720, DESK["width"]):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate(_BROKEN_WORDS, selector) == []
        assert chromium.overflow(page) <= 0


@pytest.mark.soak
def test_long_name_of_an_organization_fits(pages: Pages, service: ConsoleService) -> None:
    key = service.new_key(org=LONG_ORGANIZATION)
    page = pages.open(None, who=None, viewport=PHONE)
    cookie = service.new_cookie(key.text)
    page.context.add_cookies([{"name": "matchpod", "value": cookie, "domain": "127.0.0.1", "path": "/"}])
    page.goto("/console")
    expect(page.locator(".role")).to_contain_text(LONG_ORGANIZATION)
    assert page.evaluate(_BROKEN_WORDS, ".role, header button") == []
    assert chromium.overflow(page) <= 0
