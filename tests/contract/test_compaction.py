"""Matches that ended more than a day ago take less space, and read the same."""

from __future__ import annotations

import msgspec
import pytest

from matchpod.ports import Database, Statement
from matchpod.service.history.recomputing import Verdict
from matchpod.storage import callback_lists, compaction, heartbeats, history, outbox, raw_log
from matchpod.storage.compaction import DAY_MS
from tests.contract import databases
from tests.contract.ended_matches import ENDED_MS, store_match
from tests.contract.test_recompute import recompute_one, tamper

harness = databases.mostly_sqlite_harness

SIZE = (
    "SELECT (SELECT SUM(LENGTH(result) + LENGTH(callback_body)) FROM outcomes WHERE server_id = :id)"
    " + (SELECT SUM(LENGTH(body)) FROM callbacks WHERE server_id = :id)"
    " + (SELECT SUM(LENGTH(players) + LENGTH(anti_cheat) + LENGTH(leaderboard)) FROM map_stats"
    " JOIN maps ON maps.id = map_id WHERE maps.server_id = :id)"
)


async def read(db: Database, server_id: str) -> list[object]:
    """Everything that is compacted, as it is read."""
    callback = await outbox.callback_of(db, server_id)
    assert callback is not None
    outcome = await outbox.outcome_of(db, server_id)
    assert outcome is not None
    listed = await outbox.list_callbacks(db, org_id=None, state=None, limit=10)
    stats = [await history.stats_of(db, one.id) for one in await history.maps_of(db, server_id)]
    body = await callback_lists.body_of(db, callback.id)
    return [outcome, callback, listed, body, stats, await outbox.results_of(db, [server_id, "srv_unknown"])]


async def size_of(db: Database, server_id: str) -> int:
    ((size,),) = await db.read(SIZE, {"id": server_id})
    return int(str(size))


async def compact(db: Database, now_ms: int) -> int:
    """Compact; check that as many matches as counted were read, and none are left."""
    if db.is_shared and not await db.read("SELECT name FROM installation WHERE name = 'compacted_from_ms'"):
        assert await compaction.compact(db, now_ms - DAY_MS) == 0
    counted = await compaction.count_due(db, now_ms)
    assert await compaction.compact(db, now_ms) == counted
    assert await compaction.count_due(db, now_ms) == 0
    return counted


@databases.on_both
async def test_match_is_smaller_after_a_day_and_reads_the_same(db: Database) -> None:
    await store_match(db, "srv_1")
    await store_match(db, "srv_2", entries=100)
    before = [await read(db, name) for name in ("srv_1", "srv_2")]
    size = await size_of(db, "srv_1")
    assert await compact(db, ENDED_MS + DAY_MS) == 0, "it ended a day ago, and not more"
    assert await size_of(db, "srv_1") == size
    assert await compact(db, ENDED_MS + DAY_MS + 1) == 2
    assert [await read(db, name) for name in ("srv_1", "srv_2")] == before
    assert await size_of(db, "srv_1") < size / 5
    assert await compact(db, ENDED_MS + 9 * DAY_MS) == 0


async def test_result_is_stored_once(db: Database) -> None:
    await store_match(db)
    outcome, callback = await outbox.outcome_of(db, "srv_1"), await outbox.callback_of(db, "srv_1")
    assert outcome is not None
    assert callback is not None
    assert outcome.result is not None
    assert outcome.callback_body == b""
    assert outcome.result in callback.body
    await compact(db, ENDED_MS + 2 * DAY_MS)
    ((stored,),) = await db.read("SELECT LENGTH(body) FROM callbacks")
    assert int(str(stored)) < 400


async def test_match_of_an_earlier_version_is_compacted_too(db: Database) -> None:
    await store_match(db)
    before = await read(db, "srv_1")
    await db.write([Statement("UPDATE outcomes SET callback_body = (SELECT body FROM callbacks)")])
    await compact(db, ENDED_MS + 2 * DAY_MS)
    assert await read(db, "srv_1") == before


