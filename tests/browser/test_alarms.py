"""The wall calls people also while its tab is hidden: in its title, and with a sound for everything that is new."""

from __future__ import annotations

import re
import signal

import pytest
from playwright.sync_api import Page, expect

from tests.browser.chromium import SET_VISIBLE
from tests.browser.conftest import Pages
from tests.browser.console_service import ConsoleService, lines_of_chat
from tests.browser.test_tabs import WITHOUT_SHARED_WORKER, wait_for_streams
from tests.browser.test_wall import FAILED
from tests.e2e.service.running_service import wait_until

COUNTED_SOUND = """
window.tones = 0;
window.shown = [];
window.Notification = class {
  static permission = "default";
  static async requestPermission() { return Notification.permission = "granted"; }
  constructor(title, { body }) { window.shown.push([title, body]); }
};
let isClicked = false;
addEventListener("pointerdown", () => { isClicked = true; }, { capture: true });
window.AudioContext = class {
  destination = {};
  currentTime = 0;
  async suspend() {}
  resume() {
    return new Promise((done) => {
      const check = () => isClicked ? done() : setTimeout(check, 20);
      check();
    });
  }
  createGain() { return { gain: {}, connect: (to) => to }; }
  createOscillator() { return { connect: (to) => to, start: () => { window.tones += 1; }, stop: () => {} }; }
};
"""
"""Sound and notifications that can be counted; sound is allowed as in browsers, once the page has been clicked."""
HINT = "your browser waits for that"


@pytest.fixture(autouse=True)
def quiet_wall(service: ConsoleService) -> None:
    """Only the matches of a test need attention."""
    service.cancel_hostile_matches()
    service.acknowledge_all()


def open_wall(pages: Pages, *, has_workers: bool = True) -> Page:
    page = pages.open(None)
    page.context.add_init_script(COUNTED_SOUND)
    if not has_workers:
        page.context.add_init_script(WITHOUT_SHARED_WORKER)
    page.goto("/console")
    wait_for_count(page, 0)  # an alert of a region goes a moment after its matches
    return page


def count(page: Page) -> int:
    """Return the number in the title, which is that of the page."""
    found = re.match(r"\((\d+)\) ", page.title())
    return int(found[1]) if found else 0


def wait_for_count(page: Page, number: int) -> None:
    wait_until(lambda: count(page) == number or None, lambda: f"{number} in {page.title()!r}", within_s=60)


def tones(page: Page) -> int:
    return int(page.evaluate("window.tones"))


def wait_for_tones(page: Page, number: int) -> None:
    wait_until(lambda: tones(page) == number or None, lambda: f"{number} tones; {tones(page)}", within_s=60)


def running_match(service: ConsoleService, name: str) -> str:
    server_id = service.create_open_match(name)
    service.running.wait_for_status(server_id, "running")
    return server_id


def call_admin(service: ConsoleService, server_id: str) -> None:
    service.post_log(server_id, *lines_of_chat("!admin"))


def test_hidden_wall_keeps_the_count_and_sounds_for_what_is_new(pages: Pages, service: ConsoleService) -> None:
    page = open_wall(pages)
    before = count(page)
    server_id = running_match(service, "in a hidden tab")
    page.locator("#alarms > summary").click()
    page.get_by_label("sound for new attention").check()
    page.get_by_label("notifications").check()
    page.evaluate(SET_VISIBLE, "hidden")
    call_admin(service, server_id)
    wait_for_count(page, before + 1)
    ((title, body),) = page.evaluate("window.shown")
    assert (title, body.partition(",")[0]) == ("Matchpod: in a hidden tab", "a player asked for an admin")
    assert body.endswith(": !admin")
    wait_for_tones(page, 1)
    expect(page.locator("#announcement")).to_have_text("1 match or region needs attention: in a hidden tab")
    (game,) = service.running.server_processes(server_id)
    game.signal(signal.SIGKILL)
    wait_for_tones(page, 2)  # it has failed
    assert count(page) == before + 1, "the number is the same"
    service.acknowledge_all()
    wait_for_count(page, before)
    assert tones(page) == 2


