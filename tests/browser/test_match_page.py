"""How the page of a match looks and is used: what stays in view, confirmations, failures, long names, small screens."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import FloatRect, Locator, Page, expect

from tests.browser import chromium
from tests.browser.chromium import DESK, PHONE
from tests.browser.conftest import MEMBER, OWNER, Pages
from tests.browser.console_service import FAST, ConsoleService
from tests.e2e.service.running_service import cvars, players

NAMES = "W" * 32, "Northern Lights Academy Red Squa"
"""As long as a name may be: one word that is wider than a phone, and several words. The first one wins the first round."""
PASSWORD = "join-4711"
CUT_WORDS = """names => names.flatMap((name) => {
  const text = name.firstChild, range = document.createRange();
  return [...text.data.matchAll(/\\S+/g)].filter((word) => {
    range.setStart(text, word.index);
    range.setEnd(text, word.index + word[0].length);
    return new Set([...range.getClientRects()].map((line) => line.top)).size > 1;
  }).map((word) => word[0]);
})"""
"""Returns the words of elements that are on two lines."""
DEMO = b"PBDEMS2\0" * 250
DEMO_NAME = "W" * 116 + ".dem"
"""As long as the name of a demo may be."""


@pytest.fixture(scope="module")
def live_id(service: ConsoleService) -> Iterator[str]:
    """A match of ten players with long names, which is live for longer than the tests take; the id of its server."""
    listed = players(10, first=500)
    teams = {f"team{n + 1}": {"name": NAMES[n], "players": listed[5 * n : 5 * n + 5]} for n in range(2)}
    variables = cvars(15, "full_match", sim_seed=7)
    settings = {
        "matchType": "competitive",
        "map": "de_mirage",
        "maxRounds": 60,
        "serverPassword": PASSWORD,
        "teams": teams,
        "customCvars": variables,
    }
    created = service.running.create(settings, region=FAST, externalMatchId="in view " + "x" * 100)
    server_id = str(created["serverId"])
    yield server_id
    service.running.cancel(server_id)


def box_of(part: Locator) -> FloatRect:
    box = part.bounding_box()
    assert box is not None
    return box


def bottom_of(part: Locator) -> float:
    box = box_of(part)
    return box["y"] + box["height"]


def open_live(pages: Pages, live_id: str, size: dict[str, int], who: str = OWNER, **options: Any) -> Page:
    page = pages.open(f"/console/matches/{live_id}", who=who, viewport=size, **options)
    expect(page.locator("#heading .state.live")).to_be_visible()
    expect(page.locator("#actions .connect code")).to_contain_text("connect ")
    expect(page.locator("#roster tbody tr:not(.team-row)")).to_have_count(10)
    return page


def scroll_down(page: Page) -> None:
    page.evaluate("window.scrollTo(0, document.documentElement.scrollHeight)")
    assert page.evaluate("window.scrollY") > 0


def test_score_connect_line_and_actions_are_on_the_first_screen_and_stay(pages: Pages, live_id: str) -> None:
    page = open_live(pages, live_id, DESK)
    expect(page.locator("#actions .connect code")).to_contain_text(f"; password {PASSWORD}")
    parts = [
        page.locator(one) for one in ("#heading .score", "#heading .phase", "#actions .connect", "#actions .actions")
    ]
    for scroll in (False, True):
        if scroll:
            scroll_down(page)
        for part in parts:
            assert box_of(part)["y"] >= 0
            assert bottom_of(part) <= DESK["height"]
    assert box_of(page.locator(".match-head"))["height"] < DESK["height"] / 3
    page.locator("#feed-title").evaluate("element => element.scrollIntoView()")
    assert box_of(page.locator("#feed-title"))["y"] >= bottom_of(page.locator(".match-head"))


def test_phone_shows_the_score_and_whole_names_and_nothing_is_wider(pages: Pages, live_id: str) -> None:
    page = open_live(pages, live_id, PHONE)
    for part in ("#heading .score", "#actions .connect", "#actions .actions"):
        assert bottom_of(page.locator(part)) <= PHONE["height"]
    scroll_down(page)
    heading = box_of(page.locator("#heading"))
    assert heading["y"] >= 0
    assert heading["height"] < PHONE["height"] / 4
    assert bottom_of(page.locator("#actions")) < heading["y"] + heading["height"]  # it is scrolled away or behind
    expect(page.locator("#feed .round_end", has_text=NAMES[0]).first).to_be_visible()
    names = page.locator("bdi.name")
    assert set(names.all_inner_texts()) >= set(NAMES)
    assert names.evaluate_all(CUT_WORDS) == []
    page.locator("summary", has_text="Cancel the match").click()
    expect(page.get_by_role("button", name="Cancel the match")).to_be_visible()
    assert chromium.overflow(page) <= 0
    for part in ("#heading bdi.name", "#roster .team-row th"):
        assert [one.get_attribute("title") for one in page.locator(part).all()] == list(NAMES)


@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.soak)])
def test_confirmation_is_accessible_names_the_teams_and_is_closed_with_escape(
    pages: Pages, live_id: str, scheme: str
) -> None:
    page = open_live(pages, live_id, DESK, bypass_csp=True, color_scheme=scheme)
    summary = page.locator("summary", has_text="Cancel the match")
    button = page.get_by_role("button", name="Cancel the match")
    summary.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("form", name="Cancel the match")).to_be_focused()
    assert chromium.axe_findings(page) == []
    about = page.locator("details.action[open] .about")
    for name in NAMES:
        expect(about).to_contain_text(name)
    expect(about.locator("b")).to_have_text(re.compile(r"\d+:\d+"))
    page.keyboard.press("Tab")
    expect(button).to_be_focused()
    page.keyboard.press("Escape")
    expect(button).to_be_hidden()
    expect(summary).to_be_focused()
    page.locator("summary", has_text="Overlay for OBS").click()
    summary.click()
    expect(page.locator("details.action[open]")).to_have_count(1)


def test_form_of_an_action_keeps_what_was_typed_while_the_page_changes(pages: Pages, live_id: str) -> None:
    page = open_live(pages, live_id, DESK, bypass_csp=True)
    page.locator("#act-restore > summary").click()
    rounds = page.locator("#act-restore-round")
    rounds.select_option("1")
    page.locator("#act-restore-reason").fill("a crash")
    new = rounds.locator("option").count()
    page.locator(f"#act-restore-round-{new}").wait_for(state="attached")
    expect(rounds).to_have_value("1")
    expect(page.locator("#act-restore-reason")).to_have_value("a crash")
    assert chromium.axe_findings(page) == []
    page.locator("#act-kick > summary").click()
    other = page.get_by_label("SteamID of another person").locator("visible=true")
    expect(other).to_have_count(0)
    page.locator("#act-kick-steamId").select_option("other")
    expect(other).to_have_count(1)


def test_requested_action_is_listed_and_followed(pages: Pages, live_id: str) -> None:
    watching = open_live(pages, live_id, DESK, MEMBER, bypass_csp=True)
    page = open_live(pages, live_id, PHONE)
    page.locator("#act-say > summary").click()
    assert chromium.overflow(page) <= 0
    page.locator("#act-say-text").fill("Five minutes")
    page.get_by_role("button", name="Say", exact=True).click()
    expect(page.get_by_role("status")).to_contain_text("The action is requested.")
    for one in (page, watching):
        line = one.locator("#requested li").first
        expect(line).to_contain_text("Say: Five minutes")
        expect(line.locator(".chip")).to_have_text("done")
    assert chromium.axe_findings(watching) == []


def test_row_of_a_player_opens_the_form_of_an_action_for_them(pages: Pages, live_id: str) -> None:
    page = open_live(pages, live_id, PHONE, bypass_csp=True)
    row = page.locator("#roster tbody tr:not(.team-row)").nth(7)
    steam_id = row.locator("[data-copy]").get_attribute("data-copy") or ""
    expect(row.get_by_role("link", name=steam_id)).to_have_attribute(
        "href", f"https://steamcommunity.com/profiles/{steam_id}"
    )
    row.get_by_label("Act on").click()
    page.evaluate("scrollTo(0, 0)")  # what the score covers is too small to hit
    assert chromium.axe_findings(page) == []
    row.get_by_role("link", name="Replace a player").click()
    expect(page.get_by_role("form", name="Replace a player")).to_be_focused()
    expect(page.locator("#act-replacePlayer-out")).to_have_value(steam_id)
    page.get_by_role("link", name="Add a caster").click()
    expect(page.locator("#act-addPlayer-as")).to_have_value("spectator")
    page.get_by_text("What the columns mean").click()
    expect(page.get_by_text("Share of kills by headshot")).to_be_visible()
    assert chromium.overflow(page) <= 0


def test_answer_in_the_chat_is_there_once_the_server_has_confirmed_it(pages: Pages, live_id: str) -> None:
    page = open_live(pages, live_id, DESK, bypass_csp=True)
    field = page.get_by_label("Text for all players")
    field.fill("We look into it")
    page.locator("#feed .kill").first.wait_for()
    expect(field).to_have_value("We look into it")
    field.press("Enter")
    line = page.locator("#chat .line", has_text="We look into it")
    expect(line).to_contain_text("admin")
    expect(page.locator("#feed")).not_to_contain_text("wrote")
    assert chromium.axe_findings(page) == []


def test_stored_demo_has_its_state_its_size_and_a_link_that_downloads_it(pages: Pages, service: ConsoleService) -> None:
    server_id = service.create_open_match("recorded")
    service.running.cancel(server_id)
    service.store_demo(server_id, DEMO, DEMO_NAME)
    page = pages.open(f"/console/matches/{server_id}", who=MEMBER, viewport=PHONE, bypass_csp=True)
    line = page.get_by_role("listitem").filter(has_text="Demo of map 1, de_mirage")
    expect(line.locator(".chip")).to_have_text("available")
    expect(line).to_contain_text("2.0 kB")
    expect(line.locator("bdi")).to_have_text(DEMO_NAME)
    chromium.check(page)
    with page.expect_download() as downloaded:
        line.get_by_role("link").click()
    assert downloaded.value.path().read_bytes() == DEMO
    assert downloaded.value.suggested_filename.endswith(".dem")


@pytest.mark.soak
def test_maps_of_a_series_are_tabs_while_it_runs_and_after_it(pages: Pages, service: ConsoleService) -> None:
    series: dict[str, Any] = {"seriesFormat": "bo3", "maps": ["de_nuke", "de_inferno"]}
    server_id = service.create_match("series", speed=40, scenario="full_match", first=40, **series)
    page = pages.open(f"/console/matches/{server_id}", viewport=PHONE, bypass_csp=True)
    tabs, strip = page.locator("#tabs"), page.locator("#strip h2")
    expect(strip).to_have_text("Rounds of map 2, de_nuke")
    expect(page.locator("#heading .pair")).to_have_count(2)
    sizes = page.locator("#heading .pair b").evaluate_all("all => all.map((one) => getComputedStyle(one).fontSize)")
    assert len(set(sizes)) == 1
    tabs.get_by_role("link", name="de_mirage").click()
    expect(page.get_by_role("heading", name="Map 1: de_mirage")).to_be_visible()
    expect(tabs.locator("[aria-current]")).to_contain_text("de_mirage")
    expect(page.locator(".board")).to_have_count(1)
    chromium.check(page)
    page.locator("#ended a, #order summary.button").first.wait_for(timeout=240_000)
    expect(page.locator("#heading .phase")).to_contain_text(" won")
    expect(page.locator("#heading .chip", has_text="winner")).to_be_visible()
    page.locator("#tabs").get_by_role("link", name="de_nuke").click()
    expect(page.get_by_role("heading", name="Map 2: de_nuke")).to_be_visible()


@pytest.mark.soak
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [DESK, PHONE])
def test_forms_of_actions_are_accessible(
    pages: Pages, service: ConsoleService, scheme: str, size: dict[str, int]
) -> None:
    pages.faults.expect("status of 400")
    address = f"/console/matches/{service.hostile[0]}"
    page = pages.open(address, who=OWNER, viewport=size, bypass_csp=True, color_scheme=scheme)
    opened = "all => all.forEach((one) => { one.name = ''; one.open = true; })"
    page.locator("#act > .actions > details").evaluate_all(opened)
    page.locator("#act-kick-steamId").select_option("other")
    chromium.check(page)
    page.locator("#act-replacePlayer-in").fill("W" * 40)
    page.locator("#act-replacePlayer").get_by_role("button", name="Replace a player").evaluate("one => one.click()")
    page.wait_for_selector("#faults")
    chromium.check(page)


@pytest.mark.soak
def test_confirmation_works_without_scripts(pages: Pages, live_id: str) -> None:
    page = pages.open(f"/console/matches/{live_id}", java_script_enabled=False)
    expect(page.locator("details.action .about").first).to_be_hidden()
    page.locator("summary", has_text="Cancel the match").click()
    expect(page.locator("details.action[open] .about")).to_contain_text(NAMES[0])
    expect(page.get_by_role("button", name="Cancel the match")).to_be_visible()
