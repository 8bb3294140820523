"""Parse and validate a match file (JSON) as MatchZy 0.8.15 does.

The checks, their order and their error texts are those of MatchZy. In addition, input for which MatchZy raises an
exception (a team without a name) is rejected with an error text of the simulator.
"""

from __future__ import annotations

import json

import msgspec

INT32 = range(-(2**31), 2**31)
"""Range of the 32-bit integers as which MatchZy parses numbers, including `matchid`."""

DEFAULT_PLAYERS_PER_TEAM = 5

MAP_SIDES = ("team1_ct", "team1_t", "team2_ct", "team2_t", "knife")

_REQUIRED = ("maplist", "team1", "team2", "num_maps")
_NUMBERS = ("matchid", "players_per_team", "min_players_to_ready", "min_spectators_to_ready", "num_maps")
_BOOLEANS = ("skip_veto", "clinch_series", "wingman")
_OBJECTS = ("cvars", "team1", "team2", "spectators")
_ARRAYS = ("maplist", "map_sides", "veto_mode")

_Fields = dict[str, object]


class TeamFile(msgspec.Struct, frozen=True):
    """A team of the match file.

    `players` maps SteamID64s to forced player names; an empty text keeps the player's own name.

    `coaches` are the players who will ask to be coaches. MatchZy ignores this field of get5; the simulated people use
    it.
    """

    id: str
    name: str
    players: dict[str, str]
    coaches: dict[str, str]


class MatchFile(msgspec.Struct, frozen=True, kw_only=True):
    """A valid match file. If `match_id` is None, the plugin assigns one."""

    match_id: int | None
    num_maps: int
    pool: tuple[str, ...]
    map_sides: tuple[str, ...]
    team1: TeamFile
    team2: TeamFile
    spectators: dict[str, str]
    players_per_team: int
    min_ready: int
    """Minimum number of ready players on a side for which a player may force the start."""
    min_ready_spectators: int
    is_wingman: bool
    can_clinch: bool
    cvars: dict[str, str]


class Rejection(msgspec.Struct, frozen=True):
    """The reason why a match file is rejected, as printed to the console of the server."""

    reason: str
    is_readable: bool = True
    """False if the plugin cannot parse the text at all. In this case it changes nothing."""


def read_match(body: bytes, *, default_min_ready: int = 2) -> MatchFile | Rejection:
    """Parse a match file. Never raises. `default_min_ready` applies if the file has no `min_players_to_ready`."""
    try:
        # .NET decodes a body as UTF-8 with an optional byte order mark and replaces invalid bytes.
        fields = json.loads(body.decode("utf-8-sig", "replace"))
        if not isinstance(fields, dict):
            return Rejection("not a JSON object", is_readable=False)
        fault = _fault(fields)
        return Rejection(fault) if fault else _match(fields, default_min_ready)
    except (ValueError, RecursionError):
        return Rejection("not JSON", is_readable=False)


def plain_name(name: str) -> str:
    """Reduce a team name to letters, digits, spaces, underscores and hyphens, as the plugin does."""
    return "".join(char for char in name if char.isalpha() or char in "0123456789 _-")


def _fault(fields: _Fields) -> str:
    for name in _REQUIRED:
        if fields.get(name) is None:
            return f"Missing mandatory field: {name}"
    for name, value in fields.items():
        if fault := _field_fault(name, value, fields):
            return fault
    if _whole(fields["num_maps"]) not in range(1, len(_texts(fields["maplist"])) + 1):
        return "num_maps should be equal to or greater than maplist!"
    for name in ("team1", "team2"):
        if not isinstance(_fields(fields[name]).get("name"), str):
            return f"{name} has no name"
    return ""


def _field_fault(name: str, value: object, fields: _Fields) -> str:
    if name in _NUMBERS and _whole(value) is None:
        return f"{name} should be an integer!"
    if name in _BOOLEANS and _truth(value) is None:
        return f"{name} should be a boolean!"
    if name in _OBJECTS and not isinstance(value, dict):
        return f"{name} should be a JSON structure!"
    if name in _ARRAYS and not isinstance(value, list):
        return f"{name} should be an Array!"
    if name in ("team1", "team2") and not isinstance(_fields(value).get("players"), dict):
        return f"{name} should have 'players' JSON!"
    if name == "maplist" and not value:
        return "maplist should contain atleast 1 map!"
    if name == "map_sides":
        return _sides_fault(_texts(value), _whole(fields["num_maps"]))
    return ""


def _sides_fault(sides: tuple[str, ...], num_maps: int | None) -> str:
    if any(side not in MAP_SIDES for side in sides):
        return 'map_sides should be "team1_ct", "team1_t", or "knife"!'
    if num_maps is not None and len(sides) < num_maps:
        return "map_sides should be equal to or greater than num_maps!"
    return ""


def _match(fields: _Fields, default_min_ready: int) -> MatchFile:
    num_maps = _whole(fields["num_maps"]) or 0
    pool = _texts(fields["maplist"])
    sides = _texts(fields.get("map_sides", []))
    return MatchFile(
        match_id=_whole(fields.get("matchid")),
        num_maps=num_maps,
        pool=pool,
        # A map that has no entry in `map_sides` begins with a knife round.
        map_sides=sides + ("knife",) * (num_maps - len(sides)),
        team1=_team(_fields(fields["team1"])),
        team2=_team(_fields(fields["team2"])),
        spectators=_nicks(_fields(fields.get("spectators")).get("players")),
        players_per_team=_number(fields, "players_per_team", DEFAULT_PLAYERS_PER_TEAM),
        min_ready=_number(fields, "min_players_to_ready", default_min_ready),
        min_ready_spectators=_number(fields, "min_spectators_to_ready", 0),
        is_wingman=_truth(fields.get("wingman")) or False,
        can_clinch=_truth(fields.get("clinch_series", True)) or False,
        cvars={_token(name): _token(value) for name, value in _fields(fields.get("cvars")).items()},
    )


def _team(team: _Fields) -> TeamFile:
    return TeamFile(
        _token(team["id"]) if team.get("id") is not None else "",
        plain_name(_token(team["name"])),
        _nicks(team["players"]),
        _nicks(team.get("coaches")),
    )


def _number(fields: _Fields, name: str, default: int) -> int:
    number = _whole(fields.get(name))
    return default if number is None else number


def _nicks(players: object) -> dict[str, str]:
    return {_token(id64): _token(nick) for id64, nick in _fields(players).items()}


def _fields(value: object) -> _Fields:
    return value if isinstance(value, dict) else {}


def _texts(value: object) -> tuple[str, ...]:
    return tuple(_token(entry) for entry in value) if isinstance(value, list) else ()


def _token(value: object) -> str:
    """Format a JSON value as .NET prints it."""
    if isinstance(value, str):
        return _replace_surrogates(value)
    if value is None:
        return ""
    if isinstance(value, bool):
        return "True" if value else "False"
    return json.dumps(value)


def _replace_surrogates(text: str) -> str:
    """Replace lone surrogates, which JSON and .NET allow but UTF-8 does not."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _whole(value: object) -> int | None:
    """Parse a 32-bit integer, which is a JSON number or text; None for anything else."""
    text = _token(value).strip()
    digits = text[1:] if text[:1] in ("-", "+") else text
    if not (digits.isascii() and digits.isdecimal()) or len(digits) > len(str(INT32.stop)):
        return None
    number = int(text)
    return number if number in INT32 else None


def _truth(value: object) -> bool | None:
    return {"true": True, "false": False}.get(_token(value).strip().lower())
