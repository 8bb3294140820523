"""Measure what creating a match costs without HTTP and supervisor: CPU time, and how many entries of indexes.

The match is a series of three maps with ten listed players, an external id and an idempotency key; each creation has a
COMMIT of its own. `python -m tests.bench.creation --against FOLDER` compares with another checkout.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import os
import subprocess
import sys
from pathlib import Path
from time import process_time
from typing import Final

import uvloop

if __name__ == "__main__":
    # Run as a script: import `tests` from the checkout that is measured, which is the current folder.
    sys.path[0] = os.getcwd()

from matchpod.ports import Database, Statement
from matchpod.storage.migrate import migrate
from tests.bench.api import MATCH
from tests.bench.checkouts import Machine, add_argument, bench_folder, checkouts
from tests.bench.history_databases import PostgresHome, SqliteHome, running_postgres
from tests.contract.test_audited_acts import PROGRAM, World
from tests.vaults import VAULT

BATCHES: Final = 30
BATCH: Final = 50
WARM: Final = 100
TURNS: Final = 4

BODY: Final = json.dumps({**MATCH, "region": "eu"}).encode()


async def measure(home: SqliteHome | PostgresHome) -> tuple[float, float]:
    """Return the CPU time of a creation in µs, as in the cheapest batch, and its entries in indexes."""
    db = await home.open()
    try:
        await migrate(db, VAULT.seal)
        world = World(db)
        await create(world, 0, WARM)
        before, times = await entries(db), []
        for first in range(WARM, WARM + BATCHES * BATCH, BATCH):
            gc.collect()
            begin = process_time()
            await create(world, first, BATCH)
            times.append(process_time() - begin)
        return min(times) / BATCH * 1e6, (await entries(db) - before) / (BATCHES * BATCH)
    finally:
        await db.close()


async def create(world: World, first: int, count: int) -> None:
    """Create some matches one after the other, with the keys from a number."""
    for number in range(first, first + count):
        world.clock.at_ms += 1_000
        await world.matches.create(PROGRAM, BODY, f"key-{number}")


async def entries(db: Database) -> int:
    """Return the number of entries in all indexes."""
    if db.is_postgres:
        tables = await db.read("SELECT tablename FROM pg_tables WHERE schemaname = current_schema()")
        for (table,) in tables:
            await db.write([Statement(f"VACUUM ANALYZE {table!s}")])
        counted = "SELECT CAST(SUM(GREATEST(reltuples, 0)) AS BIGINT) FROM pg_class WHERE relkind = 'i'"
        ((entries,),) = await db.read(f"{counted} AND relnamespace = current_schema()::regnamespace")
        return int(str(entries))
    indexes = await db.read("SELECT tbl_name, name, sql FROM sqlite_master WHERE type = 'index'")
    total = 0
    for table, name, sql in indexes:
        _, _, where = str(sql or "").partition(" WHERE ")
        rows = await db.read(f"SELECT COUNT(*) FROM {table!s} {f'WHERE {where}' if where else f'/* {name!s} */'}")
        total += int(str(rows[0][0]))
    return total


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    add_argument(parser)
    parser.add_argument("--server", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    with bench_folder() as folder:
        if arguments.server is not None:
            home = PostgresHome(arguments.server, f"b{os.getpid()}") if arguments.server else None
            cpu_us, entries = uvloop.run(measure(home or SqliteHome(folder, "creation")))
            print(json.dumps([cpu_us, entries]))
            return
        with contextlib.ExitStack() as stack:
            compare(arguments.against, stack.enter_context(running_postgres(folder)))


def compare(against: Path | None, server: str) -> None:
    """Measure both checkouts in turns, the second one first in every other turn; print the least of each."""
    measured, machine = checkouts(against), Machine()
    for database, url in (("SQLite", ""), ("PostgreSQL", server)):
        found: dict[str, list[tuple[float, float]]] = {one.label: [] for one in measured}
        for turn in range(TURNS):
            for one in measured[:: 1 if turn % 2 == 0 else -1]:
                command = [one.python, str(Path(__file__).resolve()), "--server", url]
                done = subprocess.run(command, cwd=one.folder, check=True, capture_output=True)
                cpu_us, entries = json.loads(done.stdout)
                found[one.label].append((cpu_us, entries))
        for label, results in found.items():
            times = sorted(round(cpu_us) for cpu_us, _ in results)
            print(f"{database:12}{label:8}{results[0][1]:6.1f} entries, CPU in µs {times}, sum {sum(times)}")
    print(machine.text())


if __name__ == "__main__":
    main()
