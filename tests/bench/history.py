"""Measure reads of the history with a thousand to a million maps, on both databases. Part of `make bench`.

A measurement is a whole use case (such as `History.maps`) in this process: total, page and views through the service's
own adapters, without HTTP. Each stage (a number of maps) has its own database. Stages and cases run in turns, so that
noise affects all of them. `--maps 1000,100000` is a quick run, `--only sqlite` skips PostgreSQL.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter

import uvloop

if __name__ == "__main__":
    # Run as a script: make `tests` importable from the checkout.
    sys.path[0] = str(Path(__file__).resolve().parents[2])

from matchpod.storage.migrate import migrate
from tests.bench.checkouts import Machine, bench_folder
from tests.bench.history_cases import Case, cases
from tests.bench.history_databases import Home, PostgresHome, SqliteHome, running_postgres
from tests.bench.history_rows import MAPS_PER_GROUP, ORGANIZATIONS, fill_statements
from tests.vaults import VAULT

STAGES = "1000,100000,1000000"
MIN_MAPS = 1_000
"""Minimum size of a stage: with fewer maps, page 50 would not be full."""
ROUNDS = 200
WARM_UP_ROUNDS = 12
"""Rounds that are not measured, while PostgreSQL chooses its plans and caches are filled."""

TARGET_RATIO = 2.0
TARGET_MS = 5.0
SQLITE, POSTGRES = "SQLite", "PostgreSQL"

Times = dict[str, list[float]]
"""Milliseconds of every run, by case."""


# --- filling ------------------------------------------------------------------------------------------------------


async def _create(home: Home) -> None:
    db = await home.open()
    try:
        await migrate(db, VAULT.seal)
    finally:
        await db.close()


def fill(home: Home, maps: int) -> None:
    """Create the tables and `maps` maps; a million maps take a minute."""
    uvloop.run(_create(home))
    home.load(fill_statements(maps))


# --- measuring ----------------------------------------------------------------------------------------------------


async def measure(homes: dict[int, Home]) -> dict[int, Times]:
    """Run all cases on all stages repeatedly, in turns."""
    async with contextlib.AsyncExitStack() as stack:
        stage_cases: dict[int, dict[str, Case]] = {}
        for maps, home in homes.items():
            db = await home.open()
            stack.push_async_callback(db.close)
            stage_cases[maps] = await cases(db, maps)
        await _run_cases(stage_cases, WARM_UP_ROUNDS)
        return await _run_cases(stage_cases, ROUNDS)


async def _run_cases(stage_cases: dict[int, dict[str, Case]], rounds: int) -> dict[int, Times]:
    generators = {maps: random.Random(rounds) for maps in stage_cases}
    names = list(next(iter(stage_cases.values())))
    times: dict[int, Times] = {maps: {name: [] for name in names} for maps in stage_cases}
    stages = list(stage_cases)
    for _ in range(rounds):
        # Rotated, because the first stage of each case is slower: caches still hold the data of the previous case.
        stages.append(stages.pop(0))
        for name in names:
            for maps in stages:
                begin = perf_counter()
                await stage_cases[maps][name](generators[maps])
                times[maps][name].append((perf_counter() - begin) * 1000)
    return times


# --- figures ------------------------------------------------------------------------------------------------------


def print_figures(database: str, figures: dict[int, Times]) -> None:
    """Print the results of one database: two columns per stage, and how many times slower the largest is."""
    first, last = min(figures), max(figures)
    heads = "".join(f"{f'{maps:,} maps':>18}" for maps in figures)
    print(
        f"\n{f'{database}, ms: p50 and p95':40}{heads}{'most / least':>15}   target <= {TARGET_RATIO:g}x, < {TARGET_MS:g} ms"
    )
    for name in figures[first]:
        columns = "".join(
            f"{median(times[name]):>10.2f}{quantiles(times[name], n=20)[-1]:>8.2f}" for times in figures.values()
        )
        p50_ms = median(figures[last][name])
        ratio = p50_ms / median(figures[first][name])
        is_reached = ratio <= TARGET_RATIO and p50_ms < TARGET_MS
        print(f"{name:40}{columns}{ratio:>14.2f}x   {'reached' if is_reached else 'missed'}")


def run(database: str, stages: list[int], home_of: Callable[[str], Home]) -> None:
    """Fill one database per stage, measure all of them, and print the results."""
    machine = Machine()
    homes = {maps: home_of(f"history_{maps}") for maps in stages}
    for maps, home in homes.items():
        begin = perf_counter()
        fill(home, maps)
        print(f"{database}, {maps:,} maps: filled in {perf_counter() - begin:.0f} s", file=sys.stderr)
    print_figures(database, uvloop.run(measure(homes)))
    print(machine.text())


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure reads of the history.")
    parser.add_argument(
        "--maps", default=STAGES, help=f"numbers of maps, ascending multiples of {MAPS_PER_GROUP} (default {STAGES})"
    )
    parser.add_argument("--only", choices=(SQLITE.lower(), POSTGRES.lower()), help="measure only this database")
    arguments = parser.parse_args()
    stages = [int(text) for text in arguments.maps.split(",")]
    if stages != sorted(set(stages)) or stages[0] < MIN_MAPS or any(maps % MAPS_PER_GROUP for maps in stages):
        parser.error(f"--maps must be ascending multiples of {MAPS_PER_GROUP}, at least {MIN_MAPS}")
    begin = perf_counter()
    with bench_folder() as folder:
        print(f"\nhistory: {ORGANIZATIONS} organizations, one with half of the maps; {ROUNDS} rounds")
        if arguments.only != POSTGRES.lower():
            run(SQLITE, stages, lambda name: SqliteHome(folder, name))
        if arguments.only != SQLITE.lower():
            with running_postgres(folder) as server:
                run(POSTGRES, stages, lambda name: PostgresHome(server, name))
    print(f"\nhistory benchmark: {perf_counter() - begin:.0f} s")


if __name__ == "__main__":
    main()
