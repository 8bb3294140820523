"""Take screenshots of every page of the console: wide and narrow, light and dark. Needs Chromium.

    python -m scripts.screenshots [FOLDER]      all pages, into build/screenshots by default
    python -m scripts.screenshots --docs        only the pictures in the docs, into docs/images
    python -m tests.browser.match_day --pictures FOLDER      a full wall, which is the picture in the README

Starts a service with an empty data folder and sandbox matches, some of which are over. Pages are listed in
`tests/browser/addresses.py`.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from playwright.sync_api import Browser, BrowserContext, ViewportSize

from tests.browser import addresses, chromium
from tests.browser.console_service import FAST, PATIENT, ConsoleService
from tests.e2e.service.running_service import cvars, players, wait_until

ROOT: Final = Path(__file__).resolve().parents[1]
SIZES: Final[Sequence[ViewportSize]] = (
    {"width": 1280, "height": 860},
    {"width": 1920, "height": 1080},
    {"width": 390, "height": 844},
)
SCHEMES: Final = ("light", "dark")
IN_README: Final = {"match": "match", "match-ended": "result"}
"""Pages with pictures in the docs, and the pictures' names. `tests.browser.match_day` makes the picture of the wall."""
README_SIZE: Final[ViewportSize] = {"width": 1280, "height": 680}
PLAY_S: Final = 75.0
"""Seconds for which the matches are played before the first screenshot."""
DRAW_MS: Final = 1_500
"""Milliseconds in which a page receives changes that happened while it was loaded."""
FAILED: Final = "/console/matches/{failedId}"
NOTHING_LISTENS: Final = "http://127.0.0.1:9/callback"


class Planned(NamedTuple):
    """A match that this script creates."""

    name: str
    team1: str
    team2: str
    scenario: str = "full_match"
    speed: int = 8
    size: int = 5
    more: Mapping[str, object] = {}
    region: str = FAST


SERIES: Final = {"seriesFormat": "bo3", "maps": ["de_inferno", "de_nuke"]}
OVER: Final = (
    Planned("spring-cup/round-of-16/3", "Night Owls", "Paper Tigers", speed=600),
    Planned("spring-cup/round-of-16/4", "Blue Foxes", "Quiet Storm", "cheater", speed=600),
    Planned("spring-cup/round-of-16/5", "Copper Lynx", "Tin Soldiers", "server_crash", speed=600),
)
OPEN: Final = (
    Planned("spring-cup/quarter-final/1", "Night Owls", "Blue Foxes"),
    Planned("spring-cup/quarter-final/2", "Iron Harbor", "Copper Lynx", "pauses"),
    Planned("spring-cup/quarter-final/3", "Northern Lights", "Södermalm Five", more=SERIES),
    Planned("ladder-4711", "Early Birds", "Lost Socks", "no_show", speed=1, region=PATIENT),
    Planned("ladder-4712", "Wingspan", "Slow Burn", size=2, more={"matchType": "wingman", "map": "de_vertigo"}),
    Planned("scrim-0815", "Tin Soldiers", "Marble Arch", "cheater"),
    *(Planned(f"open-qualifier/{number}", f"Team {2 * number - 1}", f"Team {2 * number}") for number in range(1, 28)),
)
"""Matches that are not over when the screenshots are taken. 32 of them are being played."""


def create(service: ConsoleService, planned: Planned, number: int) -> str:
    """Create a match, and return the id of its server."""
    listed = players(2 * planned.size, first=10 * number)
    teams = {
        "team1": {"name": planned.team1, "players": listed[: planned.size]},
        "team2": {"name": planned.team2, "players": listed[planned.size :]},
    }
    variables = cvars(planned.speed, planned.scenario, sim_seed=number + 1)
    settings = {
        "matchType": "competitive",
        "map": "de_mirage",
        **planned.more,
        "teams": teams,
        "customCvars": variables,
    }
    given = {name: value for name, value in settings.items() if value is not None}
    created = service.running.create(
        given, region=planned.region, externalMatchId=planned.name, callbackUrl=NOTHING_LISTENS
    )
    return str(created["serverId"])


