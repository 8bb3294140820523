"""Define the form for a new match: its fields (from the request table), and their conversion to a request body.

The form builds the same body that a caller of the API would send, and the service validates it. So the rules exist only
once, and a fault that the service reports is shown next to its field.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from cs2_protocol.game import Team
from matchpod.console.roster_text import FORMATS, ListedPlayer, read_roster
from matchpod.core.faults import Fault, FieldPath
from matchpod.core.labels import SEPARATOR
from matchpod.core.model import GAME_TYPE, DmSubMode, MatchType, OnNoShow, SeriesFormat
from matchpod.core.requests import request_table as table
from matchpod.core.requests.json_fields import AnyField

MAP_FIELDS: Final = tuple(f"map{number}" for number in range(1, max(series.length for series in SeriesFormat) + 1))
KNOWN_MAPS: Final = (
    "de_ancient", "de_anubis", "de_cache", "de_dust2", "de_inferno", "de_mirage", "de_nuke", "de_overpass", "de_train",
    "de_vertigo", "cs_italy", "cs_office",
)  # fmt: skip
"""Map names that are suggested while the user types. Any other map of the game or the workshop can be entered too."""
SCENARIO_CVAR: Final = "sim_scenario"

_SETTINGS: Final = {field.name: field for field in table.SETTINGS}
_NUMBERS: Final = tuple(field.name for field in table.SETTINGS if "minimum" in field.rule.schema)
_SHOWN: Final = {
    **{series.value: f"best of {series.length}" for series in SeriesFormat},
    DmSubMode.FFA.value: "ffa: free for all",
    DmSubMode.TEAM.value: "team: two teams",
    OnNoShow.CANCEL.value: "cancel the match",
    OnNoShow.FORFEIT.value: "the team that is complete wins",
}
"""Labels of choices, by value, where the label differs from the value."""
_YES_NO: Final = {"true": True, "false": False}
_NESTED: Final = {
    table.OVERTIME.name: table.OVERTIME_RULES,
    table.MAPS_WON.name: tuple(table.MAPS_GIVEN.values()),
}
"""Fields of a request that are objects, with their own fields. In the form, each of these is a separate field, named
after the object and the field."""
_ROSTER_HELP: Final = f"One or more players per line, as {FORMATS}. Names beside them are ignored."
_FIRST_PLAYER: Final = 76561198000000001
_TEAM_SIZE: Final = 5
_MAX_NUMBER_CHARS: Final = 20


class FormField(msgspec.Struct, frozen=True, kw_only=True):
    """A field of the form, with the rules of the request field. Each choice is a value and its label."""

    name: str
    label: str
    help: str = ""
    max_length: int | None = None
    choices: tuple[tuple[str, str], ...] = ()
    is_number: bool = False
    is_optional: bool = False
    has_other: bool = False
    """True if values that are not among the choices can be entered."""


class FormFaults(msgspec.Struct, frozen=True):
    """The faults of a form: those of single fields, in the order of the page, and general faults."""

    by_field: Mapping[str, list[str]] = {}
    general: tuple[str, ...] = ()


def form_field(field: AnyField, *, name: str = "", label: str = "", help_text: str | None = None) -> FormField:
    """Return a field of the form. Name, label and help text are those of the request field, unless others are given."""
    schema = field.rule.schema
    values = msgspec.convert(schema.get("enum", ()), tuple[str, ...])
    return FormField(
        name=name or field.name,
        label=label or field.label,
        help=field.meaning if help_text is None else help_text,
        max_length=msgspec.convert(schema.get("maxLength"), int | None),
        choices=tuple((value, _SHOWN.get(value, value)) for value in values),
    )


def _fields() -> dict[str, FormField]:
    """Return the fields in the order of the page."""
    found = [
        form_field(table.REGION, help_text=""),
        FormField(name="scenario", label="Scenario"),
        form_field(table.MATCH_TYPE),
        form_field(table.SERIES_FORMAT, help_text=""),
        form_field(table.MAP, name=MAP_FIELDS[0]),
        *(form_field(table.MAPS, name=name, label=f"Map {name[3:]}", help_text="") for name in MAP_FIELDS[1:]),
        form_field(table.SIDES),
        form_field(table.EXTERNAL_MATCH_ID),
        form_field(table.CALLBACK_URL),
        form_field(table.TEAMS),
        *(field for team in Team for field in _team_fields(team)),
        form_field(table.DM_SUB_MODE, help_text=""),
        _number_field(table.DM_ROUND_MINUTES),
        form_field(table.PLAYERS, help_text=f"{table.PLAYERS.meaning} {_ROSTER_HELP}"),
        _number_field(table.JOIN_SECONDS),
        form_field(table.ON_NO_SHOW),
        _choice(table.AUTO_START, "when all players have joined", "by the players, who have to be ready"),
        _choice(table.RECORD_DEMO, "record each map", "none"),
        *(_number_field(field, name=_name(table.MAPS_WON, field)) for field in table.MAPS_GIVEN.values()),
        form_field(table.SERVER_PASSWORD),
        _number_field(table.FREEZE_TIME),
        _number_field(table.MAX_ROUNDS),
        _choice(table.OVERTIME_ENABLED, "on", "off", name=_name(table.OVERTIME, table.OVERTIME_ENABLED)),
        *(_number_field(field, name=_name(table.OVERTIME, field)) for field in table.OVERTIME_RULES[1:]),
        form_field(table.CUSTOM_CVARS),
        form_field(table.CALLBACK_AUTH_TOKEN),
        form_field(table.LABELS, help_text=f"{table.LABELS.meaning} One per line, as in event: finals."),
    ]
    return {field.name: field for field in found}


def _number_field(field: AnyField, *, name: str = "") -> FormField:
    schema = field.rule.schema
    return form_field(field, name=name, help_text=f"{field.meaning} From {schema['minimum']} to {schema['maximum']}.")


def _choice(field: AnyField, yes: str, no: str, *, name: str = "") -> FormField:
    """Return a field with a choice between true and false."""
    return msgspec.structs.replace(form_field(field, name=name), choices=(("true", yes), ("false", no)))


def _name(parent: AnyField, field: AnyField) -> str:
    return parent.name + field.name[:1].upper() + field.name[1:]


def _team_fields(team: Team) -> tuple[FormField, FormField]:
    name, players = table.TEAM_NAME, table.TEAM_PLAYERS
    of_team = f"of {_team_label(team)}"
    return (
        form_field(name, name=f"{team}Name", label=f"{name.label} {of_team}", help_text=""),
        form_field(players, name=f"{team}Players", label=f"{players.label} {of_team}", help_text=_ROSTER_HELP),
    )


def _team_label(team: str) -> str:
    return f"team {team[-1]}"


FIELDS: Final = _fields()
MORE_FIELDS: Final = (
    "joinSeconds", "onNoShow", "autoStart", "recordDemo", "mapsWonTeam1", "mapsWonTeam2", "serverPassword",
    "freezeTime", "maxRounds", "overtimeEnabled", "overtimeMaxRounds", "overtimeStartMoney", "customCvars",
    "callbackAuthToken", "labels",
)  # fmt: skip
"""Names of fields that are hidden in a collapsed section while all of them are empty."""


# --- values -------------------------------------------------------------------------------------------------------


def default_values(*, region: str, is_sandbox: bool, external_id: str, callback_url: str = "") -> dict[str, str]:
    """Return the initial values: in a sandbox, with two teams of fictitious players, so that the form is complete."""
    values = dict.fromkeys(FIELDS, "")
    values |= {
        "region": region,
        "matchType": MatchType.COMPETITIVE.value,
        "seriesFormat": SeriesFormat.BO1.value,
        "map1": str(table.MAP.rule.schema["example"]),
        "externalMatchId": external_id,
    }
    if is_sandbox:
        values |= {"team1Name": "Night Owls", "team2Name": "Blue Foxes", "callbackUrl": callback_url}
        for at, team in enumerate(Team):
            first = _FIRST_PLAYER + at * _TEAM_SIZE
            values[f"{team}Players"] = "\n".join(str(first + number) for number in range(_TEAM_SIZE))
    return values


def given_values(form: Mapping[str, str]) -> dict[str, str]:
    """Return the values of all fields of a submitted form."""
    return {name: form.get(name, "").replace("\r\n", "\n") for name in FIELDS}


def match_types_of(name: str) -> list[str]:
    """Return the match types for which the settings have this field."""
    return [match_type.value for match_type in MatchType if _SETTINGS[name].is_for(match_type)]


# --- the request body ---------------------------------------------------------------------------------------------


def read_body(values: Mapping[str, str]) -> dict[str, object]:
    """Return the request body for the form, without empty fields and fields of other match types."""
    body: dict[str, object] = {
        "region": values["region"],
        "gameType": GAME_TYPE,
        "externalMatchId": values["externalMatchId"],
        "callbackUrl": values["callbackUrl"].strip(),
        "callbackAuthToken": values["callbackAuthToken"],
    }
    given = {name: value for name, value in body.items() if value != ""}
    return {**given, "gameSettings": _game_settings(values)}


def _game_settings(values: Mapping[str, str]) -> dict[str, object]:
    match_type = values["matchType"]
    settings: dict[str, object] = {
        "matchType": match_type,
        "map": values["map1"].strip(),
        "maps": [values[name].strip() for name in _more_maps(values)],
        "seriesFormat": values["seriesFormat"],
        "sides": values["sides"].replace(",", " ").split(),
        "teams": _teams(values),
        "players": [listed.player for listed in read_roster(values["players"])],
        "dmSubMode": values["dmSubMode"],
        "onNoShow": values["onNoShow"],
        "autoStart": _YES_NO.get(values["autoStart"], values["autoStart"]),
        "recordDemo": _YES_NO.get(values["recordDemo"], values["recordDemo"]),
        **{name: _nested(values, _SETTINGS[name], fields) for name, fields in _NESTED.items()},
        "serverPassword": values["serverPassword"],
        "customCvars": _cvars(values),
        "labels": _labels(values),
        **{name: read_number(values[name].strip()) for name in _NUMBERS},
    }
    return {
        name: value
        for name, value in settings.items()
        if value not in ("", [], {}, None) and _SETTINGS[name].is_for(match_type)
    }


def _more_maps(values: Mapping[str, str]) -> list[str]:
    return [name for name in MAP_FIELDS[1:] if values[name].strip()]


def _teams(values: Mapping[str, str]) -> dict[str, object] | None:
    teams = {team.value: _team(values, team) for team in Team}
    return dict(teams) if any(teams.values()) else None


def _team(values: Mapping[str, str], team: Team) -> dict[str, object]:
    players = [listed.player for listed in read_roster(values[f"{team}Players"])]
    listed = {"name": values[f"{team}Name"], "players": players}
    return {name: value for name, value in listed.items() if value}


def _labels(values: Mapping[str, str]) -> dict[str, str]:
    lines = [line.partition(SEPARATOR) for line in values["labels"].splitlines() if line.strip()]
    return {name.strip(): value.strip() for name, _, value in lines}


def _nested(values: Mapping[str, str], parent: AnyField, fields: Iterable[AnyField]) -> dict[str, object]:
    """Return those fields of an object that the user has filled in."""
    given = {field.name: values[_name(parent, field)].strip() for field in fields}
    return {name: _YES_NO.get(value, read_number(value)) for name, value in given.items() if value}


def _cvars(values: Mapping[str, str]) -> str:
    lines = [values["customCvars"].rstrip("\n")] if values["customCvars"].strip() else []
    if values["scenario"]:
        lines.append(f"{SCENARIO_CVAR} {values['scenario']}")
    return "\n".join(lines)


def read_number(text: str) -> int | float | str | None:
    """Convert text to a number. Return any other text unchanged, so that the service reports it as invalid."""
    if len(text) <= _MAX_NUMBER_CHARS and re.fullmatch(r"-?[0-9]+", text):
        return int(text)
    if len(text) <= _MAX_NUMBER_CHARS and re.fullmatch(r"-?[0-9]+[.,][0-9]+", text):
        return float(text.replace(",", "."))
    return text or None


# --- faults -------------------------------------------------------------------------------------------------------


def read_faults(values: Mapping[str, str], faults: Iterable[Fault]) -> FormFaults:
    """Assign the faults that the service reported to the fields of the form."""
    by_field: dict[str, list[str]] = {}
    general = []
    for fault in faults:
        name, message = _place(values, fault)
        if name in FIELDS:
            by_field.setdefault(name, []).append(_sentence(message))
        else:
            general.append(_sentence(f"{fault.path} {message}".strip()))
    return FormFaults({name: by_field[name] for name in FIELDS if name in by_field}, tuple(general))


def _place(values: Mapping[str, str], fault: Fault) -> tuple[str, str]:
    """Return the form field of a fault, and the fault's message with field labels in place of paths."""
    match fault.path.parts:
        case ("gameSettings", "players", int()) | ("gameSettings", "teams", _, "players", int()):
            return _player_place(values, fault)
        case ("gameSettings", "teams", str(team), "name" | "players" as name):
            return f"{team}{name.capitalize()}", fault.message
        case ("gameSettings", str(parent), str(name)) if parent in _NESTED:
            return parent + name[:1].upper() + name[1:], fault.message
        case ("gameSettings", "map"):
            return "map1", fault.message
        case ("gameSettings", "maps"):
            return "map2", fault.message
        case ("gameSettings", "maps", int(at)):
            return _more_maps(values)[at], fault.message
        case ("gameSettings", "sides", int(at)):
            return "sides", f"map {at + 1}: {fault.message}"
        case ("gameSettings", "labels", str(name)):
            return "labels", f"{name or 'a label'} {fault.message}"
        case ("gameSettings", "customCvars") if values["scenario"] and fault.line == _cvars(values).count("\n") + 1:
            return "scenario", fault.phrase
        case ("gameSettings", str(name)) | (str(name),):
            return name, fault.message
    return "", fault.message


def _player_place(values: Mapping[str, str], fault: Fault) -> tuple[str, str]:
    name, listed = _listed_at(values, fault.path)
    if listed.fault is not None:
        return name, listed.fault
    message, first = fault.message, fault.parameters.get("first")
    if isinstance(first, FieldPath):
        other_name, other = _listed_at(values, first)
        where = f" of {_team_label(other_name.removesuffix('Players'))}" if other_name != name else ""
        message = f"{listed.player} is already listed in line {other.line}{where}"
    return name, f"line {listed.line}: {message}"


def _listed_at(values: Mapping[str, str], path: FieldPath) -> tuple[str, ListedPlayer]:
    """Return the form field that lists the player at this path of the body, and the player's line in that field."""
    *_, team, _, at = path.parts
    name = f"{team}Players" if team in tuple(Team) else "players"
    return name, read_roster(values[name])[int(at)]


def _sentence(message: str) -> str:
    text = message[:1].upper() + message[1:]
    return text if text.endswith((".", "?")) else f"{text}."
