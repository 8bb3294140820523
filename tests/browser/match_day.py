"""A match day that one person runs in a browser, by a script: a first round of 32 matches, and what goes wrong in it.

`python -m tests.browser.match_day` plays its first ten minutes at the speed of real games; `--speed 5` takes three minutes.
It prints when each incident was on the wall, and how long the person needed to solve it. Exits with 1 if one was shown
too late or was not solved. `--pictures folder` takes pictures of what the person saw.

The script:

1. The person opens the wall, and a second tab with it, which stays hidden.
2. In three matches a player does not come. One gets more time, and then begins without the player; one is forfeited;
   one is canceled.
3. The servers of two matches crash. Both are created again.
4. A player does not come, and a substitute takes the place.
5. A team asks for a pause, with `!admin`, and play goes on after six minutes.
6. A team gives up, with `!admin`.
7. A callback is lost, and sent again.
"""

from __future__ import annotations

import argparse
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.browser import chromium
from tests.browser.chromium import SET_VISIBLE, Faults
from tests.browser.console_service import ConsoleService
from tests.e2e.service.callback_receiver import CallbackReceiver
from tests.e2e.service.running_service import RunningService, cvars, free_port_range, players, region

MATCHES: Final = 32
SPARE: Final = 6
"""Servers for matches that are created again, and for those that are being released."""
FOUND_S: Final = 10.0
"""By then an incident is on the wall."""
SIDE: Final = 2
"""Players of a team: all servers share one machine."""
LATE, ABSENT, MISSING = 7, 19, 28
"""Matches in which a player does not come: they get time, are forfeited, are canceled."""
CRASHES: Final = 12, 23
SUBSTITUTE, PAUSED, FORFEIT, LOST = 15, 4, 26, 9
JOIN_S: Final = {LATE: 540, SUBSTITUTE: 560, ABSENT: 580, MISSING: 600}
"""How long players are waited for, so that they are not missed at the same moment."""
PAUSE_S: Final = 360
LASTS_S: Final = 540
"""From the moment when all are live."""
LOST_PATH: Final = "/lost"
REGION: Final = "hall"
RCON: Final = Path(__file__).parents[2] / "docs/examples/rcon.py"


class MatchDay:
    """The matches of a day, and the person who looks after them."""

    def __init__(self, folder: Path, *, speed: float, matches: int = MATCHES) -> None:
        self.speed = speed
        self.numbers = range(1, matches + 1)
        ports = free_port_range(matches + SPARE)
        self.service = ConsoleService(folder, regions=region(REGION, ports, speed=speed))
        self.receiver = CallbackReceiver()
        self.servers: dict[int, str] = {}
        """The server of each match, by its number."""
        self.lines: list[str] = []
        self.wrong: list[str] = []

    @property
    def running(self) -> RunningService:
        return self.service.running

    def create_matches(self) -> None:
        lost_url = self.receiver.configure(LOST_PATH, "fail", "fail", "accept")
        self.began_s = time.monotonic()
        for number in self.numbers:
            listed = players(2 * SIDE, first=2 * SIDE * number)
            teams = {
                f"team{n + 1}": {"name": f"Team {2 * number + n}", "players": listed[n * SIDE : (n + 1) * SIDE]}
                for n in range(2)
            }
            settings: dict[str, object] = {
                "matchType": "competitive",
                "map": "de_mirage",
                "joinSeconds": JOIN_S.get(number, 300),
                "teams": teams,
                "labels": {"event": "winter cup", "round": "1", "table": str(number)},
                "customCvars": self._variables(number, listed),
            }
            if number == LOST:
                settings |= {"maxRounds": 2, "freezeTime": 1}
            more = {"callbackUrl": lost_url} if number == LOST else {}
            created = self.running.create(settings, region=REGION, externalMatchId=f"R1 M{number}", **more)
            self.servers[number] = str(created["serverId"])

    def _variables(self, number: int, listed: list[str]) -> str:
        more: dict[str, object] = {"sim_seed": number, "sim_unpause": 0}
        if number in JOIN_S:
            more["sim_absent"] = listed[-1]
        if number == SUBSTITUTE:
            more["sim_substitutes"] = players(1, first=100_000)[0]
        speed = max(self.speed, 40) if number == LOST else self.speed
        return cvars(int(speed), "full_match", **more)

    # --- what happens in the hall -------------------------------------------------------------------------------------

    def say(self, number: int, text: str) -> None:
        """Let a player of a match write to the admins: the first who is connected."""
        found = self.running.get(self.servers[number])
        for player in players(2 * SIDE, first=2 * SIDE * number):
            arguments = [str(found["port"]), found["rconPassword"], f"sim_say {player} {text}"]
            answer = subprocess.run([sys.executable, RCON, *arguments], check=True, capture_output=True, text=True)
            if "Usage" not in answer.stdout:
                return
        raise AssertionError(f"no player is connected in match {number}")

    def crash(self, number: int) -> None:
        (game,) = self.running.server_processes(self.servers[number])
        game.signal(signal.SIGKILL)

    def wait_until_live(self) -> None:
        """Wait until every match with a complete roster is live."""
        for number in self.numbers:
            if number not in (*JOIN_S, LOST):
                self.running.wait_for(self.servers[number], lambda one: one["phase"] == "live")


