"""Log in and out in a browser: by key, by link, and when a session ends by itself."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from contextlib import closing

from playwright.sync_api import Page, expect

from matchpod.service.access.console_sessions import IDLE_MS
from tests.browser.conftest import OWNER, Pages, path_of
from tests.browser.console_service import ConsoleService


def enter_key(page: Page, key: str) -> None:
    page.get_by_label("API key").fill(key)
    page.get_by_role("button", name="Log in").click()


def test_log_in_by_key_and_log_out(pages: Pages, keys: Mapping[str, str]) -> None:
    page = pages.open(who=None)
    assert path_of(page) == "/console/login"
    expect(page.get_by_label("API key")).to_be_focused()
    enter_key(page, keys[OWNER])
    page.wait_for_url("**/console")
    expect(page.get_by_role("heading", name="Live", level=1)).to_be_visible()
    assert page.evaluate("document.cookie") == ""
    assert keys[OWNER] not in page.evaluate("JSON.stringify([localStorage, sessionStorage])")
    page.get_by_role("button", name="Log out").click()
    expect(page.get_by_text("You are logged out.")).to_be_visible()
    page.goto("/console")
    assert path_of(page) == "/console/login"


def test_page_notices_by_itself_that_its_session_was_not_used(pages: Pages, service: ConsoleService) -> None:
    page = pages.open(who=OWNER)
    expect(page.get_by_role("heading", name="Live", level=1)).to_be_visible()
    with closing(sqlite3.connect(service.running.data_dir / "matchpod.sqlite3")) as database, database:
        database.execute(f"update console_sessions set seen_at_ms = seen_at_ms - {IDLE_MS}")
    page.wait_for_url("**/console/login**")


def test_person_with_a_name_logs_in_by_link_and_their_session_is_ended(pages: Pages, service: ConsoleService) -> None:
    link = service.running.run(
        "console", "--org", "demo", "--name", "Eva <b>Berg</b>", "--role", "referee"
    ).stdout.strip()
    eva = pages.open(None, who=None)
    eva.goto(link)
    eva.get_by_role("button", name="Open the console").click()
    eva.wait_for_url("**/console")
    eva.goto(f"/console/matches/{service.hostile[0]}")
    expect(eva.locator("summary", has_text="Pause")).to_be_visible()
    expect(eva.locator("summary", has_text="Cancel the match")).to_have_count(0)
    page = pages.open("/console/access", who=OWNER)
    row = page.get_by_role("region", name="Table: Sessions").locator("tbody tr", has_text="Eva <b>Berg</b>")
    expect(row).to_contain_text("referee")
    expect(row).to_contain_text("loopback")
    page.locator("summary", has_text="End all others").click()
    page.get_by_role("button", name="End all others").click()
    expect(page.locator("tbody").filter(has_text="this one").locator("tr")).to_have_count(1)
    eva.wait_for_url("**/console/login**")
    expect(page.get_by_role("region", name="Table: Audit log")).to_contain_text("Eva <b>Berg</b>")
