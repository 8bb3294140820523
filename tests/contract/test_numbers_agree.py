"""The numbers of a match are the same in lists, details, leaderboard, rounds, result, callback and live view."""

from __future__ import annotations

import uuid
from typing import Any

import msgspec
import pytest

from cs2_simulator.scenarios import Scenario
from matchpod.core.effects import CancelReason
from matchpod.core.match.roster import Roster, RosterRole
from matchpod.core.model import DmSubMode, GameSettings, MatchType, SeriesFormat, TeamRoster
from matchpod.core.outcome import Outcome
from matchpod.core.requests.history_query import EventsQuery, LeaderboardQuery, ListQuery
from matchpod.core.views.leaderboard import MAX_LIMIT
from matchpod.core.views.result import build_result, live_match
from matchpod.ports import Database
from matchpod.service.end_match import end_match
from matchpod.service.history import rows
from matchpod.service.identity import identifiers
from matchpod.service.identity.principals import Principal
from matchpod.service.match_log.fold import Fold
from matchpod.service.match_log.live import LocalMatch
from matchpod.storage import outbox, servers
from matchpod.storage.servers import ServerRow
from tests.contract import databases
from tests.contract.match_histories import insert_counted
from tests.contract.parts import Parts
from tests.contract.same_numbers import (
    Json,
    check_leaderboard,
    check_map_item,
    check_map_result,
    check_rounds,
    check_series,
    check_series_result,
)
from tests.contract.test_matches import READER, Callers
from tests.effort import seeded_random, seeds, some_of
from tests.server_rows import server_row
from tests.unit.simulator.played_match import START_MS, PlayedMatch, mode_settings
from tests.vaults import stored_tokens

harness = databases.sqlite_harness

pytestmark = pytest.mark.law

SEEDS = seeds(1)
SERVER_NAME = "Europe 00000a"
PLAYERS = tuple(str(76561198000000000 + 7919 * number) for number in range(10))


def as_json(view: msgspec.Struct) -> Json:
    return msgspec.json.decode(msgspec.json.encode(view), type=Json)


def listed(match_type: MatchType, size: int, **changes: object) -> GameSettings:
    team1, team2 = TeamRoster("Alpha", PLAYERS[:size]), TeamRoster("Beta", PLAYERS[5 : 5 + size])
    return mode_settings(match_type, team1=team1, team2=team2, **changes)


THREE_MAPS = {"series_format": SeriesFormat.BO3, "maps": ("de_nuke", "de_mirage", "de_ancient")}
GAMES: dict[str, tuple[GameSettings, Scenario]] = {
    "competitive": (listed(MatchType.COMPETITIVE, 5, max_rounds=8), Scenario.ROUND_RESTORE),
    "open to all": (mode_settings(MatchType.COMPETITIVE, max_rounds=6), Scenario.CHEATER),
    "best of three": (listed(MatchType.COMPETITIVE, 3, max_rounds=4, **THREE_MAPS), Scenario.FULL_MATCH),
    "tied": (listed(MatchType.COMPETITIVE, 2, max_rounds=4), Scenario.TIE),
    "with a stranger": (listed(MatchType.COMPETITIVE, 5, max_rounds=6), Scenario.STRANGER),
    "wingman": (listed(MatchType.WINGMAN, 2, max_rounds=6), Scenario.OVERTIME),
    "wingman series": (listed(MatchType.WINGMAN, 2, max_rounds=4, **THREE_MAPS), Scenario.RAGE_QUIT_REJOIN),
    "deathmatch": (mode_settings(MatchType.DEATHMATCH, dm_round_minutes=2.0), Scenario.FULL_MATCH),
    "team deathmatch": (
        mode_settings(MatchType.DEATHMATCH, dm_round_minutes=2.0, dm_sub_mode=DmSubMode.TEAM),
        Scenario.RAGE_QUIT_REJOIN,
    ),
    "casual": (mode_settings(MatchType.CASUAL, max_rounds=5), Scenario.CHEATER),
    "retakes": (mode_settings(MatchType.RETAKES, max_rounds=6), Scenario.FULL_MATCH),
    "custom": (mode_settings(MatchType.CUSTOM, max_rounds=6), Scenario.SPOOFER),
}
some_games = pytest.mark.parametrize("game", some_of(GAMES, 5))
"""For what does not depend on how matches end."""


