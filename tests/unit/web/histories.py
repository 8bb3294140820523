"""Stored series, maps, timelines and statistics for the web tests."""

from __future__ import annotations

from pathlib import Path

import msgspec
from msgspec.structs import replace

from cs2_protocol.game import RoundEndReason, Side, Team
from matchpod.core.match.played_map import MapStatus
from matchpod.core.model import Winner
from matchpod.core.stats.buy_types import BuyType
from matchpod.core.views.leaderboard import LeaderboardPlayer, TopWeapon, UtilityThrown
from matchpod.core.views.result_shapes import AntiCheatEntry, Score, SeriesResult
from matchpod.core.views.round_shapes import (
    BombDefuse,
    BombPlant,
    DamagePair,
    FirstKill,
    RoundEntry,
    RoundPlayer,
    RoundTeam,
)
from matchpod.core.views.timeline_items import (
    AntiCheatItem,
    ChatItem,
    KillItem,
    MapEndItem,
    MapLiveItem,
    Person,
    RoundEndItem,
    RoundRestoredItem,
    RoundStartItem,
    TimelineItem,
)
from matchpod.storage import history, map_events
from matchpod.storage.history import MapRounds, MapRow, MapStats, MatchHistory
from tests.unit.web.sites import NOW_MS, OTHER_PLAYER, PLAYER, Site

STARTED_MS = NOW_MS
MINUTE_MS = 60_000
TEAMS = {"team1": {"name": "Alpha", "players": [PLAYER]}, "team2": {"name": "Bravo", "players": [OTHER_PLAYER]}}
GOLDEN = Path(__file__).resolve().parents[2] / "golden"

ANN = Person(steam_id=PLAYER, name="Ann", team=Team.TEAM1)
BOB = Person(steam_id=OTHER_PLAYER, name="Bob", team=Team.TEAM2)
DETECTION = AntiCheatEntry(
    steam_id=OTHER_PLAYER,
    name="Bob",
    team=Team.TEAM2,
    type="Aimbot",
    reason="9 of 10 kills by headshot",
    weapon="ak47",
    map_number=1,
    round_number=1,
    detected_at="2026-09-21T14:14:00.000Z",
)


ROUND = RoundEntry(
    number=1,
    complete=True,
    started_at="2026-09-21T14:13:35.000Z",
    ended_at="2026-09-21T14:14:10.500Z",
    duration=35.5,
    winner=Team.TEAM1,
    winner_side=Side.CT,
    reason=RoundEndReason.BOMB_DEFUSED,
    score=Score(team1=1, team2=0),
    first_kill=FirstKill(timestamp="2026-09-21T14:14:00.000Z", killer=ANN, victim=BOB, weapon="ak47"),
    plant=BombPlant(timestamp="2026-09-21T14:13:55.000Z", player=BOB, site="A"),
    defuse=BombDefuse(timestamp="2026-09-21T14:14:10.500Z", player=ANN),
    team1=RoundTeam(
        side=Side.CT,
        survivors=1,
        kills=1,
        damage_dealt=100,
        money=4700,
        spent=3700,
        equipment_value=4100,
        buy_type=BuyType.FULL,
    ),
    team2=RoundTeam(
        side=Side.T,
        survivors=0,
        kills=0,
        damage_dealt=27,
        money=None,
        spent=None,
        equipment_value=None,
        buy_type=None,
    ),
    players=(
        RoundPlayer(
            steam_id=PLAYER,
            name="Ann",
            team=Team.TEAM1,
            survived=True,
            kills=1,
            deaths=0,
            assists=0,
            headshots=1,
            damage_dealt=100,
            utility_damage=0,
            money=4700,
            spent=3700,
            equipment_value=4100,
        ),
        RoundPlayer(
            steam_id=OTHER_PLAYER,
            name="Bob",
            team=Team.TEAM2,
            survived=False,
            kills=0,
            deaths=1,
            assists=0,
            headshots=0,
            damage_dealt=27,
            utility_damage=27,
            money=None,
            spent=None,
            equipment_value=None,
        ),
    ),
    damage_pairs=(
        DamagePair(attacker_steam_id=PLAYER, victim_steam_id=OTHER_PLAYER, damage=100),
        DamagePair(attacker_steam_id=OTHER_PLAYER, victim_steam_id=PLAYER, damage=27),
    ),
)


def new_series(site: Site, *, series_format: str = "bo3", **fields: object) -> str:
    """Create a series of two named teams; return the id of its server."""
    settings = {"matchType": "competitive", "map": "de_dust2", "maps": ["de_mirage", "de_nuke"], "teams": TEAMS}
    return site.new_server(gameSettings={**settings, "seriesFormat": series_format}, **fields)


def maps_of(site: Site, server_id: str) -> list[MapRow]:
    return site.run(history.maps_of(site.db, server_id))


def map_ids(site: Site, server_id: str) -> list[str]:
    return [row.id for row in maps_of(site, server_id)]


def store(site: Site, maps: list[MapRow], stats: tuple[MapStats, ...] = (), /, **series: object) -> None:
    """Replace the maps of a match, and change its series, if it has one. Maps with statistics get a round."""
    row = site.run(history.series_of(site.db, maps[0].server_id))
    changed = None if row is None else replace(row, **series)
    rounds = tuple(MapRounds.pack(one.map_id, msgspec.json.encode([ROUND])) for one in stats)
    site.run(site.db.write(history.replace(MatchHistory(tuple(maps), changed, stats, rounds))))