def play(service: ConsoleService) -> dict[str, str]:
    """Create all matches and play them for a while. Return the ids that are needed for the addresses of pages."""
    print(f"creating {len(OVER) + len(OPEN)} matches")
    ended, live = ([create(service, match, at) for at, match in enumerate(group, first)] for group, first in GROUPS)
    begin = time.monotonic()
    for server_id in ended:
        service.running.wait_for_status(server_id, "stopped", "failed")
    wait_until(lambda: has_given_up(service, len(ended)), "callbacks are given up", within_s=120)
    print("matches have ended, and their callbacks are given up")
    time.sleep(max(0.0, PLAY_S - (time.monotonic() - begin)))
    return {"serverId": live[0], "endedId": ended[0], "failedId": ended[-1], **service.webhook_ids()}


GROUPS: Final = ((OVER, 0), (OPEN, len(OVER)))


def has_given_up(service: ConsoleService, number: int) -> bool:
    """True once the service has given up at least `number` callbacks."""
    page = service.running.call("GET", "/api/v1/callbacks?state=given_up")
    return page.status == 200 and page.json["total"] >= number


def log_in(browser: Browser, service: ConsoleService, *, is_operator: bool) -> BrowserContext:
    """Return a browser context with a logged-in user."""
    context = browser.new_context(base_url=service.url, locale="en-GB", timezone_id="UTC")
    page = context.new_page()
    page.goto(service.new_link(None if is_operator else "demo"))
    page.get_by_role("button", name="Open the console").click()
    page.wait_for_url("**/console/operator" if is_operator else "**/console")
    page.close()
    return context


def photograph(context: BrowserContext, address: str, file: Path, *, size: ViewportSize, scheme: str) -> None:
    """Take a screenshot of a page: of its full height, or of one screen if the folder is `images`."""
    page = context.new_page()
    page.set_viewport_size(size)
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    page.goto(address)
    page.wait_for_timeout(DRAW_MS)
    page.screenshot(path=file, full_page=file.parent.name != "images")
    page.close()
    print(f"{file} ({file.stat().st_size // 1000} KB)")


def photograph_all(browser: Browser, service: ConsoleService, ids: Mapping[str, str], folder: Path) -> None:
    """Take screenshots of all pages in all sizes and color schemes."""
    anyone = browser.new_context(base_url=service.url, locale="en-GB", timezone_id="UTC")
    groups = (
        # These pages come first, while matches are being played.
        (log_in(browser, service, is_operator=False), {**addresses.OF_AN_OWNER, "match-failed": FAILED}),
        (log_in(browser, service, is_operator=True), addresses.OF_AN_OPERATOR),
        (anyone, addresses.PUBLIC),
    )
    for context, pages in groups:
        for name, address in pages.items():
            for size in SIZES:
                for scheme in SCHEMES:
                    file = folder / f"{name}-{size['width']}-{scheme}.png"
                    photograph(context, address.format(**ids), file, size=size, scheme=scheme)


def photograph_for_readme(browser: Browser, service: ConsoleService, ids: Mapping[str, str], folder: Path) -> None:
    """Take the screenshots for the docs, each showing one screen of a page."""
    context = log_in(browser, service, is_operator=False)
    for name, picture in IN_README.items():
        address = addresses.OF_AN_OWNER[name].format(**ids)
        photograph(context, address, folder / f"{picture}.png", size=README_SIZE, scheme="light")


def main() -> None:
    """Take the screenshots."""
    parser = argparse.ArgumentParser(description="Take screenshots of the console.")
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "build" / "screenshots")
    parser.add_argument("--docs", action="store_true", help="only the pictures in the docs")
    given = parser.parse_args()
    if chromium.executable() is None:
        parser.exit(1, f"{chromium.MISSING}\n")
    folder: Path = ROOT / "docs" / "images" if given.docs else given.folder
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as data:
        service = ConsoleService(Path(data), servers=len(OVER) + len(OPEN))
        with service.running, chromium.launched() as browser:
            ids = play(service)
            take = photograph_for_readme if given.docs else photograph_all
            take(browser, service, ids, folder)


if __name__ == "__main__":
    main()
