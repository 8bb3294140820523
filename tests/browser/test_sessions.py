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
