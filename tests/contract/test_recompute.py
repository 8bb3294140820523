"""Recomputing ended matches finds differences, stores them as the next version, and changes nothing else."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence

import msgspec
import pytest

from matchpod.core.server_status import ServerPhase
from matchpod.ports import Database, DatabaseUnavailableError, Row, Statement, Value
from matchpod.service.history.differences import DifferencePart
from matchpod.service.history.recomputing import PAGE_SERVERS, Finding, Recompute, RecomputeRegion, Verdict
from matchpod.service.identity.identifiers import map_id
from matchpod.storage import history, map_events, raw_log, stored_matches
from matchpod.storage.history import MapRounds, MapStats
from tests.contract import databases
from tests.contract.databases import HookedDatabase
from tests.contract.ended_matches import ENDED_MS, SERVER_NAME, SPEED, game_id, store_match
from tests.contract.world import SPEED as SPEED_OF_WORLD
from tests.contract.world import World
from tests.unit.service.match_log.test_fold import recorded

harness = databases.sqlite_harness

TABLES = (
    "SELECT id, phase, status, fence, settings FROM servers ORDER BY id",
    "SELECT server_id, kind, reason, at_ms, result, callback_body FROM outcomes ORDER BY server_id",
    "SELECT id, server_id, body, attempts, next_at_ms FROM callbacks ORDER BY id",
    "SELECT server_id, seq, kind, body FROM raw_log ORDER BY server_id, seq",
)
HISTORY = (
    "SELECT * FROM maps ORDER BY id",
    "SELECT * FROM series ORDER BY id",
    "SELECT * FROM map_stats ORDER BY map_id",
    "SELECT * FROM map_rounds ORDER BY map_id",
    "SELECT * FROM history_counts WHERE count <> 0 ORDER BY org_id, kind, status, map_name, day",
    "SELECT * FROM map_events ORDER BY map_id, first_seq",
)


def make_recompute(
    db: Database, *, events_since_ms: int = 0, page_servers: int = PAGE_SERVERS, speed: float = SPEED
) -> Recompute:
    regions = {"eu": RecomputeRegion("Europe", speed)}
    return Recompute(db=db, regions=regions, events_since_ms=events_since_ms, page_servers=page_servers)


async def recompute_one(db: Database, name: str = "srv_1", *, write: bool = False, speed: float = SPEED) -> Finding:
    finding = await make_recompute(db, speed=speed).one(name, write=write)
    assert finding is not None
    return finding


async def recompute_all(db: Database, *, write: bool = False, page_servers: int = PAGE_SERVERS) -> list[Finding]:
    return [finding async for finding in make_recompute(db, page_servers=page_servers).all(write=write)]


async def contents(db: Database, queries: Sequence[str]) -> list[list[Row]]:
    return [await db.read(sql) for sql in queries]


async def assert_restored(db: Database, right: list[list[Row]]) -> None:
    """The history is as it was, except for its version."""
    await db.write([Statement("UPDATE map_stats SET stats_version = 1")])
    assert await contents(db, HISTORY) == right


def first_map(name: str = "srv_1") -> str:
    return map_id(game_id(name), 1)


async def stats(db: Database, name: str = "srv_1") -> MapStats:
    found = await history.stats_of(db, first_map(name))
    assert found is not None
    return found


async def tamper(db: Database, name: str = "srv_1") -> None:
    """Change stored numbers: the first player has one kill fewer, 99 aces and no leaderboard row; a score is higher."""
    now = await stats(db, name)
    players, leaders = json.loads(now.players), json.loads(now.leaderboard)
    players[0]["kills"] -= 1
    players[0]["extraStats"]["aces"] = 99
    removed = next(one for one in leaders if one["steamId"] == players[0]["steamId"])
    leaders.remove(removed)
    params: dict[str, Value] = {
        "id": first_map(name),
        "players": msgspec.json.encode(players),
        "leaderboard": msgspec.json.encode(leaders),
    }
    await db.write(
        [
            Statement("UPDATE map_stats SET players = :players, leaderboard = :leaderboard WHERE map_id = :id", params),
            Statement("UPDATE maps SET team1_score = team1_score + 7 WHERE id = :id", {"id": first_map(name)}),
        ]
    )


async def test_differences_are_listed_without_writing_them(db: Database) -> None:
    await store_match(db)
    right = json.loads((await stats(db)).players)[0]
    await tamper(db)
    before = await contents(db, (*TABLES, *HISTORY))
    finding = await recompute_one(db)
    assert (finding.verdict, finding.is_written, finding.stats_version) == (Verdict.CHANGED, False, 1)
    score, kills, aces, row = finding.differences
    assert (score.part, score.map_number, score.field) == (DifferencePart.MAP, 1, "team1Score")
    assert msgspec.convert(score.old, int) == msgspec.convert(score.new, int) + 7
    assert (kills.part, kills.steam_id, kills.name) == (DifferencePart.PLAYERS, right["steamId"], right["name"])
    assert (kills.field, kills.old, kills.new) == ("kills", right["kills"] - 1, right["kills"])
    assert (aces.field, aces.old) == ("extraStats.aces", 99)
    leaderboard = (DifferencePart.LEADERBOARD, right["steamId"], None, msgspec.UNSET)
    assert (row.part, row.steam_id, row.field, row.old) == leaderboard
    assert await contents(db, (*TABLES, *HISTORY)) == before


DAMAGED: dict[str, Value] = {"damaged": b'[{"name": "\xff', "id": first_map()}


@pytest.mark.parametrize(
    ("damage", "found"),
    [
        pytest.param(
            Statement("DELETE FROM map_rounds"),
            {(DifferencePart.ROUNDS, "count")},
            id="rounds were not stored when it ended",
        ),
        pytest.param(
            Statement("UPDATE map_rounds SET body = :damaged WHERE map_id = :id", DAMAGED),
            {(DifferencePart.ROUNDS, "count")},
            id="damaged rounds",
        ),
        pytest.param(
            Statement(
                "UPDATE map_stats SET players = :damaged, anti_cheat = :damaged, leaderboard = :damaged"
                " WHERE map_id = :id",
                DAMAGED,
            ),
            {
                (part, "entries")
                for part in (DifferencePart.PLAYERS, DifferencePart.LEADERBOARD, DifferencePart.ANTI_CHEAT)
            },
            id="damaged statistics",
        ),
    ],
)
async def test_what_is_missing_or_damaged_is_replaced(
    db: Database, damage: Statement, found: set[tuple[DifferencePart, str | None]]
) -> None:
    await store_match(db)
    right = await contents(db, HISTORY)
    await db.write([damage])
    finding = await recompute_one(db, write=True)
    assert (finding.verdict, finding.is_written, finding.stats_version) == (Verdict.CHANGED, True, 2)
    assert {(one.part, one.field) for one in finding.differences} == found
    await assert_restored(db, right)


async def test_differences_in_rounds_are_listed_by_round(db: Database) -> None:
    await store_match(db)
    right = await contents(db, HISTORY)
    found = await history.rounds_of(db, first_map())
    assert found is not None
    rounds = json.loads(found.unpack())
    rounds[1]["team1"]["survivors"] += 1
    changed = MapRounds.pack(first_map(), msgspec.json.encode(rounds))
    sql = "UPDATE map_rounds SET body = :body WHERE map_id = :id"
    await db.write([Statement(sql, {"body": changed.body, "id": first_map()})])
    (one,) = (await recompute_one(db, write=True)).differences
    assert (one.part, one.map_number, one.field) == (DifferencePart.ROUNDS, 1, "2.team1.survivors")
    assert (await stats(db)).stats_version == 2
    await assert_restored(db, right)


async def test_differences_are_stored_as_the_next_version(db: Database) -> None:
    await store_match(db)
    right = await contents(db, HISTORY)
    reported = await contents(db, TABLES)
    await tamper(db)
    finding = await recompute_one(db, write=True)
    assert (finding.verdict, finding.is_written, finding.stats_version) == (Verdict.CHANGED, True, 2)
    assert (await stats(db)).stats_version == 2
    second = await history.stats_of(db, map_id(game_id("srv_1"), 2))
    assert second is not None
    assert second.stats_version == 1, "the second map has no differences"
    await assert_restored(db, right)
    assert await contents(db, TABLES) == reported, "what was reported to callers does not change"
    assert (await recompute_one(db, write=True)).verdict is Verdict.UNCHANGED


async def test_canceled_match_stays_canceled(db: Database) -> None:
    await store_match(db, entries=len(recorded().entries) // 2)
    assert (await recompute_one(db)).verdict is Verdict.UNCHANGED
    await db.write([Statement("UPDATE maps SET status = 'finished'"), Statement("DELETE FROM map_stats")])
    assert (await recompute_one(db, write=True)).stats_version == 1
    assert {one.status.value for one in await history.maps_of(db, "srv_1")} <= {"finished", "cancelled"}
    assert (await history.maps_of(db, "srv_1"))[-1].status == "cancelled"


async def test_match_without_history_gets_one(db: Database) -> None:
    await store_match(db)
    expected = await contents(db, HISTORY)
    timeline = await map_events.read_after(db, first_map(), 0, limit=10_000)
    assert timeline
    for table in ("maps", "series", "map_stats", "map_events"):
        await db.write([Statement(f"DELETE FROM {table}")])
    await db.write([Statement("DELETE FROM history_counts WHERE kind <> 'server'")])
    await db.write([Statement("UPDATE servers SET region = 'eu'")])
    finding = await recompute_one(db)
    assert (finding.verdict, finding.stats_version) == (Verdict.NEW, None)
    assert {(one.part, one.field) for one in finding.differences} == {
        (DifferencePart.MAP, None),
        (DifferencePart.SERIES, None),
    }
    assert await history.maps_of(db, "srv_1") == []

    finding = await recompute_one(db, write=True)
    assert (finding.verdict, finding.is_written, finding.stats_version) == (Verdict.NEW, True, 1)
    assert (await recompute_one(db)).verdict is Verdict.UNCHANGED
    await db.write(
        [Statement(f"UPDATE {table} SET server_name = :name", {"name": SERVER_NAME}) for table in ("maps", "series")]
    )
    assert (await contents(db, HISTORY))[:4] == expected[:4]
    assert await map_events.read_after(db, first_map(), 0, limit=10_000) == timeline


async def test_timelines_that_were_deleted_or_are_too_old_are_not_restored(db: Database) -> None:
    await store_match(db)
    await tamper(db)
    await db.write([Statement("DELETE FROM map_events")])
    assert (await recompute_one(db, write=True)).is_written
    assert await map_events.last_seqs(db, "srv_1") == {}, "deleted timelines are not restored"
    await db.write([Statement(f"DELETE FROM {table}") for table in ("maps", "series", "map_stats")])
    finding = await make_recompute(db, events_since_ms=ENDED_MS + 1).one("srv_1", write=True)
    assert finding is not None
    assert finding.is_written
    assert await map_events.last_seqs(db, "srv_1") == {}


async def test_match_that_cannot_be_recomputed_is_skipped_with_a_reason(db: Database) -> None:
    await store_match(db, "srv_on", entries=20, phase=ServerPhase.RUNNING)
    await store_match(db, "srv_ending", entries=20, phase=ServerPhase.ENDING)
    await store_match(db, "srv_elsewhere", entries=20, region="moon")
    await store_match(db, "srv_pruned", entries=20)
    await store_match(db, "srv_cut", entries=20)
    await db.write(
        [
            Statement("DELETE FROM raw_log WHERE server_id = 'srv_pruned'"),
            Statement("DELETE FROM raw_log WHERE server_id = 'srv_cut' AND seq = 3"),
        ]
    )
    reasons = {one.server_id: one.reason for one in await recompute_all(db, write=True)}
    assert reasons == {
        "srv_on": "It has not ended yet.",
        "srv_ending": "It has ended, but its server is not released yet.",
        "srv_elsewhere": "Its region moon is not configured; the speed of its servers is unknown.",
        "srv_pruned": "Its log is no longer stored completely.",
        "srv_cut": "Its log is no longer stored completely.",
    }
    assert await make_recompute(db).one("srv_none", write=False) is None


async def test_match_whose_result_contradicts_its_log_is_not_changed(db: Database) -> None:
    await store_match(db)
    entries = len(recorded().entries)
    await db.write(
        [
            Statement("DELETE FROM raw_log WHERE seq > :seq", {"seq": entries // 2}),
            Statement("UPDATE raw_log_heads SET seq = :seq", {"seq": entries // 2}),
        ]
    )
    before = await contents(db, HISTORY)
    finding = await recompute_one(db, write=True)
    assert finding.reason == "Its stored outcome has a result, but its log now gives none."
    await db.write([Statement("DELETE FROM outcomes")])
    assert (await recompute_one(db, write=True)).reason == "It ended without an outcome."
    assert await contents(db, HISTORY) == before


async def test_log_of_a_replaced_server_does_not_count(db: Database) -> None:
    statements: list[Statement] = []
    for _ in range(3):
        statements += raw_log.append("srv_1", "log", received_ms=1, headers=b"{}", body=b"noise\n")
    await db.write(statements)
    await store_match(db, log_from_seq=3)
    await db.write([Statement("DELETE FROM raw_log WHERE seq <= 3")])
    assert (await recompute_one(db)).verdict is Verdict.UNCHANGED


async def test_all_matches_are_recomputed_page_by_page_and_a_failure_is_reported(
    db: Database, caplog: pytest.LogCaptureFixture
) -> None:
    names = [f"srv_{number}" for number in range(5)]
    for name in names:
        await store_match(db, name, entries=20)
    broken: dict[str, Value] = {"broken": b"{", "id": "srv_2"}
    await db.write([Statement("UPDATE servers SET settings = :broken WHERE id = :id", broken)])
    await db.write([Statement("UPDATE maps SET player_count = 99 WHERE server_id = 'srv_3'")])
    findings = await recompute_all(db, write=True, page_servers=2)
    assert [one.server_id for one in findings] == names
    assert [one.verdict.value for one in findings] == ["unchanged", "unchanged", "failed", "changed", "unchanged"]
    assert findings[2].reason is not None
    assert await stored_matches.count(db) == 5
    assert [one.message for one in caplog.records] == ["match not recomputed"]


async def test_database_outage_is_raised_and_not_reported_as_a_failed_match(db: Database) -> None:
    await store_match(db)

    async def fail(sql: str) -> None:
        if "is_compressed FROM raw_log" in sql:
            raise DatabaseUnavailableError("unavailable")

    with pytest.raises(DatabaseUnavailableError):
        await recompute_one(HookedDatabase(db, before_read=fail))


async def test_cancelled_recompute_changes_everything_or_nothing(db: Database) -> None:
    await store_match(db)
    right = await contents(db, HISTORY)
    await tamper(db)
    wrong = await contents(db, HISTORY)
    writes: list[Sequence[Statement]] = []

    async def cancel(statements: Sequence[Statement]) -> None:
        writes.append(statements)
        asyncio.get_running_loop().call_soon(task.cancel)

    task = asyncio.create_task(recompute_one(HookedDatabase(db, before_write=cancel), write=True))
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(writes) == 1
    async with asyncio.timeout(60):
        while await contents(db, HISTORY) not in (right, wrong):  # PostgreSQL may still be writing
            await db.write([Statement("UPDATE map_stats SET stats_version = 1")])


async def test_concurrent_recomputes_have_the_same_effect_as_one(replicas: databases.Replicas) -> None:
    one, other = replicas
    await store_match(one)
    right = await contents(one, HISTORY)
    await tamper(one)
    findings = await asyncio.gather(recompute_one(one, write=True), recompute_one(other, write=True))
    assert {finding.verdict for finding in findings} <= {Verdict.CHANGED, Verdict.UNCHANGED}
    assert (await stats(one)).stats_version == 2
    await assert_restored(one, right)


async def test_recomputing_matches_that_were_driven_live_changes_nothing(db: Database, world: World) -> None:
    world.start()
    await world.create("srv_over", seed=3, game_id=game_id("srv_over"))
    await world.create("srv_lost", scenario="server_crash", game_id=game_id("srv_lost"))
    await world.create("srv_canceled", game_id=game_id("srv_canceled"))
    await world.until_live("srv_canceled")
    await world.cancel("srv_canceled")
    for name in ("srv_over", "srv_lost", "srv_canceled"):
        await world.outcome(name)
    async for finding in make_recompute(db, speed=SPEED_OF_WORLD).all(write=False):
        assert (finding.verdict, finding.differences) == (Verdict.UNCHANGED, []), finding.server_id
