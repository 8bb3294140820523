"""What are the nouns of a match? Closed sets, settings and rosters, as frozen values.

Players are named by their 64-bit id as a decimal string, as callers write it. Bots have ids of the form `BOT:name`;
they count in the game but never leave in a result. `team1`/`team2` are the caller's teams, `Side` is where a team
stands right now: the two change independently and are never mixed up.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

PlayerId = str

DEFAULT_DEATHMATCH_MINUTES = 10.0
"""What the game itself plays; without a limit a deathmatch would never end."""

MAX_LISTED_PLAYERS = 32
"""More than any mode seats; a roster longer than this is a mistake of the caller."""


class MatchType(StrEnum):
    """What is played."""

    COMPETITIVE = "competitive"
    CASUAL = "casual"
    DEATHMATCH = "deathmatch"
    WINGMAN = "wingman"
    RETAKES = "retakes"
    CUSTOM = "custom"

    @property
    def has_series(self) -> bool:
        """Only competitive and wingman play series, with teams, under the match plugin."""
        return self in (MatchType.COMPETITIVE, MatchType.WINGMAN)


class SeriesFormat(StrEnum):
    """How many maps a series can take."""

    BO1 = "bo1"
    BO3 = "bo3"
    BO5 = "bo5"

    @property
    def length(self) -> int:
        """The most maps that can be played."""
        return int(self.value[2:])

    @property
    def wins_needed(self) -> int:
        """Maps a team must win to decide the series."""
        return self.length // 2 + 1


class DmSubMode(StrEnum):
    """Deathmatch: everyone against everyone, or two teams."""

    FFA = "ffa"
    TEAM = "team"


class Team(StrEnum):
    """One of the caller's two teams; it keeps its name through halves and overtime."""

    TEAM1 = "team1"
    TEAM2 = "team2"

    @property
    def other(self) -> Team:
        """The opponent."""
        return Team.TEAM2 if self is Team.TEAM1 else Team.TEAM1


class Side(StrEnum):
    """Where a team stands right now. The values are the words of the server log."""

    CT = "CT"
    T = "TERRORIST"

    @property
    def other(self) -> Side:
        """The side across."""
        return Side.T if self is Side.CT else Side.CT


class Winner(StrEnum):
    """How a map or series was decided."""

    TEAM1 = "team1"
    TEAM2 = "team2"
    TIE = "tie"

    @staticmethod
    def of(team1: int, team2: int) -> Winner:
        """The winner by score."""
        if team1 == team2:
            return Winner.TIE
        return Winner.TEAM1 if team1 > team2 else Winner.TEAM2


class CvarSetting(msgspec.Struct, frozen=True):
    """One console variable and the value a match gives it."""

    name: str
    value: str


class TeamRoster(msgspec.Struct, frozen=True):
    """A team as the caller named it; no listed players means anyone may play for it."""

    name: str
    players: tuple[PlayerId, ...] = ()


class GameSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What the caller asked to be played, validated and complete.

    `maps` is the order of the whole series, already repeated where the caller's list was shorter than the series.
    """

    match_type: MatchType
    maps: tuple[str, ...]
    series_format: SeriesFormat = SeriesFormat.BO1
    team1: TeamRoster | None = None
    team2: TeamRoster | None = None
    players: tuple[PlayerId, ...] = ()
    server_password: str | None = None
    dm_sub_mode: DmSubMode | None = None
    dm_round_minutes: float | None = None
    freeze_time: int | None = None
    max_rounds: int | None = None
    custom_cvars: tuple[CvarSetting, ...] = ()

    @property
    def roster(self) -> tuple[PlayerId, ...]:
        """Every listed player, team1 first; empty when anyone may join."""
        listed = self.players
        for team in (self.team1, self.team2):
            if team is not None:
                listed += team.players
        return listed

    @property
    def deathmatch_minutes(self) -> float | None:
        """How long a deathmatch lasts; None for everything else."""
        if self.match_type is not MatchType.DEATHMATCH:
            return None
        return self.dm_round_minutes or DEFAULT_DEATHMATCH_MINUTES

    @property
    def is_free_for_all(self) -> bool:
        """Everyone is everyone's enemy, whatever side the log prints."""
        return self.match_type is MatchType.DEATHMATCH and self.dm_sub_mode is not DmSubMode.TEAM

    def team_of(self, player_id: PlayerId) -> Team | None:
        """The team that lists the player, if one does."""
        if self.team1 is not None and player_id in self.team1.players:
            return Team.TEAM1
        if self.team2 is not None and player_id in self.team2.players:
            return Team.TEAM2
        return None


class MatchRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A valid create-match body."""

    region: str
    game_type: str
    game_settings: GameSettings
    callback_url: str | None = None
    callback_auth_token: str | None = None
    external_match_id: str | None = None


def is_human(player_id: PlayerId) -> bool:
    """True for a 64-bit player id, False for bots and anything else a log may print in its place."""
    return player_id.isdigit()
