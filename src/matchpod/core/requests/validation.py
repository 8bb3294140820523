"""Validate a create-match body and report all faults at once.

The body is decoded JSON of any shape. An optional field that is null counts as absent. Console variables are validated
by a function passed in (`read_cvars`), since their names are specific to the game.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import cycle, islice
from typing import Final, Protocol

import msgspec

from cs2_protocol.game import PlayerId, Team
from matchpod.core.faults import Fault, FaultCode, FieldPath
from matchpod.core.model import (
    MAX_LISTED_PLAYERS,
    CvarSetting,
    DmSubMode,
    GameSettings,
    MatchRequest,
    MatchType,
    SeriesFormat,
    StartSides,
    TeamRoster,
)
from matchpod.core.requests import text_rules
from matchpod.core.requests.json_fields import Faults, Fields

GAME_TYPE = "cs2"

MAX_ROUNDS = 200
"""Highest `maxRounds`: about eight hours of play, longer than any intended match."""

MAX_FREEZE_TIME_S = 60
"""Highest `freezeTime`: the game's own limit for `mp_freezetime`."""

MAX_DM_MINUTES = 1440
"""Highest `dmRoundMinutes`: one day."""

MAX_MAP_POOL = 64
"""Most maps in the caller's list: more than any map pool in use has. A series plays at most five maps."""

DEFAULT_TEAM_NAMES = {Team.TEAM1: "Team 1", Team.TEAM2: "Team 2"}

MAX_NAMED_REGIONS: Final = 30
"""Regions that the fault of an unknown region names; `GET /api/v1/regions` lists all."""

_BODY_FIELDS = ("region", "gameType", "callbackUrl", "callbackAuthToken", "externalMatchId", "gameSettings")
_SETTINGS_FIELDS = (
    "matchType",
    "map",
    "maps",
    "seriesFormat",
    "sides",
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
    "sides": _SERIES_TYPES,
    "teams": _SERIES_TYPES,
    "players": (MatchType.DEATHMATCH,),
    "dmSubMode": (MatchType.DEATHMATCH,),
    "dmRoundMinutes": (MatchType.DEATHMATCH,),
}


class RegionRules(msgspec.Struct, frozen=True):
    """The properties of a region that validation needs."""

    is_active: bool = True
    is_simulated: bool = False


class CvarReading(msgspec.Struct, frozen=True):
    """The settings of the valid lines of `customCvars` in order, and the faults of the others."""

    settings: tuple[CvarSetting, ...] = ()
    faults: tuple[Fault, ...] = ()


class CvarReader(Protocol):
    """Parses the text of `customCvars`."""

    def __call__(self, text: str, *, allow_simulator: bool) -> CvarReading:
        """Return the settings and faults of the text."""


def read_match_request(body: object, *, regions: Mapping[str, RegionRules], read_cvars: CvarReader) -> MatchRequest:
    """Return the validated request. Raise InvalidParamsError with all faults if the body is invalid."""
    faults = Faults()
    fields = Fields.of(body, FieldPath(), _BODY_FIELDS, faults)
    if fields is None:
        raise faults.error()
    region = fields.text("region", lambda code: _region_fault(code, regions), required=True)
    game_type = fields.text("gameType", _game_type_fault, required=True)
    callback_url = fields.text("callbackUrl", text_rules.callback_url_fault)
    callback_auth_token = fields.text("callbackAuthToken", text_rules.auth_token_fault)
    external_match_id = fields.text("externalMatchId", text_rules.external_id_fault)
    # With an unknown region, allow simulator variables: the fault of the region is enough.
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
    """Return the maps of a series: the first, then the pool without duplicates, repeated if there are too few."""
    order = tuple(dict.fromkeys((first, *pool)))
    return tuple(islice(cycle(order), length))


def _read_settings(body: Fields, read_cvars: CvarReader, *, allow_simulator: bool) -> GameSettings | None:
    fields = body.nested("gameSettings", _SETTINGS_FIELDS, required=True)
    if fields is None:
        return None
    match_type = fields.choice("matchType", MatchType, required=True)
    _reject_fields_of_other_modes(fields, match_type)
    first_map = fields.text("map", text_rules.map_fault, required=True)
    pool = _read_map_pool(fields)
    given_format = fields.choice("seriesFormat", SeriesFormat)
    series_format = given_format or SeriesFormat.BO1
    team1, team2 = _read_teams(fields)
    sides = _read_sides(fields, given_format, (team1, team2)) if match_type in (None, *_SERIES_TYPES) else ()
    players = _read_players(fields, {})
    if len(players) > MAX_LISTED_PLAYERS:
        fields.fault("players", FaultCode.TOO_MANY_PLAYERS, maximum=MAX_LISTED_PLAYERS)
    server_password = fields.text("serverPassword", text_rules.password_fault)
    dm_sub_mode = fields.choice("dmSubMode", DmSubMode)
    dm_round_minutes = fields.number("dmRoundMinutes", at_least=1, at_most=MAX_DM_MINUTES)
    freeze_time = fields.integer("freezeTime", at_least=0, at_most=MAX_FREEZE_TIME_S)
    max_rounds = fields.integer("maxRounds", at_least=1, at_most=MAX_ROUNDS)
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
        sides=sides,
    )


