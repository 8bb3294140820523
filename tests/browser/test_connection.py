"""What a page knows about its connection: dead, slept through, logged out; and the clock of the service."""

from __future__ import annotations

import re
import signal
import sys
from time import monotonic, time
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Page, expect

from matchpod.service.identity.principals import NewKey, Role
from tests.browser.chromium import SET_VISIBLE
from tests.browser.conftest import Pages, path_of
from tests.browser.console_service import ConsoleService
from tests.browser.proxy import CuttableProxy
from tests.browser.test_sessions import enter_key
from tests.browser.test_tabs import WITHOUT_SHARED_WORKER
from tests.browser.test_wall import NOTICE, is_marked, mark

NOTICED_MS = 20_000
RIGHT_MS = 5_000
SLACK_MS = 15_000
"""For a machine whose cores are mostly used by others; the times that were measured are printed."""
SLEEPING_CLOCK = "window.sleptMs = 0; const read = Date.now; Date.now = () => read() + window.sleptMs;"
"""The time of day goes on while a machine sleeps, other clocks may not."""


@pytest.fixture
def key(service: ConsoleService) -> NewKey:
    """A key that a test can revoke."""
    return service.new_key(Role.OWNER)


def log_in(pages: Pages, key: NewKey, path: str) -> Page:
    page = pages.open(path, who=None)
    enter_key(page, key.text)
    page.wait_for_url(f"**{path}")
    return page


def banner(page: Page) -> str:
    return page.locator("#connection").inner_text()


def open_overlay(pages: Pages, service: ConsoleService, base_url: str) -> Page:
    page = pages.open(f"/console/matches/{service.hostile[0]}")
    page.locator("summary", has_text="Overlay for OBS").click()
    page.get_by_role("button", name="Create the link").click()
    address = urlsplit(page.locator(".notice code").inner_text()).path
    return pages.open(address, who=None, base_url=base_url)


@pytest.mark.soak  # `make test` tries it with a clock that jumps, in the next test
def test_stopped_service_and_silent_network_are_noticed_and_caught_up(
    pages: Pages, service: ConsoleService, proxy: CuttableProxy, capsys: pytest.CaptureFixture[str]
) -> None:
    pages.faults.expect("/stream")
    direct, proxied = pages.open(), pages.open(base_url=proxy.url)
    overlay = open_overlay(pages, service, proxy.url)
    expect(overlay.locator("#board")).to_be_visible()
    watched = (direct, proxied)
    for page in watched:
        mark(page)
        expect(page.locator(f"#card-{service.hostile[0]}")).to_be_visible()
    process = service.running.process
    assert process is not None
    proxy.stall()
    process.send_signal(signal.SIGSTOP)
    began = monotonic()
    try:
        for page in watched:
            expect(page.get_by_role("alert")).to_contain_text(NOTICE, timeout=NOTICED_MS + SLACK_MS)
        noticed_s = monotonic() - began
    finally:
        process.send_signal(signal.SIGCONT)
    began = monotonic()
    server_id = service.create_open_match("created while nothing passed")
    expect(direct.locator(f"#card-{server_id}")).to_be_visible(timeout=RIGHT_MS + SLACK_MS)
    expect(direct.get_by_text(NOTICE)).to_have_count(0, timeout=RIGHT_MS + SLACK_MS)
    right_s = [monotonic() - began]
    assert re.search(r"The last update was at \d+:\d\d:\d\d", banner(proxied))
    box = proxied.locator("#connection").bounding_box()
    assert box is not None
    assert box["y"] == 0
    expect(overlay.get_by_text("no data")).to_be_visible()
    expect(overlay.locator("#board")).to_be_hidden()
    proxy.restore()
    began = monotonic()
    expect(proxied.locator(f"#card-{server_id}")).to_be_visible(timeout=RIGHT_MS + SLACK_MS)
    expect(proxied.get_by_text(NOTICE)).to_have_count(0, timeout=RIGHT_MS + SLACK_MS)
    right_s.append(monotonic() - began)
    expect(overlay.locator("#board")).to_be_visible(timeout=RIGHT_MS + SLACK_MS)
    right_s.append(monotonic() - began)
    with capsys.disabled():
        after = ", ".join(f"{one:.1f} s" for one in right_s)
        sys.stdout.write(f"\ndead connections noticed after {noticed_s:.1f} s, pages right after {after}\n")
    assert all(is_marked(page) for page in watched)
    service.running.cancel(server_id)