def finish(site: Site, server_id: str) -> None:
    """Let the first team win as many maps as needed; cancel the rest. The first map gets a timeline."""
    rows = maps_of(site, server_id)
    needed = len(rows) // 2 + 1
    won = [_won(row) for row in rows[:needed]]
    unplayed = [replace(row, status=MapStatus.CANCELLED, is_final=True) for row in rows[needed:]]
    store(
        site,
        [*won, *unplayed],
        (*(stats_of(row.id) for row in won), *(no_stats(row.id) for row in unplayed)),
        status=MapStatus.FINISHED,
        team1_maps_won=needed,
        winner_team="Alpha",
        started_at_ms=STARTED_MS,
        finished_at_ms=won[-1].finished_at_ms,
        duration_s=needed * 2400 - 600,
        sort_ms=STARTED_MS,
    )
    append_events(site, won[0].id, timeline())


def _won(row: MapRow) -> MapRow:
    """Return a map of half an hour, won by the first team; the next map starts ten minutes later."""
    started_ms = STARTED_MS + (row.map_number - 1) * 40 * MINUTE_MS
    return replace(
        row,
        started_at_ms=started_ms,
        finished_at_ms=started_ms + 30 * MINUTE_MS,
        duration_s=1800,
        sort_ms=started_ms,
        status=MapStatus.FINISHED,
        team1_score=13,
        team2_score=7,
        winner=Winner.TEAM1,
        player_count=2,
        is_final=True,
    )


def append_events(site: Site, map_id: str, items: list[TimelineItem]) -> None:
    lines = [msgspec.json.encode(item) for item in items]
    site.run(site.db.write([map_events.append(map_id, items[0].seq, lines, at_ms=NOW_MS)]))


def chat(first: int, last: int) -> list[TimelineItem]:
    at = "2026-09-21T14:14:00.000Z"
    return [
        ChatItem(seq=seq, timestamp=at, round_number=None, player=ANN, text=f"line {seq}", team_only=False)
        for seq in range(first, last + 1)
    ]


def timeline() -> list[TimelineItem]:
    """Return the timeline of a very short map."""
    at, score = "2026-09-21T14:14:00.000Z", Score(team1=1, team2=0)
    return [
        MapLiveItem(seq=1, timestamp=at, round_number=None, map_name="de_dust2", team1_side=Side.CT, score=Score(0, 0)),
        RoundStartItem(seq=2, timestamp=at, round_number=1, team1_side=Side.CT),
        KillItem(
            seq=3,
            timestamp=at,
            round_number=1,
            killer=ANN,
            victim=BOB,
            weapon="ak47",
            team_kill=False,
            headshot=True,
            wallbang=False,
            through_smoke=False,
            attacker_blind=False,
            noscope=False,
            in_air=False,
            distance=412.5,
        ),
        RoundEndItem(
            seq=4,
            timestamp=at,
            round_number=1,
            winner=Team.TEAM1,
            winner_side=Side.CT,
            reason=RoundEndReason.CTS_WIN,
            score=score,
        ),
        AntiCheatItem(seq=5, timestamp=at, round_number=1, detection=DETECTION),
        RoundRestoredItem(seq=6, timestamp=at, round_number=1, rounds_kept=0, score=Score(0, 0)),
        MapEndItem(
            seq=7,
            timestamp=at,
            round_number=20,
            status=MapStatus.FINISHED,
            winner=Winner.TEAM1,
            score=Score(13, 7),
        ),
    ]


def no_stats(map_id: str) -> MapStats:
    return MapStats(map_id=map_id, stats_version=1, players=b"[]", anti_cheat=b"[]", leaderboard=b"[]")


def stats_of(map_id: str) -> MapStats:
    """Return the statistics of two players."""
    example = msgspec.json.decode((GOLDEN / "example-result.json").read_bytes(), type=SeriesResult)
    played = [
        replace(player, steam_id=person.steam_id, name=person.name, team=person.team)
        for player, person in zip(example.maps[0].players, (ANN, BOB), strict=False)
    ]
    board = [
        board_player(name="Ann", steam_id=PLAYER, team=1, kills=21, damage_dealt=1800),
        board_player(name="Bob", steam_id=OTHER_PLAYER, team=2, kills=15, damage_dealt=2100),
    ]
    return MapStats(
        map_id=map_id,
        stats_version=1,
        players=msgspec.json.encode(played),
        anti_cheat=msgspec.json.encode([DETECTION]),
        leaderboard=msgspec.json.encode(board),
    )


def board_player(*, name: str, steam_id: str, team: int, kills: int, damage_dealt: int) -> LeaderboardPlayer:
    return LeaderboardPlayer(
        name=name,
        steam_id=steam_id,
        team=team,
        kills=kills,
        deaths=15,
        assists=4,
        headshots=9,
        damage_dealt=damage_dealt,
        bullets_fired=None,
        bullets_hit=None,
        accuracy_percent=None,
        bomb_plants=2,
        bomb_defuses=1,
        utility=UtilityThrown(total=6, he=1, flash=2, smoke=2, molly=1, decoy=0),
        top_weapon=TopWeapon("ak47", 12),
    )
