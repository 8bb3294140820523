"""Callers read the series and maps of their organization: new, live and ended ones."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import cache
from typing import Any

import msgspec
import pytest

from matchpod.core.errors import ForbiddenError, NotFoundError, UnavailableError
from matchpod.core.match.played_map import MapStatus
from matchpod.core.model import MatchType
from matchpod.core.requests.history_query import EventsQuery, LeaderboardQuery, ListQuery
from matchpod.core.server_status import ServerPhase, ServerStatus
from matchpod.core.stats.player_line import PlayerLine
from matchpod.core.views.leaderboard import LeaderboardSort, player_rows
from matchpod.ports import Database, DatabaseUnavailableError, Statement
from matchpod.service.history import rows
from matchpod.service.identity import identifiers
from matchpod.service.identity.principals import Principal
from matchpod.service.match_log.fold import Fold
from matchpod.service.match_log.live import LocalMatch
from matchpod.storage import history, map_events, servers
from matchpod.storage.history import MapStats, MatchHistory
from matchpod.storage.servers import ServerRow
from tests.contract import databases
from tests.contract.databases import HookedDatabase, once
from tests.contract.ended_matches import store
from tests.contract.match_histories import insert_counted
from tests.contract.same_numbers import Json
from tests.contract.test_matches import OTHER_OWNER, READER
from tests.contract.test_numbers_agree import SERVER_NAME, HistoryReader, create_match
from tests.unit.service.match_log.test_fold import recorded, row_of
from tests.unit.simulator.played_match import START_MS, mode_settings

harness = databases.sqlite_harness

DEATHMATCH = mode_settings(MatchType.DEATHMATCH, maps=("de_dust2",))
NO_SUCH_IDS = ("", "x", "ser_", "ser_unknown", "00000000-0000-0000-0000-00000000000", "\x00", "\udcff", "é" * 36, "{}")
UNKNOWN_UUID = "aaaaaaaa-0000-4000-8000-000000000000"


def interleaved(db: Database, text: str, action: Callable[[], Awaitable[object]]) -> HookedDatabase:
    """A database that runs an action right after the first read with this text."""
    run = once(action, text)
    return HookedDatabase(db, after_read=lambda sql, _: run(sql))


@pytest.fixture
def world(db: Database) -> HistoryReader:
    return HistoryReader(db)


def map_of(row: ServerRow, number: int = 1) -> str:
    return identifiers.map_id(row.game_id, number)


def folded(row: ServerRow, entries: int | None = None) -> Fold:
    fold = Fold.begin(row, 1.0)
    for entry in recorded().entries[:entries]:
        fold.apply(entry)
    return fold


@cache
def entries_to_second_map() -> int:
    """A number of entries after which the second map of the recorded series is live."""
    fold = Fold.begin(row_of(recorded().settings), 1.0)
    for number, entry in enumerate(recorded().entries, start=1):
        fold.apply(entry)
        current = fold.match.current_map
        if current.number == 2 and current.team1_score + current.team2_score == 2:
            return number
    raise AssertionError("the second map never has two rounds")


async def end(db: Database, row: ServerRow, fold: Fold, stats_version: int = 1) -> MatchHistory:
    """Store the end of a match, as its runner does."""
    final = rows.history_of(row, fold.match, server_name=SERVER_NAME, is_final=True, stats_version=stats_version)
    changed = servers.change(row.id, row.fence, phase=ServerPhase.RELEASED, status=ServerStatus.STOPPED)
    await db.write([changed, *history.replace(final)])
    return final


async def create_past_match(
    db: Database, number: int, *, at_ms: int, status: MapStatus = MapStatus.FINISHED, **map_fields: Any
) -> ServerRow:
    """Store a match with one map that started at this time."""
    row = await create_match(db, mode_settings(MatchType.COMPETITIVE), number)
    initial = rows.initial_history(row, mode_settings(MatchType.COMPETITIVE), SERVER_NAME)
    changes: dict[str, Any] = {"status": status, "started_at_ms": at_ms, "sort_ms": at_ms}
    maps = tuple(msgspec.structs.replace(one, **changes, **map_fields) for one in initial.maps)
    assert initial.series is not None
    await db.write(history.replace(MatchHistory(maps, msgspec.structs.replace(initial.series, **changes))))
    return row


# --- series -------------------------------------------------------------------------------------------------------


async def test_series_is_upcoming_from_its_creation(world: HistoryReader) -> None:
    row = await create_match(world.db, recorded().settings)
    (item,) = (await world.series_list())["items"]
    assert (item["status"], item["startedAt"], item["finishedAt"], item["duration"]) == ("upcoming", *[None] * 3)
    assert (item["team1Name"], item["team2Name"], item["winnerTeam"]) == ("Alpha", "Beta", None)
    assert {one["status"] for one in item["maps"]} == {"upcoming"}
    detail = await world.series(identifiers.series_id(row.id))
    assert [(one["team1Score"], one["winner"], one["playerCount"]) for one in detail["maps"]] == [(0, None, 0)] * 3


async def test_series_is_found_by_either_id_with_the_scores_of_its_maps(world: HistoryReader) -> None:
    row = await create_match(world.db, recorded().settings)
    await end(world.db, row, folded(row))
    detail = await world.series(identifiers.series_id(row.id))
    assert [one["mapNumber"] for one in detail["maps"]] == [1, 2, 3]
    uuid = identifiers.series_uuid(row.game_id)
    assert await world.series(uuid) == await world.series(uuid.upper()) == detail


async def test_lists_contain_nothing_of_another_organization(world: HistoryReader) -> None:
    row = await create_past_match(world.db, 1, at_ms=START_MS)
    for query in ({}, {"server_id": row.id}):
        for page in (await world.series_list(OTHER_OWNER, **query), await world.maps(OTHER_OWNER, **query)):
            assert (page["total"], page["items"]) == (0, [])


# --- access -------------------------------------------------------------------------------------------------------


def reads(
    principal: Principal, series: str, of_map: str, server: str
) -> list[Callable[[HistoryReader], Awaitable[object]]]:
    return [
        lambda world: world.history.series(principal, series),
        lambda world: world.history.server_series(principal, server, ListQuery()),
        lambda world: world.history.own_maps(principal, server),
        lambda world: world.history.map(principal, of_map),
        lambda world: world.history.events(principal, of_map, EventsQuery()),
        lambda world: world.history.leaderboard(principal, of_map, LeaderboardQuery()),
        lambda world: world.history.rounds(principal, of_map),
        lambda world: world.history.own_map(principal, of_map),
    ]


async def test_unknown_ids_are_not_found(world: HistoryReader) -> None:
    await create_match(world.db, recorded().settings)
    for key in (*NO_SUCH_IDS, UNKNOWN_UUID):
        for read in reads(READER, key, key, key):
            with pytest.raises(NotFoundError):
                await read(world)


async def test_history_of_another_organization_is_forbidden(world: HistoryReader) -> None:
    row = await create_match(world.db, recorded().settings)
    for series in (identifiers.series_id(row.id), identifiers.series_uuid(row.game_id)):
        for read in reads(OTHER_OWNER, series, map_of(row), row.id):
            with pytest.raises(ForbiddenError):
                await read(world)


async def test_own_maps_are_found_by_server_id_and_by_map_id(world: HistoryReader) -> None:
    row = await create_match(world.db, recorded().settings)
    maps = await world.history.own_maps(READER, row.id)
    assert [one.map_number for one in maps] == [1, 2, 3]
    assert await world.history.own_map(READER, map_of(row, 2).upper()) == maps[1]


async def test_requests_fail_as_unavailable_during_a_database_outage(world: HistoryReader) -> None:
    unavailable = HookedDatabase(world.db)
    unavailable.error = DatabaseUnavailableError("unavailable")
    for read in (*reads(READER, UNKNOWN_UUID, UNKNOWN_UUID, "srv_1"), HistoryReader.series_list, HistoryReader.maps):
        with pytest.raises(UnavailableError):
            await read(HistoryReader(unavailable))


# --- rounds -------------------------------------------------------------------------------------------------------


async def test_rounds_of_a_live_map_end_with_the_current_one_and_stay_the_same_after_the_end(
    world: HistoryReader,
) -> None:
    row = await create_match(world.db, recorded().settings)
    world.live.add(LocalMatch(row.id, folded(row, entries_to_second_map()), entries_to_second_map()))
    finished = await world.rounds(map_of(row, 1))
    live = await world.rounds(map_of(row, 2))
    assert live["status"] == "live"
    decided = [one for one in live["rounds"] if one["endedAt"] is not None]
    assert [one["number"] for one in decided] == [1, 2]
    assert len(live["rounds"]) - len(decided) <= 1
    await end(world.db, row, folded(row))
    assert await world.rounds(map_of(row, 1)) == finished
    assert (await world.rounds(map_of(row, 2)))["rounds"][0] == live["rounds"][0]


async def test_rounds_of_a_map_that_ended_before_they_were_stored_are_unknown(world: HistoryReader) -> None:
    row = await create_match(world.db, recorded().settings)
    await end(world.db, row, folded(row))
    await world.db.write([Statement("DELETE FROM map_rounds")])
    found = await world.rounds(map_of(row))
    assert (found["status"], found["complete"], found["missingRounds"], found["rounds"]) == ("finished", None, [], [])


# --- maps ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("phase", [ServerPhase.ALLOCATING, ServerPhase.PENDING])
async def test_map_is_upcoming_until_its_server_runs(phase: ServerPhase, world: HistoryReader) -> None:
    row = await create_match(world.db, DEATHMATCH)
    # A server may post its log during configuration, and then be replaced.
    await store(world.db, recorded().entries, row.id)
    await world.db.write([servers.change(row.id, row.fence, phase=phase, status=ServerStatus(phase.value))])
    detail = await world.map(map_of(row))
    assert (detail["status"], detail["map"], detail["seriesId"]) == ("upcoming", "de_dust2", None)
    assert (detail["players"], detail["antiCheat"], detail["playerCount"]) == ([], [], 0)
    assert (detail["team1Name"], detail["team2Name"], detail["startedAt"]) == (None, None, None)
    assert (await world.leaderboard(map_of(row)))["players"] == []
    rounds = await world.rounds(map_of(row))
    assert (rounds["status"], rounds["complete"], rounds["rounds"]) == ("upcoming", None, [])


async def test_live_map_is_the_same_in_all_processes(world: HistoryReader) -> None:
    row = await create_match(world.db, recorded().settings)
    await store(world.db, recorded().entries[: entries_to_second_map()], row.id)
    local = HistoryReader(world.db)
    local.live.add(LocalMatch(row.id, folded(row, entries_to_second_map()), entries_to_second_map()))
    for number, status in ((1, "finished"), (2, "live"), (3, "upcoming")):
        detail = await local.map(map_of(row, number))
        assert detail["status"] == status
        assert detail == await world.map(map_of(row, number))
        assert await local.leaderboard(map_of(row, number)) == await world.leaderboard(map_of(row, number))
        assert await local.rounds(map_of(row, number)) == await world.rounds(map_of(row, number))
    live = await world.map(map_of(row, 2))
    assert live["team1Score"] + live["team2Score"] == 2
    assert (live["finishedAt"], live["duration"], live["winner"]) == (None, None, None)
    assert len(live["players"]) == live["playerCount"] == 4


async def test_map_is_live_until_its_end_is_stored_with_its_last_events(world: HistoryReader) -> None:
    row = await create_match(world.db, recorded().settings)
    stored = rows.history_of(row, folded(row, entries_to_second_map()).match, server_name=SERVER_NAME)
    lagging = msgspec.structs.replace(stored.maps[0], status=MapStatus.LIVE, winner=None, finished_at_ms=None)
    await world.db.write(history.replace(msgspec.structs.replace(stored, maps=(lagging, *stored.maps[1:]))))
    world.live.add(LocalMatch(row.id, folded(row, entries_to_second_map()), entries_to_second_map()))
    before = await world.map(map_of(row))
    assert [before[name] for name in ("status", "winner", "finishedAt", "duration")] == ["live", None, None, None]
    await world.db.write(history.replace(stored))
    after = await world.map(map_of(row))
    assert after["status"] == "finished"
    assert after["winner"] is not None
    assert after["players"] == before["players"]


async def test_canceled_map_keeps_its_numbers(world: HistoryReader) -> None:
    row = await create_match(world.db, recorded().settings)
    await store(world.db, recorded().entries[: entries_to_second_map()], row.id)
    before = [await world.map(map_of(row, number)) for number in (1, 2, 3)]
    ending = servers.change(row.id, row.fence, phase=ServerPhase.ENDING, status=ServerStatus.STOPPED)
    await world.db.write([ending, *history.cancel_open(row.id)])
    local = HistoryReader(world.db)
    local.live.add(LocalMatch(row.id, folded(row, entries_to_second_map()), entries_to_second_map()))
    for other in (world, HistoryReader(world.db), local):
        after = [await other.map(map_of(row, number)) for number in (1, 2, 3)]
        assert [one["status"] for one in after] == ["finished", "cancelled", "cancelled"]
        assert after == [{**one, "status": now["status"]} for one, now in zip(before, after, strict=True)]
        assert (await other.leaderboard(map_of(row, 2)))["status"] == "cancelled"


@pytest.mark.parametrize(
    ("first_read", "read", "content"),
    [
        ("FROM series", lambda world, row: world.series(identifiers.series_id(row.id)), "maps"),
        ("FROM maps", lambda world, row: world.map(map_of(row)), "players"),
        ("FROM maps", lambda world, row: world.rounds(map_of(row)), "rounds"),
    ],
    ids=["series", "map", "rounds"],
)
async def test_match_that_ends_while_it_is_read_is_returned_as_ended(
    db: Database, first_read: str, read: Callable[[HistoryReader, ServerRow], Awaitable[Json]], content: str
) -> None:
    row = await create_match(db, recorded().settings)
    fold = folded(row)  # its log is not stored, only its final history
    found = await read(HistoryReader(interleaved(db, first_read, lambda: end(db, row, fold))), row)
    assert found["status"] == "finished"
    assert found == await read(HistoryReader(db), row)
    assert found[content]


async def test_final_map_without_statistics_has_no_players(world: HistoryReader) -> None:
    row = await create_past_match(world.db, 1, at_ms=START_MS, is_final=True)
    detail = await world.map(map_of(row))
    assert (detail["players"], detail["antiCheat"], detail["status"]) == ([], [], "finished")
    assert (await world.leaderboard(map_of(row)))["players"] == []


async def test_map_without_a_server_is_returned_as_stored(world: HistoryReader) -> None:
    row = msgspec.structs.replace(row_of(DEATHMATCH), id="srv_gone", game_id=UNKNOWN_UUID)
    await world.db.write(insert_counted(rows.initial_history(row, DEATHMATCH, SERVER_NAME)))
    detail = await world.map(map_of(row))
    assert (detail["status"], detail["players"]) == ("upcoming", [])


# --- the timeline -------------------------------------------------------------------------------------------------


async def test_timeline_is_read_page_by_page(world: HistoryReader) -> None:
    row = await create_match(world.db, DEATHMATCH)
    map_id = map_of(row)
    empty = {"mapId": map_id, "afterSeq": 0, "limit": 100, "nextAfterSeq": 0, "items": []}
    assert await world.events(map_id) == empty
    lines = [b'{"seq":%d,"type":"kill"}' % seq for seq in range(1, 8)]
    await world.db.write([map_events.append(map_id, 1, lines[:3], at_ms=START_MS)])
    await world.db.write([map_events.append(map_id, 4, lines[3:], at_ms=START_MS)])
    page = await world.events(map_id.upper(), after_seq=2, limit=3)
    assert {**page, "items": [item["seq"] for item in page["items"]]} == {
        "mapId": map_id,
        "afterSeq": 2,
        "limit": 3,
        "nextAfterSeq": 5,
        "items": [3, 4, 5],
    }
    assert (await world.events(map_id, after_seq=2**53 - 1))["nextAfterSeq"] == 2**53 - 1


# --- the leaderboard ----------------------------------------------------------------------------------------------


async def test_stored_leaderboard_is_sorted_and_limited_as_requested(world: HistoryReader) -> None:
    row = await create_past_match(world.db, 1, at_ms=START_MS, is_final=True)
    lines = [PlayerLine(player_id="1", kills=1, damage=500), PlayerLine(player_id="2", kills=5)]
    leaderboard = msgspec.json.encode(player_rows(lines, {}))
    stats = MapStats(map_id=map_of(row), stats_version=1, players=b"[]", anti_cheat=b"[]", leaderboard=leaderboard)
    await world.db.write(history.refresh(MatchHistory((), None, (stats,))))
    by_damage = await world.leaderboard(map_of(row).upper(), sort_by=LeaderboardSort.DAMAGE)
    assert [one["steamId"] for one in by_damage["players"]] == ["1", "2"]
    best = await world.leaderboard(map_of(row), sort_by=LeaderboardSort.KILLS, limit=1)
    assert [one["steamId"] for one in best["players"]] == ["2"]