class HistoryReader(Parts):
    async def map(self, map_id: str, principal: Principal = READER) -> Json:
        return as_json(await self.history.map(principal, map_id))

    async def leaderboard(self, map_id: str, **query: Any) -> Json:
        return as_json(await self.history.leaderboard(READER, map_id, LeaderboardQuery(**query)))

    async def rounds(self, map_id: str) -> Json:
        return as_json(await self.history.rounds(READER, map_id))

    async def series(self, series_id: str) -> Json:
        return as_json(await self.history.series(READER, series_id))

    async def series_list(self, principal: Principal = READER, **query: Any) -> Json:
        return as_json(await self.history.series_list(principal, ListQuery(**query)))

    async def maps(self, principal: Principal = READER, **query: Any) -> Json:
        return as_json(await self.history.maps(principal, ListQuery(**query)))

    async def events(self, map_id: str, **query: Any) -> Json:
        return as_json(await self.history.events(READER, map_id, EventsQuery(**query)))


class Reader(HistoryReader):
    def __init__(self, db: Database, row: ServerRow) -> None:
        super().__init__(db)
        self.match = row

    async def items(self) -> tuple[list[Json], list[Json]]:
        series: list[Json] = (await self.series_list(server_id=self.match.id))["items"]
        of_server = as_json(await self.history.server_series(READER, self.match.id, ListQuery()))["items"]
        assert of_server == series
        return series, (await self.maps(server_id=self.match.id))["items"]

    async def check_map(self, number: int) -> Json:
        map_id = identifiers.map_id(self.match.game_id, number)
        detail = await self.map(map_id)
        check_leaderboard(await self.leaderboard(map_id, limit=MAX_LIMIT), detail)
        check_rounds(await self.rounds(map_id), detail)
        return detail


async def create_match(db: Database, settings: GameSettings, seed: int = 1) -> ServerRow:
    """Store a running server with the history of a new match."""
    name = f"{seed:026}"
    row = server_row(
        f"srv_{name}",
        game_id=str(uuid.UUID(int=seed)),
        org_id=READER.org_id,
        external_match_id=f"cup-{seed}",
        callback_url="https://a.example/cb",
        settings=msgspec.json.encode(settings),
        **stored_tokens(f"{name:l<43}", f"{name:r<43}"),
        created_at_ms=START_MS,
        allocated_at_ms=START_MS,
        running_at_ms=START_MS,
        next_at_ms=START_MS,
    )
    await servers.create(db, row, idempotency=None)
    await db.write(insert_counted(rows.initial_history(row, settings, SERVER_NAME)))
    return row


async def store_finished(db: Database, played: PlayedMatch, seed: int) -> ServerRow:
    return await store_ended(db, played, seed, result=msgspec.json.encode(build_result(played.reader.match)))


async def store_ended(db: Database, played: PlayedMatch, seed: int, result: bytes | None = None) -> ServerRow:
    row = await create_match(db, played.settings, seed)
    final = rows.history_of(row, played.reader.match, server_name=SERVER_NAME, is_final=True)
    name = f"msg_{seed}"
    outcome = Outcome(at_ms=played.now_ms, reason=None if result else CancelReason.CANCELED_BY_USER)
    await db.write(end_match(row, outcome, result=result, fence=row.fence, callback_id=name, final=final))
    return row


def play(game: str, seed: int) -> PlayedMatch:
    settings, scenario = GAMES[game]
    played = PlayedMatch(settings, scenario=scenario, seed=seed)
    assert played.play()
    return played


def play_partly(game: str, seed: int, *, steps: int) -> PlayedMatch:
    """Play until the first kill, and this many steps further."""
    settings, scenario = GAMES[game]
    played = PlayedMatch(settings, scenario=scenario, seed=seed)
    played.configure()
    current = played.reader.match.current_map
    assert played.run_until(lambda: any(count.kills for count in current.ledger.live_counts().values()))
    for _ in range(steps):
        played.step()
    assert played.reader.match.outcome is None
    return played


async def check_stored(reader: Reader, settings: GameSettings) -> tuple[list[Json], Json | None]:
    series, listed_maps = await reader.items()
    items = {item["id"]: item for item in listed_maps}
    maps = [await reader.check_map(number) for number in range(1, len(items) + 1)]
    for detail in maps:
        check_map_item(items[detail["id"]], detail)
    if not settings.match_type.has_series:
        assert series == []
        assert {detail["seriesId"] for detail in maps} == {None}
        return maps, None
    (item,) = series
    whole = await reader.series(identifiers.series_id(reader.match.id))
    check_series(item, whole, maps)
    return maps, whole