def _reject_fields_of_other_modes(fields: Fields, match_type: MatchType | None) -> None:
    if fields.has("players") and fields.has("teams"):
        fields.fault("players", FaultCode.WITH_TEAMS)
    if match_type is None:
        return
    for name, match_types in _ONLY_FOR.items():
        if fields.has(name) and match_type not in match_types:
            allowed = " or ".join(match_types)
            fields.fault(name, FaultCode.OTHER_MATCH_TYPE, match_types=allowed, given=match_type.value)


def _read_map_pool(fields: Fields) -> tuple[str, ...]:
    pool = fields.texts("maps", text_rules.map_fault) or ()
    if len(pool) > MAX_MAP_POOL:
        fields.fault("maps", FaultCode.TOO_MANY_MAPS, maximum=MAX_MAP_POOL)
    return tuple(name for _, name in pool)


def _read_sides(
    fields: Fields, series_format: SeriesFormat | None, teams: tuple[TeamRoster | None, ...]
) -> tuple[StartSides, ...]:
    """Return the given sides. The format and the teams are None if they are absent or invalid."""
    is_open = not fields.has("teams") or all(team is not None and not team.players for team in teams)
    sides = fields.texts("sides", lambda side: _side_fault(side, is_open=is_open))
    if sides is None:
        return ()
    wanted = (series_format or SeriesFormat.BO1).length
    found = fields.length("sides")
    is_known = series_format is not None or not fields.has("seriesFormat")
    if is_known and found != wanted:
        code = FaultCode.NOT_ONE_SIDE if wanted == 1 else FaultCode.NOT_ONE_SIDE_PER_MAP
        fields.fault("sides", code, wanted=wanted, found=found)
    return tuple(StartSides(side) for _, side in sides)


def _side_fault(side: str, *, is_open: bool) -> Fault | None:
    if side not in tuple(StartSides):
        return Fault(FaultCode.NOT_A_CHOICE, {"choices": tuple(StartSides)})
    return Fault(FaultCode.KNIFE_WITHOUT_PLAYERS) if is_open and side == StartSides.KNIFE else None


def _read_teams(settings: Fields) -> tuple[TeamRoster | None, TeamRoster | None]:
    teams = settings.nested("teams", tuple(Team))
    if teams is None:
        return None, None
    seen: dict[PlayerId, FieldPath] = {}
    team1, team2 = (_read_team(teams, team, seen) for team in Team)
    if len(seen) > MAX_LISTED_PLAYERS:
        settings.fault("teams", FaultCode.TOO_MANY_IN_TEAMS, maximum=MAX_LISTED_PLAYERS)
    return team1, team2


def _read_team(teams: Fields, team: Team, seen: dict[PlayerId, FieldPath]) -> TeamRoster | None:
    """Return a team; None if it is missing or lists an invalid player."""
    fields = teams.nested(team, ("name", "players"), required=True)
    if fields is None:
        return None
    name = fields.text("name", text_rules.team_name_fault) or DEFAULT_TEAM_NAMES[team]
    players = _read_players(fields, seen)
    return TeamRoster(name, players) if len(players) == fields.length("players") else None


def _read_players(fields: Fields, seen: dict[PlayerId, FieldPath]) -> tuple[PlayerId, ...]:
    """Return the listed players; `seen` maps each player of both teams to the path where they were listed first."""
    listed = fields.texts("players", text_rules.player_id_fault) or ()
    for path, player_id in listed:
        first = seen.setdefault(player_id, path)
        if first != path:
            fields.faults.add(Fault(FaultCode.LISTED_TWICE, {"first": first}, path))
    return tuple(player_id for _, player_id in listed)


def _read_custom_cvars(fields: Fields, read_cvars: CvarReader, *, allow_simulator: bool) -> tuple[CvarSetting, ...]:
    text = fields.text("customCvars")
    if text is None:
        return ()
    reading = read_cvars(text, allow_simulator=allow_simulator)
    for fault in reading.faults:
        fields.fault("customCvars", fault.code, **fault.parameters)
    return reading.settings


def _region_fault(code: str, regions: Mapping[str, RegionRules]) -> Fault | None:
    rules = regions.get(code)
    if rules is None:
        known, meant = tuple(islice(regions, MAX_NAMED_REGIONS)), text_rules.nearest(code, regions)
        if meant is None:
            return Fault(FaultCode.UNKNOWN_REGION, {"known": known})
        return Fault(FaultCode.MISSPELLED_REGION, {"meant": meant, "known": known})
    return None if rules.is_active else Fault(FaultCode.CLOSED_REGION)


def _game_type_fault(game_type: str) -> Fault | None:
    return None if game_type == GAME_TYPE else Fault(FaultCode.WRONG_GAME, {"game_type": GAME_TYPE})