async def test_compacted_callback_is_sent_again_with_the_same_bytes(db: Database) -> None:
    await store_match(db)
    (sent,) = await outbox.claim_callbacks(db, ["cb_srv_1"], owner="me", now_ms=ENDED_MS)
    await compact(db, ENDED_MS + 2 * DAY_MS)
    assert await outbox.redeliver(db, "cb_srv_1", ENDED_MS + 3 * DAY_MS)
    (again,) = await outbox.claim_callbacks(db, ["cb_srv_1"], owner="me", now_ms=ENDED_MS + 3 * DAY_MS)
    assert again.body == sent.body
    assert msgspec.json.decode(again.body)["result"]


async def test_matches_after_one_that_ended_lately_wait_for_it(db: Database) -> None:
    for name in ("srv_1", "srv_2", "srv_3"):
        await store_match(db, name)
    lately = "UPDATE outcomes SET at_ms = at_ms + :later_ms WHERE server_id = :id"
    await db.write([Statement(lately, {"id": "srv_2", "later_ms": DAY_MS})])
    assert await compact(db, ENDED_MS + DAY_MS + 1) == 1
    assert await compact(db, ENDED_MS + 2 * DAY_MS + 1) == 2


async def test_time_in_the_future_keeps_no_match_waiting(db: Database) -> None:
    for name in ("srv_1", "srv_2"):
        await store_match(db, name)
    await db.write([Statement("UPDATE outcomes SET at_ms = at_ms * 2 WHERE server_id = 'srv_1'")])
    assert await compact(db, ENDED_MS + DAY_MS + 1) == 2


@databases.on_both
async def test_older_version_has_a_day_to_be_replaced(db: Database, harness: databases.Harness) -> None:
    """On a database that replicas share, nothing is compacted before."""
    await store_match(db)
    begin_ms = ENDED_MS + 30 * DAY_MS
    assert await compaction.count_due(db, begin_ms) == int(harness.is_sqlite)
    for now_ms, on_postgres in ((begin_ms, 0), (begin_ms + DAY_MS - 1, 0), (begin_ms + DAY_MS, 1)):
        on_sqlite = int(now_ms == begin_ms)
        assert await compaction.compact(db, now_ms) == (on_sqlite if harness.is_sqlite else on_postgres)


async def test_compacted_match_is_recomputed_and_compacted_again(db: Database) -> None:
    await store_match(db)
    await compact(db, ENDED_MS + 2 * DAY_MS)
    size = await size_of(db, "srv_1")
    assert (await recompute_one(db)).verdict is Verdict.UNCHANGED
    await tamper(db)
    assert (await recompute_one(db, write=True)).verdict is Verdict.CHANGED
    assert (await recompute_one(db)).verdict is Verdict.UNCHANGED
    assert abs(await size_of(db, "srv_1") - size) < 50


@databases.on_both
async def test_log_is_compressed_with_the_rest_on_a_shared_database(db: Database, harness: databases.Harness) -> None:
    """With SQLite it was when its server was released."""
    await store_match(db, entries=100)
    before = await raw_log.read_after(db, "srv_1", 0, limit=1_000)
    await compact(db, ENDED_MS + 2 * DAY_MS)
    blocks = await db.read("SELECT seq FROM raw_log WHERE kind = 'block'")
    assert len(blocks) == (0 if harness.is_sqlite else 1)
    assert await raw_log.read_after(db, "srv_1", 0, limit=1_000) == before


@pytest.mark.parametrize("harness", ["postgres"], indirect=True)
async def test_process_of_an_older_version_postpones_compaction_by_a_day(db: Database) -> None:
    await store_match(db)
    now_ms = ENDED_MS + 30 * DAY_MS
    assert not await compaction.may_begin(db, now_ms)
    lease = "UPDATE servers SET lease_owner = 'older', lease_until_ms = :until_ms"
    await db.write([Statement(lease, {"until_ms": now_ms + DAY_MS + 1})])
    assert not await compaction.may_begin(db, now_ms + DAY_MS), "the older process drives a match"
    assert not await compaction.may_begin(db, now_ms + 2 * DAY_MS - 1)
    assert await compaction.may_begin(db, now_ms + 2 * DAY_MS)
    await db.write([Statement(lease, {"until_ms": now_ms + 9 * DAY_MS})])
    await heartbeats.beat(db, "older")
    assert await compaction.may_begin(db, now_ms + 2 * DAY_MS), "a process with heartbeats is not older"
