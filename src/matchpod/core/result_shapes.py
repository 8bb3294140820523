"""Define the API shapes of a result and of the live view.

Numbers that were not measured are null, or omitted from `extraStats`, never 0.
"""

from __future__ import annotations

import msgspec

from matchpod.core.model import MatchType, PlayerId, SeriesFormat, Team, Winner


class ExtraStats(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Additional statistics of a player; members that were not measured are omitted."""

    pistol_kills: int
    sniper_kills: int
    knife_kills: int
    chicken_kills: int
    entry_kills: int
    entry_deaths: int
    trade_kills: int
    clutch1v1: int
    clutch1v2: int
    clutch1v3: int
    clutch1v4: int
    clutch1v5: int
    double_kills: int
    triple_kills: int
    quad_kills: int
    aces: int
    flash_assists: int
    enemies_flashed: int
    mvps: int | msgspec.UnsetType = msgspec.UNSET
    bomb_plants: int
    bomb_defuses: int
    shots_fired: int | msgspec.UnsetType = msgspec.UNSET
    shots_hit: int | msgspec.UnsetType = msgspec.UNSET
    accuracy_percent: float | msgspec.UnsetType = msgspec.UNSET


class PlayerNumbers(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The statistics of a player that every result contains."""

    steam_id: PlayerId
    name: str
    kills: int
    deaths: int
    assists: int
    headshots: int
    hs_percent: float
    kd_ratio: float
    damage_dealt: int
    utility_damage: int
    pistol_kills: int
    sniper_kills: int
    extra_stats: ExtraStats | None


class OverallPlayer(PlayerNumbers, frozen=True, kw_only=True, rename="camel"):
    """The statistics of a player over all maps of a series."""

    team: Team | None
    adr: float
    rounds_played: int
    mvps: int | None


class MapPlayer(OverallPlayer, frozen=True, kw_only=True, rename="camel"):
    """The statistics of a player on one map."""

    flash_assists: int
    first_kills: int
    first_deaths: int
    entry_kills: int
    trade_kills: int
    bomb_plants: int
    bomb_defuses: int
    clutch_wins: int
    kast_percent: float
    impact_rating: float


class MapEntry(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One map of a result."""

    map_name: str
    map_number: int
    team1_score: int
    team2_score: int
    winner: Winner | None
    duration: int | None
    players: tuple[MapPlayer, ...]


class TeamEntry(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One team of a result: maps won, and rounds won over all maps."""

    name: str
    series_score: int
    total_rounds: int


class AntiCheatEntry(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A detection in the shape of the API."""

    steam_id: PlayerId
    name: str
    team: Team | None
    type: str
    reason: str
    weapon: str
    map_number: int
    round_number: int | None
    detected_at: str


class SeriesResult(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The result of any mode except deathmatch."""

    game_mode: MatchType
    format: SeriesFormat
    winner: Winner | None
    team1: TeamEntry
    team2: TeamEntry
    overall: tuple[OverallPlayer, ...]
    maps: tuple[MapEntry, ...]
    anti_cheat: tuple[AntiCheatEntry, ...]


class DeathmatchPlayer(PlayerNumbers, frozen=True, kw_only=True, rename="camel"):
    """The statistics of a player in a deathmatch."""

    kpm: float


class DeathmatchResult(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The result of a deathmatch."""

    game_mode: MatchType
    map: str
    duration: int | None
    winner_steam_id: PlayerId | None
    players: tuple[DeathmatchPlayer, ...]
    anti_cheat: tuple[AntiCheatEntry, ...]


Result = SeriesResult | DeathmatchResult


class LivePlayer(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A player in the live view."""

    steam_id: PlayerId
    name: str | msgspec.UnsetType = msgspec.UNSET
    kills: int = 0
    deaths: int = 0
    assists: int = 0


class Score(msgspec.Struct, frozen=True):
    """Rounds won on the current map."""

    team1: int
    team2: int


class LiveMatch(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The live view of a match; a deathmatch has no score."""

    game: str
    match_type: MatchType
    map: str | None
    score: Score | msgspec.UnsetType = msgspec.UNSET
    players: tuple[LivePlayer, ...]
