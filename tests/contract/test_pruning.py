"""Rows past their retention are counted and deleted, and nothing else."""

from __future__ import annotations

import asyncio

from matchpod.ports import Database, Statement
from matchpod.service.identity.identifiers import ID_RANDOM_BYTES, new_audit_id
from matchpod.service.operations.pruning import DAY_MS, Pruned, Retention, audit_from_id, count_prunable, prune
from matchpod.storage import (
    audit_log,
    history,
    history_counts,
    map_events,
    raw_log,
    servers,
    stored_matches,
    unfinished,
)
from matchpod.storage.audit_log import AuditRow
from matchpod.storage.servers import Idempotency
from tests.contract import databases
from tests.contract.ended_matches import ENDED_MS, store_match
from tests.unit.service.match_log.test_fold import recorded, row_of
from tests.vaults import stored_tokens

harness = databases.harness

KEEP = Retention(raw_log_days=30, event_days=365)
COUNTS = "SELECT org_id, kind, status, map_name, day, count FROM history_counts WHERE count <> 0 ORDER BY 1, 2, 3, 4, 5"


async def events_of(db: Database, server_id: str) -> int:
    return sum((await map_events.last_seqs(db, server_id)).values())


async def entries_of(db: Database, server_id: str) -> int:
    return len(await raw_log.read_after(db, server_id, 0, limit=10_000))


async def count_and_prune(db: Database, now_ms: int) -> Pruned:
    """Prune; check that exactly the counted rows are deleted, and that nothing is left to delete."""
    counted = await count_prunable(db, KEEP, now_ms)
    deleted = await prune(db, KEEP, now_ms)
    assert counted == deleted
    assert (await count_prunable(db, KEEP, now_ms)).is_empty
    assert (await prune(db, KEEP, now_ms)).is_empty
    return deleted


async def test_logs_are_deleted_first_and_events_later(db: Database) -> None:
    await store_match(db, entries=100)
    await history_counts.delete_empty(db)
    events, entries = await events_of(db, "srv_1"), await entries_of(db, "srv_1")
    assert events
    assert entries == 100 + 1, "its end is an entry too"
    assert (await count_and_prune(db, ENDED_MS + 29 * DAY_MS)).is_empty
    assert await count_and_prune(db, ENDED_MS + 31 * DAY_MS) == Pruned(log_entries=entries)
    assert await events_of(db, "srv_1") == events
    row = await servers.get(db, "srv_1")
    assert row is not None
    assert not await stored_matches.is_log_complete(db, row)
    assert await count_and_prune(db, ENDED_MS + 366 * DAY_MS) == Pruned(events=events)
    (first, *_) = await history.maps_of(db, "srv_1")
    assert await history.stats_of(db, first.id) is not None, "statistics are kept forever"


async def test_entries_that_were_set_aside_are_forgotten_with_their_log(db: Database) -> None:
    for name in ("srv_1", "srv_open"):
        await store_match(db, name, entries=20)
        assert await unfinished.set_aside(db, name, 7)
        await unfinished.begin(db, name, 9, "dead")
    await db.write([Statement("UPDATE servers SET phase = 'running' WHERE id = 'srv_open'")])
    await prune(db, KEEP, ENDED_MS + 29 * DAY_MS)
    assert [one.seq for one in await unfinished.of_server(db, "srv_1")] == [7]
    await prune(db, KEEP, ENDED_MS + 31 * DAY_MS)
    left = await db.read("SELECT server_id, seq FROM unfinished_entries ORDER BY seq")
    assert left == [("srv_open", 7), ("srv_open", 9)]


async def test_idempotency_keys_are_deleted_after_a_day(db: Database) -> None:
    for hours, name in ((25, "srv_old"), (23, "srv_new")):
        used = Idempotency(org_id="org_1", key=name, body_hash="x", created_at_ms=ENDED_MS - hours * 3_600_000)
        row = row_of(recorded().settings, id=name, **stored_tokens(name, name))
        await servers.create(db, row, idempotency=used)
    assert await count_and_prune(db, ENDED_MS) == Pruned(idempotency_keys=1)


async def test_audit_log_is_deleted_after_a_year(db: Database) -> None:
    for number, days in enumerate((364, 366, 500, 500, 500, 500)):
        at_ms = ENDED_MS - days * DAY_MS
        id_ = new_audit_id(at_ms, bytes([number]) * ID_RANDOM_BYTES)
        row = AuditRow(id=id_, org_id=None, at_ms=at_ms, actor="", action="", target=str(number), detail="")
        await db.write([audit_log.insert(row)])
    before_id = audit_from_id(ENDED_MS - 35 * DAY_MS)
    assert await audit_log.prune(db, before_id, limit=2) == 4, "in several transactions"
    assert await count_and_prune(db, ENDED_MS) == Pruned(audit_entries=1)
    assert [row.target for row in await audit_log.list(db, None, limit=9)] == ["0"]


async def test_zero_counts_are_deleted_and_others_stay_correct(db: Database) -> None:
    for number in range(3):
        await store_match(db, f"srv_{number}", entries=100, org_id=f"org_{number % 2}")
    before = await db.read(COUNTS)
    pruned = await count_and_prune(db, ENDED_MS)
    assert pruned.empty_counts > 0
    assert await db.read(COUNTS) == before
    # Maps are counted again for a day or status whose count was deleted.
    await store_match(db, "srv_3", entries=100, org_id="org_0")
    await db.write([Statement("DELETE FROM history_counts WHERE count = 0")])
    (counted,) = await db.read("SELECT count FROM history_counts WHERE org_id = 'org_0' AND kind = 'map'"
                               " AND status = '' AND map_name = '' AND day = -1")  # fmt: skip
    assert counted == (9,)


async def test_counts_stay_correct_while_zero_counts_are_deleted(replicas: databases.Replicas) -> None:
    one, other = replicas

    async def store_some(db: Database, name: str) -> None:
        for number in range(4):
            await store_match(db, f"srv_{name}{number}", entries=20)

    async def delete_some(db: Database) -> None:
        for _ in range(10):
            await history_counts.delete_empty(db)

    await asyncio.gather(store_some(one, "a"), store_some(other, "b"), delete_some(one), delete_some(other))
    (counted,) = await one.read(
        "SELECT count FROM history_counts WHERE kind = 'map' AND status = '' AND map_name = '' AND day = -1"
    )
    assert counted == (24,)
    rows = await one.read("SELECT COUNT(*) FROM history_counts WHERE count < 0")
    assert rows == [(0,)]
