"""Measure the console: the wall with 500 matches, and what open pages cost a service with live matches.

The wall is measured in this process (see `console_wall`). For open pages, a service on one core drives matches of a farm
of simulated servers on another; its CPU time is measured in turns without and with viewers of the same matches. Half of
the viewers look at the wall, half at a match each. `--only wall` or `--only viewers` runs one part; `--speed 5` plays the
matches faster than real ones.
"""

from __future__ import annotations

import argparse
import asyncio
import platform
import statistics
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import cast

import httpx
import uvloop

if __name__ == "__main__":
    # Run as a script: make `tests` importable from the checkout.
    sys.path[0] = str(Path(__file__).resolve().parents[2])

from tests.bench import console_wall
from tests.bench.stream_matches import Match, Site

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


@dataclass
class Totals:
    """What all viewers received so far."""

    size: int = 0
    updates: int = 0
    opened: int = 0
    failures: list[str] = field(default_factory=list)


class Viewer(asyncio.Protocol):
    """An open page: reads its stream and counts."""

    def __init__(self, totals: Totals, path: str, cookie: str) -> None:
        self._totals = totals
        self._request = (
            f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\nCookie: {cookie}\r\n\r\n"
        )
        self._is_open = False
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.write(self._request.encode())

    def data_received(self, data: bytes) -> None:
        if not self._is_open:
            self._is_open = True
            self._totals.opened += 1
            if not data.startswith(b"HTTP/1.1 200"):
                self._totals.failures.append(data[:200].decode("latin-1"))
        self._totals.size += len(data)
        self._totals.updates += data.count(b"\nid: ")

    def close(self) -> None:
        """Leave the page."""
        if self._transport is not None:
            self._transport.abort()


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
            totals = Totals()
            viewers = await open_viewers(site, totals, paths(matches) if has_viewers else [], cookie)
            turns[has_viewers].append(await measure_turn(site, totals))
            for viewer in viewers:
                viewer.close()
            if totals.failures:
                raise RuntimeError(totals.failures[0])
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


async def open_viewers(site: Site, totals: Totals, streams: Sequence[str], cookie: str) -> list[Viewer]:
    """Open all streams; return when they are open and have received all that is there already."""
    loop = asyncio.get_running_loop()
    viewers = [Viewer(totals, path, cookie) for path in streams]
    for viewer in viewers:
        await loop.create_connection(lambda viewer=viewer: viewer, "127.0.0.1", site.port)  # type: ignore[misc]
    deadline = monotonic() + OPEN_S
    while totals.opened < len(viewers):
        if monotonic() > deadline:
            raise RuntimeError(f"only {totals.opened} of {len(viewers)} streams opened")
        await asyncio.sleep(0.05)
    return viewers


async def measure_turn(site: Site, totals: Totals) -> Turn:
    """Measure the service for a while."""
    await asyncio.sleep(SETTLE_S)
    begin, size, updates = monotonic(), totals.size, totals.updates
    cpu_s, waited_s = site.service.cpu_s(), site.service.waited_s()
    await asyncio.sleep(TURN_S)
    seconds = monotonic() - begin
    return Turn(
        cores=(site.service.cpu_s() - cpu_s) / seconds,
        waited=(site.service.waited_s() - waited_s) / seconds,
        bytes_per_s=(totals.size - size) / seconds,
        updates_per_s=(totals.updates - updates) / seconds,
    )


# --- output ---------------------------------------------------------------------------------------------------------


def print_wall(figures: Sequence[console_wall.Figure]) -> None:
    print(f"\nconsole: the wall with {WALL_MATCHES} open matches; Python {platform.python_version()}")
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
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if given.only != "viewers":
            print_wall(uvloop.run(console_wall.measure(folder / "wall", WALL_MATCHES)))
        if given.only != "wall":
            (folder / "viewers").mkdir()
            turns = uvloop.run(measure_viewers(folder / "viewers", given.speed))
            print_viewers(*turns, given.speed)


if __name__ == "__main__":
    main()
