"""Is this body a match we can play? `read_match_request` answers with the match, or with every fault of the body.

The body is decoded JSON of any shape. An optional field that is null counts as absent. What a console variable may be
is told by the caller of this module (`read_cvars`): names of variables belong to the game, not to these rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import cycle, islice
from typing import Protocol

import msgspec

from matchpod.core import text_rules
from matchpod.core.json_fields import Faults, Fields
from matchpod.core.model import (
    MAX_LISTED_PLAYERS,
    CvarSetting,
    DmSubMode,
    GameSettings,
    MatchRequest,
    MatchType,
    PlayerId,
    SeriesFormat,
    Team,
    TeamRoster,
)

GAME_TYPE = "cs2"

MAX_ROUNDS = 200
"""About eight hours of play; no series of rounds is meant to be longer."""

MAX_FREEZE_TIME_S = 60
"""The game's own bound of `mp_freezetime`."""

MAX_DM_MINUTES = 1440
"""One day."""

MAX_MAP_POOL = 64
"""More than any pool in use, and a series takes five at most."""

DEFAULT_TEAM_NAMES = {Team.TEAM1: "Team 1", Team.TEAM2: "Team 2"}

_BODY_FIELDS = ("region", "gameType", "callbackUrl", "callbackAuthToken", "externalMatchId", "gameSettings")
_SETTINGS_FIELDS = (
    "matchType",
    "map",
    "maps",
    "seriesFormat",
    "teams",
    "players",
    "serverPassword",
    "dmSubMode",
    "dmRoundMinutes",
    "freezeTime",
    "maxRounds",
    "customCvars",
)
_SERIES_TYPES = tuple(match_type for match_type in MatchType if match_type.has_series)
_ONLY_FOR = {
    "seriesFormat": _SERIES_TYPES,
    "teams": _SERIES_TYPES,
    "players": (MatchType.DEATHMATCH,),
    "dmSubMode": (MatchType.DEATHMATCH,),
    "dmRoundMinutes": (MatchType.DEATHMATCH,),
}


class RegionRules(msgspec.Struct, frozen=True):
    """What creation must know of a region."""

    is_active: bool = True
    is_simulated: bool = False


class CvarFault(Protocol):
    """One line of `customCvars` that cannot be used; line 0 means the text as a whole."""

    @property
    def line(self) -> int:
        """The line, counted from 1."""

    @property
    def reason(self) -> str:
        """What is wrong with it."""


class CvarReading(Protocol):
    """What a reader made of `customCvars`."""

    @property
    def settings(self) -> tuple[CvarSetting, ...]:
        """The settings of the good lines, in their order."""

    @property
    def faults(self) -> Sequence[CvarFault]:
        """The other lines."""


class CvarReader(Protocol):
    """Reads the raw text of `customCvars`."""

    def __call__(self, text: str, *, allow_simulator: bool) -> CvarReading:
        """The settings and faults of the text."""


def read_match_request(body: object, *, regions: Mapping[str, RegionRules], read_cvars: CvarReader) -> MatchRequest:
    """The match that a create-match body asks for; InvalidParamsError with all faults when it asks for none.

    JSON null for an optional field is the same as leaving the field out.
    """
    faults = Faults()
    fields = Fields.of(body, "", _BODY_FIELDS, faults)
    if fields is None:
        raise faults.error()
    region = fields.text("region", lambda code: _region_fault(code, regions), required=True)
    game_type = fields.text("gameType", _game_type_fault, required=True)
    callback_url = fields.text("callbackUrl", text_rules.callback_url_fault)
    callback_auth_token = fields.text("callbackAuthToken", text_rules.auth_token_fault)
    external_match_id = fields.text("externalMatchId", text_rules.external_id_fault)
    # Without a known region nobody can say whether sim_* is welcome: the region's own fault is enough.
    allow_simulator = region is None or regions[region].is_simulated
    game_settings = _read_settings(fields, read_cvars, allow_simulator=allow_simulator)
    if faults or region is None or game_type is None or game_settings is None:
        raise faults.error()
    return MatchRequest(
        region=region,
        game_type=game_type,
        game_settings=game_settings,
        callback_url=callback_url,
        callback_auth_token=callback_auth_token,
        external_match_id=external_match_id,
    )


def series_maps(first: str, pool: Iterable[str], length: int) -> tuple[str, ...]:
    """The maps of a series: the first, then the pool without repeating, and over again where they do not suffice."""
    order = tuple(dict.fromkeys((first, *pool)))
    return tuple(islice(cycle(order), length))


