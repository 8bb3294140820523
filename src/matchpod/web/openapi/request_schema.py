"""The JSON Schemas of request bodies: the rules of `core.validation` and others for the API documentation.

A `format` in this schema names a rule that no pattern can express; the description explains it. Some rules cannot be
expressed at all: a player is in one team only, both teams together list at most 32 players, and `sides` has one entry
for each map, of which `knife` needs a listed player.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from matchpod.core.model import MAX_LISTED_PLAYERS, DmSubMode, MatchType, SeriesFormat, StartSides
from matchpod.core.requests import text_rules
from matchpod.core.requests.validation import GAME_TYPE, MAX_DM_MINUTES, MAX_FREEZE_TIME_S, MAX_MAP_POOL, MAX_ROUNDS
from matchpod.cs2.cvars import MAX_TEXT_BYTES
from matchpod.web.handlers.parameters import DATE, NO_CONTROL

Schema = dict[str, object]

_PLAYER: Final[Schema] = {"type": "string", "pattern": "^7656119[0-9]{10}$", "example": "76561198000000001"}
_MAP: Final[Schema] = {"type": "string", "pattern": "^([a-z0-9_]{1,64}|workshop/[0-9]{1,20})$", "example": "de_dust2"}
_PLAYERS: Final[Schema] = {
    "type": ["array", "null"],
    "items": _PLAYER,
    "maxItems": MAX_LISTED_PLAYERS,
    "uniqueItems": True,
}


def create_match_schemas() -> dict[str, Schema]:
    """Return the schemas of a create-match body, by name."""
    series = tuple(match_type for match_type in MatchType if match_type.has_series)
    others = tuple(t for t in MatchType if not t.has_series and t is not MatchType.DEATHMATCH)
    for_series, for_deathmatch = _series_fields(), _deathmatch_fields()
    team: Schema = {"$ref": _ref("ListedTeam")}
    return {
        "CreateMatch": _create_match(),
        "GameSettings": _game_settings(),
        "SeriesSettings": _settings(series, {**for_series, **_only_for(for_deathmatch, "deathmatch")}),
        "DeathmatchSettings": _settings(
            (MatchType.DEATHMATCH,), {**for_deathmatch, **_only_for(for_series, "competitive and wingman")}
        ),
        "OtherSettings": _settings(
            others,
            {**_only_for(for_series, "competitive and wingman"), **_only_for(for_deathmatch, "deathmatch")},
        ),
        "ListedTeams": _object({"team1": team, "team2": team}, required=("team1", "team2")),
        "ListedTeam": _object({"name": _team_name(), "players": {**_PLAYERS, "description": "Its players."}}),
    }


def redelivery_schemas() -> dict[str, Schema]:
    """Return the schema of the body that sends given-up callbacks again, by name."""
    since: Schema = {**DATE, "description": "Only callbacks created at this time or later, in ISO 8601."}
    return {"RedeliverCallbacks": _object({"since": since}, required=("since",))}


def _create_match() -> Schema:
    return _object(
        {
            "region": {
                "type": "string",
                "format": "region-code",
                "description": "The `code` of an active region, as listed by `GET /api/v1/regions`.",
                "example": "sandbox",
            },
            "gameType": {"type": "string", "enum": [GAME_TYPE]},
            "gameSettings": {
                "$ref": _ref("GameSettings"),
                "description": "What to play; the fields depend on matchType.",
            },
            "callbackUrl": _text(
                1,
                text_rules.MAX_URL,
                "Absolute http or https URL in printable ASCII, without user name. It receives one POST when the match "
                "ends or is canceled.",
                format="http-url",
            ),
            "callbackAuthToken": _text(
                1,
                text_rules.MAX_AUTH_TOKEN,
                "Sent as the Authorization header of callbacks; never returned.",
                pattern="^[!-~]([ \\t!-~]*[!-~])?$",
            ),
            "externalMatchId": _text(
                1, text_rules.MAX_EXTERNAL_ID, "Your own id for the match; need not be unique.", pattern=NO_CONTROL
            ),
        },
        required=("region", "gameType", "gameSettings"),
    )


def _game_settings() -> Schema:
    names = {match_type.value: _settings_name(match_type) for match_type in MatchType}
    return {
        "description": "The settings of a match; `matchType` says which fields there are.",
        "oneOf": [{"$ref": _ref(name)} for name in dict.fromkeys(names.values())],
        "discriminator": {
            "propertyName": "matchType",
            "mapping": {match_type: _ref(name) for match_type, name in names.items()},
        },
    }


def _settings_name(match_type: MatchType) -> str:
    if match_type is MatchType.DEATHMATCH:
        return "DeathmatchSettings"
    return "SeriesSettings" if match_type.has_series else "OtherSettings"


def _settings(match_types: Sequence[MatchType], of_mode: Mapping[str, Schema]) -> Schema:
    return _object(
        {
            "matchType": {"type": "string", "enum": [match_type.value for match_type in match_types]},
            "map": {**_MAP, "description": "The first map: a name, or workshop/ and the id of an item."},
            "maps": {
                "type": ["array", "null"],
                "items": _MAP,
                "maxItems": MAX_MAP_POOL,
                "description": "The maps after the first; the list repeats if the series needs more.",
            },
            **of_mode,
            "serverPassword": _text(
                1,
                text_rules.MAX_PASSWORD,
                "The password to connect: no quotes, semicolons or control characters, and not the word none.",
                format="server-password",
            ),
            "freezeTime": _integer(0, MAX_FREEZE_TIME_S, "Seconds before each round."),
            "maxRounds": _integer(1, MAX_ROUNDS, "Maximum number of rounds per map."),
            "customCvars": _text(
                0,
                MAX_TEXT_BYTES,
                "Console variables, one `name value` per line, at most 200 lines; // starts a comment. Unknown names "
                "are rejected with line and reason.",
                format="console-variables",
            ),
        },
        required=("matchType", "map"),
    )


def _series_fields() -> dict[str, Schema]:
    formats = [series_format.value for series_format in SeriesFormat]
    return {
        "seriesFormat": {"type": ["string", "null"], "enum": [*formats, None], "description": "Default: bo1."},
        "sides": {
            "type": ["array", "null"],
            "items": {"type": "string", "enum": [sides.value for sides in StartSides]},
            "minItems": 1,
            "maxItems": max(series_format.length for series_format in SeriesFormat),
            "description": "On which sides the teams begin, one entry for each map of the series: `team1_ct`, "
            "`team1_t`, or `knife` for a knife round, whose winner chooses; that needs listed players. Default: "
            "`team1_ct` on the first map, then alternating; on the last map of a bo3 or bo5 `knife`, or drawn if no "
            "player is listed.",
        },
        "teams": {
            "anyOf": [{"$ref": _ref("ListedTeams")}, {"type": "null"}],
            "description": "The two teams. If any player is listed, only listed players may connect.",
        },
    }


def _deathmatch_fields() -> dict[str, Schema]:
    modes = [mode.value for mode in DmSubMode]
    return {
        "players": {**_PLAYERS, "description": "The players who may connect; play starts when all have joined."},
        "dmSubMode": {"type": ["string", "null"], "enum": [*modes, None], "description": "Default: ffa."},
        "dmRoundMinutes": {
            "type": ["number", "null"],
            "minimum": 1,
            "maximum": MAX_DM_MINUTES,
            "description": "The duration in minutes. Default: 10.",
        },
    }


def _only_for(fields: Mapping[str, Schema], match_types: str) -> dict[str, Schema]:
    # Null counts as absent, so it is the only value allowed for a field of another mode.
    return {name: {"type": "null", "description": f"Only for {match_types}."} for name in fields}


def _team_name() -> Schema:
    return _text(
        1,
        text_rules.MAX_TEAM_NAME,
        'Trimmed, without " ; \\ % $ { } ` // and without control, format and line-separator characters.',
        format="team-name",
    )


def _text(min_length: int, max_length: int, description: str, **extra: str) -> Schema:
    minimum: Schema = {"minLength": min_length} if min_length else {}
    return {"type": ["string", "null"], **minimum, "maxLength": max_length, **extra, "description": description}


def _integer(minimum: int, maximum: int, description: str) -> Schema:
    return {"type": ["integer", "null"], "minimum": minimum, "maximum": maximum, "description": description}


def _object(properties: Mapping[str, Schema], *, required: Sequence[str] = ()) -> Schema:
    if_required: Schema = {"required": list(required)} if required else {}
    return {"type": "object", "properties": dict(properties), **if_required, "additionalProperties": False}


def _ref(name: str) -> str:
    return f"#/components/schemas/{name}"
