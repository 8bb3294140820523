"""Is the history as fast with a million maps as with a thousand? What each read of it costs, on both databases.

`make bench` runs it. A figure is a whole use case (`History.maps` and its like) in this process: total, page and views
through the service's own adapters, without HTTP. Each stage has a database of its own, and stages and cases take turns,
so that noise hits all alike. `--maps 1000,100000` is a quick run, `--only sqlite` leaves out PostgreSQL.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import platform
import random
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter

import uvloop

if __name__ == "__main__":
    # Run as a file, Python looks for imports beside it; `tests` is found from the checkout.
    sys.path[0] = str(Path(__file__).resolve().parents[2])

from matchpod.storage.migrate import migrate
from tests.bench.history_cases import Case, cases
from tests.bench.history_databases import Home, PostgresHome, SqliteHome, running_postgres
from tests.bench.history_rows import MAPS_OF_GROUP, ORGANIZATIONS, filling

STAGES = "1000,100000,1000000"
FEWEST = 1_000
"""Fewer do not fill the fiftieth page."""
ROUNDS = 200
WARM_UP_ROUNDS = 12
"""Not counted: PostgreSQL settles on its plans after a few, and everybody fills caches."""

AIM_RATIO = 2.0
AIM_MS = 5.0
SQLITE, POSTGRES = "SQLite", "PostgreSQL"

Times = dict[str, list[float]]
"""Milliseconds of every run, by case."""


# --- filling ------------------------------------------------------------------------------------------------------


async def _create(home: Home) -> None:
    db = await home.open()
    try:
        await migrate(db)
    finally:
        await db.close()


def fill(home: Home, maps: int) -> None:
    """Make the tables and so many maps, and tell how it goes: a million take a minute."""
    begin = perf_counter()
    uvloop.run(_create(home))
    home.load(_told(filling(maps)))
    _tell(f", {perf_counter() - begin:.0f} s\n")


def _told(statements: Iterator[tuple[str, str]]) -> Iterator[str]:
    told = ""
    for what, statement in statements:
        if what != told:
            _tell(f" {what}")
            told = what
        yield statement
    _tell(" upkeep")


def _tell(text: str) -> None:
    print(text, end="", file=sys.stderr, flush=True)


# --- measuring ----------------------------------------------------------------------------------------------------


async def measure(homes: dict[int, Home]) -> dict[int, Times]:
    """Ask everything of every stage again and again, in turns."""
    async with contextlib.AsyncExitStack() as stack:
        asked: dict[int, dict[str, Case]] = {}
        for maps, home in homes.items():
            db = await home.open()
            stack.push_async_callback(db.close)
            asked[maps] = await cases(db, maps)
        await _ask(asked, WARM_UP_ROUNDS)
        return await _ask(asked, ROUNDS)


async def _ask(asked: dict[int, dict[str, Case]], rounds: int) -> dict[int, Times]:
    chances = {maps: random.Random(rounds) for maps in asked}
    names = list(next(iter(asked.values())))
    times: dict[int, Times] = {maps: {name: [] for name in names} for maps in asked}
    stages = list(asked)
    for _ in range(rounds):
        stages.append(stages.pop(0))  # whoever comes first pays for what another case left in the caches
        for name in names:
            for maps in stages:
                begin = perf_counter()
                await asked[maps][name](chances[maps])
                times[maps][name].append((perf_counter() - begin) * 1000)
    return times


# --- figures ------------------------------------------------------------------------------------------------------


def print_figures(database: str, figures: dict[int, Times]) -> None:
    """The table of one database: two columns a stage, and the largest beside the smallest."""
    first, last = min(figures), max(figures)
    heads = "".join(f"{f'{maps:,} maps':>18}" for maps in figures)
    print(f"\n{f'{database}, ms: p50 and p95':40}{heads}{'most / least':>15}   aim <= {AIM_RATIO:g}x, < {AIM_MS:g} ms")
    for name in figures[first]:
        columns = "".join(f"{_p50(times[name]):>10.2f}{_p95(times[name]):>8.2f}" for times in figures.values())
        reached_ms = _p50(figures[last][name])
        ratio = reached_ms / _p50(figures[first][name])
        is_kept = ratio <= AIM_RATIO and reached_ms < AIM_MS
        print(f"{name:40}{columns}{ratio:>14.2f}x   {'kept' if is_kept else 'missed'}")


def _p50(times: list[float]) -> float:
    return statistics.median(times)


def _p95(times: list[float]) -> float:
    return statistics.quantiles(times, n=20)[-1]


def run(database: str, stages: list[int], home_of: Callable[[str], Home]) -> None:
    """Fill a database a stage, measure all, and print."""
    homes = {maps: home_of(f"history_{maps}") for maps in stages}
    for maps, home in homes.items():
        _tell(f"{database}, {maps:,} maps:")
        fill(home, maps)
    _tell(f"{database}: measuring\n")
    print_figures(database, uvloop.run(measure(homes)))
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores, of which this is about 1")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="What reading the history costs.")
    parser.add_argument("--maps", default=STAGES, help=f"how many, ascending multiples of {MAPS_OF_GROUP}: {STAGES}")
    parser.add_argument("--only", choices=(SQLITE.lower(), POSTGRES.lower()), help="one of the databases")
    given = parser.parse_args()
    stages = [int(text) for text in given.maps.split(",")]
    if stages != sorted(set(stages)) or stages[0] < FEWEST or any(maps % MAPS_OF_GROUP for maps in stages):
        parser.error(f"--maps must be ascending multiples of {MAPS_OF_GROUP} from {FEWEST} on")
    begin = perf_counter()
    with tempfile.TemporaryDirectory(prefix="matchpod-bench-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        head = (
            f"{ORGANIZATIONS} organizations, one with half of it; {ROUNDS} rounds; Python {platform.python_version()}"
        )
        print(f"\nhistory: {head}")
        if given.only != POSTGRES.lower():
            run(SQLITE, stages, lambda name: SqliteHome(folder, name))
        if given.only != SQLITE.lower():
            with running_postgres(folder) as server:
                run(POSTGRES, stages, lambda name: PostgresHome(server, name))
    print(f"\nthe history took {perf_counter() - begin:.0f} s")


if __name__ == "__main__":
    main()
