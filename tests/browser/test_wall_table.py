"""The table of the wall: how many matches fit a screen, filters in the address, the full screen, and who is on what."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from typing import Any, Final

import pytest
from playwright.sync_api import Page, ViewportSize, expect

from tests.browser import chromium
from tests.browser.chromium import DESK, PHONE
from tests.browser.conftest import MEMBER, Pages
from tests.browser.console_service import PATIENT, ConsoleService, lines_of_chat
from tests.browser.test_alarms import call_admin, quiet_wall
from tests.e2e.service.running_service import players

__all__ = ["quiet_wall"]

LINES: Final = 44
FAILED: Final = 12
"""More matches than the strip shows."""
UNDO_S: Final = 10
SCREENS: Final[Sequence[tuple[ViewportSize, int]]] = (
    ({"width": 1920, "height": 1080}, 40),
    ({"width": 1280, "height": 900}, 25),
)
"""Screens, and the lines that they show without scrolling."""

_WHOLE = """() => [...document.querySelectorAll("#cards > [data-text]")].filter((line) => {
  const { top, bottom } = line.getBoundingClientRect();
  return top >= 0 && bottom <= innerHeight;
}).length"""
_CUT = """() => [...document.querySelectorAll("#cards > [data-text]")].flatMap((line) => {
  const box = line.getBoundingClientRect();
  return [...line.children].filter((cell) => {
    const inner = cell.getBoundingClientRect();
    return !inner.width || !inner.height || inner.bottom > box.bottom + 1 || inner.right > box.right + 1;
  }).map((cell) => cell.outerHTML.slice(0, 120));
})"""
_ROWS = """() => [...document.querySelectorAll("#cards > [data-text]")].map((line) => {
  const boxes = [...line.children].map((cell) => cell.getBoundingClientRect());
  const middles = boxes.map(({ top, bottom }) => (top + bottom) / 2).sort((one, other) => one - other);
  return middles.filter((middle, at) => !at || middle - middles[at - 1] > 6).length;
})"""


@pytest.fixture(scope="module")
def event(service: ConsoleService) -> Iterator[list[str]]:
    """The ids of a whole event: most of its matches wait for a server, and one asks for an admin."""
    service.cancel_hostile_matches()
    service.acknowledge_all()
    listed = players(10)
    created = []
    for number in range(LINES):
        teams = {
            "team1": {"name": f"Team {2 * number + 1}", "players": listed[:5]},
            "team2": {"name": f"Second team of a long name {number}"[:32], "players": listed[5:]},
        }
        labels = {"event": "cup" if number < 30 else "league", "round": str(number % 3 + 1)}
        created.append(service.create_open_match(f"event/{number:02}", teams=teams, labels=labels))
    service.running.wait_for_status(created[0], "running")
    call_admin(service, created[0])
    yield created
    for server_id in created:
        service.running.cancel(server_id)
    service.acknowledge_all()


def open_event(pages: Pages, event: list[str], address: str = "/console", **options: Any) -> Page:
    page = pages.open(address, **options)
    expect(page.locator(f"#card-{event[-1]}")).to_be_attached()
    expect(page.locator("#strip")).to_contain_text("asked for an admin")
    return page


def test_forty_matches_fit_a_large_screen_and_three_lines_a_phone(pages: Pages, event: list[str]) -> None:
    page = open_event(pages, event)
    for size, lines in SCREENS:
        page.set_viewport_size(size)
        assert page.evaluate(_WHOLE) >= lines, size
        assert page.evaluate(_CUT) == []
        assert set(page.evaluate(_ROWS)) == {1}
        assert chromium.overflow(page) <= 0
    page.goto("/console?screen=full")
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate(_CUT) == []
    page.goto("/console")
    assert page.evaluate(_CUT) == [], "every column is there"
    assert max(page.evaluate(_ROWS)) <= 3
    assert chromium.overflow(page) <= 0


@pytest.mark.parametrize(("scheme", "size"), [("dark", DESK), pytest.param("light", PHONE, marks=pytest.mark.soak)])
def test_full_wall_has_no_accessibility_fault(
    pages: Pages, event: list[str], scheme: str, size: dict[str, int]
) -> None:
    page = open_event(pages, event, "/console?group=event", color_scheme=scheme, viewport=size, bypass_csp=True)
    expect(page.locator("#cards")).to_contain_text("0 of 30 over")
    page.locator("#alarms > summary").click()
    page.evaluate("document.querySelector('#strip details').open = true")
    chromium.check(page)


def test_filters_are_in_the_address(pages: Pages, service: ConsoleService, event: list[str]) -> None:
    page = open_event(pages, event)
    shown = page.locator("#cards > [data-text]:visible")
    page.get_by_role("combobox", name="Label").select_option("event:league")
    expect(shown).to_have_count(LINES - 30)
    page.locator("#counters").get_by_role("link", name="queued").click()
    page.get_by_role("searchbox").fill("event/3")
    expect(shown).to_have_count(10)
    assert page.url.endswith("/console?label=event%3Aleague&state=queued&search=event%2F3")
    page.reload()
    expect(shown).to_have_count(10)
    expect(page.get_by_role("combobox", name="Label")).to_have_value("event:league")
    page.get_by_role("link", name="Cards").click()
    page.wait_for_url("**view=cards*")
    expect(page.locator("#cards > article:visible")).to_have_count(10)
    page.get_by_role("link", name="event", exact=True).click()
    page.wait_for_url("**group=event*")
    (heading,) = page.locator("#cards > .group:visible").all_inner_texts()
    assert " ".join(heading.split()) == f"league 0 of {LINES - 30} over; {LINES - 30} queued"
    page.goto(f"/console?region={PATIENT}&state=urgent")
    expect(shown).to_have_count(1)
    assert shown.first.get_attribute("id") == f"card-{event[0]}"


def test_full_screen_is_without_controls(pages: Pages, event: list[str]) -> None:
    page = open_event(pages, event, viewport=SCREENS[0][0])
    page.get_by_role("link", name="Full screen").click()
    expect(page.locator("html:fullscreen")).to_be_attached()
    assert page.url.endswith("/console?screen=full")
    for part in ("header", ".controls", ".foot", "#strip .claim"):
        expect(page.locator(part).first).to_be_hidden()
    expect(page.locator("#strip")).to_contain_text("asked for an admin")
    assert page.evaluate(_WHOLE) >= 40
    page.evaluate("document.exitFullscreen()")
    expect(page.locator("header")).to_be_visible()
    assert page.url.endswith("/console")
    assert chromium.overflow(page) <= 0


def test_everyone_sees_who_is_on_it_and_the_title_counts_the_others(
    pages: Pages, service: ConsoleService, event: list[str]
) -> None:
    page, other = open_event(pages, event), open_event(pages, event, who=MEMBER)
    for one in (page, other):  # the region needs attention too, once its matches have waited for a minute
        one.evaluate("localStorage.setItem('muted', JSON.stringify(['pending', 'missing']))")
        one.reload()
    expect(page).to_have_title("(1) Live · Matchpod")
    expect(other.locator("#strip .claim").first).to_be_hidden()
    page.locator("#strip .claim > summary").first.click()
    page.get_by_label("Name").fill("Ada")
    page.get_by_label("Note").fill("<b>calls</b> them")
    page.get_by_role("button", name="I’m on it", exact=True).click()
    for one in (page, other):
        expect(one.locator(f"#card-{event[0]} .claimed")).to_have_text("Ada is on it: <b>calls</b> them")
        expect(one).to_have_title("Live · Matchpod")
    page.locator("#strip .claim > summary").first.click()
    page.get_by_role("button", name="Release it").click()
    expect(other).to_have_title("(1) Live · Matchpod")
    service.post_log(event[0], *lines_of_chat("thank you"))


def test_escape_and_the_way_back_end_the_full_screen(pages: Pages, event: list[str]) -> None:
    page = open_event(pages, event, "/console?screen=full")
    expect(page.locator("header")).to_be_hidden()
    page.keyboard.press("Escape")
    expect(page.locator("header")).to_be_visible()
    assert page.url.endswith("/console")
    page.evaluate("Element.prototype.requestFullscreen = undefined")  # as on some phones
    page.get_by_role("link", name="Full screen").click()
    expect(page.locator("header")).to_be_hidden()
    page.go_back()
    expect(page.locator("header")).to_be_visible()
    assert page.url.endswith("/console")


def test_undo_is_there_for_ten_seconds(pages: Pages, service: ConsoleService, event: list[str]) -> None:
    failed = event[20]
    service.fail(failed)
    page = open_event(pages, event)
    page.locator(f"#strip-{failed}").get_by_role("button", name="Acknowledge").click()
    undo = page.get_by_role("button", name="Undo")
    expect(undo).to_be_visible()
    begin_s = time.monotonic()
    expect(undo).to_have_count(0, timeout=15_000)
    assert time.monotonic() - begin_s > UNDO_S - 5
    expect(page.locator(f"#card-{failed}")).to_have_count(0)


def test_full_strip_leaves_room_for_the_matches(pages: Pages, service: ConsoleService, event: list[str]) -> None:
    for server_id in event[-FAILED:]:
        service.fail(server_id)
    page = open_event(pages, event)
    expect(page.locator("#strip")).to_contain_text(f"Acknowledge all {FAILED}")
    expect(page.locator("#strip > li[id]")).to_have_count(8)
    for size, lines in SCREENS:
        page.set_viewport_size(size)
        assert page.evaluate(_WHOLE) >= lines, size
    page.locator("#strip").get_by_role("link", name=re.compile(r"and \d+ more")).click()
    expect(page.locator("#cards > .failed:visible")).to_have_count(FAILED)
    expect(page.locator("#cards > [data-text]:not([data-urgent]):visible")).to_have_count(0)
