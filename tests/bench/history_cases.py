"""Define the measured reads of the history: every list with every filter, and the details of a map.

The caller belongs to the organization that has half of the maps. Names, dates, servers and maps vary between runs.
Date ranges span at least a year, and a last page is the last full one, so that pages are equally long at every stage.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec

from matchpod.core.match.played_map import MapStatus
from matchpod.core.requests.history_query import EventsQuery, LeaderboardQuery, ListQuery
from matchpod.core.requests.match_list_query import ListedOutcome, MatchListQuery
from matchpod.core.views.leaderboard import LeaderboardPlayer, TopWeapon, UtilityThrown
from matchpod.ports import Database
from matchpod.service.identity.principals import Principal, Role, Scope
from matchpod.service.match_log.fold_turns import FoldTurns
from matchpod.service.match_log.live import LocalMatches
from matchpod.service.match_log.remote import RemoteMatches
from matchpod.service.reading.history import History
from matchpod.service.regions.regions import Regions
from matchpod.storage import history, map_events
from matchpod.storage.history import MapRow, MapStats, MatchHistory
from matchpod.storage.history_counts import DAY_MS
from tests.bench.history_rows import (
    BIG,
    FIRST_MS,
    KNOWN_PLAYERS,
    MAP_NAMES,
    MAPS_PER_GROUP,
    MATCHES_PER_GROUP,
    SPAN_MS,
    TEAMS,
    big_server_id,
    big_servers,
)

CALLER: Final = Principal(org_id=BIG, key_id="key_bench", role=Role.MEMBER, scopes=frozenset({Scope.SERVERS_READ}))
CHOSEN: Final = 40
"""Matches, spread over the time span, whose finished maps get statistics and timelines of real length and are read."""
ITEMS: Final = 1_200
PLAYERS: Final = 10

Case = Callable[[random.Random], Awaitable[object]]
"""Runs one read, with random parameters."""
_Choice = Callable[[random.Random], ListQuery]

_KILL: Final = (
    b'{"type":"kill","seq":%d,"timestamp":"2026-09-21T14:14:00.000Z","roundNumber":1,"killer":{"steamId":'
    b'"76561198000000001","name":"Ann","team":"team1"},"victim":{"steamId":"76561198000000002","name":"Bob","team":'
    b'"team2"},"weapon":"ak47","teamKill":false,"headshot":true,"wallbang":false,"throughSmoke":false,'
    b'"attackerBlind":false,"noscope":false,"inAir":false,"distance":412.5}'
)


async def cases(db: Database, maps: int) -> dict[str, Case]:
    """Return all cases by name, for a history of `maps` maps."""
    service = History(
        db=db, live=LocalMatches(), remote=RemoteMatches(db=db, regions=Regions((), db), turns=FoldTurns())
    )
    lists = await _map_lists(service) | await _series_lists(service) | _searches(service, maps)
    return {"yardstick: SELECT 1": lambda _: db.read("SELECT 1")} | lists | await _details(db, service, maps)


async def _map_lists(service: History) -> dict[str, Case]:
    finished, cancelled = MapStatus.FINISHED, MapStatus.CANCELLED

    async def last(status: MapStatus | None = None) -> int:
        page = await service.maps(CALLER, ListQuery(status=status))
        return page.total // page.page_size

    everything, all_finished, all_cancelled = await last(), await last(finished), await last(cancelled)
    choices: dict[str, _Choice] = {
        "first page": lambda _: ListQuery(),
        "page 50, of 10": lambda _: ListQuery(page=50, page_size=10),
        "page in the middle": lambda _: ListQuery(page=everything // 2),
        "last page": lambda _: ListQuery(page=everything),
        "status": lambda _: ListQuery(status=finished),
        "status, last page": lambda _: ListQuery(status=finished, page=all_finished),
        "status cancelled, last page": lambda _: ListQuery(status=cancelled, page=all_cancelled),
        "status cancelled, in the middle": lambda _: ListQuery(status=cancelled, page=max(1, all_cancelled // 2)),
        "map": lambda rng: ListQuery(map_name=rng.choice(MAP_NAMES)),
        "dateFrom": lambda rng: ListQuery(from_ms=_early(rng, DAY_MS)),
        "dateTo": lambda rng: ListQuery(before_ms=_late(rng, DAY_MS)),
        "dates": lambda rng: ListQuery(from_ms=_early(rng, DAY_MS), before_ms=_late(rng, DAY_MS)),
        "dates with times": lambda rng: ListQuery(from_ms=_early(rng), before_ms=_late(rng)),
        "status, map": lambda rng: ListQuery(status=finished, map_name=rng.choice(MAP_NAMES)),
        "status, map, dates with times": lambda rng: ListQuery(
            status=finished, map_name=rng.choice(MAP_NAMES), from_ms=_early(rng), before_ms=_late(rng)
        ),
    }
    return {f"maps: {name}": _case(service.maps, choice) for name, choice in choices.items()}


async def _series_lists(service: History) -> dict[str, Case]:
    finished = MapStatus.FINISHED
    first = await service.series_list(CALLER, ListQuery())
    choices: dict[str, _Choice] = {
        "first page": lambda _: ListQuery(),
        "page 50, of 5": lambda _: ListQuery(page=50, page_size=5),
        "last page": lambda _: ListQuery(page=first.total // first.page_size),
        "status": lambda _: ListQuery(status=finished),
        "dates": lambda rng: ListQuery(from_ms=_early(rng, DAY_MS), before_ms=_late(rng, DAY_MS)),
        "dates with times": lambda rng: ListQuery(from_ms=_early(rng), before_ms=_late(rng)),
        "status, dates with times": lambda rng: ListQuery(status=finished, from_ms=_early(rng), before_ms=_late(rng)),
    }
    return {f"series: {name}": _case(service.series_list, choice) for name, choice in choices.items()}


def _searches(service: History, maps: int) -> dict[str, Case]:
    """Return searches for rare and for frequent words, and lists by outcome."""
    matches = maps // MAPS_PER_GROUP * MATCHES_PER_GROUP
    finished, canceled = ListedOutcome.FINISHED, ListedOutcome.CANCELED

    def player(rng: random.Random) -> str:
        return str(76561198000000000 + rng.randrange(KNOWN_PLAYERS))

    choices: dict[str, Callable[[random.Random], MatchListQuery]] = {
        "one match": lambda rng: MatchListQuery(words=(f"match{rng.randrange(matches)}",)),
        "a player": lambda rng: MatchListQuery(words=(player(rng),)),
        "a player, a team": lambda rng: MatchListQuery(words=(player(rng), "team", f"t{rng.randrange(TEAMS)}")),
        "a team": lambda rng: MatchListQuery(words=(f"t{rng.randrange(10, TEAMS)}",)),
        "a word of all matches": lambda _: MatchListQuery(words=("cup",)),
        "two words of all matches": lambda _: MatchListQuery(words=("cup", "team")),
        "beginning of many words": lambda rng: MatchListQuery(words=(f"match{rng.randrange(1, 10)}",)),
        "no match": lambda _: MatchListQuery(words=("unknown", "cup")),
        "a word of all matches, canceled": lambda _: MatchListQuery(words=("cup",), outcome=canceled),
        "a team, dates": lambda rng: MatchListQuery(
            words=(f"t{rng.randrange(10, TEAMS)}",), from_ms=_early(rng), before_ms=_late(rng)
        ),
    }
    lists = {f"search: {name}": choice for name, choice in choices.items()}
    lists["matches: finished"] = lambda _: MatchListQuery(outcome=finished)
    lists["matches: canceled"] = lambda _: MatchListQuery(outcome=canceled)
    return {name: _list_case(service, choice) for name, choice in lists.items()}


def _list_case(service: History, choice: Callable[[random.Random], MatchListQuery]) -> Case:
    return lambda rng: service.matches(CALLER, choice(rng))


def _case(read: Callable[[Principal, ListQuery], Awaitable[object]], choice: _Choice) -> Case:
    return lambda rng: read(CALLER, choice(rng))


def _early(rng: random.Random, step_ms: int = 1) -> int:
    """Return a time in the first quarter of the time span."""
    return FIRST_MS + rng.randrange(0, SPAN_MS // 4, step_ms)


def _late(rng: random.Random, step_ms: int = 1) -> int:
    """Return a time in the last quarter of the time span."""
    return FIRST_MS + SPAN_MS - rng.randrange(0, SPAN_MS // 4, step_ms)


# --- single maps and series ---------------------------------------------------------------------------------------


async def _details(db: Database, service: History, maps: int) -> dict[str, Case]:
    chosen = [row.id for row in await _choose_maps(db, maps)]
    servers = big_servers(maps)

    def server(rng: random.Random) -> str:
        return big_server_id(rng.randrange(servers))

    def events(rng: random.Random) -> Awaitable[object]:
        after = rng.randrange(ITEMS - 100)
        return service.events(CALLER, rng.choice(chosen), EventsQuery(after_seq=after, limit=100))

    return {
        "maps: serverId": lambda rng: service.maps(CALLER, ListQuery(server_id=server(rng))),
        "series: serverId": lambda rng: service.series_list(CALLER, ListQuery(server_id=server(rng))),
        "series detail": lambda rng: service.series(CALLER, server(rng).replace("srv_", "ser_")),
        "map detail": lambda rng: service.map(CALLER, rng.choice(chosen)),
        "events: 100 of a map": events,
        "leaderboard": lambda rng: service.leaderboard(CALLER, rng.choice(chosen), LeaderboardQuery()),
    }


async def _choose_maps(db: Database, maps: int) -> list[MapRow]:
    """Choose finished maps, spread over the whole time span, and store realistic statistics and timelines for them."""
    servers = big_servers(maps)
    found = [await history.maps_of(db, big_server_id(number * servers // CHOSEN)) for number in range(CHOSEN)]
    chosen = [row for rows in found for row in rows if row.status is MapStatus.FINISHED]
    players = b"[%s]" % b",".join([b'{"steamId":"76561198000000001","extraStats":{%s}}' % (b" " * 800)] * PLAYERS)
    leaderboard = msgspec.json.encode([_player(number) for number in range(PLAYERS)])
    items = [_KILL % seq for seq in range(1, ITEMS + 1)]
    for row in chosen:
        stats = MapStats(map_id=row.id, stats_version=1, players=players, anti_cheat=b"[]", leaderboard=leaderboard)
        await db.write(history.refresh(MatchHistory((), None, (stats,))))
        if not await map_events.read_after(db, row.id, 1, limit=1):
            await db.write([map_events.append(row.id, 2, items[1:], at_ms=row.sort_ms)])
            await map_events.compact(db, row.server_id)
    return chosen


def _player(number: int) -> LeaderboardPlayer:
    return LeaderboardPlayer(
        name=f"player {number}", steam_id=str(76561197960265728 + number), team=number % 2 + 1, kills=number + 7,
        deaths=9, assists=3, headshots=4, damage_dealt=1500 + number, bullets_fired=None, bullets_hit=None,
        accuracy_percent=None, bomb_plants=1, bomb_defuses=0, top_weapon=TopWeapon("ak47", 6),
        utility=UtilityThrown(total=5, he=1, flash=2, smoke=1, molly=1, decoy=0),
    )  # fmt: skip