def test_machine_that_slept_connects_at_once(pages: Pages, service: ConsoleService, proxy: CuttableProxy) -> None:
    pages.faults.expect("/console/stream")
    page = pages.open(None, base_url=proxy.url)
    page.context.add_init_script(WITHOUT_SHARED_WORKER)  # so that the page holds the stream
    page.context.add_init_script(SLEEPING_CLOCK)
    with page.expect_request("**/console/stream?**"):
        page.goto("/console")
    expect(page.locator(f"#card-{service.hostile[0]}")).to_be_visible()
    with page.expect_request("**/console/stream?**"):
        page.evaluate("window.sleptMs = 8_000")
    expect(page.get_by_text(NOTICE)).to_have_count(0)
    proxy.stall()
    began = monotonic()
    page.evaluate("window.sleptMs += 3_600_000")
    expect(page.get_by_text(NOTICE)).to_be_visible()
    assert monotonic() - began < NOTICED_MS / 1000
    proxy.restore()
    expect(page.get_by_text(NOTICE)).to_have_count(0, timeout=RIGHT_MS + SLACK_MS)


def test_page_that_the_service_cannot_read_says_so(pages: Pages) -> None:
    page = pages.open(None)
    page.context.add_init_script(WITHOUT_SHARED_WORKER)  # so that its stream can be made up
    body = f"event: time\ndata: {int(time() * 1000)} table\n\n"
    page.route(
        "**/console/stream?**", lambda route: route.fulfill(body=body, content_type="text/event-stream"), times=15
    )
    page.goto("/console")
    expect(page.get_by_role("alert")).to_contain_text(NOTICE)
    expect(page.get_by_text(NOTICE)).to_have_count(0)


def test_counters_use_the_clock_of_the_service(pages: Pages, service: ConsoleService) -> None:
    page = pages.open(None)
    page.context.add_init_script(WITHOUT_SHARED_WORKER)
    page.clock.install(time=time() + 3600)
    server_id = service.create_open_match("by which clock")
    page.goto(f"/console/matches/{server_id}")
    counter = page.locator("#lifecycle time[data-since]").last
    soon = re.compile(r"^(\d+ s|[0-5]:\d\d)$")
    expect(counter).to_have_text(soon)
    page.clock.fast_forward("05:00:00")  # the clock of the machine is set
    expect(counter).to_have_text(soon)
    page.clock.run_for(3_000)
    expect(counter).to_have_text(soon)
    service.running.cancel(server_id)


def test_revoked_key_logs_all_tabs_out_and_keeps_their_addresses(
    pages: Pages, service: ConsoleService, key: NewKey
) -> None:
    wall = log_in(pages, key, "/console")
    path = "/console/matches?externalMatchId=final&page=2"
    tab = pages.open_tab(wall, path)
    typed = pages.open_tab(wall, "/console/create")
    typed.get_by_text("More settings").click()
    typed.get_by_label("Console variables").fill("mp_maxrounds 4")
    began = monotonic()
    service.revoke(key)
    wall.wait_for_url("**/console/login?**")
    tab.wait_for_url("**/console/login?**")
    assert parse_qs(urlsplit(tab.url).query)["next"] == [path]
    assert monotonic() - began < NOTICED_MS / 1000
    expect(typed.get_by_role("alert")).to_contain_text("You are logged out.")
    expect(typed.get_by_label("Console variables")).to_have_value("mp_maxrounds 4")
    enter_key(tab, service.running.key)
    tab.wait_for_url(f"**{path}")
    with typed.expect_popup() as popup:
        typed.get_by_role("link", name="Log in again in another tab").click()
    popup.value.wait_for_url("**/console/create")
    typed.get_by_role("button", name="Show as curl").click()
    expect(typed.get_by_text("mp_maxrounds 4").first).to_be_visible()


@pytest.mark.soak
def test_secret_that_is_shown_once_stays_after_the_session_ended(pages: Pages, key: NewKey) -> None:
    page = log_in(pages, key, "/console")
    page.goto("/console/access")
    rotate = """(id) => {
      const form = document.createElement("form");
      form.method = "post";
      form.action = `/console/access/keys/${id}/rotate`;
      form.innerHTML = "<input name=overlap value=0>";
      document.body.append(form);
      form.submit();
    }"""
    page.evaluate(rotate, key.view.id)
    expect(page.get_by_role("heading", name="The key was rotated")).to_be_visible()
    expect(page.get_by_role("alert")).to_contain_text("You are logged out.")
    expect(page.locator(".secret code")).to_contain_text("mk_live_")


@pytest.mark.soak
def test_tab_of_an_ended_session_is_not_shown_another_one(pages: Pages, service: ConsoleService, key: NewKey) -> None:
    page = log_in(pages, key, "/console")
    other = pages.open_tab(page, "/console/matches")
    other.evaluate(SET_VISIBLE, "hidden")
    mark(other)
    page.get_by_role("button", name="Log out").click()
    expect(page.get_by_text("You are logged out.")).to_be_visible()
    page.goto("/console/login")
    enter_key(page, service.new_key(org="yet another").text)
    page.wait_for_url("**/console")
    assert is_marked(other)
    other.evaluate(SET_VISIBLE, "visible")
    expect(other.locator(".role")).to_contain_text("yet another")
    assert path_of(other) == "/console/matches"
