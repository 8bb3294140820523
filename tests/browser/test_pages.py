"""Every page in a browser: accessible, usable with the keyboard, on a phone, in the dark, and without scripts."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser import addresses, chromium
from tests.browser.conftest import OWNER, Pages, path_of
from tests.browser.console_service import ConsoleService

PHONE = {"width": 390, "height": 844}
DESK = {"width": 1280, "height": 900}
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
    return pages.open(address.format(serverId=service.hostile[0], endedId=service.ended_id), who=who, **options)


OTHERS = (*addresses.PUBLIC, *addresses.OF_AN_OPERATOR)
ALL_NAMES = (*addresses.OF_AN_OWNER, *OTHERS)
MOST_USED = ("live", "match", "create")
FEW_NAMES = [pytest.param(name, marks=() if name in MOST_USED else pytest.mark.soak) for name in ALL_NAMES]
"""The pages that people use most in `make test`, all pages in `make soak`."""


@pytest.mark.parametrize("name", FEW_NAMES)
def test_page_has_no_accessibility_fault(pages: Pages, service: ConsoleService, name: str) -> None:
    for scheme, size in (("light", DESK), ("dark", PHONE)):
        page = open_address(pages, service, name, color_scheme=scheme, viewport=size, bypass_csp=True)
        assert chromium.axe_findings(page) == []


@pytest.mark.soak
@pytest.mark.parametrize("name", ALL_NAMES)
def test_page_has_no_accessibility_fault_the_other_way_round(pages: Pages, service: ConsoleService, name: str) -> None:
    for scheme, size in (("dark", DESK), ("light", PHONE)):
        page = open_address(pages, service, name, color_scheme=scheme, viewport=size, bypass_csp=True)
        assert chromium.axe_findings(page) == []


@pytest.mark.parametrize("name", FEW_NAMES)
def test_page_fits_a_phone_and_is_clean(pages: Pages, service: ConsoleService, name: str) -> None:
    page = open_address(pages, service, name, viewport=PHONE)
    expect(page.get_by_role("heading", level=1)).to_have_count(1)
    assert chromium.overflow(page) <= 0
    page.set_viewport_size({"width": 320, "height": 640})
    assert chromium.overflow(page) <= 0
    page.set_viewport_size({"width": 2560, "height": 1200})
    assert chromium.overflow(page) <= 0


@pytest.mark.parametrize("name", FEW_NAMES)
def test_page_can_be_read_without_scripts(pages: Pages, service: ConsoleService, name: str) -> None:
    page = open_address(pages, service, name, java_script_enabled=False)
    expect(page.get_by_role("heading", level=1)).to_be_visible()


def test_keyboard_reaches_skip_link_menu_and_cards_in_this_order(pages: Pages) -> None:
    page = pages.open()
    expect(page.locator("#cards > article").first).to_be_visible()
    for part in PARTS:
        page.locator(part).evaluate("(one, part) => { one.dataset.part = part; }", part)
    page.keyboard.press("Tab")
    skip = page.get_by_role("link", name="Skip to content")
    expect(skip).to_be_focused()
    expect(skip).to_be_visible()
    reached = []
    for _ in range(25):
        page.keyboard.press("Tab")
        reached.append(page.evaluate(f"document.activeElement.closest('{', '.join(PARTS)}')?.dataset.part ?? ''"))
    assert list(dict.fromkeys(part for part in reached if part)) == list(PARTS)
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"


def test_skip_link_moves_the_focus_past_the_menu(pages: Pages) -> None:
    page = pages.open()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.get_by_role("searchbox")).to_be_focused()


@pytest.mark.soak
def test_log_in_with_the_keyboard_alone(pages: Pages, service: ConsoleService) -> None:
    page = pages.open("/console/login", who=None)
    page.keyboard.type(service.running.key)
    page.keyboard.press("Enter")
    page.wait_for_url("**/console")
    assert path_of(page) == "/console"


def test_dark_scheme_is_dark(pages: Pages) -> None:
    colors = {}
    for scheme in ("light", "dark"):
        page = pages.open(color_scheme=scheme)
        ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
        colors[scheme] = sum(int(part) for part in ground.removeprefix("rgb(").removesuffix(")").split(","))
    assert colors["dark"] < 150 < 600 < colors["light"]
