"""Define the basic types of a match: enums, settings and rosters, as frozen values.

`team1` and `team2` are the caller's teams; `Side` is the side a team currently plays on. Teams change sides, so the
two are never interchangeable.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import msgspec

from cs2_protocol.game import PlayerId, Side, Team

GAME_TYPE: Final = "cs2"
"""The only supported game, by its name in requests and results."""

DEFAULT_DEATHMATCH_MINUTES = 10.0
"""Default length of a deathmatch in minutes, as in the game. A deathmatch without a time limit would never end."""

MAX_LISTED_PLAYERS = 32
"""Maximum number of listed players, coaches and spectators per match. A server has up to 64 slots, but no mode needs as
many players, so a longer roster is a mistake."""


class MatchType(StrEnum):
    """The game mode of a match."""

    COMPETITIVE = "competitive"
    CASUAL = "casual"
    DEATHMATCH = "deathmatch"
    WINGMAN = "wingman"
    RETAKES = "retakes"
    CUSTOM = "custom"

    @property
    def has_series(self) -> bool:
        """True for modes that play a series with teams under the match plugin: competitive and wingman."""
        return self in (MatchType.COMPETITIVE, MatchType.WINGMAN)


class SeriesFormat(StrEnum):
    """The length of a series: best of one, three or five maps."""

    BO1 = "bo1"
    BO3 = "bo3"
    BO5 = "bo5"

    @property
    def length(self) -> int:
        """The maximum number of maps."""
        return int(self.value[2:])

    def length_after(self, given: MapsWon) -> int:
        """Return the maximum number of maps to play if the maps in `given` count as won before the series."""
        return self.length - given.team1 - given.team2

    @property
    def wins_needed(self) -> int:
        """The number of maps a team must win to decide the series."""
        return self.length // 2 + 1


class DmSubMode(StrEnum):
    """The deathmatch variant: free for all, or two teams."""

    FFA = "ffa"
    TEAM = "team"


class OnNoShow(StrEnum):
    """What happens if listed players are missing when the time to join ends."""

    CANCEL = "cancel"
    """The match is canceled."""
    FORFEIT = "forfeit"
    """If exactly one team is complete, it wins; otherwise the match is canceled."""


class StartSides(StrEnum):
    """How the sides on which the teams begin a map are decided. The API and the match plugin use the same values."""

    TEAM1_CT = "team1_ct"
    """The first team begins as CT."""
    TEAM1_T = "team1_t"
    """The first team begins as T."""
    KNIFE = "knife"
    """The winner of a knife round chooses the side."""

    @property
    def team1_side(self) -> Side | None:
        """The side on which the first team begins; None if a knife round decides."""
        return {StartSides.TEAM1_CT: Side.CT, StartSides.TEAM1_T: Side.T}.get(self)


class SidesBy(StrEnum):
    """What decided on which side each team began a map."""

    GIVEN = "given"
    """The settings of the match: its `sides`, or their default."""
    KNIFE = "knife"
    """The winner of a knife round."""


class Winner(StrEnum):
    """The winner of a map or series, or a tie."""

    TEAM1 = "team1"
    TEAM2 = "team2"
    TIE = "tie"

    @staticmethod
    def of(team1: int, team2: int) -> Winner:
        if team1 == team2:
            return Winner.TIE
        return Winner.TEAM1 if team1 > team2 else Winner.TEAM2


class Overtime(msgspec.Struct, frozen=True, kw_only=True):
    """The rules for a tie after all rounds. Values that are None are left to the server's configuration."""

    enabled: bool = True
    max_rounds: int | None = None
    start_money: int | None = None


class MapsWon(msgspec.Struct, frozen=True):
    """The number of maps that each team is given as won before a series: an advantage, or maps played elsewhere."""

    team1: int = 0
    team2: int = 0

    def plus(self, team1: int, team2: int) -> tuple[int, int]:
        """Return the series score after each team has won this many maps in addition to `mapsWon`."""
        return self.team1 + team1, self.team2 + team2


class CvarSetting(msgspec.Struct, frozen=True):
    """One console variable and its value in a match."""

    name: str
    value: str


class TeamRoster(msgspec.Struct, frozen=True):
    """One of the caller's teams; if it lists no players, anyone may play for it. Its coaches do not play."""

    name: str
    players: tuple[PlayerId, ...] = ()
    coaches: tuple[PlayerId, ...] = ()


class GameSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The validated settings of a match, with defaults applied.

    `maps` lists all maps to play in order, repeated if the caller's list was shorter than the series. `sides` has an
    entry per map. It is empty in modes without a series, and until `start_sides` has chosen sides that the caller did
    not give. It is also empty in old matches, created before sides could be chosen: there, team1 begins every map as
    CT. With `record_demo` the match plugin records each map, and GOTV is delayed by `tv_delay_s`.
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
    sides: tuple[StartSides, ...] = ()
    spectators: tuple[PlayerId, ...] = ()
    join_seconds: int | None = None
    on_no_show: OnNoShow = OnNoShow.CANCEL
    auto_start: bool = True
    overtime: Overtime | None = None
    maps_won: MapsWon = MapsWon()
    record_demo: bool = False
    tv_delay_s: int = 0

    @property
    def roster(self) -> tuple[PlayerId, ...]:
        """All players listed at creation, team1 first; empty if anyone may join."""
        listed = self.players
        for team in (self.team1, self.team2):
            if team is not None:
                listed += team.players
        return listed

    @property
    def map_count(self) -> int:
        """The maximum number of maps to play: the length of the series without the maps in `maps_won`."""
        return self.series_format.length_after(self.maps_won)

    @property
    def uses_plugin(self) -> bool:
        """True if the match plugin runs the match: competitive or wingman with at least one listed player."""
        return self.match_type.has_series and bool(self.roster)

    @property
    def deathmatch_minutes(self) -> float | None:
        """The length of a deathmatch in minutes; None for other modes."""
        if self.match_type is not MatchType.DEATHMATCH:
            return None
        return self.dm_round_minutes or DEFAULT_DEATHMATCH_MINUTES

    @property
    def is_free_for_all(self) -> bool:
        """True if every player is an enemy of every other, regardless of the side in the log."""
        return self.match_type is MatchType.DEATHMATCH and self.dm_sub_mode is not DmSubMode.TEAM

    def sides_on(self, number: int) -> StartSides | None:
        """Return how the sides on map `number` are decided; None if `sides` has no entry for that map."""
        return self.sides[number - 1] if 0 < number <= len(self.sides) else None

    def team_of(self, player_id: PlayerId) -> Team | None:
        """Return the team that lists the player; None if no team does."""
        if self.team1 is not None and player_id in self.team1.players:
            return Team.TEAM1
        if self.team2 is not None and player_id in self.team2.players:
            return Team.TEAM2
        return None


class MatchRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A validated create-match request."""

    region: str
    game_type: str
    game_settings: GameSettings
    callback_url: str | None = None
    callback_auth_token: str | None = None
    external_match_id: str | None = None
    labels: dict[str, str] = {}