class Person:
    """Who looks after the matches, with a browser and nothing else."""

    def __init__(self, day: MatchDay, context: BrowserContext, pictures: Path | None) -> None:
        self._day = day
        self._pictures = pictures
        self.wall = context.new_page()
        self.hidden = context.new_page()
        self.page = context.new_page()

    def sit_down(self) -> None:
        """Open the wall, and once more in a tab that stays in the background."""
        self.wall.goto("/console")
        self.hidden.goto("/console")
        self.hidden.evaluate(SET_VISIBLE, "hidden")

    def take_picture(self, page: Page, name: str) -> None:
        if self._pictures is not None:
            page.screenshot(path=self._pictures / f"{name}.png")

    @contextmanager
    def incident(self, name: str, number: int, words: str, since_s: float | None) -> Iterator[None]:
        """Find an incident of a match on the wall, go to its page, and solve it within the block."""
        day, server_id = self._day, self._day.servers[number]
        said = self.wall.locator(f"#strip-{server_id} .said")
        expect(said).to_contain_text(words)
        now_s = time.monotonic()
        late = "" if since_s is None else f"{now_s - since_s:.1f} s"
        if since_s is not None and now_s - since_s > FOUND_S:
            day.wrong.append(f"{name}: shown after {late}")
        if since_s is None:
            late = f"{said.inner_text().strip()!r}"
        self.take_picture(self.wall, f"{name}-wall")
        if number != PAUSED or since_s is not None:  # a match that someone is on does not count
            expect(self.hidden).to_have_title(re.compile(r"^\(\d+\)"))
        self.page.goto(self.wall.locator(f"#strip-{server_id} a").first.get_attribute("href") or "")
        yield
        self.take_picture(self.page, f"{name}-page")
        day.lines.append(f"{name:32} found: {late:40} solved within {time.monotonic() - now_s:.1f} s")
        report(day.lines[-1])

    def act(self, kind: str, **given: str) -> None:
        """Ask for an action on the match that is shown, and wait until the server has confirmed it."""
        self.page.locator(f"#act-{kind} > summary").click()
        form = self.page.locator(f"#act-{kind} form")
        for name, value in given.items():
            field = form.locator(f"[name={name}]")
            if field.evaluate("field => field.tagName") == "SELECT":
                field.select_option(value)
            else:
                field.fill(value)
        form.get_by_role("button").last.click()
        expect(self.page.locator("#requested li").first).to_contain_text("done")

    def claim(self, number: int) -> None:
        """Say on the wall that Eva is on it."""
        strip = self.wall.locator(f"#strip-{self._day.servers[number]}")
        strip.locator("summary").click()
        strip.locator("[name=name]").fill("Eva")
        strip.get_by_role("button", name="I’m on it").click()
        expect(strip).to_contain_text("Eva is on it")

    def is_quiet(self, number: int) -> None:
        """Wait until a match needs no attention any more."""
        expect(self.wall.locator(f"#strip-{self._day.servers[number]}")).to_have_count(0)

    def create_again(self, number: int) -> None:
        """Create a match that has failed once more, and acknowledge the old one."""
        self.page.locator("summary", has_text="Create it again").click()
        self.page.get_by_role("form", name="Create it again").get_by_role("button").last.click()
        self.page.wait_for_url(lambda url: self._day.servers[number] not in url)
        strip = self.wall.locator(f"#strip-{self._day.servers[number]}")
        strip.get_by_role("button", name=re.compile("Acknowledge")).click()
        self.is_quiet(number)
        self._day.servers[number] = self.page.url.rpartition("/")[2].partition("?")[0]


