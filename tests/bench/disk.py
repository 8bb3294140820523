"""Measure what the database keeps of a match, by table. Part of `make bench`.

Matches of two listed teams, one map each, are played to their end by simulated servers in this process, as fast as it
can, but with about as many posts as at real speed. The service stores, ends, compresses and releases them as usual;
every callback has one attempt. What counts is how much larger the tables are after a few days, before anything is
deleted. `--matches 4` is a quick run, `--only sqlite` skips PostgreSQL.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
import uvloop

if __name__ == "__main__":
    # Run as a script: make `tests` importable from the checkout.
    sys.path[0] = str(Path(__file__).resolve().parents[2])

from cs2_protocol.log_clock import parse_stamp
from matchpod.adapters.clock import SystemClock
from matchpod.core.model import MatchType
from matchpod.core.server_status import ServerPhase
from matchpod.ports import Database, Delivery
from matchpod.service.match_log.entries import EntryKind
from matchpod.storage import compaction, outbox, raw_log
from matchpod.storage.migrate import migrate
from tests.bench.checkouts import bench_folder
from tests.bench.history_databases import Home, PostgresHome, SqliteHome, running_postgres
from tests.contract import simulated_region
from tests.contract.world import open_world
from tests.unit.simulator.played_match import rostered
from tests.vaults import VAULT

MATCHES: Final = 32
FIRST_MATCHES: Final = 8
"""Matches that are played before, because the first ones of a table take whole pages."""
AT_ONCE: Final = 8
TURN_MS: Final = 250
"""Game time after which a server posts its new lines: so it sends about as many posts as a real one."""
TURN_S: Final = 0.001
WITHIN_S: Final = 1_200.0
HEADERS: Final = {
    "content-type": "application/json", "user-agent": "Matchpod", "webhook-id": "msg_01m7fjsjsj206y2p9hx4eze3bs",
    "webhook-timestamp": "1790000000", "webhook-signature": "v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=",
}  # fmt: skip

SCHEMA: Final = "disk"
_SQLITE_SIZES: Final = (
    "SELECT tbl_name, SUM(pgsize - unused) FROM dbstat JOIN sqlite_master ON dbstat.name = sqlite_master.name"
    " GROUP BY tbl_name"
)
_POSTGRES_SIZES: Final = (
    "SELECT CAST(relname AS TEXT), pg_total_relation_size(oid) FROM pg_class"
    f" WHERE relkind = 'r' AND relnamespace = CAST('{SCHEMA}' AS REGNAMESPACE)"
)

Sizes = dict[str, int]
"""Bytes by table, with its indexes. In SQLite free space within pages is not counted."""


class Played(NamedTuple):
    """What was played: hours of the games, log posts, and bytes of these."""

    hours: float
    posts: int
    post_bytes: int


async def play(db: Database, numbers: range) -> Played:
    """Play matches to their end, several at once, and record an attempt for every callback."""
    simulated_region.TURN_MS, simulated_region.TURN_S = TURN_MS, TURN_S
    names = [f"srv_{number:026}" for number in numbers]
    async with open_world(db, [f"slot {number}" for number in range(AT_ONCE)], speed=1.0) as world:
        world.start()
        for number, name in zip(numbers, names, strict=True):
            await world.create(name, seed=number, game=rostered(MatchType.COMPETITIVE, 5))
        for name in names:
            await world.until_row(
                lambda row: row.phase is ServerPhase.RELEASED, f"{name} is released", name, within_s=WITHIN_S
            )
            await _deliver(db, name)
    logs = [await _log_of(db, name) for name in names]
    return Played(*(sum(column) for column in zip(*logs, strict=True)))


async def _deliver(db: Database, server_id: str) -> None:
    callback = await outbox.callback_of(db, server_id)
    assert callback is not None
    delivery = Delivery(status=200, duration_ms=12)
    at_ms = callback.created_at_ms
    await db.write(
        outbox.record_attempt(callback.id, delivery, number=1, at_ms=at_ms, next_at_ms=None, headers=HEADERS)
    )


async def _log_of(db: Database, server_id: str) -> tuple[float, int, int]:
    """Return the hours of game time that the log of a match covers, its posts, and the bytes of these."""
    posts: list[raw_log.RawEntry] = []
    seq = 0
    while entries := await raw_log.read_after(db, server_id, seq, limit=100):
        posts += [entry for entry in entries if entry.kind == EntryKind.LOG]
        seq = entries[-1].seq
    first, last = (parse_stamp(msgspec.json.decode(posts[index].headers)["x-timestamp"]) for index in (0, -1))
    assert first is not None
    assert last is not None
    return (last - first) / 3_600_000, len(posts), sum(len(post.body) for post in posts)


async def measure(home: Home, matches: int) -> tuple[Played, Sizes]:
    """Play matches; return what was played and how many bytes were added by table."""
    db = await home.open()
    try:
        await migrate(db, VAULT.seal)
        await play(db, range(FIRST_MATCHES))
        before = await _sizes(db, home)
        played = await play(db, range(FIRST_MATCHES, FIRST_MATCHES + matches))
        after = await _sizes(db, home)
    finally:
        await db.close()
    return played, {table: after[table] - size for table, size in before.items() if after[table] > size}


async def _sizes(db: Database, home: Home) -> Sizes:
    """Return the sizes of the tables a few days later."""
    for days in (2, 4):  # on PostgreSQL nothing is compressed on the first day
        await compaction.compact(db, SystemClock().now_ms() + days * compaction.DAY_MS)
    if isinstance(home, PostgresHome):
        # What was deleted and replaced so far is reused by later matches.
        await asyncio.to_thread(home.load, iter(["VACUUM FULL"]))
    sql = _SQLITE_SIZES if isinstance(home, SqliteHome) else _POSTGRES_SIZES
    return dict(msgspec.convert(await db.read(sql), list[tuple[str, int]]))


def print_figures(database: str, matches: int, played: Played, sizes: Sizes) -> None:
    """Print what a match and an hour of it cost, by table, the largest first."""
    print(f"\n{database}: {matches} matches of {played.hours / matches * 60:.0f} minutes,", end=" ")
    print(f"{played.posts / played.hours:,.0f} posts of {played.post_bytes / played.posts:,.0f} bytes per hour", end="")
    print(f" ({played.post_bytes / played.hours / 1e6:.2f} MB)")
    print(f"{'KB kept':40}{'per match':>12}{'per hour':>12}")
    total = sum(sizes.values())
    for table, size in [*sorted(sizes.items(), key=lambda item: -item[1]), ("all", total)]:
        print(f"{table:40}{size / matches / 1000:>12,.1f}{size / played.hours / 1000:>12,.1f}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure what the database keeps of a match.")
    parser.add_argument("--matches", type=int, default=MATCHES)
    parser.add_argument("--only", choices=("sqlite", "postgresql"), help="measure only this database")
    given = parser.parse_args()
    logging.disable(logging.ERROR)  # a server that is released may have a post in flight
    with bench_folder() as folder:
        if given.only != "postgresql":
            print_figures("SQLite", given.matches, *uvloop.run(measure(SqliteHome(folder, SCHEMA), given.matches)))
        if given.only != "sqlite":
            with running_postgres(folder) as server:
                home = PostgresHome(server, SCHEMA)
                print_figures("PostgreSQL", given.matches, *uvloop.run(measure(home, given.matches)))


if __name__ == "__main__":
    main()
