"""Measure the console: the wall with 500 matches, and what open pages cost a service with live matches.

The wall is measured in this process (see `console_wall`). For open pages, a service on one core drives matches of a farm
of simulated servers on another; its CPU time is measured in turns without and with viewers of the same matches. Half of
the viewers look at the wall, half at a match each. `--only wall` or `--only viewers` runs one part; `--speed 5` plays the
matches faster than real ones.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

import httpx
import uvloop

if __name__ == "__main__":
    # Run as a script: make `tests` importable from the checkout.
    sys.path[0] = str(Path(__file__).resolve().parents[2])

from tests.bench import console_wall
from tests.bench.checkouts import Machine, bench_folder
from tests.bench.stream_matches import Match, Site
from tests.bench.stream_readers import ReaderGroup, StreamReader

WALL_MATCHES = 500
MATCHES = 100
VIEWERS = 200
ROUNDS = 30
QUIET_S = 30
"""Seconds in which all matches are set up."""
TURNS = (False, True, True, False)
"""With viewers or without: in this order, a load that grows or falls steadily disturbs neither side."""
TURN_S = 25.0
WARM_UP_S = 30.0
"""Until the first round of all matches is being played."""
SETTLE_S = 3.0
START_S = 180.0
OPEN_S = 120.0
TARGET_CORES = 0.25

WALL_STREAM = "/console/stream?pages=table:"
MATCH_STREAM = "/console/stream?pages=match/{serverId}:"


@dataclass
class Turn:
    """The CPU time of the service in one turn, in cores, and what viewers received."""

    cores: float = 0.0
    waited: float = 0.0
    """Share of the time in which the service could run but had no core: the machine was too busy to measure."""
    bytes_per_s: float = 0.0
    updates_per_s: float = 0.0


class Viewer(StreamReader):
    """An open page: reads its stream and counts updates."""

    def read_chunk(self, chunk: bytes) -> None:
        self._group.events += chunk.count(b"\nid: ")


async def measure_viewers(folder: Path, speed: float) -> tuple[list[Turn], list[Turn]]:
    """Return the turns without and with viewers."""
    site = Site(folder, MATCHES, speed=speed)
    try:
        site.begin()
        matches = [
            await site.create(number, rounds=ROUNDS, quiet_s=round(QUIET_S * speed)) for number in range(MATCHES)
        ]
        await site.wait_until_running(matches)
        async with asyncio.timeout(START_S):
            await site.wait_until_live(0.95 * MATCHES)
        cookie = await log_in(site)
        await asyncio.sleep(WARM_UP_S / speed)
        turns: dict[bool, list[Turn]] = {False: [], True: []}
        for has_viewers in TURNS:
            group = ReaderGroup(site.port, {"Cookie": cookie, "Accept": "text/event-stream"})
            viewers = await open_viewers(group, paths(matches) if has_viewers else [])
            turns[has_viewers].append(await measure_turn(site, group))
            for viewer in viewers:
                viewer.stop()
            if group.failures:
                raise RuntimeError(group.failures[0])
    finally:
        site.end()
    return turns[False], turns[True]


async def log_in(site: Site) -> str:
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{site.port}") as client:
        headers = {"Sec-Fetch-Site": "same-origin"}
        response = await client.post("/console/login", data={"key": site.key}, headers=headers)
    return f"matchpod={response.cookies['matchpod']}"


def paths(matches: Sequence[Match]) -> list[str]:
    """Return the streams that viewers read: half of them the wall, half a match each."""
    pages = [MATCH_STREAM.format(serverId=match.server_id) for match in matches]
    return [WALL_STREAM if number % 2 else pages[number // 2 % len(pages)] for number in range(VIEWERS)]


async def open_viewers(group: ReaderGroup, streams: Sequence[str]) -> list[Viewer]:
    """Open all streams; return when they are open and have received all that is there already."""
    viewers = [Viewer(group, path) for path in streams]
    async with asyncio.timeout(OPEN_S):
        for viewer in viewers:
            await viewer.connect()
        while group.opened < len(viewers):
            await asyncio.sleep(0.05)
    return viewers


async def measure_turn(site: Site, group: ReaderGroup) -> Turn:
    """Measure the service for a while."""
    await asyncio.sleep(SETTLE_S)
    begin, size, updates = monotonic(), group.size, group.events
    cpu_s, waited_s = site.service.cpu_s(), site.service.waited_s()
    await asyncio.sleep(TURN_S)
    seconds = monotonic() - begin
    return Turn(
        cores=(site.service.cpu_s() - cpu_s) / seconds,
        waited=(site.service.waited_s() - waited_s) / seconds,
        bytes_per_s=(group.size - size) / seconds,
        updates_per_s=(group.events - updates) / seconds,
    )


# --- output ---------------------------------------------------------------------------------------------------------


def print_wall(figures: Sequence[console_wall.Figure]) -> None:
    print(f"\nconsole: the wall with {WALL_MATCHES} open matches")
    print(f"{'':56}{'median':>10}{'slowest':>10}{'size':>10}")
    for one in figures:
        print(f"{one.what:56}{one.median_ms:>7.1f} ms{max(one.times_ms):>7.0f} ms{one.size / 1000:>7,.0f} KB")
    _print_target("page for the first viewer", figures[0].median_ms, console_wall.TARGET_MS, "ms")


def print_viewers(without: Sequence[Turn], with_viewers: Sequence[Turn], speed: float) -> None:
    """Print the CPU time of the service without and with viewers."""
    print(f"\nconsole: {VIEWERS} viewers, half at the wall, half at a match each; {MATCHES} live matches at {speed:g}x")
    print(f"{'turns of 25 s: first and last without':40}{'without':>12}{'with viewers':>14}")
    for number, (first, second) in enumerate(zip(without, with_viewers, strict=True), 1):
        print(f"{f'CPU of the service, cores, turn {number}':40}{first.cores:>12.2f}{second.cores:>14.2f}")
        print(f"{'  waiting for a core':40}{first.waited:>12.0%}{second.waited:>14.0%}")
    updates, size = (
        statistics.mean(getattr(one, name) for one in with_viewers) for name in ("updates_per_s", "bytes_per_s")
    )
    print(f"{'updates sent per second':40}{'':>12}{updates:>14,.0f}")
    print(f"{'KB sent per second and viewer':40}{'':>12}{size / 1000 / VIEWERS:>14,.1f}")
    more = statistics.mean(one.cores for one in with_viewers) - statistics.mean(one.cores for one in without)
    _print_target("CPU for all viewers, cores", more, TARGET_CORES, "")


def _print_target(what: str, reached: float, target: float, unit: str) -> None:
    verdict = "reached" if reached < target else "missed"
    print(f"{what:40}{reached:>12.2f} {unit}   target below {target:g} {unit}: {verdict}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", choices=("wall", "viewers"))
    parser.add_argument("--speed", type=float, default=1.0, help="of the matches that viewers look at")
    given = parser.parse_args()
    machine = Machine()
    with bench_folder() as folder:
        if given.only != "viewers":
            print_wall(uvloop.run(console_wall.measure(folder / "wall", WALL_MATCHES)))
        if given.only != "wall":
            (folder / "viewers").mkdir()
            turns = uvloop.run(measure_viewers(folder / "viewers", given.speed))
            print_viewers(*turns, given.speed)
    print(machine.text())


if __name__ == "__main__":
    main()
