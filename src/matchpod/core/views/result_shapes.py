"""Define the API shapes of a result and of the live view.

Numbers that were not measured are null, or omitted from `extraStats`, never 0.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from cs2_protocol.game import PlayerId, Side, Team
from matchpod.core.match.played_map import MapStatus
from matchpod.core.model import MatchType, SeriesFormat, SidesBy, Winner

SteamId = Annotated[PlayerId, Meta(description="The 64-bit player ID.")]
PlayerName = Annotated[str, Meta(description="The player's name.")]
PlayerTeam = Annotated[Team | None, Meta(description="`team1` or `team2`; null if unknown.")]
Kills = Annotated[int, Meta(description="Enemies killed.")]
Deaths = Annotated[int, Meta(description="Number of deaths.")]
Assists = Annotated[int, Meta(description="Kills assisted, as on the scoreboard.")]
Headshots = Annotated[int, Meta(description="Kills by headshot.")]
DamageDealt = Annotated[int, Meta(description="Damage to enemies.")]
PistolKills = Annotated[int, Meta(description="Kills with pistols.")]
SniperKills = Annotated[int, Meta(description="Kills with AWP, SSG, SCAR and G3SG1.")]
FlashAssists = Annotated[int, Meta(description="Kills by teammates of enemies that the player had blinded.")]
EntryKills = Annotated[int, Meta(description="Round-opening kills.")]
TradeKills = Annotated[int, Meta(description="Kills that traded a teammate's death.")]
BombPlants = Annotated[int, Meta(description="Bombs planted.")]
BombDefuses = Annotated[int, Meta(description="Bombs defused.")]
MapName = Annotated[str, Meta(description="The name of the map, as requested.")]
PlayedMapName = Annotated[
    str | None,
    Meta(description="The name on the server, which for a workshop map differs; null if the map was not played."),
]
Complete = Annotated[bool, Meta(description="Whether the server's log is complete; if not, numbers may be too low.")]
MissingRounds = Annotated[
    tuple[int, ...], Meta(description="The rounds with missing log lines, as far as their numbers are known.")
]
MapNumber = Annotated[int, Meta(description="Its position in the series, from 1.")]
Team1Score = Annotated[int, Meta(description="Rounds won by the first team.")]
Team2Score = Annotated[int, Meta(description="Rounds won by the second team.")]
Duration = Annotated[int | None, Meta(description="In seconds; null if unknown.")]
Team1StartSide = Annotated[
    Side | None,
    Meta(description="The side on which the first team began the map; null if unknown, and in a deathmatch."),
]
SidesDecidedBy = Annotated[
    SidesBy | None,
    Meta(
        description="What decided the sides: `given` for `gameSettings.sides` or their default, `knife` for the winner"
        " of a knife round; null if unknown, in other modes, and if players without a roster chose otherwise."
    ),
]
WinnerOrNull = Annotated[Winner | None, Meta(description="`team1`, `team2` or `tie`; null if undecided.")]
PlayedType = Annotated[MatchType, Meta(description="The match type that was played.")]
IsoTime = Annotated[str, Meta(description="ISO 8601 in UTC, with milliseconds.")]

MOST_KILLS_FIRST = Meta(description="Statistics of each player, most kills first.")
DETECTIONS = Meta(description="Detections of the anti-cheat, for people to review: leads, not proof.")


class ExtraStats(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Additional statistics of a player; members that were not measured are omitted."""

    pistol_kills: PistolKills
    sniper_kills: SniperKills
    knife_kills: Annotated[int, Meta(description="Kills with the knife.")]
    chicken_kills: Annotated[int, Meta(description="Chickens killed.")]
    entry_kills: EntryKills
    entry_deaths: Annotated[int, Meta(description="Times first to die in a round.")]
    trade_kills: TradeKills
    clutch1v1: Annotated[int, Meta(description="Rounds won alone against one enemy.")]
    clutch1v2: Annotated[int, Meta(description="Rounds won alone against two enemies.")]
    clutch1v3: Annotated[int, Meta(description="Rounds won alone against three enemies.")]
    clutch1v4: Annotated[int, Meta(description="Rounds won alone against four enemies.")]
    clutch1v5: Annotated[int, Meta(description="Rounds won alone against five enemies.")]
    double_kills: Annotated[int, Meta(description="Rounds with exactly 2 kills.")]
    triple_kills: Annotated[int, Meta(description="Rounds with exactly 3 kills.")]
    quad_kills: Annotated[int, Meta(description="Rounds with exactly 4 kills.")]
    aces: Annotated[int, Meta(description="Rounds with 5 kills.")]
    flash_assists: FlashAssists
    enemies_flashed: Annotated[int, Meta(description="Enemies blinded.")]
    mvps: Annotated[
        int | UnsetType,
        Meta(description="Rounds as most valuable player, as far as they are known; left out in a deathmatch."),
    ] = UNSET
    bomb_plants: BombPlants
    bomb_defuses: BombDefuses
    shots_fired: Annotated[int | UnsetType, Meta(description="Shots fired; left out if not counted.")] = UNSET
    shots_hit: Annotated[int | UnsetType, Meta(description="Shots that hit an enemy; left out if not counted.")] = UNSET
    accuracy_percent: Annotated[
        float | UnsetType, Meta(description="Share of shots that hit, in percent; left out if not counted.")
    ] = UNSET


