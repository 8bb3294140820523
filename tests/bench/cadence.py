"""Measure what a match costs the service at the speed of real games. Part of `make bench`.

A hundred simulated servers play at speed 1 in one process on one core, one service process on another. When all matches
are live, each is played faster for a while, so that they are in different rounds and phases. Then the CPU time of the
service is measured for a minute of ordinary play; posts, lines and bytes are read from its database. A farm at 30 times
speed would hide the cost of a post, because it puts many lines into one.

With `--against`, both services run beside each other on the same core, each with its own farm of the same seeds, so
that what disturbs one also disturbs the other.
"""

from __future__ import annotations

import argparse
import asyncio
import platform
import random
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import uvloop

if __name__ == "__main__":
    # Run as a script: make `tests` importable from the checkout.
    sys.path[0] = str(Path(__file__).resolve().parents[2])

from matchpod.adapters.rcon_client import RconConsoles
from matchpod.settings.values import DATABASE_FILE
from tests.bench.checkouts import Checkout, Machine, add_argument, checkouts
from tests.bench.pinned_process import cores
from tests.bench.stream_matches import ACCOUNT_ZERO, RCON_PASSWORD, Site, game_settings

SERVERS = 100
SECONDS = 60.0
PARTS = 6
"""The minute is measured in parts, to show how much they differ."""
ROUNDS = 24
FAST = 8.0
FAST_S = (2.0, 30.0)
"""How long each match is played faster: 16 s to 4 minutes of game time."""
SETTLE_S = 10.0
LIVE_S = 300.0
QUIET_S = 5
CALL_S = 0.05
"""Pause between two requests of the caller beside the matches."""


class Reading(NamedTuple):
    """The time, and what a service has used so far."""

    at_s: float
    cpu_s: float
    waited_s: float
    written_mb: float


@dataclass
class Part:
    """What a service did in a part of the minute."""

    seconds: float
    cpu_s: float
    posts: int
    reports: int
    lines: int
    size: int
    waited_s: float
    written_mb: float


@dataclass
class Subject:
    """A service of one checkout with its own farm."""

    checkout: Checkout
    site: Site
    parts: list[Part] = field(default_factory=list)
    idle_mb: float = 0.0
    """Its memory before the first match."""
    live_mb: float = 0.0
    """Its memory at the end, with all matches live."""
    answers_ms: list[float] = field(default_factory=list)
    """How long requests of a caller took meanwhile."""

    def read(self) -> Reading:
        """Return what the service has used so far."""
        service = self.site.service
        return Reading(time.time(), service.cpu_s(), service.waited_s(), service.written_mb())

    async def call(self, server_id: str) -> None:
        """Request the same server again and again, and note how long that takes."""
        while True:
            began_s = time.monotonic()
            await self.site.get(f"/api/v1/servers/{server_id}")
            self.answers_ms.append((time.monotonic() - began_s) * 1000)
            await asyncio.sleep(CALL_S)


def settings_of(number: int) -> dict[str, object]:
    """Return the settings of a match: one in ten is a deathmatch, the others are competitive with ten listed players."""
    settings = game_settings(number if number % 10 != 5 else number + 1, ROUNDS)
    if settings["matchType"] == "deathmatch":
        settings["dmRoundMinutes"] = 30
    variables: dict[str, object] = {"sim_seed": number + 1, "sim_roster_delay": QUIET_S}
    if "players" in settings:  # otherwise the plugin's match file lists the players
        variables["sim_players"] = ",".join(str(int(one) - ACCOUNT_ZERO) for one in settings["players"])
    return {**settings, "customCvars": "\n".join(f"{name} {value}" for name, value in variables.items())}


async def bring_to_play(site: Site, servers: int) -> str:
    """Create all matches, wait until they are live, and spread their phases; return the id of a server."""
    created = [await site.create_with(settings_of(number)) for number in range(servers)]
    async with asyncio.timeout(LIVE_S):
        running = [await site.running_server(one["serverId"]) for one in created]
        while (await site.get("/api/v1/cs2/matches?status=live&pageSize=1"))["total"] < servers:
            await asyncio.sleep(1)
    rng = random.Random(SERVERS)
    await asyncio.gather(*(play_fast(server["port"], rng.uniform(*FAST_S)) for server in running))
    return str(created[0]["serverId"])


async def play_fast(port: int, seconds: float) -> None:
    """Let a server play faster for some seconds."""
    console = await RconConsoles().open("127.0.0.1", port, RCON_PASSWORD)
    await console.run(f"sim_speed {FAST:g}")
    await asyncio.sleep(seconds)
    await console.run("sim_speed 1")
    await console.close()


