"""Ended matches are read again: what differs is found, stored as the next version, and nothing else is touched."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence

import msgspec
import pytest

from matchpod.core.server_status import ServerPhase
from matchpod.ports import Database, DatabaseAwayError, Row, Statement, Value
from matchpod.service.history import recomputing
from matchpod.service.history.differences import Part
from matchpod.service.history.naming import map_id
from matchpod.service.history.recomputing import Finding, Place, Recompute, Verdict
from matchpod.storage import history, map_events, raw_log
from matchpod.storage.history import MapStats
from tests.contract import databases, driven_matches
from tests.contract.ended_matches import ENDED_MS, SERVER_NAME, SPEED, game_id, play
from tests.unit.service.test_folding import recorded

home = databases.sqlite_home

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
    "SELECT * FROM history_counts WHERE count <> 0 ORDER BY org_id, kind, status, map_name, day",
    "SELECT * FROM map_events ORDER BY map_id, first_seq",
)


def recompute(db: Database, *, events_since_ms: int = 0) -> Recompute:
    return Recompute(db=db, places={"eu": Place("Europe", SPEED)}, events_since_ms=events_since_ms)


async def look(db: Database, name: str = "srv_1", *, write: bool = False) -> Finding:
    finding = await recompute(db).one(name, write=write)
    assert finding is not None
    return finding


async def everything(db: Database, *, write: bool = False) -> list[Finding]:
    return [finding async for finding in recompute(db).all(write=write)]


async def contents(db: Database, queries: Sequence[str]) -> list[list[Row]]:
    return [await db.read(sql) for sql in queries]


def first_map(name: str = "srv_1") -> str:
    return map_id(game_id(name), 1)


async def stats(db: Database, name: str = "srv_1") -> MapStats:
    found = await history.stats_of(db, first_map(name))
    assert found is not None
    return found


async def tamper(db: Database, name: str = "srv_1") -> None:
    """As an older version would have counted: one kill less for the best, no leaderboard row for him, another score."""
    now = await stats(db, name)
    players, leaders = json.loads(now.players), json.loads(now.leaderboard)
    players[0]["kills"] -= 1
    players[0]["extraStats"]["aces"] = 99
    gone = next(one for one in leaders if one["steamId"] == players[0]["steamId"])
    leaders.remove(gone)
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


def test_a_match_that_is_read_as_it_was_is_unchanged(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        await play(db)
        before = await contents(db, (*TABLES, *HISTORY))
        for write in (False, True):
            finding = await look(db, write=write)
            assert finding == Finding(server_id="srv_1", verdict=Verdict.UNCHANGED, stats_version=1, differences=[])
        assert await contents(db, (*TABLES, *HISTORY)) == before

    home.run(scenario)


def test_what_differs_is_named_and_nothing_is_written(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        await play(db)
        right = json.loads((await stats(db)).players)[0]
        await tamper(db)
        before = await contents(db, (*TABLES, *HISTORY))
        finding = await look(db)
        assert (finding.verdict, finding.is_written, finding.stats_version) == (Verdict.CHANGED, False, 1)
        score, kills, aces, row = finding.differences
        assert (score.part, score.map_number, score.field) == (Part.MAP, 1, "team1Score")
        assert msgspec.convert(score.old, int) == msgspec.convert(score.new, int) + 7
        assert (kills.part, kills.steam_id, kills.name) == (Part.PLAYERS, right["steamId"], right["name"])
        assert (kills.field, kills.old, kills.new) == ("kills", right["kills"] - 1, right["kills"])
        assert (aces.field, aces.old) == ("extraStats.aces", 99)
        assert (row.part, row.steam_id, row.field, row.old) == (
            *(Part.LEADERBOARD, right["steamId"]),
            *(None, msgspec.UNSET),
        )
        assert await contents(db, (*TABLES, *HISTORY)) == before

    home.run(scenario)


def test_what_differs_is_stored_as_the_next_version(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        await play(db)
        right = await contents(db, HISTORY)
        told = await contents(db, TABLES)
        await tamper(db)
        finding = await look(db, write=True)
        assert (finding.verdict, finding.is_written, finding.stats_version) == (Verdict.CHANGED, True, 2)
        assert (await stats(db)).stats_version == 2
        second = await history.stats_of(db, map_id(game_id("srv_1"), 2))
        assert second is not None
        assert second.stats_version == 1, "nothing differed there"
        await db.write([Statement("UPDATE map_stats SET stats_version = 1")])
        assert await contents(db, HISTORY) == right
        assert await contents(db, TABLES) == told, "what callers were told stays, byte for byte"
        assert (await look(db, write=True)).verdict is Verdict.UNCHANGED

    home.run(scenario)


def test_statistics_that_cannot_be_read_are_repaired(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        await play(db)
        right = await contents(db, HISTORY)
        rubbish: dict[str, Value] = {"rubbish": b'[{"name": "\xff', "id": first_map()}
        sql = (
            "UPDATE map_stats SET players = :rubbish, anti_cheat = :rubbish, leaderboard = :rubbish WHERE map_id = :id"
        )
        await db.write([Statement(sql, rubbish)])
        finding = await look(db, write=True)
        assert (finding.verdict, finding.is_written, finding.stats_version) == (Verdict.CHANGED, True, 2)
        assert [(one.part, one.field) for one in finding.differences] == [
            *((Part.PLAYERS, "entries"), (Part.LEADERBOARD, "entries")),
            (Part.ANTI_CHEAT, "entries"),
        ]
        await db.write([Statement("UPDATE map_stats SET stats_version = 1")])
        assert await contents(db, HISTORY) == right

    home.run(scenario)


def test_a_canceled_match_is_read_again_as_canceled(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        await play(db, entries=len(recorded().entries) // 2)
        assert (await look(db)).verdict is Verdict.UNCHANGED
        await db.write([Statement("UPDATE maps SET status = 'finished'"), Statement("DELETE FROM map_stats")])
        assert (await look(db, write=True)).stats_version == 1
        assert {one.status.value for one in await history.maps_of(db, "srv_1")} <= {"finished", "cancelled"}
        assert (await history.maps_of(db, "srv_1"))[-1].status == "cancelled"

    home.run(scenario)


def test_a_match_from_before_there_was_a_history_gets_one(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        await play(db)
        expected = await contents(db, HISTORY)
        timeline = await map_events.read_after(db, first_map(), 0, limit=10_000)
        assert timeline
        for table in ("maps", "series", "map_stats", "history_counts", "map_events"):
            await db.write([Statement(f"DELETE FROM {table}")])
        await db.write([Statement("UPDATE servers SET region = 'eu'")])
        finding = await look(db)
        assert (finding.verdict, finding.stats_version) == (Verdict.NEW, None)
        assert {(one.part, one.field) for one in finding.differences} == {(Part.MAP, None), (Part.SERIES, None)}
        assert await history.maps_of(db, "srv_1") == []

        finding = await look(db, write=True)
        assert (finding.verdict, finding.is_written, finding.stats_version) == (Verdict.NEW, True, 1)
        assert (await look(db)).verdict is Verdict.UNCHANGED
        await db.write(
            [
                Statement(f"UPDATE {table} SET server_name = :name", {"name": SERVER_NAME})
                for table in ("maps", "series")
            ]
        )
        assert (await contents(db, HISTORY))[:4] == expected[:4]
        assert await map_events.read_after(db, first_map(), 0, limit=10_000) == timeline

    home.run(scenario)


def test_timelines_are_not_made_twice_nor_when_they_would_be_too_old(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        await play(db)
        await tamper(db)
        await db.write([Statement("DELETE FROM map_events")])
        assert (await look(db, write=True)).is_written
        assert await map_events.last_seqs(db, "srv_1") == {}, "they were deleted, and stay so"
        await db.write([Statement(f"DELETE FROM {table}") for table in ("maps", "series", "map_stats")])
        finding = await recompute(db, events_since_ms=ENDED_MS + 1).one("srv_1", write=True)
        assert finding is not None
        assert finding.is_written
        assert await map_events.last_seqs(db, "srv_1") == {}

    home.run(scenario)


def test_what_cannot_be_read_again_is_skipped_with_a_sentence(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        await play(db, "srv_on", phase=ServerPhase.RUNNING)
        await play(db, "srv_ending", phase=ServerPhase.ENDING)
        await play(db, "srv_elsewhere", region="moon")
        await play(db, "srv_pruned")
        await play(db, "srv_cut")
        await db.write(
            [
                Statement("DELETE FROM raw_log WHERE server_id = 'srv_pruned'"),
                Statement("DELETE FROM raw_log WHERE server_id = 'srv_cut' AND seq = 3"),
            ]
        )
        reasons = {one.server_id: one.reason for one in await everything(db, write=True)}
        assert reasons == {
            "srv_on": "It has not ended yet.",
            "srv_ending": "It has just ended; its server is not released yet.",
            "srv_elsewhere": "Its region moon is not in the settings, which say how fast its servers ran.",
            "srv_pruned": "Its log is no longer stored, or not all of it.",
            "srv_cut": "Its log is no longer stored, or not all of it.",
        }
        assert await recompute(db).one("srv_none", write=False) is None

    home.run(scenario)


def test_a_result_that_the_log_no_longer_gives_is_left_alone(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        await play(db)
        entries = len(recorded().entries)
        await db.write(
            [
                Statement("DELETE FROM raw_log WHERE seq > :seq", {"seq": entries // 2}),
                Statement("UPDATE raw_log_heads SET seq = :seq", {"seq": entries // 2}),
            ]
        )
        before = await contents(db, HISTORY)
        finding = await look(db, write=True)
        assert finding.reason == "Its caller was told a result, and its log read today has none."
        await db.write([Statement("DELETE FROM outcomes")])
        assert (await look(db, write=True)).reason == "It ended without an outcome."
        assert await contents(db, HISTORY) == before

    home.run(scenario)


def test_a_server_that_never_said_anything_is_read_again(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        await play(db, entries=0)
        assert (await look(db)).verdict is Verdict.UNCHANGED

    home.run(scenario)


def test_what_a_server_said_that_was_given_up_does_not_count(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        statements: list[Statement] = []
        for _ in range(3):
            statements += raw_log.append("srv_1", "log", received_ms=1, headers=b"{}", body=b"noise\n")
        await db.write(statements)
        await play(db, log_from_seq=3)
        await db.write([Statement("DELETE FROM raw_log WHERE seq <= 3")])
        assert (await look(db)).verdict is Verdict.UNCHANGED

    home.run(scenario)


def test_all_matches_are_read_page_by_page_and_a_broken_one_is_told(
    home: databases.Home, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(recomputing, "PAGE_SERVERS", 2)

    async def scenario(db: Database) -> None:
        names = [f"srv_{number}" for number in range(5)]
        for name in names:
            await play(db, name, entries=20)
        broken: dict[str, Value] = {"broken": b"{", "id": "srv_2"}
        await db.write([Statement("UPDATE servers SET settings = :broken WHERE id = :id", broken)])
        await db.write([Statement("UPDATE maps SET player_count = 99 WHERE server_id = 'srv_3'")])
        findings = await everything(db, write=True)
        assert [one.server_id for one in findings] == names
        assert [one.verdict.value for one in findings] == [
            *("unchanged", "unchanged", "failed"),
            *("changed", "unchanged"),
        ]
        assert findings[2].reason is not None
        assert await recompute(db).count() == 5

    home.run(scenario)
    assert [one.message for one in caplog.records] == ["match was not recomputed"]


class Away(databases.PassedOn):
    """A database that goes away when the log is read."""

    async def read(self, sql: str, params: Mapping[str, Value] | None = None) -> list[Row]:
        if "body, is_compressed FROM raw_log" in sql:
            raise DatabaseAwayError("gone")
        return await super().read(sql, params)


def test_a_database_that_is_away_is_no_fault_of_the_match(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        await play(db)
        with pytest.raises(DatabaseAwayError):
            await look(Away(db))

    home.run(scenario)


class Slow(databases.PassedOn):
    """A database whose caller is interrupted while he writes."""

    def __init__(self, db: Database) -> None:
        super().__init__(db)
        self.writes = 0
        self.task: asyncio.Task[Finding] | None = None

    async def write(self, statements: Sequence[Statement]) -> list[list[Row]]:
        self.writes += 1
        if self.task is not None:
            asyncio.get_running_loop().call_soon(self.task.cancel)
        return await super().write(statements)


def test_an_interrupted_match_is_changed_as_a_whole_or_not_at_all(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        await play(db)
        right = await contents(db, HISTORY)
        await tamper(db)
        wrong = await contents(db, HISTORY)
        slow = Slow(db)
        slow.task = asyncio.create_task(look(slow, write=True))
        with pytest.raises(asyncio.CancelledError):
            await slow.task
        assert slow.writes == 1
        await asyncio.sleep(0.2)
        await db.write([Statement("UPDATE map_stats SET stats_version = 1")])
        assert await contents(db, HISTORY) in (right, wrong)

    home.run(scenario)


def test_two_at_once_leave_what_one_would(home: databases.Home) -> None:
    async def scenario(one: Database, other: Database) -> None:
        await play(one)
        right = await contents(one, HISTORY)
        await tamper(one)
        findings = await asyncio.gather(look(one, write=True), look(other, write=True))
        assert {finding.verdict for finding in findings} <= {Verdict.CHANGED, Verdict.UNCHANGED}
        assert (await stats(one)).stats_version == 2
        await one.write([Statement("UPDATE map_stats SET stats_version = 1")])
        assert await contents(one, HISTORY) == right

    home.run_replicas(scenario)


def test_matches_that_were_followed_live_are_read_again_as_they_were(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        async with driven_matches.world(db) as around:
            around.start()
            await around.create("srv_over", seed=3, game_id=game_id("srv_over"))
            await around.create("srv_lost", played="server_crash", game_id=game_id("srv_lost"))
            await around.create("srv_canceled", game_id=game_id("srv_canceled"))
            await around.live("srv_canceled")
            await around.cancel("srv_canceled")
            for name in ("srv_over", "srv_lost", "srv_canceled"):
                await around.outcome(name)
        again = Recompute(db=db, places={"eu": Place("Europe", driven_matches.SPEED)}, events_since_ms=0)
        async for finding in again.all(write=False):
            assert (finding.server_id, finding.verdict, finding.differences) == (
                *(finding.server_id, Verdict.UNCHANGED),
                [],
            )

    home.run(scenario)
