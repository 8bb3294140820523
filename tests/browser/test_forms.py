"""Forms in a browser: the focus after faults, notices that are shown once, and filters in the address."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

from playwright.sync_api import expect

from matchpod.console.match_actions import ACTION_NOTICES
from tests.browser.conftest import Pages, path_of
from tests.browser.console_service import ConsoleService


def test_focus_is_on_the_first_fault_and_links_lead_to_the_others(pages: Pages) -> None:
    pages.faults.expect("status of 400", "status of 401")
    page = pages.open("/console/create")
    page.get_by_label("First map").fill("De Dust")
    page.get_by_label("Players of team 2").fill("nobody")
    page.get_by_role("button", name="Create the match").click()
    expect(page.get_by_label("First map")).to_be_focused()
    expect(page.get_by_label("First map")).to_have_value("De Dust")
    expect(page.get_by_role("alert")).to_contain_text("The match was not created.")
    page.get_by_role("alert").get_by_role("link", name="Players of team 2").click()
    expect(page.get_by_label("Players of team 2")).to_be_focused()
    page.goto("/console/access")
    page.locator("#new-key > summary").click()
    for box in page.locator("#new-key input[type=checkbox]").all():
        box.uncheck()
    page.get_by_role("button", name="Create the key").click()
    expect(page.locator("#new-key input[type=checkbox]").first).to_be_focused()
    context = page.context
    page.close()  # without its session it would lead to the log-in by itself, at the same time
    context.clear_cookies()
    page = context.new_page()
    page.goto("/console/login")
    page.get_by_label("API key").fill("wrong")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("This key is not valid")
    expect(page.get_by_label("API key")).to_be_focused()
    expect(page.get_by_label("API key")).to_have_value("")


def test_notice_is_shown_once_and_back_repeats_nothing(pages: Pages, service: ConsoleService) -> None:
    server_id = service.create_open_match("to be canceled")
    page = pages.open("/console/matches")
    page.goto(f"/console/matches/{server_id}")
    page.locator("summary", has_text="Cancel the match").click()
    page.get_by_role("button", name="Cancel the match").click()
    notice = page.get_by_text(ACTION_NOTICES["canceled"])
    expect(notice).to_be_visible()
    assert page.url == f"{service.url}/console/matches/{server_id}"
    page.reload()
    expect(page.locator("#heading")).to_contain_text("canceled by user")
    expect(notice).to_have_count(0)
    page.go_back()  # the page with the form, which has moved on
    expect(page.locator("#heading")).to_contain_text("canceled by user")
    expect(notice).to_have_count(0)
    page.go_back()
    expect(page.get_by_role("heading", level=1)).to_have_text("Matches")


def test_filters_are_in_the_address_and_back_restores_them(pages: Pages, service: ConsoleService) -> None:
    page = pages.open("/console/matches?pageSize=1")
    page.get_by_label("Outcome").select_option("canceled")
    page.get_by_role("button", name="Filter").click()
    page.wait_for_url("**outcome=canceled**")
    assert parse_qs(urlsplit(page.url).query)["pageSize"] == ["1"]
    page.get_by_label("Outcome").select_option("failed")
    page.get_by_role("button", name="Filter").click()
    page.wait_for_url("**outcome=failed**")
    page.go_back()
    page.wait_for_url("**outcome=canceled**")
    expect(page.get_by_label("Outcome")).to_have_value("canceled")
    assert path_of(page) == "/console/matches"