async def measure(folder: Path, compared: Sequence[Checkout], *, servers: int, seconds: float) -> list[Subject]:
    """Measure the services beside each other."""
    subjects: list[Subject] = []
    try:
        for checkout in compared:
            (folder / checkout.label).mkdir()
            site = Site(folder / checkout.label, servers, speed=1.0, checkout=checkout)
            subjects.append(Subject(checkout, site))
            site.begin()
            subjects[-1].idle_mb = site.service.resident_mb()
        first_servers = await asyncio.gather(*(bring_to_play(one.site, servers) for one in subjects))
        await asyncio.sleep(SETTLE_S)
        callers = [asyncio.create_task(one.call(name)) for one, name in zip(subjects, first_servers, strict=True)]
        before = [one.read() for one in subjects]
        for _ in range(PARTS):
            await asyncio.sleep(seconds / PARTS)
            after = [one.read() for one in subjects]
            for one, first, last in zip(subjects, before, after, strict=True):
                one.parts.append(part_of(one.site.folder / DATABASE_FILE, first, last))
            before = [one.read() for one in subjects]
        for caller in callers:
            caller.cancel()
        for one in subjects:
            one.live_mb = one.site.service.resident_mb()
            live = (await one.site.get("/api/v1/cs2/matches?status=live&pageSize=1"))["total"]
            if live < servers:
                raise RuntimeError(f"{one.checkout.label}: only {live} of {servers} matches are live at the end")
    finally:
        for one in subjects:
            one.site.end()
    return subjects


def part_of(database: Path, first: Reading, last: Reading) -> Part:
    """Return what was stored between two readings, and what it cost."""
    db = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
    try:
        query = "SELECT kind, body FROM raw_log WHERE received_ms >= ? AND received_ms < ?"
        rows = db.execute(query, (int(first.at_s * 1000), int(last.at_s * 1000))).fetchall()
    finally:
        db.close()
    posts = [body for kind, body in rows if kind == "log"]
    reports = [body for kind, body in rows if kind in ("report", "shots", "detection")]
    return Part(
        seconds=last.at_s - first.at_s,
        cpu_s=last.cpu_s - first.cpu_s,
        posts=len(posts),
        reports=len(reports),
        lines=sum(body.count(b"\n") for body in posts),
        size=sum(map(len, posts)) + sum(map(len, reports)),
        waited_s=last.waited_s - first.waited_s,
        written_mb=last.written_mb - first.written_mb,
    )


# --- output ---------------------------------------------------------------------------------------------------------


def print_figures(subjects: Sequence[Subject], servers: int) -> None:
    """Print the cost per match and hour, and per post."""
    print(f"{'':44}" + "".join(f"{one.checkout.label:>14}" for one in subjects))
    rows = [figures(one, servers) for one in subjects]
    for name in rows[0]:
        cells = "".join(f"{row[name]:>14,.{1 if row[name] < 1000 else 0}f}" for row in rows)
        print(f"{name:44}{cells}")
    if len(subjects) == 2:
        first, second = ([one.cpu_s / max(1, one.posts) for one in subject.parts] for subject in subjects)
        ratios = [after / before for before, after in zip(first, second, strict=True)]
        shown = ", ".join(f"{ratio - 1:+.1%}" for ratio in ratios)
        print(f"CPU per post, after against before: median {statistics.median(ratios) - 1:+.1%} (parts: {shown})")


def figures(subject: Subject, servers: int) -> dict[str, float]:
    """Return the figures of a service, by name."""
    parts, answers_ms = subject.parts, sorted(subject.answers_ms)
    hours = sum(one.seconds for one in parts) / 3600 * servers
    cpu_s, posts = sum(one.cpu_s for one in parts), sum(one.posts for one in parts)
    return {
        "CPU of the service per match-hour, s": cpu_s / hours,
        "CPU per log post, us": cpu_s / posts * 1e6,
        "log posts per match-hour": posts / hours,
        "reports of plugins per match-hour": sum(one.reports for one in parts) / hours,
        "lines per match-hour": sum(one.lines for one in parts) / hours,
        "KB per match-hour": sum(one.size for one in parts) / hours / 1000,
        "MB written per match-hour": sum(one.written_mb for one in parts) / hours,
        "KB of memory per live match": (subject.live_mb - subject.idle_mb) / servers * 1000,
        "get server, median ms": statistics.median(answers_ms),
        "get server, 99 % within ms": answers_ms[int(len(answers_ms) * 0.99)],
        "service, % of a core": cpu_s / sum(one.seconds for one in parts) * 100,
        "  could run but had no core, %": sum(one.waited_s for one in parts) / sum(one.seconds for one in parts) * 100,
    }


def main() -> None:
    """Run the benchmark and print the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    add_argument(parser)
    parser.add_argument("--servers", type=int, default=SERVERS)
    parser.add_argument("--seconds", type=float, default=SECONDS)
    given = parser.parse_args()
    if len(cores()) < 2:
        print("benchmark at real cadence skipped: the farm needs its own core", file=sys.stderr)
        return
    machine = Machine()
    with tempfile.TemporaryDirectory(prefix="matchpod-bench-") as name:
        compared = checkouts(given.against)
        subjects = uvloop.run(measure(Path(name), compared, servers=given.servers, seconds=given.seconds))
    print(
        f"\nreal cadence: {given.servers} servers at speed 1 for {given.seconds:g} s, one service on SQLite; "
        f"Python {platform.python_version()}\n{machine.text()}"
    )
    print_figures(subjects, given.servers)


if __name__ == "__main__":
    main()
