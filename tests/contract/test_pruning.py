"""What is past its time is counted and deleted, and nothing else."""

from __future__ import annotations

import asyncio

from matchpod.core.server_status import ServerPhase
from matchpod.ports import Database, Statement
from matchpod.service.pruning import DAY_MS, Pruned, Retention, count_prunable, prune
from matchpod.storage import history, history_counts, map_events, raw_log, servers, stored_matches
from matchpod.storage.servers import Idempotency
from tests.contract import databases
from tests.contract.ended_matches import ENDED_MS, play
from tests.unit.service.test_folding import recorded, row_of

home = databases.home

KEEP = Retention(raw_log_days=30, event_days=365)
COUNTS = "SELECT org_id, kind, status, map_name, day, count FROM history_counts WHERE count <> 0 ORDER BY 1, 2, 3, 4, 5"


async def events_of(db: Database, server_id: str) -> int:
    return sum((await map_events.last_seqs(db, server_id)).values())


async def entries_of(db: Database, server_id: str) -> int:
    return len(await raw_log.read_after(db, server_id, 0, limit=10_000))


async def both(db: Database, now_ms: int) -> Pruned:
    """What is deleted; what was counted beforehand is the same, and nothing is left to be deleted."""
    counted = await count_prunable(db, KEEP, now_ms)
    deleted = await prune(db, KEEP, now_ms)
    assert counted == deleted
    assert (await count_prunable(db, KEEP, now_ms)).is_nothing
    assert (await prune(db, KEEP, now_ms)).is_nothing
    return deleted


def test_logs_go_first_and_events_later(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        await play(db, entries=100)
        await history_counts.forget_empty(db)
        events, entries = await events_of(db, "srv_1"), await entries_of(db, "srv_1")
        assert events
        assert entries == 100 + 1, "its end is an entry, too"
        assert (await both(db, ENDED_MS + 29 * DAY_MS)).is_nothing
        assert await both(db, ENDED_MS + 31 * DAY_MS) == Pruned(log_entries=entries)
        assert await events_of(db, "srv_1") == events
        row = await servers.get(db, "srv_1")
        assert row is not None
        assert not await stored_matches.is_log_whole(db, row)
        assert await both(db, ENDED_MS + 366 * DAY_MS) == Pruned(events=events)
        (first, *_) = await history.maps_of(db, "srv_1")
        assert await history.stats_of(db, first.id) is not None, "statistics are kept forever"

    home.run(scenario)


def test_nothing_of_a_match_that_goes_on_is_deleted(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        await play(db, entries=100, phase=ServerPhase.ENDING)
        await db.write([Statement("UPDATE servers SET phase = 'running'")])
        await history_counts.forget_empty(db)
        assert (await both(db, ENDED_MS + 5_000 * DAY_MS)).is_nothing

    home.run(scenario)


def test_used_keys_are_deleted_after_a_day(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        for hours, name in ((25, "srv_old"), (23, "srv_new")):
            used = Idempotency(org_id="org_1", key=name, body_hash="x", created_at_ms=ENDED_MS - hours * 3_600_000)
            row = row_of(recorded().settings, id=name, log_token=name, report_token=name)
            await servers.create(db, row, idempotency=used)
        assert await both(db, ENDED_MS) == Pruned(idempotency_keys=1)

    home.run(scenario)


def test_counts_that_became_0_are_deleted_and_the_others_stay_right(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        for number in range(3):
            await play(db, f"srv_{number}", entries=100, org_id=f"org_{number % 2}")
        before = await db.read(COUNTS)
        pruned = await both(db, ENDED_MS)
        assert pruned.empty_counts > 0
        assert await db.read(COUNTS) == before
        # Maps that come back to a day or status that was forgotten are counted from there.
        await play(db, "srv_3", entries=100, org_id="org_0")
        await db.write([Statement("DELETE FROM history_counts WHERE count = 0")])
        (counted,) = await db.read("SELECT count FROM history_counts WHERE org_id = 'org_0' AND kind = 'map'"
                                   " AND status = '' AND map_name = '' AND day = -1")  # fmt: skip
        assert counted == (9,)

    home.run(scenario)


def test_matches_are_counted_while_others_are_forgotten(home: databases.Home) -> None:
    async def scenario(one: Database, other: Database) -> None:
        async def play_some(db: Database, name: str) -> None:
            for number in range(4):
                await play(db, f"srv_{name}{number}", entries=20)

        async def forget(db: Database) -> None:
            for _ in range(10):
                await history_counts.forget_empty(db)

        await asyncio.gather(play_some(one, "a"), play_some(other, "b"), forget(one), forget(other))
        (counted,) = await one.read(
            "SELECT count FROM history_counts WHERE kind = 'map' AND status = '' AND map_name = '' AND day = -1"
        )
        assert counted == (24,)
        rows = await one.read("SELECT COUNT(*) FROM history_counts WHERE count < 0")
        assert rows == [(0,)]

    home.run_replicas(scenario)
