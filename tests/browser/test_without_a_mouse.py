"""From log-in to a canceled match with the keyboard alone, while the pages are updated."""

from __future__ import annotations

from typing import Final

from playwright.sync_api import Locator, Page, expect

from matchpod.console.match_actions import ACTION_NOTICES
from tests.browser.conftest import Pages
from tests.browser.console_service import FIRST_ACCOUNT, ConsoleService
from tests.e2e.service.running_service import players

MOST_STEPS: Final = 120
"""More steps than all cards, menus and buttons of a page need."""


def tab_to(page: Page, wanted: Locator) -> None:
    """Press Tab until an element has the focus."""
    reached = []
    for _ in range(MOST_STEPS):
        page.keyboard.press("Tab")
        if wanted.evaluate("(one) => one === document.activeElement"):
            return
        reached.append(page.evaluate("document.activeElement.outerHTML.slice(0, 80)"))
    raise AssertionError(f"{wanted} is not reached; reached were {reached}")


def join(service: ConsoleService, server_id: str, number: int) -> None:
    """Let a listed player join, which changes the card and the page of the match."""
    who = f"Player {number}<{number}><[U:1:{FIRST_ACCOUNT + number}]>"
    stamp = "11/17/2026 - 12:00:00.000 - "
    service.post_log(server_id, f'{stamp}"{who}<>" connected, address ""', f'{stamp}"{who}<>" entered the game')


def test_match_is_canceled_with_the_keyboard_while_pages_change(pages: Pages, service: ConsoleService) -> None:
    listed = players(4)
    teams = {"team1": {"name": "A", "players": listed[:2]}, "team2": {"name": "B", "players": listed[2:]}}
    service.cancel_hostile_matches()
    server_id = service.create_open_match("by keyboard", teams=teams)
    service.running.wait_for_status(server_id, "running")

    page = pages.open("/console/login", who=None)
    page.keyboard.type(service.running.key)
    page.keyboard.press("Enter")
    page.wait_for_url("**/console")
    card = page.locator(f"#card-{server_id}")
    link = card.get_by_role("link", name="by keyboard")
    expect(link).to_be_visible()
    tab_to(page, link)
    join(service, server_id, 0)
    expect(card.locator(".dot.connected")).to_have_count(1)
    another = service.create_open_match("another")
    expect(page.locator(f"#card-{another}")).to_be_visible()
    expect(link).to_be_focused()
    page.keyboard.press("Enter")

    page.wait_for_url(f"**/console/matches/{server_id}")
    expect(page.locator("#roster .dot.connected")).to_have_count(1)
    tab_to(page, page.locator("summary", has_text="Cancel the match"))
    page.keyboard.press("Enter")
    confirm = page.get_by_role("button", name="Cancel the match")
    expect(confirm).to_be_visible()
    tab_to(page, confirm)
    join(service, server_id, 1)
    expect(page.locator("#roster .dot.connected")).to_have_count(2)
    expect(confirm).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_text(ACTION_NOTICES["canceled"])).to_be_visible()
    expect(page.locator("#heading")).to_contain_text("canceled by user")
    service.running.cancel(another)
