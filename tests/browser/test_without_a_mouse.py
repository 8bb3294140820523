"""From log-in to a forfeit with the keyboard alone, as a referee with a link, while the pages are updated."""

from __future__ import annotations

from typing import Final

from playwright.sync_api import Locator, Page, expect

from matchpod.console.match_actions import ACTION_NOTICES
from matchpod.service.identity.principals import ConsoleRole
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


def test_match_is_forfeited_with_the_keyboard_while_pages_change(pages: Pages, service: ConsoleService) -> None:
    listed = players(4)
    teams = {"team1": {"name": "A", "players": listed[:2]}, "team2": {"name": "B", "players": listed[2:]}}
    service.cancel_hostile_matches()
    server_id = service.create_open_match("by keyboard", teams=teams)
    service.running.wait_for_status(server_id, "running")

    page = pages.open(service.new_link(name="Rita <b>", role=ConsoleRole.REFEREE), who=None)
    expect(page.get_by_role("button", name="Open the console")).to_be_focused()
    page.keyboard.press("Enter")
    page.wait_for_url("**/console")
    expect(page.locator(".role")).to_contain_text("Rita <b> · demo · referee")
    page.keyboard.press("/")
    page.keyboard.type("keyboard")
    link = page.get_by_role("link", name="by keyboard", exact=True)
    expect(link).to_be_visible()
    expect(page.locator("#cards > [data-text]:visible")).to_have_count(1)
    page.keyboard.press("ArrowDown")
    expect(link).to_be_focused()
    join(service, server_id, 0)
    another = service.create_open_match("by keyboard, another")
    expect(page.locator("[data-text*='by keyboard, another']")).to_be_visible()
    expect(link).to_be_focused()
    page.keyboard.press("Enter")

    page.wait_for_url(f"**/console/matches/{server_id}")
    expect(page.locator("#roster .dot.connected")).to_have_count(1)
    expect(page.locator("summary", has_text="Cancel the match")).to_have_count(0)
    tab_to(page, page.locator("#act-forfeit > summary"))
    page.keyboard.press("Enter")
    winner = page.get_by_label("Winner")
    tab_to(page, winner)
    page.keyboard.type("A")
    join(service, server_id, 1)
    expect(page.locator("#roster .dot.connected")).to_have_count(2)
    expect(winner).to_be_focused()
    expect(winner).to_have_value("team1")
    tab_to(page, page.locator("#act-forfeit button"))
    page.keyboard.press("Enter")
    expect(page.get_by_text(ACTION_NOTICES["action-requested"])).to_be_visible()
    service.running.wait_for_status(server_id, "stopped")
    service.running.cancel(another)