def test_sound_is_remembered_and_waits_until_the_browser_allows_it(pages: Pages, service: ConsoleService) -> None:
    first = open_wall(pages)
    expect(first.get_by_text(HINT)).to_be_hidden()
    first.locator("#alarms > summary").click()
    first.get_by_label("sound for new attention").check()
    page = pages.open_tab(first, "/console")
    sound = page.locator("#sound")
    expect(sound).to_be_checked()
    expect(page.get_by_text(HINT)).to_be_visible()
    page.get_by_role("heading", name="Live").click()
    expect(page.get_by_text(HINT)).to_be_hidden()
    server_id = running_match(service, "in another tab")
    assert tones(page) == 0, "what was there before is not new"
    call_admin(service, server_id)
    wait_for_tones(page, 1)
    page.locator("#alarms > summary").click()
    sound.uncheck()
    page.reload()
    expect(sound).not_to_be_checked()
    service.running.cancel(server_id)


def test_one_of_many_hidden_walls_hears_alarms_without_shared_workers_too(
    pages: Pages, service: ConsoleService
) -> None:
    server_id = running_match(service, "heard by one")
    first = open_wall(pages, has_workers=False)
    tabs = [first, *(pages.open_tab(first, "/console") for _ in range(2))]
    wait_for_streams(service, 3)
    for tab in tabs:
        tab.evaluate(SET_VISIBLE, "hidden")
    wait_for_streams(service, 1)
    first.close()
    wait_for_streams(service, 1)  # another one takes over
    call_admin(service, server_id)
    wait_until(lambda: sum(map(count, tabs[1:])) == 1 or None, "one of them counts it", within_s=60)
    for tab in tabs[1:]:
        tab.evaluate(SET_VISIBLE, "visible")
        wait_for_count(tab, 1)
    wait_for_streams(service, 2)
    service.running.cancel(server_id)


def test_muted_reason_makes_no_sound_and_does_not_count(pages: Pages, service: ConsoleService) -> None:
    page = open_wall(pages)
    page.locator("#alarms > summary").click()
    page.get_by_label("sound for new attention").check()
    page.get_by_label("mute: a player asked for an admin").check()
    server_id = running_match(service, "muted")
    call_admin(service, server_id)
    expect(page.locator("#strip")).to_contain_text("asked for an admin")
    assert (count(page), tones(page)) == (0, 0)
    page.reload()
    expect(page.locator("#strip")).to_contain_text("asked for an admin")
    assert count(page) == 0
    page.locator("#alarms > summary").click()
    page.get_by_label("mute: a player asked for an admin").uncheck()
    wait_for_count(page, 1)
    assert tones(page) == 0, "it is not new"
    service.running.cancel(server_id)


def test_webhook_for_alarms_is_set_up_from_the_wall(pages: Pages, service: ConsoleService) -> None:
    page = pages.open()
    page.locator("#alarms > summary").click()
    page.get_by_label("URL").fill("http://127.0.0.1:9/alarms")
    page.get_by_role("button", name="Create the webhook").click()
    expect(page.locator(".secret")).to_contain_text("whsec_")
    every = service.running.call("GET", "/api/v1/webhooks").json["items"]
    (created,) = [one for one in every if one["events"] == ["attention.raised"]]
    assert created["format"] == "discord"
    service.running.call("DELETE", f"/api/v1/webhooks/{created['id']}")


def test_acknowledge_all_takes_what_the_search_shows(pages: Pages, service: ConsoleService) -> None:
    names = ("cup 1", "cup 2", "league 1")
    ids = {name: service.create_open_match(name) for name in names}
    for server_id in ids.values():
        service.fail(server_id)
    page = pages.open()
    for server_id in ids.values():
        expect(page.locator(f"#card-{server_id}")).to_have_class(FAILED)
    button = page.locator("#strip form[data-every] button")
    expect(button).to_have_text("Acknowledge all 3")
    search = page.get_by_role("searchbox")
    search.fill("final")
    expect(button).to_be_hidden()
    search.fill("cup")
    expect(button).to_have_text("Acknowledge 2 shown")
    later = service.create_open_match("cup 3")
    service.fail(later)
    expect(button).to_have_text("Acknowledge 3 shown")
    page.get_by_role("button", name="Acknowledge 3 shown that failed").click()
    expect(page.get_by_role("status")).to_contain_text("Acknowledged.")
    expect(page.get_by_role("searchbox")).to_have_value("cup")
    search.fill("")
    for server_id in (ids["cup 1"], ids["cup 2"], later):
        expect(page.locator(f"#card-{server_id}")).to_have_count(0)
    expect(page.locator(f"#card-{ids['league 1']}")).to_be_visible()
    undo = page.get_by_role("button", name="Undo")
    undo.click()
    expect(page.get_by_role("status")).to_contain_text("back on the wall")
    for server_id in (*ids.values(), later):
        expect(page.locator(f"#card-{server_id}")).to_have_class(FAILED)
    service.acknowledge_all()
