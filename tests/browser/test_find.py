"""Find and create matches in a browser: one search box, days of the reader, selections, a sheet, keys."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

from playwright.sync_api import expect

from tests.browser import chromium
from tests.browser.chromium import DESK, PHONE
from tests.browser.conftest import Pages, path_of
from tests.browser.console_service import PATIENT, ConsoleService
from tests.e2e.service.callback_receiver import CallbackReceiver
from tests.e2e.service.running_service import players, wait_until

ZONE = "America/New_York"


def wait_until_found(service: ConsoleService, search: str, matches: int) -> None:
    """Wait until a search finds all these matches: their words are stored some time after they were created."""
    path = f"/api/v1/servers?search={search}"
    wait_until(lambda: service.running.call("GET", path).json["total"] == matches or None, f"{search} is found")


def test_list_is_searched_and_left_with_the_keyboard(pages: Pages, service: ConsoleService) -> None:
    listed = players(4, first=400)
    teams = {
        "team1": {"name": "Björn & Söhne", "players": listed[:2]},
        "team2": {"name": "<b>B</b>", "players": listed[2:]},
    }
    ids = [service.create_open_match(f"find-me/{number}", teams=teams) for number in range(2)]
    wait_until_found(service, "find", 2)
    page = pages.open("/console/regions", viewport=DESK)
    page.keyboard.press("/")
    page.wait_for_url("**/console/matches#f-search")
    expect(page.get_by_role("searchbox")).to_be_focused()
    page.keyboard.type("bjorn find")
    page.keyboard.press("Enter")
    page.wait_for_url("**search=bjorn**")
    expect(page.locator("[data-item]")).to_have_count(2)
    expect(page.get_by_text("<b>B</b>").first).to_be_visible()
    page.keyboard.press("/")
    for key, focused in (("ArrowDown", 1), ("ArrowDown", 0), ("ArrowUp", 1)):
        page.keyboard.press(key)
        expect(page.locator(f"[data-item][href$='{ids[focused]}']")).to_be_focused()
    page.keyboard.press("?")
    dialog = page.get_by_role("dialog", name="Keyboard")
    expect(dialog).to_be_visible()
    dialog.get_by_label("in this browser").uncheck()
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    page.keyboard.press("?")
    expect(dialog).to_be_hidden()
    page.locator(f"[data-item][href$='{ids[1]}']").focus()
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/console/matches/{ids[1]}")
    for server_id in ids:
        service.running.cancel(server_id)


def test_days_are_those_of_the_reader(pages: Pages) -> None:
    page = pages.open("/console/matches?dateFrom=2026-03-02", timezone_id=ZONE)
    expect(page.get_by_text(f"your time zone, {ZONE}")).to_be_visible()
    expect(page.get_by_label("Created from")).to_have_value("2026-03-02T00:00:00.000Z")  # of a link: a day in UTC
    page.goto("/console/matches")
    page.get_by_label("Created from").fill("2026-03-02")
    page.get_by_label("to", exact=True).fill("2026-03-08")  # the clocks change
    page.get_by_role("button", name="Filter").click()
    page.wait_for_url("**dateFrom=**")
    query = parse_qs(urlsplit(page.url).query)
    assert (query["dateFrom"], query["dateTo"]) == (["2026-03-02T05:00:00.000Z"], ["2026-03-09T03:59:59.999Z"])
    expect(page.get_by_label("Created from")).to_have_value("2026-03-02")
    expect(page.get_by_label("to", exact=True)).to_have_value("2026-03-08")


def test_sheet_shows_its_faults_then_creates_all_and_a_selection_is_canceled(
    pages: Pages, service: ConsoleService
) -> None:
    pages.faults.expect("status of 400")
    listed = players(12, first=500)
    rows = [
        f"sheet/{number}\tTeam {number}\tAnn {listed[2 * number]}\tOther {number}\t{listed[2 * number + 1]}"
        for number in range(3)
    ]
    headings = "match\tteam1\tplayers1\tteam2\tplayers2"
    for scheme, size in (("light", DESK), ("dark", PHONE)):
        page = pages.open("/console/create/sheet", bypass_csp=True, color_scheme=scheme, viewport=size)
        page.get_by_label("Region", exact=True).select_option(PATIENT)
        page.get_by_label("Matches", exact=True).fill("\n".join([headings, *rows[:2], rows[2] + "x", "<b>x\ty"]))
        page.get_by_role("button", name="Create the matches").click()
        expect(page.get_by_role("alert")).to_contain_text("Nothing was created.")
        expect(page.locator(".wrong-row")).to_have_count(1)
        expect(page.locator("#row-5")).to_contain_text("<b>x")
        chromium.check(page)
    page.set_viewport_size({"width": 1280, "height": 900})
    page.get_by_label("Matches", exact=True).fill("\n".join([headings, *rows]))
    page.get_by_role("button", name="Check the sheet").click()
    expect(page.get_by_role("status")).to_contain_text("3 matches would be created.")
    page.get_by_role("button", name="Create the matches").dblclick()
    expect(page.get_by_text("3 matches were created.")).to_be_visible()
    expect(page).to_have_url(f"{service.url}/console")
    wait_until_found(service, "sheet", 3)
    page.goto("/console/matches?search=sheet")
    expect(page.locator("[data-item]")).to_have_count(3)
    page.get_by_label("Select all on this page").check()
    page.get_by_label("Select sheet/0").uncheck()
    page.locator("summary", has_text="Cancel the selected").click()
    expect(page.get_by_text("Ends 2 selected matches without a result")).to_be_visible()
    assert chromium.axe_findings(page) == []
    page.get_by_role("button", name="Cancel them").click()
    expect(page.get_by_text("2 matches were canceled.")).to_be_visible()
    assert path_of(page) == "/console/matches"
    expect(page.get_by_role("searchbox")).to_have_value("sheet")
    expect(page.get_by_text("canceled by user")).to_have_count(0)
    page.go_back()
    page.goto("/console/matches?search=sheet&outcome=canceled")
    expect(page.locator("[data-item]")).to_have_count(2)
    for left in service.running.call("GET", "/api/v1/servers?search=sheet").json["items"]:
        service.running.cancel(left["serverId"])


def test_roster_is_pasted_and_the_callback_of_a_selection_is_sent_again(pages: Pages, service: ConsoleService) -> None:
    ids = players(8, first=700)
    page = pages.open("/console/create")
    with CallbackReceiver() as receiver:
        page.get_by_label("External id").fill("pasted/1")
        page.get_by_label("Region", exact=True).select_option(PATIENT)
        page.get_by_label("Callback URL").fill(receiver.url("/pasted"))
        pasted = f"Ann Smith {ids[0]}\nBob,{ids[1]}\n{ids[2]}\tCora\nhttps://steamcommunity.com/profiles/{ids[3]}/"
        page.get_by_label("Players of team 1").fill(pasted)
        page.get_by_label("Players of team 2").fill(" ".join(ids[4:]))
        page.get_by_role("button", name="Create the match").click()
        expect(page.get_by_role("heading", level=1)).to_contain_text("pasted/1")
        for steam_id in ids:
            expect(page.locator(".digits", has_text=steam_id).first).to_be_visible()
        server_id = path_of(page).rpartition("/")[2]
        service.running.cancel(server_id)
        delivered = f"/api/v1/callbacks?state=delivered&serverId={server_id}"
        wait_until(lambda: service.running.call("GET", delivered).json["total"] or None, "the callback is delivered")
        wait_until_found(service, "pasted", 1)
        page.goto("/console/matches?search=pasted")
        page.get_by_label("Select pasted/1").check()
        page.locator("summary", has_text="Send the callbacks of the selected again").click()
        page.get_by_role("button", name="Send them").click()
        expect(page.get_by_text("1 callback is being sent again.")).to_be_visible()
        first, again = receiver.wait_for("/pasted", 2)
        assert (first.id, first.body) == (again.id, again.body)
    for outcome, number in (("finished", 0), ("canceled", 1), ("failed", 0)):
        page.goto(f"/console/matches?search=pasted&outcome={outcome}")
        expect(page.locator("[data-item]")).to_have_count(number)
