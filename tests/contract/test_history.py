"""A caller reads the series and maps of his organization: from their creation on, live, and as they ended."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import cache
from typing import Any

import msgspec
import pytest

from matchpod.core.errors import ForbiddenError, NotFoundError, UnavailableError
from matchpod.core.history_query import EventsQuery, LeaderboardQuery, ListQuery
from matchpod.core.model import MatchType
from matchpod.core.played_map import MapStatus
from matchpod.core.server_status import ServerPhase, ServerStatus
from matchpod.core.stats.leaderboard import LeaderboardPlayer, LeaderboardSort, UtilityThrown
from matchpod.ports import Database, Row, Value
from matchpod.service.folding import Fold
from matchpod.service.history import naming, rows
from matchpod.service.history.reading import History
from matchpod.service.live import LiveMatch, LiveMatches
from matchpod.service.principals import Principal
from matchpod.service.regions import Regions
from matchpod.service.spectators import Spectators
from matchpod.storage import history, map_events, servers
from matchpod.storage.history import MapStats, MatchHistory
from matchpod.storage.servers import ServerRow
from tests.contract import databases
from tests.contract.test_matches import READER, STRANGER, AwayDatabase
from tests.contract.test_numbers_agree import SERVER_NAME, Shown, created, seen
from tests.contract.test_spectators import store
from tests.unit.service.test_folding import recorded, row_of
from tests.unit.simulator.played_match import START_MS, mode_settings

home = databases.sqlite_home

DAY_MS = 86_400_000
DEATHMATCH = mode_settings(MatchType.DEATHMATCH, maps=("de_dust2",))
NO_SUCH_IDS = ("", "x", "ser_", "ser_unknown", "00000000-0000-0000-0000-00000000000", "\x00", "\udcff", "é" * 36, "{}")
UNKNOWN_UUID = "aaaaaaaa-0000-4000-8000-000000000000"


class Desk:
    """The history as one process reads it."""

    def __init__(self, db: Database) -> None:
        self.db = db
        self.live = LiveMatches()
        self.history = History(db=db, live=self.live, spectators=Spectators(db=db, regions=Regions([], db)))

    async def map(self, map_id: str, principal: Principal = READER) -> Shown:
        return seen(await self.history.map(principal, map_id))

    async def leaderboard(self, map_id: str, **query: Any) -> Shown:
        return seen(await self.history.leaderboard(READER, map_id, LeaderboardQuery(**query)))

    async def series(self, series_id: str) -> Shown:
        return seen(await self.history.series(READER, series_id))

    async def series_list(self, principal: Principal = READER, **query: Any) -> Shown:
        return seen(await self.history.series_list(principal, ListQuery(**query)))

    async def maps(self, principal: Principal = READER, **query: Any) -> Shown:
        return seen(await self.history.maps(principal, ListQuery(**query)))

    async def events(self, map_id: str, **query: Any) -> Shown:
        return seen(await self.history.events(READER, map_id, EventsQuery(**query)))


class Meanwhile(databases.PassedOn):
    """A database in which something happens right after the first read that has these words in it."""

    def __init__(self, db: Database, words: str, meanwhile: Callable[[], Awaitable[object]]) -> None:
        super().__init__(db)
        self._words = words
        self._meanwhile: Callable[[], Awaitable[object]] | None = meanwhile

    async def read(self, sql: str, params: Mapping[str, Value] | None = None) -> list[Row]:
        found = await super().read(sql, params)
        if self._words in sql and self._meanwhile is not None:
            meanwhile, self._meanwhile = self._meanwhile, None
            await meanwhile()
        return found


def run(home: databases.Home, scenario: Callable[[Desk], Awaitable[None]]) -> None:
    async def on(db: Database) -> None:
        await scenario(Desk(db))

    home.run(on)


def map_of(row: ServerRow, number: int = 1) -> str:
    return naming.map_id(row.game_id, number)


def folded(row: ServerRow, entries: int | None = None) -> Fold:
    """The recorded series, read so far."""
    fold = Fold.begin(row, 1.0)
    for entry in recorded().entries[:entries]:
        fold.take(entry)
    return fold


@cache
def in_the_second_map() -> int:
    """A number of entries after which the second map of the recorded series is well under way."""
    fold = Fold.begin(row_of(recorded().settings), 1.0)
    for number, entry in enumerate(recorded().entries, start=1):
        fold.take(entry)
        current = fold.reader.match.current_map
        if current.number == 2 and current.team1_score + current.team2_score == 2:
            return number
    raise AssertionError("there is no second map")


async def end(db: Database, row: ServerRow, fold: Fold, stats_version: int = 1) -> MatchHistory:
    """Store the end of a match, as whoever drove it does."""
    final = rows.history_of(row, fold.reader.match, server_name=SERVER_NAME, is_final=True, stats_version=stats_version)
    changed = servers.change(row.id, row.fence, phase=ServerPhase.RELEASED, status=ServerStatus.STOPPED)
    await db.write([changed, *history.replace(final)])
    return final


async def past(
    db: Database, number: int, *, at_ms: int, status: MapStatus = MapStatus.FINISHED, **map_fields: Any
) -> ServerRow:
    """A match of one map that started at a time."""
    row = await created(db, mode_settings(MatchType.COMPETITIVE), number)
    upcoming = rows.upcoming(row, mode_settings(MatchType.COMPETITIVE), SERVER_NAME)
    changes: dict[str, Any] = {"status": status, "started_at_ms": at_ms, "sort_ms": at_ms}
    maps = tuple(msgspec.structs.replace(one, **changes, **map_fields) for one in upcoming.maps)
    assert upcoming.series is not None
    await db.write(history.replace(MatchHistory(maps, msgspec.structs.replace(upcoming.series, **changes))))
    return row


# --- series -------------------------------------------------------------------------------------------------------


def test_a_list_of_series_has_the_fields_of_the_interface(home: databases.Home) -> None:
    async def scenario(desk: Desk) -> None:
        row = await created(desk.db, recorded().settings)
        await end(desk.db, row, folded(row))
        page = await desk.series_list()
        assert list(page) == ["page", "pageSize", "total", "items"]
        assert (page["page"], page["pageSize"], page["total"]) == (1, 20, 1)
        (item,) = page["items"]
        assert list(item) == [
            "id", "seriesId", "serverId", "serverName", "format", "team1Name", "team2Name", "team1MapsWon",
            "team2MapsWon", "status", "gameMode", "startedAt", "finishedAt", "duration", "winnerTeam", "maps",
        ]  # fmt: skip
        assert item["id"] == naming.series_uuid(row.game_id)
        assert (item["seriesId"], item["serverId"], item["serverName"]) == ("ser_" + row.id[4:], row.id, SERVER_NAME)
        assert (item["format"], item["gameMode"], item["status"]) == ("bo3", "wingman", "finished")
        assert item["winnerTeam"] in ("Alpha", "Beta")
        assert item["startedAt"].endswith("Z")
        assert item["finishedAt"] > item["startedAt"]
        assert [list(one) for one in item["maps"]] == [["id", "mapNumber", "mapName", "status"]] * 3
        assert [one["mapName"] for one in item["maps"]] == ["de_vertigo", "de_nuke", "de_inferno"]

    run(home, scenario)


def test_a_series_is_there_from_its_creation(home: databases.Home) -> None:
    async def scenario(desk: Desk) -> None:
        row = await created(desk.db, recorded().settings)
        (item,) = (await desk.series_list())["items"]
        assert (item["status"], item["startedAt"], item["finishedAt"], item["duration"]) == ("upcoming", *[None] * 3)
        assert (item["team1Name"], item["team2Name"], item["winnerTeam"]) == ("Alpha", "Beta", None)
        assert {one["status"] for one in item["maps"]} == {"upcoming"}
        detail = await desk.series(naming.series_id(row.id))
        assert [(one["team1Score"], one["winner"], one["playerCount"]) for one in detail["maps"]] == [(0, None, 0)] * 3

    run(home, scenario)


def test_a_series_is_found_by_either_id_and_shows_the_scores_of_its_maps(home: databases.Home) -> None:
    async def scenario(desk: Desk) -> None:
        row = await created(desk.db, recorded().settings)
        await end(desk.db, row, folded(row))
        detail = await desk.series(naming.series_id(row.id))
        assert [list(one) for one in detail["maps"]] == [
            [
                "id", "mapNumber", "mapName", "status", "team1Score", "team2Score", "winner", "playerCount",
                "startedAt", "finishedAt", "duration",
            ]
        ] * 3  # fmt: skip
        assert [one["mapNumber"] for one in detail["maps"]] == [1, 2, 3]
        uuid = naming.series_uuid(row.game_id)
        assert await desk.series(uuid) == await desk.series(uuid.upper()) == detail

    run(home, scenario)


def test_series_are_listed_newest_first_and_by_page(home: databases.Home) -> None:
    async def scenario(desk: Desk) -> None:
        # The first two started at the same time.
        made = [await past(desk.db, n, at_ms=START_MS + DAY_MS * max(n, 2)) for n in (1, 2, 3, 4)]
        never = await created(desk.db, mode_settings(MatchType.COMPETITIVE), 5)
        twins = sorted(made[:2], key=lambda row: naming.series_uuid(row.game_id))
        order = [naming.series_id(row.id) for row in (made[3], made[2], *twins, never)]
        whole = await desk.series_list()
        assert [item["seriesId"] for item in whole["items"]] == order
        pages = [await desk.series_list(page=page, page_size=2) for page in (1, 2, 3, 4)]
        assert [item["seriesId"] for page in pages for item in page["items"]] == order
        assert {(page["total"], page["pageSize"]) for page in pages} == {(5, 2)}

    run(home, scenario)


def test_lists_are_narrowed_by_what_is_asked_for(home: databases.Home) -> None:
    async def scenario(desk: Desk) -> None:
        old = await past(desk.db, 1, at_ms=START_MS, map_name="de_nuke")
        new = await past(desk.db, 2, at_ms=START_MS + DAY_MS, status=MapStatus.LIVE)
        await created(desk.db, DEATHMATCH, 3)

        async def found(**query: Any) -> tuple[list[str], list[str]]:
            series, maps = await desk.series_list(**query), await desk.maps(**query)
            assert series["total"] == len(series["items"])
            assert maps["total"] == len(maps["items"])
            return [one["serverId"] for one in series["items"]], [one["serverId"] for one in maps["items"]]

        assert await found(status=MapStatus.LIVE) == ([new.id], [new.id])
        assert await found(server_id=old.id) == ([old.id], [old.id])
        assert await found(server_id=old.id, status=MapStatus.LIVE) == ([], [])
        assert await found(from_ms=START_MS + 1) == ([new.id], [new.id])
        assert await found(from_ms=START_MS, before_ms=START_MS + 1) == ([old.id], [old.id])
        assert await found(before_ms=START_MS) == ([], [])
        by_name = await desk.maps(map_name="de_nuke")
        assert [one["serverId"] for one in by_name["items"]] == [old.id]
        assert (await desk.maps())["total"] == 3
        assert (await desk.series_list())["total"] == 2

    run(home, scenario)


def test_nobody_sees_the_lists_of_another_organization(home: databases.Home) -> None:
    async def scenario(desk: Desk) -> None:
        row = await past(desk.db, 1, at_ms=START_MS)
        for query in ({}, {"server_id": row.id}):
            for page in (await desk.series_list(STRANGER, **query), await desk.maps(STRANGER, **query)):
                assert (page["total"], page["items"]) == (0, [])

    run(home, scenario)


def test_a_server_has_its_series_or_none(home: databases.Home) -> None:
    async def scenario(desk: Desk) -> None:
        row = await past(desk.db, 1, at_ms=START_MS)
        other = await created(desk.db, DEATHMATCH, 2)
        page = seen(await desk.history.server_series(READER, row.id, ListQuery(page_size=5)))
        assert page == await desk.series_list(server_id=row.id, page_size=5)
        assert page["total"] == 1
        for server_id, query in (
            (other.id, ListQuery()),
            (row.id, ListQuery(server_id=other.id)),
            (row.id, ListQuery(status=MapStatus.LIVE)),
        ):
            empty = await desk.history.server_series(READER, server_id, query)
            assert (empty.total, empty.items) == (0, ())
        assert (await desk.history.server_series(READER, row.id, ListQuery(server_id=row.id))).total == 1

    run(home, scenario)


def test_a_series_and_its_maps_are_told_of_the_same_moment(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        row = await created(db, recorded().settings)
        fold = folded(row)
        desk = Desk(Meanwhile(db, "FROM series", lambda: end(db, row, fold)))
        detail = await desk.series(naming.series_id(row.id))
        assert detail == await Desk(db).series(naming.series_id(row.id))
        assert detail["status"] == "finished"

    home.run(scenario)


# --- whose it is --------------------------------------------------------------------------------------------------


def test_what_nobody_has_is_not_found(home: databases.Home) -> None:
    async def scenario(desk: Desk) -> None:
        await created(desk.db, recorded().settings)
        reads: list[Callable[[str], Awaitable[object]]] = [
            lambda key: desk.history.series(READER, key),
            lambda key: desk.history.map(READER, key),
            lambda key: desk.history.events(READER, key, EventsQuery()),
            lambda key: desk.history.leaderboard(READER, key, LeaderboardQuery()),
            lambda key: desk.history.own_map(READER, key),
            lambda key: desk.history.own_maps(READER, key),
            lambda key: desk.history.server_series(READER, key, ListQuery()),
        ]
        for read in reads:
            for key in (*NO_SUCH_IDS, UNKNOWN_UUID):
                with pytest.raises(NotFoundError):
                    await read(key)

    run(home, scenario)


def test_what_another_organization_has_is_forbidden(home: databases.Home) -> None:
    async def scenario(desk: Desk) -> None:
        row = await created(desk.db, recorded().settings)
        map_id = map_of(row)
        reads: list[Awaitable[object]] = [
            desk.history.series(STRANGER, naming.series_id(row.id)),
            desk.history.series(STRANGER, naming.series_uuid(row.game_id)),
            desk.history.map(STRANGER, map_id),
            desk.history.events(STRANGER, map_id, EventsQuery()),
            desk.history.leaderboard(STRANGER, map_id, LeaderboardQuery()),
            desk.history.own_map(STRANGER, map_id),
            desk.history.own_maps(STRANGER, row.id),
            desk.history.server_series(STRANGER, row.id, ListQuery(server_id="srv_other")),
        ]
        for read in reads:
            with pytest.raises(ForbiddenError):
                await read

    run(home, scenario)


def test_streams_get_the_rows_of_a_caller(home: databases.Home) -> None:
    async def scenario(desk: Desk) -> None:
        row = await created(desk.db, recorded().settings)
        maps = await desk.history.own_maps(READER, row.id)
        assert [one.map_number for one in maps] == [1, 2, 3]
        assert await desk.history.own_map(READER, map_of(row, 2).upper()) == maps[1]

    run(home, scenario)


def test_while_the_database_is_away_callers_are_told_to_come_back() -> None:
    async def scenario() -> None:
        desk = Desk(AwayDatabase())
        reads: list[Awaitable[object]] = [
            desk.history.series_list(READER, ListQuery()),
            desk.history.series(READER, UNKNOWN_UUID),
            desk.history.server_series(READER, "srv_1", ListQuery()),
            desk.history.maps(READER, ListQuery()),
            desk.history.map(READER, UNKNOWN_UUID),
            desk.history.events(READER, UNKNOWN_UUID, EventsQuery()),
            desk.history.leaderboard(READER, UNKNOWN_UUID, LeaderboardQuery()),
            desk.history.own_map(READER, UNKNOWN_UUID),
            desk.history.own_maps(READER, "srv_1"),
        ]
        for read in reads:
            with pytest.raises(UnavailableError):
                await read

    asyncio.run(scenario())


# --- maps ---------------------------------------------------------------------------------------------------------


def test_a_map_has_the_fields_of_the_interface(home: databases.Home) -> None:
    async def scenario(desk: Desk) -> None:
        row = await created(desk.db, recorded().settings)
        await end(desk.db, row, folded(row), stats_version=2)
        page = await desk.maps(map_name="de_vertigo")
        assert list(page) == ["page", "pageSize", "total", "items"]
        (item,) = page["items"]
        fields = [
            "id", "serverId", "serverName", "map", "gameMode", "team1Name", "team2Name", "team1Score", "team2Score",
            "status", "startedAt", "finishedAt", "duration", "playerCount",
        ]  # fmt: skip
        assert list(item) == fields
        detail = await desk.map(item["id"])
        assert list(detail) == [
            *fields, "seriesId", "mapNumber", "winner", "players", "antiCheat", "statsVersion"
        ]  # fmt: skip
        assert (detail["seriesId"], detail["mapNumber"], detail["statsVersion"]) == (naming.series_id(row.id), 1, 2)
        assert detail["winner"] in ("team1", "team2")
        assert detail == await desk.map(item["id"].upper())

    run(home, scenario)


@pytest.mark.parametrize("phase", [ServerPhase.ALLOCATING, ServerPhase.PENDING])
def test_a_map_whose_server_does_not_run_yet_is_upcoming(phase: ServerPhase, home: databases.Home) -> None:
    async def scenario(desk: Desk) -> None:
        row = await created(desk.db, DEATHMATCH)
        # A server may talk while it is set up, and be given up.
        await store(desk.db, recorded().entries, row.id)
        await desk.db.write([servers.change(row.id, row.fence, phase=phase, status=ServerStatus(phase.value))])
        detail = await desk.map(map_of(row))
        assert (detail["status"], detail["map"], detail["seriesId"]) == ("upcoming", "de_dust2", None)
        assert (detail["players"], detail["antiCheat"], detail["playerCount"]) == ([], [], 0)
        assert (detail["team1Name"], detail["team2Name"], detail["startedAt"]) == (None, None, None)
        assert (await desk.leaderboard(map_of(row)))["players"] == []

    run(home, scenario)


def test_a_live_map_is_the_same_whichever_process_is_asked(home: databases.Home) -> None:
    async def scenario(desk: Desk) -> None:
        row = await created(desk.db, recorded().settings)
        await store(desk.db, recorded().entries[: in_the_second_map()], row.id)
        following = Desk(desk.db)
        following.live.add(LiveMatch(row.id, folded(row, in_the_second_map()), in_the_second_map()))
        for number, status in ((1, "finished"), (2, "live"), (3, "upcoming")):
            detail = await following.map(map_of(row, number))
            assert detail["status"] == status
            assert detail == await desk.map(map_of(row, number))
            assert await following.leaderboard(map_of(row, number)) == await desk.leaderboard(map_of(row, number))
        live = await desk.map(map_of(row, 2))
        assert live["team1Score"] + live["team2Score"] == 2
        assert (live["finishedAt"], live["duration"], live["winner"]) == (None, None, None)
        assert len(live["players"]) == live["playerCount"] == 4

    run(home, scenario)


def test_a_map_has_ended_when_its_end_is_stored_with_its_last_events_and_not_before(home: databases.Home) -> None:
    async def scenario(desk: Desk) -> None:
        row = await created(desk.db, recorded().settings)
        stored = rows.history_of(row, folded(row, in_the_second_map()).reader.match, server_name=SERVER_NAME)
        lagging = msgspec.structs.replace(stored.maps[0], status=MapStatus.LIVE, winner=None, finished_at_ms=None)
        await desk.db.write(history.replace(msgspec.structs.replace(stored, maps=(lagging, *stored.maps[1:]))))
        desk.live.add(LiveMatch(row.id, folded(row, in_the_second_map()), in_the_second_map()))
        before = await desk.map(map_of(row))
        assert [before[name] for name in ("status", "winner", "finishedAt", "duration")] == ["live", None, None, None]
        await desk.db.write(history.replace(stored))
        after = await desk.map(map_of(row))
        assert after["status"] == "finished"
        assert after["winner"] is not None
        assert after["players"] == before["players"]

    run(home, scenario)


def test_a_map_that_its_caller_canceled_keeps_its_numbers(home: databases.Home) -> None:
    async def scenario(desk: Desk) -> None:
        row = await created(desk.db, recorded().settings)
        await store(desk.db, recorded().entries[: in_the_second_map()], row.id)
        before = [await desk.map(map_of(row, number)) for number in (1, 2, 3)]
        ending = servers.change(row.id, row.fence, phase=ServerPhase.ENDING, status=ServerStatus.STOPPED)
        await desk.db.write([ending, *history.cancel_open(row.id)])
        following = Desk(desk.db)
        following.live.add(LiveMatch(row.id, folded(row, in_the_second_map()), in_the_second_map()))
        for fresh in (desk, Desk(desk.db), following):
            after = [await fresh.map(map_of(row, number)) for number in (1, 2, 3)]
            assert [one["status"] for one in after] == ["finished", "cancelled", "cancelled"]
            assert after == [{**one, "status": now["status"]} for one, now in zip(before, after, strict=True)]
            assert (await fresh.leaderboard(map_of(row, 2)))["status"] == "cancelled"

    run(home, scenario)


def test_a_map_that_ends_while_it_is_looked_at_is_told_as_it_ended(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        row = await created(db, recorded().settings)
        fold = folded(row)  # its log is not stored: only what is stored at the end can tell
        desk = Desk(Meanwhile(db, "FROM maps", lambda: end(db, row, fold)))
        detail = await desk.map(map_of(row))
        assert detail["status"] == "finished"
        assert detail == await Desk(db).map(map_of(row))
        assert len(detail["players"]) == 4

    home.run(scenario)


def test_a_final_map_without_statistics_has_no_players(home: databases.Home) -> None:
    async def scenario(desk: Desk) -> None:
        row = await past(desk.db, 1, at_ms=START_MS, is_final=True)
        detail = await desk.map(map_of(row))
        assert (detail["players"], detail["antiCheat"], detail["status"]) == ([], [], "finished")
        assert (await desk.leaderboard(map_of(row)))["players"] == []

    run(home, scenario)


def test_a_map_without_its_server_is_told_as_it_is_stored(home: databases.Home) -> None:
    async def scenario(desk: Desk) -> None:
        row = msgspec.structs.replace(row_of(DEATHMATCH), id="srv_gone", game_id=UNKNOWN_UUID)
        await desk.db.write(history.begin(rows.upcoming(row, DEATHMATCH, SERVER_NAME)))
        detail = await desk.map(map_of(row))
        assert (detail["status"], detail["players"]) == ("upcoming", [])

    run(home, scenario)


# --- the timeline -------------------------------------------------------------------------------------------------


def test_a_timeline_is_read_by_its_cursor(home: databases.Home) -> None:
    async def scenario(desk: Desk) -> None:
        row = await created(desk.db, DEATHMATCH)
        map_id = map_of(row)
        empty = {"mapId": map_id, "afterSeq": 0, "limit": 100, "nextAfterSeq": 0, "items": []}
        assert await desk.events(map_id) == empty
        lines = [b'{"seq":%d,"type":"kill"}' % seq for seq in range(1, 8)]
        await desk.db.write([map_events.append(map_id, 1, lines[:3], at_ms=START_MS)])
        await desk.db.write([map_events.append(map_id, 4, lines[3:], at_ms=START_MS)])
        whole = await desk.events(map_id.upper())
        assert list(whole) == ["mapId", "afterSeq", "limit", "nextAfterSeq", "items"]
        assert (whole["mapId"], whole["nextAfterSeq"]) == (map_id, 7)
        assert [item["seq"] for item in whole["items"]] == list(range(1, 8))
        seqs, after_seq = [], 0
        while (page := await desk.events(map_id, after_seq=after_seq, limit=2))["items"]:
            assert (page["afterSeq"], page["limit"]) == (after_seq, 2)
            seqs += [item["seq"] for item in page["items"]]
            after_seq = page["nextAfterSeq"]
        assert seqs == list(range(1, 8))
        assert page["nextAfterSeq"] == 7
        assert (await desk.events(map_id, after_seq=2**53 - 1))["nextAfterSeq"] == 2**53 - 1

    run(home, scenario)


# --- the leaderboard ----------------------------------------------------------------------------------------------


def player(name: str, number: int, *, smokes: int = 0, **numbers: Any) -> LeaderboardPlayer:
    zeros: dict[str, Any] = dict.fromkeys(
        ("team", "kills", "deaths", "assists", "headshots", "damage_dealt", "bomb_plants", "bomb_defuses"), 0
    )
    uncounted: dict[str, Any] = dict.fromkeys(("bullets_fired", "bullets_hit", "accuracy_percent", "top_weapon"))
    utility = UtilityThrown(total=smokes, he=0, flash=0, smoke=smokes, molly=0, decoy=0)
    fields = {**zeros, **uncounted, "utility": utility, **numbers}
    return LeaderboardPlayer(name=name, steam_id=str(76561198000000000 + number), **fields)


BOARD = (
    player("Dora", 1, kills=5, damage_dealt=400, bomb_defuses=2),
    player("Zoe", 2, kills=5, damage_dealt=500, headshots=1),
    player("Carl", 3, kills=5, damage_dealt=400, headshots=4),
    player("Carl", 0, kills=5, damage_dealt=400, smokes=2),
    player("Ben", 4, kills=9, damage_dealt=100, accuracy_percent=12.5),
    player("Emil", 5, kills=1, damage_dealt=900, bomb_plants=3, accuracy_percent=0.0),
)


@pytest.mark.parametrize(
    ("sort_by", "order"),
    [
        (LeaderboardSort.KILLS, "4 2 0 3 1 5"),
        (LeaderboardSort.DAMAGE, "5 2 0 3 1 4"),
        (LeaderboardSort.HEADSHOTS, "3 2 4 0 1 5"),
        (LeaderboardSort.ACCURACY, "4 5 2 0 3 1"),
        (LeaderboardSort.UTILITY, "0 4 2 3 1 5"),
        (LeaderboardSort.PLANTS, "5 4 2 0 3 1"),
        (LeaderboardSort.DEFUSES, "1 4 2 0 3 5"),
    ],
)
def test_a_leaderboard_has_the_most_first_and_ties_by_kills_damage_name(
    sort_by: LeaderboardSort, order: str, home: databases.Home
) -> None:
    async def scenario(desk: Desk) -> None:
        row = await past(desk.db, 1, at_ms=START_MS, is_final=True)
        leaderboard = msgspec.json.encode(BOARD)
        stats = MapStats(map_id=map_of(row), stats_version=1, players=b"[]", anti_cheat=b"[]", leaderboard=leaderboard)
        await desk.db.write(history.refresh(MatchHistory((), None, (stats,))))
        board = await desk.leaderboard(map_of(row).upper(), sort_by=sort_by)
        assert " ".join(one["steamId"][-1] for one in board["players"]) == order
        best = await desk.leaderboard(map_of(row), sort_by=sort_by, limit=2)
        assert best["players"] == board["players"][:2]

    run(home, scenario)


def test_a_leaderboard_has_the_fields_of_the_interface(home: databases.Home) -> None:
    async def scenario(desk: Desk) -> None:
        row = await created(desk.db, recorded().settings)
        await end(desk.db, row, folded(row))
        board = await desk.leaderboard(map_of(row))
        assert list(board) == [
            "mapId", "seriesId", "mapNumber", "mapName", "status", "startedAt", "finishedAt", "players",
        ]  # fmt: skip
        assert (board["mapId"], board["seriesId"]) == (map_of(row), naming.series_id(row.id))
        assert (board["mapNumber"], board["mapName"], board["status"]) == (1, "de_vertigo", "finished")
        fields = {
            "name", "steamId", "team", "kills", "deaths", "assists", "headshots", "damageDealt", "bulletsFired",
            "bulletsHit", "accuracyPercent", "bombPlants", "bombDefuses", "utility", "topWeapon",
        }  # fmt: skip
        assert [set(one) for one in board["players"]] == [fields] * 4
        first = board["players"][0]
        assert set(first["utility"]) == {"total", "he", "flash", "smoke", "molly", "decoy"}
        assert set(first["topWeapon"]) == {"weaponName", "kills"}
        assert {one["team"] for one in board["players"]} == {1, 2}

    run(home, scenario)