def report(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def play(day: MatchDay, person: Person) -> None:
    person.sit_down()
    day.wait_until_live()
    person.take_picture(person.wall, "all live")
    speed, began_s = day.speed, time.monotonic()
    day.say(PAUSED, "!admin our captain lost the connection, pause please")
    with person.incident("a team asks for a pause", PAUSED, "asked for an admin", time.monotonic()):
        expect(person.page.locator("#chat-title").locator("..")).to_contain_text("our captain lost the connection")
        person.claim(PAUSED)
        person.act("pause", reason="connection lost", by="Eva")
    paused_s = time.monotonic()
    for number in CRASHES:
        day.crash(number)
        with person.incident(f"a server crashes ({number})", number, "", time.monotonic()):
            person.create_again(number)
    day.say(FORFEIT, "!admin we give up")
    with person.incident("a team gives up", FORFEIT, "asked for an admin", time.monotonic()):
        person.act("forfeit", winner="team2", reason="Reds give up", by="Eva")
    solve_lost_callback(day, person)
    if speed == 1:  # a pause is long after five minutes, at any speed of the games
        with person.incident("the pause takes long", PAUSED, "paused", None):
            time.sleep(max(0.0, paused_s + PAUSE_S - time.monotonic()))
            person.act("unpause")
    else:
        person.page.goto(f"/console/matches/{day.servers[PAUSED]}")
        person.act("unpause")
    with person.incident("a player is late", LATE, "missing", None):
        person.act("extendJoin", seconds="120")
        person.act("start")
    with person.incident("a substitute is needed", SUBSTITUTE, "missing", None):
        out = players(2 * SIDE, first=2 * SIDE * SUBSTITUTE)[-1]
        person.act("replacePlayer", **{"out": out, "in": players(1, first=100_000)[0]})
    with person.incident("a team does not come", ABSENT, "missing", None):
        person.act("forfeit", winner="team1", reason="not there")
    with person.incident("a match is called off", MISSING, "missing", None):
        person.page.locator("summary", has_text="Cancel the match").click()
        person.page.get_by_role("button", name="Cancel the match").click()
    for number in JOIN_S:
        person.is_quiet(number)
    time.sleep(max(0.0, began_s + LASTS_S / speed - time.monotonic()))
    person.take_picture(person.wall, "at the end")


def solve_lost_callback(day: MatchDay, person: Person) -> None:
    """Find the callback that was given up, and send it again."""
    day.receiver.wait_for(LOST_PATH, 2)
    since_s = time.monotonic()
    link = person.wall.locator("#strip").get_by_role("link", name=f"R1 M{LOST}")
    expect(link).to_be_visible()
    found_s = time.monotonic()
    person.take_picture(person.wall, "a callback is lost")
    link.click()
    person.wall.locator("summary", has_text="Send again").click()
    person.wall.get_by_role("button", name="Send it now").click()
    day.receiver.wait_for(LOST_PATH, 3)
    day.lines.append(f"{'a callback is lost':32} found: {found_s - since_s:.1f} s")
    report(day.lines[-1])
    person.wall.goto("/console")


def run(folder: Path, browser: Browser, *, speed: float, pictures: Path | None) -> list[str]:
    """Play the day; return what was wrong."""
    with ExitStack() as stack:
        day = MatchDay(folder, speed=speed)
        stack.enter_context(day.running)
        stack.enter_context(day.receiver)
        context = browser.new_context(base_url=day.service.url, viewport={"width": 1920, "height": 1080})
        context.set_default_timeout(chromium.TIMEOUT_MS + 400_000 / speed)
        expect.set_options(timeout=chromium.TIMEOUT_MS + 400_000 / speed)
        faults = Faults()
        faults.watch(context)
        cookie = day.service.new_cookie(day.running.key)
        context.add_cookies([{"name": "matchpod", "value": cookie, "domain": "127.0.0.1", "path": "/"}])
        day.create_matches()
        play(day, Person(day, context, pictures))
        faults.check()
        return day.wrong


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.browser.match_day", description=__doc__)
    parser.add_argument("--speed", type=float, default=1, help="of the games, 1 to 40; default: 1")
    parser.add_argument("--pictures", type=Path, help="a folder for pictures of the pages")
    args = parser.parse_args()
    if args.pictures is not None:
        args.pictures.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory(prefix="matchpod-match-day-", dir="/var/tmp") as folder,
        chromium.launched() as browser,
    ):
        wrong = run(Path(folder), browser, speed=args.speed, pictures=args.pictures)
    report("\n".join(wrong) or "Every incident was found in time and solved.")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
