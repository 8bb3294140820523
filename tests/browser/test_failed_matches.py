"""Matches that end without a result stay on the wall, until they are acknowledged for everyone."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import pytest
from playwright.sync_api import Locator, Page, expect

from matchpod.service.identity.principals import Role, Scope
from tests.browser import chromium
from tests.browser.conftest import MEMBER, OWNER, Pages
from tests.browser.console_service import ConsoleService

FAILED = re.compile("ended failed")
pytestmark = pytest.mark.soak  # `make test` tries it without a browser: tests/contract/console/test_wall_page.py
SILENCE_S = "10"
"""The shortest time after which a silent server is lost."""


class QuickService(ConsoleService):
    """A service that gives silent servers up early, and has no other matches."""

    def keep_open(self) -> None:
        """Keep the wall as it is."""


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConsoleService]:
    """A service without matches."""
    if chromium.executable() is None:
        pytest.skip(chromium.MISSING)
    created = QuickService(tmp_path_factory.mktemp("failing"), silence_s=SILENCE_S)
    with created.running:
        yield created


@pytest.fixture(scope="module")
def keys(service: ConsoleService) -> Mapping[str, str]:
    """A key of each person."""
    member = service.new_key(Role.MEMBER, scopes=(Scope.SERVERS_READ,))
    return {OWNER: service.running.key, MEMBER: member.text}


def counter(page: Page, name: str) -> Locator:
    """Return the number of a counter."""
    return page.locator("#counters > div", has=page.get_by_text(name, exact=True)).locator("dd")


def test_hang_crash_and_no_show_stay_until_they_are_acknowledged_for_everyone(
    pages: Pages, service: ConsoleService
) -> None:
    page, other = pages.open(), pages.open(who=MEMBER)
    created = {
        name: service.create_match(name, scenario=name, speed=200, maxRounds=12)
        for name in ("server_hang", "server_crash", "no_show")
    }
    hang, crash, no_show = (page.locator(f"#card-{server_id}") for server_id in created.values())
    # The silence is shown before the server is given up.
    expect(hang.locator(".urgency3")).to_contain_text("nothing heard for")
    expect(hang).not_to_have_class(FAILED)
    expect(page.locator("#card-group-attention")).to_be_visible()
    for card, words in ((hang, "the server was lost"), (crash, "the server was lost"), (no_show, "no player joined")):
        expect(card).to_have_class(FAILED)
        expect(card.locator(".urgency3")).to_contain_text(words)
    for shown in (page, other):
        expect(counter(shown, "failed or canceled")).to_have_text("3")
        expect(shown.locator("#cards > article")).to_have_count(3)
    expect(page).to_have_title("(3) Live · Matchpod")
    assert chromium.axe_findings(page) == []
    assert chromium.overflow(page) <= 0
    expect(other.locator(f"#card-{created['no_show']}")).to_be_visible()
    expect(other.get_by_role("button", name="Acknowledge")).to_have_count(0)

    crash.get_by_role("button", name="Acknowledge server_crash").click()
    expect(page.get_by_role("status")).to_contain_text("Acknowledged.")
    for shown in (page, other):
        expect(shown.locator(f"#card-{created['server_crash']}")).to_have_count(0)
        expect(counter(shown, "failed or canceled")).to_have_text("2")
    page.locator("#card-group-failed").get_by_role("button", name="Acknowledge all").click()
    for shown in (page, other):
        expect(shown.locator("#cards > article")).to_have_count(0)
        expect(counter(shown, "failed or canceled")).to_have_text("0")
        expect(shown.get_by_text("No match is open.")).to_be_visible()


def test_finished_match_stays_with_its_score_and_its_counter_leads_to_it(pages: Pages, service: ConsoleService) -> None:
    page = pages.open()
    server_id = service.create_match("final", maxRounds=2, speed=200)
    shown = page.locator(f"#card-{server_id}")
    expect(shown).to_have_class(re.compile("ended finished"))
    scores = [int(one) for one in shown.locator("dd").all_text_contents()]
    assert max(scores) >= 1
    page.get_by_role("link", name="finished in the last 10 minutes").click()
    assert page.url.endswith("#card-group-finished")
    expect(page.locator("#card-group-finished")).to_be_in_viewport()
