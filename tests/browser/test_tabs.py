"""Many tabs of one browser share one stream, which is never in the way of a link or a form."""

from __future__ import annotations

import re
import sys
from contextlib import suppress
from time import monotonic

import pytest
from playwright.sync_api import Error, Page, Route, expect

from tests.browser.chromium import SET_VISIBLE
from tests.browser.conftest import Pages
from tests.browser.console_service import ConsoleService, lines_of_chat
from tests.browser.test_wall import is_marked, mark
from tests.e2e.service.running_service import wait_until
from tests.effort import sized

TABS = sized(7, 20)
"""More than the six connections to a host that a browser has."""
LATE_S = 10.0
"""Far less than the 25 s that a form took behind six streams; the machine may be busy."""
WITHOUT_SHARED_WORKER = "delete window.SharedWorker"


def open_streams(service: ConsoleService) -> int:
    found = re.search(rb"^matchpod_streams (\d+)", service.running.call("GET", "/metrics").raw, re.MULTILINE)
    assert found is not None
    return int(found[1])


def wait_for_streams(service: ConsoleService, number: int) -> None:
    wait_until(lambda: open_streams(service) == number or None, f"{number} open streams", within_s=60)


@pytest.fixture(autouse=True)
def no_other_streams(service: ConsoleService, pages: Pages) -> None:
    """Wait until the browsers of earlier tests are gone."""
    wait_for_streams(service, 0)


def test_every_action_is_quick_with_many_tabs(
    pages: Pages, service: ConsoleService, capsys: pytest.CaptureFixture[str]
) -> None:
    server_id = service.create_open_match("watched by many")
    addresses = [
        "/console",
        f"/console/matches/{server_id}",
        f"/console/matches/{service.hostile[0]}",
        "/console/matches",
    ]
    first = pages.open(addresses[0])
    times: dict[str, float] = {}
    tabs = [first]
    for number in range(1, TABS):
        began = monotonic()
        tabs.append(pages.open_tab(first, addresses[number % len(addresses)]))
        times[f"tab {number + 1}"] = monotonic() - began
    wait_for_streams(service, 1)
    times |= {"confirmed": _cancel(tabs[1]), "link": _follow_link(tabs[2])}
    slowest = max(times, key=lambda one: times[one])
    with capsys.disabled():
        sys.stdout.write(
            f"\n{TABS} tabs: slowest {slowest} {times[slowest]:.2f} s, cancel {times['confirmed']:.2f} s\n"
        )
    assert times[slowest] < LATE_S
    for tab in tabs[5::4]:
        expect(tab.locator("#heading")).to_contain_text("canceled")
    other_id = service.create_open_match("seen in all tabs")
    for tab in tabs[0::4]:
        expect(tab.locator(f"#card-{other_id}")).to_be_visible()
    assert open_streams(service) == 1
    service.running.cancel(other_id)


def _cancel(page: Page) -> float:
    page.bring_to_front()
    page.locator("summary", has_text="Cancel the match").click()
    page.get_by_role("button", name="Cancel the match").click()
    expect(page.locator("#heading")).to_contain_text("canceled")
    return _loaded_s(page)


def _follow_link(page: Page) -> float:
    page.bring_to_front()
    page.get_by_role("link", name="Live", exact=True).click()
    page.wait_for_url("**/console")
    return _loaded_s(page)


def _loaded_s(page: Page) -> float:
    """Return the seconds from the click until the page was there, with redirects and the wait for a connection."""
    page.wait_for_load_state()  # only then the entry is complete
    return float(page.evaluate("performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd / 1000"))


def test_hidden_tabs_have_no_stream_and_catch_up(pages: Pages, service: ConsoleService) -> None:
    server_id = service.hostile[0]
    first = pages.open(f"/console/matches/{server_id}")
    second = pages.open_tab(first, f"/console/matches/{server_id}")
    wait_for_streams(service, 1)
    second.evaluate(SET_VISIBLE, "hidden")
    service.post_log(server_id, *lines_of_chat("while a tab was hidden"))
    expect(first.get_by_text("while a tab was hidden", exact=True)).to_have_count(1)
    expect(second.get_by_text("while a tab was hidden", exact=True)).to_have_count(0)
    first.evaluate(SET_VISIBLE, "hidden")
    wait_for_streams(service, 0)
    second.evaluate(SET_VISIBLE, "visible")
    expect(second.get_by_text("while a tab was hidden", exact=True)).to_have_count(1)
    first.evaluate(SET_VISIBLE, "visible")
    service.post_log(server_id, *lines_of_chat("while both were visible"))
    for tab in (first, second):
        expect(tab.get_by_text("while both were visible", exact=True)).to_have_count(1)
    first.close()
    second.close()
    wait_for_streams(service, 0)


@pytest.mark.soak
def test_page_that_is_gone_is_loaded_again(pages: Pages, service: ConsoleService) -> None:
    page = pages.open(None)
    path = f"/console/matches/{service.hostile[0]}"

    def change(route: Route) -> None:
        answer = route.fetch()
        route.fulfill(response=answer, body=answer.text().replace('data-follow="match/', 'data-follow="match/x'))

    page.route(f"**{path}", change, times=1)
    page.goto(path)
    mark(page)
    expect(page.locator(f"[data-follow='match/{service.hostile[0]}']")).to_be_attached()
    assert not is_marked(page)


@pytest.mark.soak
def test_tab_that_crashed_is_forgotten(pages: Pages, service: ConsoleService) -> None:
    first = pages.open("/console/matches")
    second = pages.open_tab(first, f"/console/matches/{service.hostile[0]}")
    wait_for_streams(service, 1)
    with suppress(Error):
        second.goto("chrome://crash")
    first.evaluate(SET_VISIBLE, "hidden")
    wait_for_streams(service, 0)


@pytest.mark.parametrize(
    "worker",
    [
        "class { constructor() { throw new Error('not allowed'); } }",
        "class extends SharedWorker { constructor() { super('/console/none.js'); } }",
    ],
)
@pytest.mark.soak
def test_tab_holds_its_own_stream_if_the_worker_does_not_start(
    pages: Pages, service: ConsoleService, worker: str
) -> None:
    pages.faults.expect("/console/none.js")
    page = pages.open(None)
    page.context.add_init_script(f"window.SharedWorker = {worker}")
    page.goto("/console")
    wait_for_streams(service, 1)
    server_id = service.create_open_match("without a worker")
    expect(page.locator(f"#card-{server_id}")).to_be_visible()
    service.running.cancel(server_id)