async def check_finished(db: Database, played: PlayedMatch, seed: int) -> None:
    reader = Reader(db, await store_finished(db, played, seed))
    maps, series = await check_stored(reader, played.settings)
    result = msgspec.json.decode(msgspec.json.encode(build_result(played.reader.match)))
    for detail in maps:
        if detail["status"] == "cancelled":
            assert (detail["players"], detail["startedAt"], detail["winner"]) == ([], None, None)
        else:
            check_map_result(detail, result)
    if series is not None:
        check_series_result(series, result)
        assert len(result["maps"]) == sum(detail["status"] == "finished" for detail in maps)
    outcome = await outbox.outcome_of(db, reader.match.id)
    assert outcome is not None
    callback = await outbox.callback_of(db, reader.match.id)
    assert callback is not None
    sent = msgspec.json.decode(callback.body, type=dict[str, msgspec.Raw])["result"]
    found = await Callers(db).matches.by_external_id(READER, reader.match.external_match_id or "")
    assert found.result is not None
    assert bytes(found.result) == bytes(sent) == outcome.result, "the result has the bytes of the callback"


@pytest.mark.parametrize("game", GAMES)
async def test_numbers_of_a_finished_match_are_the_same_everywhere(game: str, db: Database) -> None:
    for seed in SEEDS:
        await check_finished(db, play(game, seed), seed)


@some_games
async def test_numbers_of_a_canceled_match_agree(game: str, db: Database) -> None:
    rng = seeded_random(game)
    for seed in SEEDS:
        played = play_partly(game, seed, steps=rng.randint(10, 100))
        played.reader.match.cancel(CancelReason.CANCELED_BY_USER, played.now_ms)
        maps, series = await check_stored(Reader(db, await store_ended(db, played, seed)), played.settings)
        statuses = [detail["status"] for detail in maps]
        assert set(statuses) <= {"finished", "cancelled"}
        assert "cancelled" in statuses
        assert maps[0]["players"]
        if series is not None:
            assert (series["status"], series["winnerTeam"]) == ("cancelled", None)


@pytest.mark.parametrize("game", ["open to all", "deathmatch", "team deathmatch", "custom"])
async def test_players_who_are_not_in_the_result_are_in_no_view(game: str, db: Database) -> None:
    played = play(game, 1)
    all_players = {line.player_id for line in played.reader.match.current_map.ledger.lines()}
    listed_players = sorted(all_players)[::2]
    everyone = dict.fromkeys(listed_players, RosterRole.PLAYER)
    played.reader.match.presence.roster = Roster(roles=everyone, players=tuple(listed_players), is_open=False)
    reader = Reader(db, await store_finished(db, played, 1))
    (detail,), _ = await check_stored(reader, played.settings)
    assert sorted(player["steamId"] for player in detail["players"]) == listed_players
    assert detail["playerCount"] < len(all_players)


@some_games
async def test_numbers_of_a_live_match_agree_at_any_time(game: str, db: Database) -> None:
    rng = seeded_random(game)
    settings, play_scenario = GAMES[game]
    played = PlayedMatch(settings, scenario=play_scenario, seed=3)
    reader = Reader(db, await create_match(db, settings))
    reader.live.add(LocalMatch(reader.match.id, Fold(played.reader), 0))
    played.configure()
    checks = 0
    while played.reader.match.outcome is None:
        for _ in range(rng.randint(1, 60) * (1 + checks // 4)):  # a long match is checked less often
            played.step()
        await check_now(reader, played)
        checks += 1
    assert checks >= 5


async def check_now(reader: Reader, played: PlayedMatch) -> None:
    match = played.reader.match
    live = as_json(live_match(match))
    counted = {player["steamId"]: player for player in live["players"]}
    last = played.settings.series_format.length if played.settings.match_type.has_series else 1
    for number in range(1, last + 1):
        detail = await reader.check_map(number)
        if number > match.current_map.number:
            assert (detail["players"], detail["status"]) == ([], "cancelled" if match.outcome else "upcoming")
        if number != live["mapNumber"]:
            continue
        assert detail["map"] == live["map"]
        if "score" in live:
            assert live["score"] == {"team1": detail["team1Score"], "team2": detail["team2Score"]}
        for player in detail["players"]:
            now = counted.pop(player["steamId"])
            assert [now[name] for name in ("kills", "deaths", "assists")] == [
                player[name] for name in ("kills", "deaths", "assists")
            ]
        # The other players are connected, without kills, deaths and assists.
        assert all(now["kills"] == now["deaths"] == now["assists"] == 0 for now in counted.values())
