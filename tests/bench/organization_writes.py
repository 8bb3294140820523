"""Measure what the events of an organization's stream cost the transactions that append them."""

from __future__ import annotations

import random
import statistics
from pathlib import Path
from time import perf_counter

import uvloop

from matchpod.core.model import GameSettings, MatchType
from matchpod.core.server_status import ServerPhase, ServerStatus
from matchpod.ports import Database, Statement
from matchpod.service.history.rows import initial_history
from matchpod.service.streams import organization_event_lines as events
from matchpod.storage import history, map_events, raw_log, servers, snapshots
from matchpod.storage import organization_events as stored_events
from matchpod.storage.migrate import migrate
from matchpod.storage.servers import ServerRow
from tests.bench.history_databases import PostgresHome, SqliteHome, running_postgres
from tests.vaults import VAULT

POSTS, POSTS_PER_BATCH = 20, 4
"""Log posts of a round, and how many are folded before new items are stored: fewer writes than in a real round."""
POST = bytes(1_500)
ITEMS = [b'{"type":"kill","seq":1,"timestamp":"2026-01-19T19:01:19.437Z"}'] * 4
SNAPSHOT_BYTES = 20_000
SEED = 20


class Writes:
    """The transactions of matches, with or without the event that they append."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._settings = GameSettings(match_type=MatchType.COMPETITIVE, maps=("de_nuke",))
        self._count = 0
        self._played = self._row()

    async def begin(self) -> None:
        """Create the match whose rounds are stored."""
        await migrate(self._db, VAULT.seal)
        await self.create(has_event=True)

    async def create(self, *, has_event: bool) -> None:
        """Create a match as the service does."""
        row = self._played = self._row()
        statements = history.insert(initial_history(row, self._settings, "bench"))
        event = events.match_created(row) if has_event else None
        await servers.create(self._db, row, idempotency=None, event=event, also=statements, max_live=1_000_000)

    async def store_round(self, *, has_event: bool) -> None:
        """Store a round as the service does: posts, items in several batches, then the score, a snapshot and the event."""
        row, initial = self._played, initial_history(self._played, self._settings, "bench")
        for number in range(POSTS):
            await self._db.write(raw_log.append(row.id, "log", received_ms=1, headers=b"{}", body=POST))
            if number % POSTS_PER_BATCH == 0:
                await self._db.write([servers.check_fence(row.id, row.fence), self._items(initial.maps[0].id)])
        statements = [
            servers.check_fence(row.id, row.fence),
            *snapshots.save(row.id, row.fence, snapshots.Snapshot(self._count, bytes(SNAPSHOT_BYTES))),
            *history.refresh(initial),
            self._items(initial.maps[0].id),
        ]
        if has_event:
            statements += stored_events.append(row.org_id, [events.match_created(row)], at_ms=1)
        await self._db.write(statements)

    def _items(self, map_id: str) -> Statement:
        self._count += 1
        return map_events.append(map_id, self._count * len(ITEMS), ITEMS, at_ms=1)

    def _row(self) -> ServerRow:
        self._count += 1
        name = f"{self._count:012d}"
        return ServerRow(
            id=f"srv_{name}", game_id=f"00000000-0000-4000-8000-{name}", org_id="org_1", region="eu",
            phase=ServerPhase.ALLOCATING, status=ServerStatus.ALLOCATING, settings=b"{}", log_token_hash=f"l {name}",
            report_token_hash=f"r {name}", plugin_match_id=1, created_at_ms=1, next_at_ms=1,
        )  # fmt: skip


async def measure_writes(db: Database, count: int) -> list[tuple[str, float, float]]:
    """Return the seconds of each kind of work without and with its event; both alternate in random order."""
    writes, rng = Writes(db), random.Random(SEED)
    await writes.begin()
    measured = []
    for name, write in (("create a match", writes.create), ("store a round", writes.store_round)):
        times: dict[bool, list[float]] = {False: [], True: []}
        for _ in range(count):
            for has_event in rng.sample((False, True), 2):
                begin_s = perf_counter()
                await write(has_event=has_event)
                times[has_event].append(perf_counter() - begin_s)
        measured.append((name, _quick(times[False]), _quick(times[True])))
    return measured


def _quick(times: list[float]) -> float:
    """The time that one in ten is faster than: other load on the machine only adds to it."""
    return statistics.quantiles(times, n=10)[0]


def print_writes(folder: Path, count: int) -> None:
    """Measure and print the cost of events for writers, on both databases."""
    with running_postgres(folder) as server:
        uvloop.run(_print_writes(folder, server, count))


async def _print_writes(folder: Path, server: str, count: int) -> None:
    print(f"{'transaction':32}{'without, ms':>14}{'with event, ms':>16}{'':>10}")
    for name, home in (("SQLite", SqliteHome(folder, "writes")), ("PostgreSQL", PostgresHome(server, "writes"))):
        db = await home.open()
        try:
            for work, without_s, with_s in await measure_writes(db, count):
                label = f"{work}, {name}"
                print(f"{label:32}{without_s * 1e3:>14.3f}{with_s * 1e3:>16.3f}{with_s / without_s - 1:>+10.1%}")
        finally:
            await db.close()
