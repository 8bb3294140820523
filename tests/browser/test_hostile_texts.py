"""Texts of callers and players in a browser: shown letter by letter, never run, and kept in their places."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.browser import chromium
from tests.browser.chromium import DESK, PHONE
from tests.browser.conftest import Pages
from tests.browser.console_service import HOSTILE_IDS, PLAYER_NAMES, TEAM1, TEAM2, ConsoleService


@pytest.mark.parametrize("size", [DESK, pytest.param(PHONE, marks=pytest.mark.soak)])
def test_texts_of_callers_and_players_are_shown_literally(
    pages: Pages, service: ConsoleService, size: dict[str, int]
) -> None:
    page = pages.open("/console?view=cards", viewport=size)
    for server_id, name in zip(service.hostile, HOSTILE_IDS, strict=True):
        card = page.locator(f"#card-{server_id}")
        assert card.locator("h3 bdi").text_content() == name
        assert card.locator(".team1 bdi").text_content() == TEAM1
        assert card.locator(".team2 bdi").text_content() == TEAM2
    service.join_players()
    players = page.locator(f"#card-{service.hostile[0]} .dot.connected")
    expect(players).to_have_count(len(PLAYER_NAMES))
    titles = players.evaluate_all("(all) => all.map((one) => one.title)")
    assert sorted(titles) == sorted(f"{name}: connected" for name in PLAYER_NAMES)
    check_nothing_was_injected(page)
    assert chromium.overflow(page) <= 0
    check_cards_hold_their_content(page)
    page.goto("/console")
    for server_id, name in zip(service.hostile, HOSTILE_IDS, strict=True):
        line = page.locator(f"#card-{server_id}")
        assert line.locator(".named a bdi").text_content() == name
        assert line.locator(".versus bdi").all_text_contents() == [TEAM1, TEAM2]
    check_nothing_was_injected(page)
    assert chromium.overflow(page) <= 0


@pytest.mark.soak
def test_right_to_left_texts_do_not_turn_what_is_beside_them(pages: Pages, service: ConsoleService) -> None:
    page = pages.open("/console?view=cards")
    for server_id in service.hostile:
        places = page.locator(f"#card-{server_id} .team2").evaluate(
            """(team) => ["dt bdi", "dd"].map((part) => team.querySelector(part).getBoundingClientRect())
                 .map((box) => [box.left, box.right])"""
        )
        (_, name_right), (score_left, _) = places
        assert name_right <= score_left
        chip_left, name_left = page.locator(f"#card-{server_id} .meta").evaluate(
            """(meta) => { const range = document.createRange(); range.selectNodeContents(meta);
                 return [range.getBoundingClientRect().left, meta.getBoundingClientRect().left]; }"""
        )
        assert chip_left >= name_left


def check_nothing_was_injected(page: Page) -> None:
    """Fail if a text has become an element, an attribute that runs code, or an expression."""
    scripts = page.locator("script").evaluate_all("(all) => all.map((one) => one.getAttribute('src'))")
    assert all(str(source).startswith("/console/assets/") for source in scripts)
    images = page.locator("main img").evaluate_all("(all) => all.map((one) => one.getAttribute('src'))")
    assert all(str(source).startswith("/console/assets/") for source in images)
    running = """() => [...document.querySelectorAll("*")].flatMap((one) => one.getAttributeNames())
                   .filter((name) => name.startsWith("on") || name === "style" || name === "autofocus")"""
    assert page.evaluate(running) == []
    assert page.locator("main :is(svg[onload], b[onclick], iframe, object, embed, base, meta)").count() == 0
    assert "49" not in [text.strip() for text in page.locator("bdi").all_text_contents()]


def check_cards_hold_their_content(page: Page) -> None:
    """Fail if a text reaches out of its card."""
    outside = """() => [...document.querySelectorAll("#cards > article")].flatMap((card) => {
        const box = card.getBoundingClientRect();
        return [...card.querySelectorAll("*")].filter((one) => {
          const inner = one.getBoundingClientRect();
          const clipped = one.closest("dt");
          return !clipped && inner.width && (inner.right > box.right + 1 || inner.left < box.left - 1);
        }).map((one) => one.outerHTML.slice(0, 120)); })"""
    assert page.evaluate(outside) == []