def _read_settings(body: Fields, read_cvars: CvarReader, *, allow_simulator: bool) -> GameSettings | None:
    fields = body.inside("gameSettings", _SETTINGS_FIELDS, required=True)
    if fields is None:
        return None
    match_type = fields.choice("matchType", MatchType, required=True)
    _refuse_fields_of_other_modes(fields, match_type)
    first_map = fields.text("map", text_rules.map_fault, required=True)
    pool = _read_map_pool(fields)
    series_format = fields.choice("seriesFormat", SeriesFormat) or SeriesFormat.BO1
    team1, team2 = _read_teams(fields)
    players = _read_players(fields, {})
    if len(players) > MAX_LISTED_PLAYERS:
        fields.fault("players", f"must list at most {MAX_LISTED_PLAYERS} players")
    server_password = fields.text("serverPassword", text_rules.password_fault)
    dm_sub_mode = fields.choice("dmSubMode", DmSubMode)
    dm_round_minutes = fields.number("dmRoundMinutes", at_least=1, at_most=MAX_DM_MINUTES)
    freeze_time = fields.whole("freezeTime", at_least=0, at_most=MAX_FREEZE_TIME_S)
    max_rounds = fields.whole("maxRounds", at_least=1, at_most=MAX_ROUNDS)
    custom_cvars = _read_custom_cvars(fields, read_cvars, allow_simulator=allow_simulator)
    if body.faults or match_type is None or first_map is None:
        return None
    return GameSettings(
        match_type=match_type,
        maps=series_maps(first_map, pool, series_format.length),
        series_format=series_format,
        team1=team1,
        team2=team2,
        players=players,
        server_password=server_password,
        dm_sub_mode=dm_sub_mode,
        dm_round_minutes=dm_round_minutes,
        freeze_time=freeze_time,
        max_rounds=max_rounds,
        custom_cvars=custom_cvars,
    )


def _refuse_fields_of_other_modes(fields: Fields, match_type: MatchType | None) -> None:
    if fields.has("players") and fields.has("teams"):
        fields.fault("players", "must not be set together with teams")
    if match_type is None:
        return
    for name, match_types in _ONLY_FOR.items():
        if fields.has(name) and match_type not in match_types:
            fields.fault(name, f"is only for matchType {' or '.join(match_types)}, not {match_type}")


def _read_map_pool(fields: Fields) -> tuple[str, ...]:
    pool = fields.texts("maps", text_rules.map_fault) or ()
    if len(pool) > MAX_MAP_POOL:
        fields.fault("maps", f"must list at most {MAX_MAP_POOL} maps")
    return tuple(name for _, name in pool)


def _read_teams(settings: Fields) -> tuple[TeamRoster | None, TeamRoster | None]:
    teams = settings.inside("teams", tuple(Team))
    if teams is None:
        return None, None
    seen: dict[PlayerId, str] = {}
    team1, team2 = (_read_team(teams, team, seen) for team in Team)
    if len(seen) > MAX_LISTED_PLAYERS:
        settings.fault("teams", f"must list at most {MAX_LISTED_PLAYERS} players in both teams together")
    return team1, team2


def _read_team(teams: Fields, team: Team, seen: dict[PlayerId, str]) -> TeamRoster | None:
    fields = teams.inside(team, ("name", "players"), required=True)
    if fields is None:
        return None
    name = fields.text("name", text_rules.team_name_fault) or DEFAULT_TEAM_NAMES[team]
    return TeamRoster(name, _read_players(fields, seen))


def _read_players(fields: Fields, seen: dict[PlayerId, str]) -> tuple[PlayerId, ...]:
    """The listed players; `seen` remembers where each was listed first, over both teams."""
    listed = fields.texts("players", text_rules.player_id_fault) or ()
    for path, player_id in listed:
        first = seen.setdefault(player_id, path)
        if first != path:
            fields.faults.add(path, f"is already listed at {first}")
    return tuple(player_id for _, player_id in listed)


def _read_custom_cvars(fields: Fields, read_cvars: CvarReader, *, allow_simulator: bool) -> tuple[CvarSetting, ...]:
    text = fields.text("customCvars")
    if text is None:
        return ()
    reading = read_cvars(text, allow_simulator=allow_simulator)
    for fault in reading.faults:
        fields.fault("customCvars", f"line {fault.line}: {fault.reason}" if fault.line else fault.reason)
    return reading.settings


def _region_fault(code: str, regions: Mapping[str, RegionRules]) -> str | None:
    rules = regions.get(code)
    if rules is None:
        meant = text_rules.nearest(code, regions)
        return f"is not a known region; did you mean {meant}?" if meant else "is not a known region"
    return None if rules.is_active else "is a region that accepts no new servers now"


def _game_type_fault(game_type: str) -> str | None:
    return None if game_type == GAME_TYPE else f"must be {GAME_TYPE}"
