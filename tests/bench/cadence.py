"""Measure what a match costs the service at the speed of real games. Part of `make bench`.

Simulated servers play at speed 1 in one process on one core, one service process on another: first a hundred, then up
to a thousand, to show how the cost of one match changes with their number. When all matches are live, each is played faster for a while, so that they are in different rounds and phases. Then the CPU time of the
service is measured for a minute of ordinary play; posts, lines and bytes are read from its database. A farm at 30 times
speed would hide the cost of a post, because it puts many lines into one.

Meanwhile, streams of some matches are read, to see how old their events are; then some short matches are played to their
end beside the others, to see when their callbacks leave.

With `--against`, both services run beside each other on the same core, each with its own farm of the same seeds, so
that what disturbs one also disturbs the other. With `--way segments`, what servers send arrives in segments of 1,460
bytes, and each body after its head, as on a real network; with `--way nginx`, through a proxy. With `--database both`, one service uses SQLite and one PostgreSQL, whose
processes may use all cores.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import statistics
import sys
import time
import zlib
from base64 import b64encode
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import uvloop

if __name__ == "__main__":
    # Run as a script: make `tests` importable from the checkout.
    sys.path[0] = str(Path(__file__).resolve().parents[2])

from matchpod.adapters.rcon_client import RconConsoles
from tests.bench.checkouts import Checkout, Machine, add_argument, bench_folder, checkouts, percentile
from tests.bench.delays import Delay, Entry, StreamWatch, callback_delays, shares
from tests.bench.pinned_process import require_two_cores
from tests.bench.stream_matches import RCON_PASSWORD, Site, Way, game_settings, with_simulator_cvars
from tests.chaos.receivers import Receivers
from tests.chaos.stores import SqliteStore, Store, open_store

SERVERS = (100, 300, 500, 1_000)
SECONDS = 60.0
PARTS = 6
"""The minute is measured in parts, to show how much they differ."""
ROUNDS = 24
FAST = 8.0
FAST_S = (2.0, 30.0)
"""How long each match is played faster: 16 s to 4 minutes of game time."""
SETTLE_S = 10.0
LIVE_S = 300.0
"""Time for all matches to go live, and as much again for every 500 of them."""
QUIET_S = 5
KEY = b64encode(bytes(32)).decode()
"""Processes that share a database need one."""
WATCHED = 40
"""Matches whose streams are read."""
ENDING = 24
"""Short matches that are played to their end."""
ENDING_ROUNDS = 2
ENDING_S = 240.0
POLL_S = 0.1
CALL_S = 0.05
"""Pause between two requests of the caller beside the matches."""


class Reading(NamedTuple):
    """The time, and what a service has used so far."""

    at_s: float
    cpu_s: float
    waited_s: float
    written_mb: float
    database_s: float
    """CPU time of all processes of PostgreSQL; 0 with SQLite."""


@dataclass
class Part:
    """What a service did in a part of the minute."""

    used: Reading
    """How long it took, and what the service used."""
    posts: int
    reports: int
    lines: int
    size: int


@dataclass
class Subject:
    """A service of one checkout with its own farm."""

    label: str
    site: Site
    store: Store
    folder: Path
    """The folder of its database server, if it has one."""
    parts: list[Part] = field(default_factory=list)
    idle_mb: float = 0.0
    """Its memory before the first match."""
    live_mb: float = 0.0
    """Its memory at the end, with all matches live."""
    answers_ms: list[float] = field(default_factory=list)
    """How long requests of a caller took meanwhile."""
    events: list[Delay] = field(default_factory=list)
    """How old events were at the reader of a stream."""
    callbacks: list[Delay] = field(default_factory=list)
    """How long after `Game Over` callbacks arrived."""

    def read(self) -> Reading:
        """Return what the service has used so far."""
        service = self.site.service
        database_s = 0.0 if self.store.url is None else postgres_cpu_s(self.folder / "postgres")
        return Reading(time.time(), service.cpu_s(), service.waited_s(), service.written_mb(), database_s)

    async def entries(self, first: Reading, last: Reading) -> list[tuple[str, bytes]]:
        """Return kind and body of the entries that were stored between two readings."""
        times = f"received_ms >= {int(first.at_s * 1000)} AND received_ms < {int(last.at_s * 1000)}"
        rows: list[tuple[Any, ...]] = await self.store.rows(
            f"SELECT kind, body, is_compressed FROM raw_log WHERE {times}"
        )
        return [(kind, unpacked(*body)) for kind, *body in rows]

    async def posts(self, first_ms: int, of: Sequence[str] = ()) -> set[Entry]:
        """Return the log posts that were stored since a time; those with a `Game Over` of some servers only."""
        names = ", ".join(f"'{one}'" for one in of)
        wanted = f"kind = 'log'{f' AND server_id IN ({names})' if of else ''} AND received_ms >= {first_ms}"
        columns = "server_id, received_ms, headers, body, is_compressed"
        rows: list[tuple[Any, ...]] = await self.store.rows(f"SELECT {columns} FROM raw_log WHERE {wanted}")
        found = (Entry(server_id, at_ms, head, unpacked(*body)) for server_id, at_ms, head, *body in rows)
        return {one for one in found if not of or b"Game Over" in one.body}

    async def play_to_the_end(self) -> None:
        """Play short matches fast, and note how long after their end the callbacks arrived."""
        first_ms, begun_ms = int(time.time() * 1000), time.time() * 1000 - time.monotonic() * 1000
        entries: set[Entry] = set()
        async with asyncio.timeout(ENDING_S), Receivers() as receivers:
            created = [await self._create_short(number, receivers.url(str(number))) for number in range(ENDING)]
            await asyncio.gather(*(self._play_fast(one) for one in created))
            while receivers.count < ENDING:
                await asyncio.sleep(POLL_S)
                entries |= await self.posts(first_ms, created)  # they are packed soon after the end
        arrived_ms = {one: begun_ms + receivers.at(str(n))[0].at_s * 1000 for n, one in enumerate(created)}
        self.callbacks = callback_delays(entries, arrived_ms, speed=FAST)

    async def _create_short(self, number: int, callback_url: str) -> str:
        settings = {**settings_of(1_001 + 10 * number), "maxRounds": ENDING_ROUNDS}
        settings["customCvars"] = f"sim_scenario one_sided\n{settings['customCvars']}"
        created = await self.site.create_with(settings, callbackUrl=callback_url)
        return str(created["serverId"])

    async def _play_fast(self, server_id: str) -> None:
        await play_fast((await self.site.running_server(server_id))["port"], None)

    async def call(self, server_id: str) -> None:
        """Request the same server again and again, and note how long that takes."""
        while True:
            began_s = time.monotonic()
            await self.site.get(f"/api/v1/servers/{server_id}")
            self.answers_ms.append((time.monotonic() - began_s) * 1000)
            await asyncio.sleep(CALL_S)


def unpacked(body: bytes, is_compressed: int) -> bytes:
    """Return the body of an entry as it was sent."""
    return zlib.decompress(body) if is_compressed == 1 else body


def settings_of(number: int) -> dict[str, Any]:
    """Return the settings of a match: one in ten is a deathmatch, the others are competitive with ten listed players."""
    settings = game_settings(number if number % 10 != 5 else number + 1, ROUNDS)
    if settings["matchType"] == "deathmatch":
        settings["dmRoundMinutes"] = 30
    return with_simulator_cvars(settings, number, quiet_s=QUIET_S, scenario=None)


async def bring_to_play(site: Site, servers: int) -> list[str]:
    """Create all matches, wait until they are live, and spread their phases; return the ids of their servers."""
    created = [await site.create_with(settings_of(number)) for number in range(servers)]
    async with asyncio.timeout(LIVE_S * (1 + servers / 500)):
        running = [await site.running_server(one["serverId"]) for one in created]
        await site.wait_until_live(servers)
    rng = random.Random(servers)
    await asyncio.gather(*(play_fast(server["port"], rng.uniform(*FAST_S)) for server in running))
    return [str(one["serverId"]) for one in created]


async def play_fast(port: int, seconds: float | None) -> None:
    """Let a server play faster for some seconds, or to the end."""
    console = await RconConsoles().open("127.0.0.1", port, RCON_PASSWORD)
    await console.run(f"sim_speed {FAST:g}")
    if seconds is not None:
        await asyncio.sleep(seconds)
        await console.run("sim_speed 1")
    await console.close()


def postgres_cpu_s(folder: Path) -> float:
    """Return the CPU time of all processes of a database server, including those that have ended."""
    ticks, pid = 0, (folder / "postmaster.pid").read_text().split("\n", 1)[0]
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has just ended
            fields = stat.read_text().rpartition(")")[2].split()
            if stat.parent.name == pid:
                ticks += sum(map(int, fields[11:15]))
            elif fields[1] == pid:
                ticks += sum(map(int, fields[11:13]))
    return ticks / os.sysconf("SC_CLK_TCK")


async def measure(
    folder: Path, compared: Sequence[tuple[str, Checkout, bool]], *, servers: int, seconds: float, way: Way
) -> list[Subject]:
    """Measure services beside each other: each has a label, a checkout, and PostgreSQL or not."""
    subjects: list[Subject] = []
    stack = AsyncExitStack()
    try:
        for label, checkout, has_postgres in compared:
            (folder / label).mkdir()
            # Not in the data folder of the service, which others than its owner cannot enter.
            own = folder / f"{label}-server"
            own.mkdir()
            store: Store = SqliteStore(folder / label)
            if has_postgres:
                store = await stack.enter_async_context(open_store(own))
            database = {"MATCHPOD_DATABASE_URL": store.url, "MATCHPOD_SECRET_KEY": KEY} if store.url else {}
            site = Site(folder / label, servers + ENDING, speed=1.0, checkout=checkout, environment=database, way=way)
            subjects.append(Subject(label, site, store, own))
            site.begin()
            subjects[-1].idle_mb = site.service.resident_mb()
        played = await asyncio.gather(*(bring_to_play(one.site, servers) for one in subjects))
        watches = [StreamWatch(one.site.port, one.site.key) for one in subjects]
        for watch, names in zip(watches, played, strict=True):
            watch.begin(names[:: max(1, servers // WATCHED)])
        await asyncio.sleep(SETTLE_S)
        for watch in watches:
            watch.clear()
        callers = [asyncio.create_task(one.call(names[0])) for one, names in zip(subjects, played, strict=True)]
        began_ms = int(time.time() * 1000) - 5_000
        before = [one.read() for one in subjects]
        for _ in range(PARTS):
            await asyncio.sleep(seconds / PARTS)
            after = [one.read() for one in subjects]
            for one, first, last in zip(subjects, before, after, strict=True):
                one.parts.append(part_of(await one.entries(first, last), first, last))
            before = [one.read() for one in subjects]
        for caller in callers:
            caller.cancel()
        for one, watch in zip(subjects, watches, strict=True):
            one.events = watch.delays(await one.posts(began_ms))
            await watch.end()
        for one in subjects:
            one.live_mb = one.site.service.resident_mb()
            live = await one.site.count_maps("live")
            if live < servers:
                raise RuntimeError(f"{one.label}: only {live} of {servers} matches are live at the end")
        await asyncio.gather(*(one.play_to_the_end() for one in subjects))
    finally:
        for one in subjects:
            one.site.end()
        await stack.aclose()
    return subjects


def part_of(rows: Sequence[tuple[str, bytes]], first: Reading, last: Reading) -> Part:
    """Return what was stored between two readings, and what it cost."""
    posts = [body for kind, body in rows if kind == "log"]
    reports = [body for kind, body in rows if kind in ("report", "shots", "detection")]
    return Part(
        used=Reading(*(after - before for before, after in zip(first, last, strict=True))),
        posts=len(posts),
        reports=len(reports),
        lines=sum(body.count(b"\n") for body in posts),
        size=sum(map(len, posts)) + sum(map(len, reports)),
    )


# --- output ---------------------------------------------------------------------------------------------------------


def print_figures(subjects: Sequence[Subject], servers: int) -> None:
    """Print the cost per match and hour, and per post."""
    print(f"{'':44}" + "".join(f"{one.label:>14}" for one in subjects))
    rows = [figures(one, servers) for one in subjects]
    for name in rows[0]:
        cells = "".join(f"{row[name]:>14,.{1 if row[name] < 1000 else 0}f}" for row in rows)
        print(f"{name:44}{cells}")
    if len(subjects) == 2:
        first, second = ([one.used.cpu_s / max(1, one.posts) for one in subject.parts] for subject in subjects)
        ratios = [after / before for before, after in zip(first, second, strict=True)]
        shown = ", ".join(f"{ratio - 1:+.1%}" for ratio in ratios)
        print(
            f"CPU per post, {subjects[1].label} against {subjects[0].label}: median {statistics.median(ratios) - 1:+.1%} (parts: {shown})"
        )


def figures(subject: Subject, servers: int) -> dict[str, float]:
    parts = subject.parts
    used = Reading(*map(sum, zip(*(one.used for one in parts), strict=True)))
    hours, cpu_s, posts = used.at_s / 3600 * servers, used.cpu_s, sum(one.posts for one in parts)
    return {
        "CPU of the service per match-hour, s": cpu_s / hours,
        "CPU of PostgreSQL per match-hour, s": used.database_s / hours,
        "CPU per log post, us": cpu_s / posts * 1e6,
        "log posts per match-hour": posts / hours,
        "reports of plugins per match-hour": sum(one.reports for one in parts) / hours,
        "lines per match-hour": sum(one.lines for one in parts) / hours,
        "KB per match-hour": sum(one.size for one in parts) / hours / 1000,
        "MB written per match-hour": used.written_mb / hours,
        "MB of memory, before the first match": subject.idle_mb,
        "MB of memory, all matches live": subject.live_mb,
        "KB of memory per live match": (subject.live_mb - subject.idle_mb) / servers * 1000,
        "get server, median ms": percentile(subject.answers_ms, 0.5),
        "get server, 99 % within ms": percentile(subject.answers_ms, 0.99),
        **{f"event of a stream after its {name}, ms": ms for name, ms in shares(subject.events).items()},
        **{f"callback after the {name} of Game Over, ms": ms for name, ms in shares(subject.callbacks).items()},
        "service, % of a core": cpu_s / used.at_s * 100,
        "  could run but had no core, %": used.waited_s / used.at_s * 100,
    }


def measure_and_print(given: argparse.Namespace, compared: Sequence[tuple[str, Checkout, bool]], servers: int) -> None:
    """Measure services with a number of servers, and print the figures."""
    machine = Machine()
    with bench_folder() as folder:
        subjects = uvloop.run(measure(folder, compared, servers=servers, seconds=given.seconds, way=given.way))
    print(
        f"\nreal cadence: {servers} servers at speed 1 for {given.seconds:g} s, database: {given.database}, way: {given.way}\n"
        f"{machine.text()}"
    )
    print_figures(subjects, servers)


def counts(text: str) -> list[int]:
    return [int(one) for one in text.split(",")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    add_argument(parser)
    parser.add_argument("--servers", type=counts, default=SERVERS, help="one or more numbers, such as 100,300")
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--database", choices=("sqlite", "postgres", "both"), default="sqlite")
    parser.add_argument("--way", type=Way, choices=Way, default=Way.DIRECT, help="how posts reach the service")
    given = parser.parse_args()
    require_two_cores("benchmark at real cadence", "the farm needs its own core")
    databases = ("sqlite", "postgres") if given.database == "both" else (given.database,)
    compared = [
        (f"{one.label}-{database}" if given.database == "both" else one.label, one, database == "postgres")
        for one in checkouts(given.against)
        for database in databases
    ]
    for servers in given.servers:
        measure_and_print(given, compared, servers)


if __name__ == "__main__":
    main()
