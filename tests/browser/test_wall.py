"""The wall in a browser: it follows matches without being loaded again, and says when it cannot."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from tests.browser.conftest import Pages
from tests.browser.console_service import ConsoleService
from tests.e2e.service.running_service import wait_until

MATCH_MS = 180_000
"""Longer than a short match takes on a slow machine."""
CANCELED, FAILED = re.compile("ended canceled"), re.compile("ended failed")
RIGHT_MS = 20_000
"""Five seconds, and some for a machine whose cores are used by others."""
NOTICE = "This page is not being updated."


def mark(page: Page) -> None:
    """Mark the document, to see later that it was not loaded again."""
    page.evaluate("window.marked = true")


def is_marked(page: Page) -> bool:
    return page.evaluate("window.marked === true") is True


def order(page: Page) -> list[str]:
    ids: list[str] = page.locator("#cards > [data-text]").evaluate_all("(all) => all.map((one) => one.id)")
    return ids


def test_cards_that_leave_and_come_keep_their_order(pages: Pages, service: ConsoleService) -> None:
    page = pages.open()
    first, second = (service.create_open_match(f"order {number}") for number in range(2))
    expect(page.locator(f"#card-{second}")).to_be_visible()

    def are_in_order() -> bool:
        shown = order(page)
        assert len(shown) == len(set(shown))
        return shown.index(f"card-{first}") < shown.index(f"card-{second}")

    # While one of them is in another phase than the other, it comes later or earlier.
    wait_until(are_in_order, "the older match comes first")
    for server_id in (first, second):
        service.running.cancel(server_id)
        expect(page.locator(f"#card-{server_id}")).to_have_class(CANCELED)
    service.acknowledge_all()
    for server_id in (first, second):
        expect(page.locator(f"#card-{server_id}")).to_have_count(0)
    # The order may change between two readings, so they are compared until they agree.
    wait_until(lambda: order(page) == order(pages.open()), "both pages have the same cards", within_s=90)


def test_restarted_service_is_followed_again(pages: Pages, service: ConsoleService) -> None:
    pages.faults.expect("/console/stream")
    page = pages.open()
    mark(page)
    service.running.terminate()
    expect(page.get_by_text(NOTICE)).to_be_visible()
    service.running.start()
    server_id = service.create_open_match("after the restart")
    expect(page.locator(f"#card-{server_id}")).to_be_visible(timeout=RIGHT_MS)
    expect(page.get_by_text(NOTICE)).to_be_hidden()
    assert is_marked(page)
    service.running.cancel(server_id)


def test_search_hides_other_matches_also_those_that_come_later(pages: Pages, service: ConsoleService) -> None:
    page = pages.open()
    search = page.get_by_role("searchbox")
    search.fill("7*7")
    expect(page.locator("#cards > [data-text]:visible")).to_have_count(1)
    server_id = service.create_open_match("something else")
    expect(page.locator(f"#card-{server_id}")).to_be_attached()
    expect(page.locator(f"#card-{server_id}")).to_be_hidden()
    page.reload()
    expect(search).to_have_value("7*7")
    expect(page.locator("#cards > [data-text]:visible")).to_have_count(1)
    search.fill("")
    expect(page.locator(f"#card-{server_id}")).to_be_visible()
    assert page.url.endswith("/console")
    service.running.cancel(server_id)
