"""Every page in a browser: accessible, usable with the keyboard, on a phone, in the dark, and without scripts."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser import addresses, chromium
from tests.browser.chromium import DESK, PHONE
from tests.browser.conftest import OWNER, Pages
from tests.browser.console_service import ConsoleService

PARTS = (".brand", "header nav", ".who", "#cards")
"""Parts of the wall, in the order of the keyboard."""


def open_address(pages: Pages, service: ConsoleService, name: str, **options: Any) -> Page:
    """Open a page by its name in the table of addresses."""
    if name == "not-found":
        pages.faults.expect("status of 404")
    if name in addresses.OF_AN_OPERATOR:
        page = pages.open(service.new_link(None), who=None, **options)
        page.get_by_role("button", name="Open the console").click()
        page.wait_for_url("**/console/operator")
        page.goto(addresses.OF_AN_OPERATOR[name])
        return page
    address = {**addresses.PUBLIC, **addresses.OF_AN_OWNER}[name]
    who = None if name in addresses.PUBLIC else OWNER
    ids = service.webhook_ids() if name.startswith("webhook") else {}
    return pages.open(address.format(serverId=service.hostile[0], endedId=service.ended_id, **ids), who=who, **options)


OTHERS = (*addresses.PUBLIC, *addresses.OF_AN_OPERATOR)
ALL_NAMES = (*addresses.OF_AN_OWNER, *OTHERS)
SCREENS = {"desk": DESK, "phone": PHONE}
CHECKED = {("live", "light", "desk"), ("create", "dark", "phone")}
"""Checked in `make test`, as is the page of a live match; `make soak` checks all pages in all ways."""
WAYS = [
    pytest.param(*way, marks=() if way in CHECKED else pytest.mark.soak)
    for way in itertools.product(ALL_NAMES, ("light", "dark"), SCREENS)
]


@pytest.mark.parametrize(("name", "scheme", "screen"), WAYS)
def test_page_has_no_accessibility_fault(
    pages: Pages, service: ConsoleService, name: str, scheme: str, screen: str
) -> None:
    page = open_address(pages, service, name, color_scheme=scheme, viewport=SCREENS[screen], bypass_csp=True)
    assert chromium.axe_findings(page) == []


@pytest.mark.soak  # `make test` tries most pages in test_phone.py
@pytest.mark.parametrize("name", ALL_NAMES)
def test_page_fits_a_phone_and_is_clean(pages: Pages, service: ConsoleService, name: str) -> None:
    page = open_address(pages, service, name, viewport=PHONE)
    expect(page.get_by_role("heading", level=1)).to_have_count(1)
    assert chromium.overflow(page) <= 0
    page.set_viewport_size({"width": 320, "height": 640})
    assert chromium.overflow(page) <= 0
    page.set_viewport_size({"width": 2560, "height": 1200})
    assert chromium.overflow(page) <= 0


@pytest.mark.soak  # `make test` tries most pages in test_phone.py
@pytest.mark.parametrize("name", ALL_NAMES)
def test_page_can_be_read_without_scripts(pages: Pages, service: ConsoleService, name: str) -> None:
    page = open_address(pages, service, name, java_script_enabled=False)
    expect(page.get_by_role("heading", level=1)).to_be_visible()


def test_keyboard_reaches_menu_and_cards_in_this_order_and_can_skip_the_menu(pages: Pages) -> None:
    page = pages.open()
    expect(page.locator("#cards > [data-text]").first).to_be_visible()
    for part in PARTS:
        page.locator(part).evaluate("(one, part) => { one.dataset.part = part; }", part)
    page.keyboard.press("Tab")
    skip = page.get_by_role("link", name="Skip to content")
    expect(skip).to_be_focused()
    expect(skip).to_be_visible()
    reached = []
    for _ in range(40):
        page.keyboard.press("Tab")
        part = page.evaluate(f"document.activeElement.closest('{', '.join(PARTS)}')?.dataset.part ?? ''")
        if part:  # with few cards, focus leaves the page before
            reached.append(part)
            assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"
    assert list(dict.fromkeys(reached)) == list(PARTS)
    skip.focus()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.locator("#counters a").first).to_be_focused()


def test_dark_scheme_is_dark(pages: Pages) -> None:
    page = pages.open(color_scheme="light")

    def brightness() -> int:
        ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
        return sum(int(part) for part in ground.removeprefix("rgb(").removesuffix(")").split(","))

    light = brightness()
    page.emulate_media(color_scheme="dark")
    assert brightness() < 150 < 600 < light
