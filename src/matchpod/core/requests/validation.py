"""Validate a create-match body and report all faults at once.

The body is decoded JSON of any shape. The rules of single fields are in `request_table`, rules that need several fields
are here. An optional field that is null counts as absent. Console variables are validated by a function passed in
(`read_cvars`), because their names are specific to the game.
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
    GameSettings,
    MapsWon,
    MatchRequest,
    MatchType,
    OnNoShow,
    Overtime,
    SeriesFormat,
    StartSides,
    TeamRoster,
)
from matchpod.core.requests import request_table as table
from matchpod.core.requests.addresses import private_host
from matchpod.core.requests.field_rules import Texts, text, texts
from matchpod.core.requests.json_fields import AnyField, Faults, Fields, RequestField
from matchpod.core.requests.text_rules import nearest, printable

DEFAULT_TEAM_NAMES = {Team.TEAM1: "Team 1", Team.TEAM2: "Team 2"}

MAX_NAMED_REGIONS: Final = 30
"""Maximum number of regions listed in a fault about an unknown region; `GET /api/v1/regions` lists all."""


_AS_GIVEN: Final[Mapping[str, AnyField]] = {
    "join_seconds": table.JOIN_SECONDS,
    "server_password": table.SERVER_PASSWORD,
    "dm_sub_mode": table.DM_SUB_MODE,
    "dm_round_minutes": table.DM_ROUND_MINUTES,
    "freeze_time": table.FREEZE_TIME,
    "max_rounds": table.MAX_ROUNDS,
}
"""Fields whose value is copied unchanged, by the name of their field in `GameSettings`."""


class DemoRules(msgspec.Struct, frozen=True):
    """The settings for recording demos in a region."""

    is_default: bool = False
    """Whether maps are recorded if the caller does not specify it."""
    tv_delay_s: int = 0


class RegionRules(msgspec.Struct, frozen=True):
    """The properties of a region that validation needs."""

    is_active: bool = True
    is_simulated: bool = False
    demos: DemoRules | None = None
    """The settings for recording demos; None if the service cannot store demos."""


class CvarReading(msgspec.Struct, frozen=True):
    """The settings of the valid lines of `customCvars`, in order, and the faults of its invalid lines."""

    settings: tuple[CvarSetting, ...] = ()
    faults: tuple[Fault, ...] = ()


class CvarReader(Protocol):
    """Parses the text of `customCvars`."""

    def __call__(self, text: str, *, allow_simulator: bool) -> CvarReading:
        """Return the settings of the valid lines, and the faults of the invalid lines."""


class _People(msgspec.Struct, frozen=True):
    """The people listed in a request; a team is None if it is absent or invalid."""

    team1: TeamRoster | None
    team2: TeamRoster | None
    players: tuple[PlayerId, ...]
    spectators: tuple[PlayerId, ...]


def read_match_request(
    body: object,
    *,
    regions: Mapping[str, RegionRules],
    read_cvars: CvarReader,
    allow_private_callback: bool = True,
) -> MatchRequest:
    """Return the validated request. Raise InvalidParamsError with all faults if the body is invalid."""
    faults = Faults()
    fields = Fields.of(body, FieldPath(), table.BODY, faults)
    if fields is None:
        raise faults.error()
    region = fields.read(table.REGION, text(lambda code: _region_fault(code, regions)))
    game_type = fields.read(table.GAME)
    callback_url = fields.read(table.CALLBACK_URL)
    if callback_url is not None and not allow_private_callback and (host := private_host(callback_url)) is not None:
        fields.fault(table.CALLBACK_URL, FaultCode.PRIVATE_ADDRESS, host=printable(host))
    callback_auth_token = fields.read(table.CALLBACK_AUTH_TOKEN)
    external_match_id = fields.read(table.EXTERNAL_MATCH_ID)
    # If the region is unknown, accept simulator variables: a fault for the region is enough.
    allow_simulator = region is None or regions[region].is_simulated
    settings = fields.read(table.GAME_SETTINGS)
    labels = None if settings is None else settings.read(table.LABELS)
    demos = DemoRules() if region is None else regions[region].demos
    game_settings = None
    if settings is not None:
        game_settings = _read_settings(settings, read_cvars, demos, allow_simulator=allow_simulator)
    if faults or region is None or game_type is None or game_settings is None:
        raise faults.error()
    return MatchRequest(
        region=region,
        game_type=game_type,
        game_settings=game_settings,
        callback_url=callback_url,
        callback_auth_token=callback_auth_token,
        external_match_id=external_match_id,
        labels=labels or {},
    )


def series_maps(first: str, pool: Iterable[str], length: int) -> tuple[str, ...]:
    """Return the maps of a series: `first` and the pool without duplicates, repeated up to `length` if too few."""
    order = tuple(dict.fromkeys((first, *pool)))
    return tuple(islice(cycle(order), length))


def _read_settings(
    fields: Fields, read_cvars: CvarReader, demos: DemoRules | None, *, allow_simulator: bool
) -> GameSettings | None:
    match_type = fields.read(table.MATCH_TYPE)
    _reject_fields_of_other_modes(fields, match_type)
    first_map = fields.read(table.MAP)
    pool = _read_map_pool(fields)
    given_format = fields.read(table.SERIES_FORMAT)
    series_format = given_format or SeriesFormat.BO1
    people = _read_people(fields)
    teams = (people.team1, people.team2)
    may_have_teams = match_type in (None, *table.SERIES_TYPES)
    maps_won = _read_maps_won(fields, given_format) if may_have_teams else MapsWon()
    sides = _read_sides(fields, given_format, teams, maps_won) if may_have_teams else ()
    auto_start = fields.read(table.AUTO_START)
    on_no_show = _read_on_no_show(fields, teams) if may_have_teams else OnNoShow.CANCEL
    record_demo = may_have_teams and _read_record_demo(fields, teams, demos)
    as_given = {name: fields.read(field) for name, field in _AS_GIVEN.items()}
    overtime = _read_overtime(fields)
    custom_cvars = _read_custom_cvars(fields, read_cvars, allow_simulator=allow_simulator)
    if fields.faults or match_type is None or first_map is None:
        return None
    return GameSettings(
        match_type=match_type,
        maps=series_maps(first_map, pool, series_format.length_after(maps_won)),
        series_format=series_format,
        maps_won=maps_won,
        team1=people.team1,
        team2=people.team2,
        players=people.players,
        spectators=people.spectators,
        on_no_show=on_no_show,
        auto_start=auto_start is not False,
        overtime=overtime,
        custom_cvars=custom_cvars,
        sides=sides,
        record_demo=record_demo,
        tv_delay_s=demos.tv_delay_s if record_demo and demos is not None else 0,
        **as_given,
    )


def _reject_fields_of_other_modes(fields: Fields, match_type: MatchType | None) -> None:
    if fields.has(table.PLAYERS) and fields.has(table.TEAMS):
        fields.fault(table.PLAYERS, FaultCode.WITH_TEAMS)
    if match_type is None:
        return
    for field in table.SETTINGS:
        if fields.has(field) and not field.is_for(match_type):
            allowed = " or ".join(field.match_types)
            fields.fault(field, FaultCode.OTHER_MATCH_TYPE, match_types=allowed, given=match_type.value)


def _read_map_pool(fields: Fields) -> tuple[str, ...]:
    pool = fields.read(table.MAPS) or ()
    if len(pool) > table.MAX_MAP_POOL:
        fields.fault(table.MAPS, FaultCode.TOO_MANY_MAPS, maximum=table.MAX_MAP_POOL)
    return tuple(name for _, name in pool)


def _read_sides(
    fields: Fields, series_format: SeriesFormat | None, teams: tuple[TeamRoster | None, ...], maps_won: MapsWon
) -> tuple[StartSides, ...]:
    """Return the sides in the request. `series_format` and each team are None if absent or invalid."""
    is_open = not fields.has(table.TEAMS) or all(team is not None and not team.players for team in teams)
    sides = fields.read(table.SIDES, texts(text(lambda side: _side_fault(side, is_open=is_open))))
    if sides is None:
        return ()
    wanted = (series_format or SeriesFormat.BO1).length_after(maps_won)
    found = fields.length(table.SIDES)
    is_known = series_format is not None or not fields.has(table.SERIES_FORMAT)
    if is_known and found != wanted:
        code = FaultCode.NOT_ONE_SIDE if wanted == 1 else FaultCode.NOT_ONE_SIDE_PER_MAP
        fields.fault(table.SIDES, code, wanted=wanted, found=found)
    return tuple(StartSides(side) for _, side in sides)


def _side_fault(side: str, *, is_open: bool) -> Fault | None:
    if is_open and side == StartSides.KNIFE:
        return Fault(FaultCode.KNIFE_WITHOUT_PLAYERS)
    return table.side_fault(side)


def _read_maps_won(fields: Fields, series_format: SeriesFormat | None) -> MapsWon:
    """Return how many maps each team has won before the series. Add a fault for a team that has then won the series.

    `series_format` is None if it is absent or invalid.
    """
    given = fields.read(table.MAPS_WON)
    if given is None:
        return MapsWon()
    won = {team: given.read(table.MAPS_GIVEN[team]) or 0 for team in Team}
    if series_format is None and fields.has(table.SERIES_FORMAT):
        return MapsWon()  # invalid
    played = series_format or SeriesFormat.BO1
    for team in [team for team in Team if won[team] >= played.wins_needed]:
        about = {"wins": played.wins_needed, "series_format": played.value}
        given.fault(table.MAPS_GIVEN[team], FaultCode.SERIES_ALREADY_WON, **about)
        won[team] = 0
    return MapsWon(won[Team.TEAM1], won[Team.TEAM2])


def _read_overtime(fields: Fields) -> Overtime | None:
    given = fields.read(table.OVERTIME)
    if given is None:
        return None
    return Overtime(
        enabled=given.read(table.OVERTIME_ENABLED) is not False,
        max_rounds=given.read(table.OVERTIME_ROUNDS),
        start_money=given.read(table.OVERTIME_MONEY),
    )


def _read_on_no_show(fields: Fields, teams: tuple[TeamRoster | None, ...]) -> OnNoShow:
    """Return what happens if players do not join in time. Each of `teams` is None if it is absent or invalid."""
    found = fields.read(table.ON_NO_SHOW) or OnNoShow.CANCEL
    is_invalid = fields.has(table.TEAMS) and None in teams
    if found is OnNoShow.FORFEIT and not is_invalid and not all(team is not None and team.players for team in teams):
        fields.fault(table.ON_NO_SHOW, FaultCode.FORFEIT_WITHOUT_PLAYERS)
    return found


def _read_record_demo(fields: Fields, teams: tuple[TeamRoster | None, ...], demos: DemoRules | None) -> bool:
    """Return whether maps are recorded. Each of `teams` is None if it is absent or invalid."""
    given = fields.read(table.RECORD_DEMO)
    has_players = any(team is not None and team.players for team in teams)
    is_invalid = fields.has(table.TEAMS) and None in teams
    if given and demos is None:
        fields.fault(table.RECORD_DEMO, FaultCode.NO_DEMO_STORAGE)
    elif given and not (has_players or is_invalid):
        fields.fault(table.RECORD_DEMO, FaultCode.RECORDING_WITHOUT_PLAYERS)
    return demos is not None and has_players and (demos.is_default if given is None else given)


def _read_people(settings: Fields) -> _People:
    listed: dict[PlayerId, FieldPath] = {}
    team1, team2 = _read_teams(settings, listed)
    spectators = _read_spectators(settings, listed)
    players = _read_players(settings, table.PLAYERS, {})
    if len(players) > MAX_LISTED_PLAYERS:
        settings.fault(table.PLAYERS, FaultCode.TOO_MANY_PLAYERS, maximum=MAX_LISTED_PLAYERS)
    return _People(team1, team2, players, spectators)


def _read_teams(settings: Fields, seen: dict[PlayerId, FieldPath]) -> tuple[TeamRoster | None, TeamRoster | None]:
    teams = settings.read(table.TEAMS)
    if teams is None:
        return None, None
    team1, team2 = (_read_team(teams, team, seen) for team in Team)
    if len(seen) > MAX_LISTED_PLAYERS:
        settings.fault(table.TEAMS, FaultCode.TOO_MANY_PEOPLE, maximum=MAX_LISTED_PLAYERS)
    rosters = [(team, roster) for team, roster in zip(Team, (team1, team2), strict=True) if roster is not None]
    if len(rosters) == len(Team) and not any(roster.players for _, roster in rosters):
        for team in [team for team, roster in rosters if roster.coaches]:
            place = FieldPath(("gameSettings", table.TEAMS.name, team.value, table.TEAM_COACHES.name))
            settings.faults.add(Fault(FaultCode.COACHES_WITHOUT_PLAYERS, path=place))
    return team1, team2


def _read_spectators(settings: Fields, seen: dict[PlayerId, FieldPath]) -> tuple[PlayerId, ...]:
    in_teams = len(seen)
    spectators = _read_players(settings, table.SPECTATORS, seen)
    if in_teams <= MAX_LISTED_PLAYERS < len(seen):
        settings.fault(table.SPECTATORS, FaultCode.TOO_MANY_PEOPLE, maximum=MAX_LISTED_PLAYERS)
    return spectators


def _read_team(teams: Fields, team: Team, seen: dict[PlayerId, FieldPath]) -> TeamRoster | None:
    """Return a team; None if it is missing or lists an invalid player."""
    fields = teams.read(table.LISTED_TEAMS[team])
    if fields is None:
        return None
    name = fields.read(table.TEAM_NAME) or DEFAULT_TEAM_NAMES[team]
    players = _read_players(fields, table.TEAM_PLAYERS, seen)
    coaches = _read_players(fields, table.TEAM_COACHES, seen)
    return TeamRoster(name, players, coaches) if len(players) == fields.length(table.TEAM_PLAYERS) else None


def _read_players(fields: Fields, field: RequestField[Texts], seen: dict[PlayerId, FieldPath]) -> tuple[PlayerId, ...]:
    """Return the listed players. `seen` maps each person to the path at which they were first listed."""
    listed = fields.read(field) or ()
    for path, player_id in listed:
        first = seen.setdefault(player_id, path)
        if first != path:
            fields.faults.add(Fault(FaultCode.LISTED_TWICE, {"first": first}, path))
    return tuple(player_id for _, player_id in listed)


def _read_custom_cvars(fields: Fields, read_cvars: CvarReader, *, allow_simulator: bool) -> tuple[CvarSetting, ...]:
    given = fields.read(table.CUSTOM_CVARS)
    if given is None:
        return ()
    reading = read_cvars(given, allow_simulator=allow_simulator)
    for fault in reading.faults:
        fields.fault(table.CUSTOM_CVARS, fault.code, **fault.parameters)
    return reading.settings


def _region_fault(code: str, regions: Mapping[str, RegionRules]) -> Fault | None:
    rules = regions.get(code)
    if rules is None:
        known, meant = tuple(islice(regions, MAX_NAMED_REGIONS)), nearest(code, regions)
        if meant is None:
            return Fault(FaultCode.UNKNOWN_REGION, {"known": known})
        return Fault(FaultCode.MISSPELLED_REGION, {"meant": meant, "known": known})
    return None if rules.is_active else Fault(FaultCode.CLOSED_REGION)