class PlayerNumbers(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The statistics of a player that every result contains."""

    steam_id: SteamId
    name: PlayerName
    kills: Kills
    deaths: Deaths
    assists: Assists
    headshots: Headshots
    hs_percent: Annotated[float, Meta(description="Share of kills by headshot, in percent.")]
    kd_ratio: Annotated[float, Meta(description="Kills divided by deaths.")]
    damage_dealt: DamageDealt
    utility_damage: Annotated[int, Meta(description="Damage to enemies by grenades and fire.")]
    pistol_kills: PistolKills
    sniper_kills: SniperKills
    extra_stats: Annotated[
        ExtraStats | None, Meta(description="More statistics, each of which may be missing; null if there are none.")
    ]


class OverallPlayer(PlayerNumbers, frozen=True, kw_only=True, rename="camel"):
    """The statistics of a player over all maps of a series."""

    team: PlayerTeam
    adr: Annotated[float, Meta(description="Average damage per round.")]
    rounds_played: Annotated[int, Meta(description="Rounds the player took part in.")]
    mvps: Annotated[int, Meta(description="Rounds as most valuable player, as far as they are known.")]
    mvps_complete: Annotated[
        bool,
        Meta(description="Whether `mvps` is final. Without the plugin, the MVP of the last round is not in the log."),
    ] = True


class MapPlayer(OverallPlayer, frozen=True, kw_only=True, rename="camel"):
    """The statistics of a player on one map."""

    flash_assists: FlashAssists
    first_kills: Annotated[int, Meta(description="Opening kills of a round.")]
    first_deaths: Annotated[int, Meta(description="Opening deaths of a round.")]
    entry_kills: EntryKills
    trade_kills: TradeKills
    bomb_plants: BombPlants
    bomb_defuses: BombDefuses
    clutch_wins: Annotated[int, Meta(description="Rounds won as the last player of the team alive.")]
    kast_percent: Annotated[float, Meta(description="Rounds with a kill, assist, survival or trade, in percent.")]
    impact_rating: Annotated[float, Meta(description="Impact rating.")]


class MapEntry(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One map of a result."""

    map_name: MapName
    played_map_name: PlayedMapName
    map_number: MapNumber
    team1_score: Team1Score
    team2_score: Team2Score
    winner: WinnerOrNull
    duration: Duration
    complete: Complete
    missing_rounds: MissingRounds
    team1_start_side: Team1StartSide
    sides_by: SidesDecidedBy
    players: Annotated[tuple[MapPlayer, ...], MOST_KILLS_FIRST]


class TeamEntry(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One team of a result: maps won, and rounds won over all maps."""

    name: Annotated[str, Meta(description="The team's name.")]
    series_score: Annotated[int, Meta(description="Maps won.")]
    total_rounds: Annotated[int, Meta(description="Rounds won over all maps.")]


class AntiCheatEntry(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """An anti-cheat detection: a hint for human review, never a verdict."""

    steam_id: SteamId
    name: PlayerName
    team: PlayerTeam
    type: Annotated[str, Meta(description="The suspected kind of cheat.")]
    reason: Annotated[str, Meta(description="The evidence, in short.")]
    weapon: Annotated[str, Meta(description="The weapon the player held, or `unknown`.")]
    map_number: MapNumber
    round_number: Annotated[int | None, Meta(description="The round; null if unknown.")]
    detected_at: IsoTime


Forfeited = Annotated[
    bool | UnsetType,
    Meta(description="Whether a team forfeited the match, whose winner was not decided by play; left out if not."),
]


class SeriesResult(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The result of any mode except deathmatch."""

    game_mode: PlayedType
    format: Annotated[SeriesFormat, Meta(description="`bo1`, `bo3` or `bo5`.")]
    winner: WinnerOrNull
    team1: Annotated[TeamEntry, Meta(description="The first team.")]
    team2: Annotated[TeamEntry, Meta(description="The second team.")]
    overall: Annotated[
        tuple[OverallPlayer, ...], Meta(description="Statistics of each player over all maps, most kills first.")
    ]
    maps: Annotated[tuple[MapEntry, ...], Meta(description="One entry per map that was played.")]
    anti_cheat: Annotated[tuple[AntiCheatEntry, ...], DETECTIONS]
    forfeit: Forfeited = UNSET


class DeathmatchPlayer(PlayerNumbers, frozen=True, kw_only=True, rename="camel"):
    """The statistics of a player in a deathmatch."""

    kpm: Annotated[float, Meta(description="Kills per minute.")]


class DeathmatchResult(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The result of a deathmatch."""

    game_mode: PlayedType
    map: MapName
    played_map_name: PlayedMapName
    duration: Duration
    complete: Complete
    winner_steam_id: Annotated[PlayerId | None, Meta(description="The player who won; null if there is no winner.")]
    winner_team: Annotated[
        Winner | None,
        Meta(description="The team with more kills, or `tie`; null in a free-for-all, or if log lines are missing."),
    ]
    players: Annotated[tuple[DeathmatchPlayer, ...], MOST_KILLS_FIRST]
    anti_cheat: Annotated[tuple[AntiCheatEntry, ...], DETECTIONS]


Result = SeriesResult | DeathmatchResult


class LivePlayer(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A player in the live view."""

    steam_id: SteamId
    name: PlayerName | UnsetType = UNSET
    kills: Kills = 0
    deaths: Deaths = 0
    assists: Assists = 0


class Score(msgspec.Struct, frozen=True):
    """Rounds won on the current map."""

    team1: Team1Score
    team2: Team2Score


class SeriesScore(msgspec.Struct, frozen=True, gc=False):
    """Maps won in the series."""

    team1: Annotated[int, Meta(description="Maps won by the first team.")]
    team2: Annotated[int, Meta(description="Maps won by the second team.")]


class MapState(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The state of one map of a match."""

    name: MapName
    number: MapNumber
    status: Annotated[MapStatus, Meta(description="The current status.")]
    score: Annotated[Score | None, Meta(description="Rounds won on this map; null in a deathmatch.")]
    winner: WinnerOrNull


SeriesScoreOrNull = Annotated[
    SeriesScore | None, Meta(description="Maps won by each team; null if the match type has no series.")
]
MapStates = Annotated[
    tuple[MapState, ...], Meta(description="The maps that were played or may still be played, in order.")
]


class LiveMatch(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The live view of a match; a deathmatch has no score."""

    game: Annotated[str, Meta(description="Always `cs2`.")]
    match_type: Annotated[MatchType, Meta(description="The match type.")]
    map: Annotated[
        str | None, Meta(description="The name of the map that is loaded or loading: between maps, the next one.")
    ]
    map_number: Annotated[int, Meta(description="The number of this map in its match, from 1.")]
    score: Annotated[
        Score | UnsetType,
        Meta(description="Rounds won on this map, 0:0 until it is live; left out for a deathmatch."),
    ] = UNSET
    series_score: SeriesScoreOrNull
    maps: MapStates
    players: Annotated[
        tuple[LivePlayer, ...],
        Meta(description="All players who are connected or have statistics on this map, most kills first."),
    ]


class StoredPlayer(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A player of a stored result of any mode and version. Fields that the mode or the version lacks are None."""

    steam_id: str = ""
    name: str = ""
    team: Team | None = None
    kills: int | None = None
    deaths: int | None = None
    assists: int | None = None
    headshots: int | None = None
    hs_percent: float | None = None
    kd_ratio: float | None = None
    kpm: float | None = None
    damage_dealt: int | None = None
    utility_damage: int | None = None
    rounds_played: int | None = None
    adr: float | None = None
    kast_percent: float | None = None
    first_kills: int | None = None
    first_deaths: int | None = None
    trade_kills: int | None = None
    clutch_wins: int | None = None
    mvps: int | None = None
    mvps_complete: bool = True
    impact_rating: float | None = None


class StoredDetection(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A stored detection of any version. Fields that the version did not store are None or empty."""

    steam_id: str = ""
    name: str = ""
    type: str = "unknown"
    reason: str = ""
    weapon: str = "unknown"
    map_number: int | None = None
    round_number: int | None = None
    detected_at: str | None = None
