"""Measure what the totals of lists would cost if rows were counted: COUNT over an index, for one organization.

ADR 0023 has the figures, and why there are counters instead: `python -m tests.bench.totals --maps 100000,1000000`.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import tempfile
from pathlib import Path
from time import perf_counter
from typing import Final

import uvloop

if __name__ == "__main__":
    # Run as a script: make `tests` importable from the checkout.
    sys.path[0] = str(Path(__file__).resolve().parents[2])

from tests.bench.history import fill
from tests.bench.history_databases import Home, PostgresHome, SqliteHome, running_postgres
from tests.bench.history_rows import BIG, FIRST_MS, MAP_NAMES, SPAN_MS

RUNS: Final = 25
_SINCE_MS: Final = FIRST_MS + SPAN_MS // 4
_TIME: Final = f" AND sort_ms >= {_SINCE_MS}"
_NAME: Final = f" AND map_name = '{MAP_NAMES[0]}'"
_FINISHED: Final = " AND status = 'finished'"
CASES: Final = {
    "all maps": ("maps", ""),
    "of three quarters of the time": ("maps", _TIME),
    "finished": ("maps", _FINISHED),
    "finished, of three quarters of the time": ("maps", _FINISHED + _TIME),
    "of one map in eight": ("maps", _NAME),
    "finished, of one map in eight": ("maps", _NAME + _FINISHED),
    "all series": ("series", ""),
    "finished series": ("series", _FINISHED),
}


async def measure(home: Home) -> dict[str, tuple[int, float]]:
    """Return what each case counts, and the least of its times in ms."""
    db = await home.open()
    found: dict[str, tuple[int, float]] = {}
    try:
        for name, (table, where) in CASES.items():
            times = []
            for _ in range(RUNS):
                begin = perf_counter()
                rows = await db.read(f"SELECT COUNT(*) FROM {table} WHERE org_id = '{BIG}'{where}")
                times.append((perf_counter() - begin) * 1000)
            counted = rows[0][0]
            assert isinstance(counted, int)
            found[name] = (counted, min(times))
    finally:
        await db.close()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--maps", default="100000", help="maps of the organization (default 100000)")
    parser.add_argument("--only", choices=("sqlite", "postgres"), help="measure only this database")
    arguments = parser.parse_args()
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="matchpod-bench-")))
        server = "" if arguments.only == "sqlite" else stack.enter_context(running_postgres(folder))
        for maps in map(int, arguments.maps.split(",")):
            homes: dict[str, Home] = {
                "SQLite": SqliteHome(folder, f"m{maps}"),
                "PostgreSQL": PostgresHome(server, f"m{maps}"),
            }
            for database, home in homes.items():
                if arguments.only in (None, database.lower()[: len("postgres")]):
                    fill(home, 2 * maps)  # one organization has half of them
                    print(f"\n{database}, {maps:,} maps: counted, ms")
                    for name, (counted, least_ms) in uvloop.run(measure(home)).items():
                        print(f"{name:40}{counted:>12,}{least_ms:>10.1f}")


if __name__ == "__main__":
    main()
