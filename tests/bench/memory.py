"""Measure the memory of a service that has played many matches. Part of `make bench`.

Short matches of ten listed players are played by simulated servers of one process, always as many at once, and the
memory of the service is printed whenever some more of them have ended. At the end it is idle until its next full
garbage collection. What stays is what many ended matches cost.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import uvloop

if __name__ == "__main__":
    # Run as a script: make `tests` importable from the checkout.
    sys.path[0] = str(Path(__file__).resolve().parents[2])

from matchpod.app.garbage import COLLECT_S
from tests.bench.checkouts import Checkout, Machine, add_argument, bench_folder, checkouts
from tests.bench.pinned_process import require_two_cores
from tests.bench.stream_matches import Site, game_settings, with_simulator_cvars

MATCHES = 700
AT_ONCE = 20
STEP = 50
ROUNDS = 4
SPEED = 60.0
POLL_S = 0.5
MATCH_S = 300.0
"""Time for a match to end."""
_ENDED = ("stopped", "failed")


class Memory(NamedTuple):
    """The memory of a process when some matches had ended."""

    ended: int
    resident_mb: float
    anonymous_mb: float
    """What it has allocated itself, without files."""
    after_s: float


async def play(site: Site, *, matches: int) -> list[Memory]:
    """Play matches to their end; return the memory before the first, and whenever some more have ended."""
    began_s = time.monotonic()
    ended = 0

    def read() -> Memory:
        return Memory(ended, site.service.resident_mb(), site.service.anonymous_mb(), time.monotonic() - began_s)

    found = [read()]
    print_memory(found[0])
    numbers = iter(range(matches))

    async def play_some(numbers: Iterator[int]) -> None:
        nonlocal ended
        for number in numbers:
            await _play_one(site, number)
            ended += 1
            if ended % STEP == 0:
                found.append(read())
                print_memory(found[-1])

    async with asyncio.TaskGroup() as group:
        for _ in range(AT_ONCE):
            group.create_task(play_some(numbers))
    return found


async def _play_one(site: Site, number: int) -> None:
    # Numbers of best of three and of deathmatches are left out: they are longer.
    settings = game_settings(number * 10 + 1, ROUNDS)
    created = await site.create_with(with_simulator_cvars(settings, number, quiet_s=0))
    async with asyncio.timeout(MATCH_S):
        while (await site.get(f"/api/v1/servers/{created['serverId']}"))["status"] not in _ENDED:
            await asyncio.sleep(POLL_S)


async def measure(folder: Path, checkout: Checkout, given: argparse.Namespace) -> None:
    """Play matches with the service of a checkout, and print its memory."""
    site = Site(folder, AT_ONCE, speed=SPEED, checkout=checkout)
    try:
        site.begin()
        print(f"{checkout.label:>12}{'ended':>8}{'resident, MB':>16}{'anonymous, MB':>16}{'after, s':>12}")
        first, *_, last = await play(site, matches=given.matches)
        finished = await site.count_maps("finished")
        print(f"{'':12}{finished} maps finished; waiting {COLLECT_S:.0f} s for the garbage collection")
        await asyncio.sleep(COLLECT_S + 10)
        idle = Memory(last.ended, site.service.resident_mb(), site.service.anonymous_mb(), 0)
        print_memory(idle)
        print(f"{'':12}{(idle.anonymous_mb - first.anonymous_mb) / last.ended * 1000:.1f} KB kept per ended match")
    finally:
        site.end()


def print_memory(memory: Memory) -> None:
    print(
        f"{'':12}{memory.ended:>8}{memory.resident_mb:>16.1f}{memory.anonymous_mb:>16.1f}{memory.after_s:>12.0f}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    add_argument(parser)
    parser.add_argument("--matches", type=int, default=MATCHES)
    given = parser.parse_args()
    require_two_cores("benchmark of memory", "the farm needs its own core")
    for checkout in checkouts(given.against):
        machine = Machine()
        print(
            f"\nmemory of ended matches: one service on SQLite, {given.matches} matches of at most {ROUNDS} rounds, "
            f"{AT_ONCE} at once, {SPEED:g} times speed"
        )
        with bench_folder() as folder:
            uvloop.run(measure(folder, checkout, given))
        print(machine.text())


if __name__ == "__main__":
    main()
