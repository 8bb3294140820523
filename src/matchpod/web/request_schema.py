"""What may a create-match body look like, as JSON Schema? The rules of `core.validation`, for people and programs.

Formats in this schema are names of rules that a pattern cannot say; their descriptions say them. Two rules have no
place in a schema: a player stands in one team only, and both teams together list at most 32 players.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from matchpod.core import text_rules
from matchpod.core.model import MAX_LISTED_PLAYERS, DmSubMode, MatchType, SeriesFormat
from matchpod.core.validation import GAME_TYPE, MAX_DM_MINUTES, MAX_FREEZE_TIME_S, MAX_MAP_POOL, MAX_ROUNDS
from matchpod.cs2.cvars import MAX_TEXT_BYTES
from matchpod.web.parameters import NO_CONTROL

Schema = dict[str, object]

_PLAYER: Final[Schema] = {"type": "string", "pattern": "^7656119[0-9]{10}$", "example": "76561198000000001"}
_MAP: Final[Schema] = {"type": "string", "pattern": "^([a-z0-9_]{1,64}|workshop/[0-9]{1,20})$", "example": "de_dust2"}
_PLAYERS: Final[Schema] = {
    "type": ["array", "null"],
    "items": _PLAYER,
    "maxItems": MAX_LISTED_PLAYERS,
    "uniqueItems": True,
}


def create_match_schemas(regions: Sequence[str]) -> dict[str, Schema]:
    """The schemas of a create-match body, by name."""
    series = tuple(match_type for match_type in MatchType if match_type.has_series)
    others = tuple(t for t in MatchType if not t.has_series and t is not MatchType.DEATHMATCH)
    for_series, for_deathmatch = _series_fields(), _deathmatch_fields()
    team: Schema = {"$ref": _at("ListedTeam")}
    return {
        "CreateMatch": _create_match(regions),
        "SeriesSettings": _settings(series, {**for_series, **_refused(for_deathmatch, "deathmatch")}),
        "DeathmatchSettings": _settings(
            (MatchType.DEATHMATCH,), {**for_deathmatch, **_refused(for_series, "competitive and wingman")}
        ),
        "OtherSettings": _settings(
            others, {**_refused(for_series, "competitive and wingman"), **_refused(for_deathmatch, "deathmatch")}
        ),
        "ListedTeams": _object({"team1": team, "team2": team}, required=("team1", "team2")),
        "ListedTeam": _object({"name": _team_name(), "players": {**_PLAYERS, "description": "Who may play for it."}}),
    }


def _create_match(regions: Sequence[str]) -> Schema:
    choices = [{"$ref": _at(name)} for name in ("SeriesSettings", "DeathmatchSettings", "OtherSettings")]
    return _object(
        {
            "region": {"type": "string", "enum": list(regions), "description": "The code of a region."},
            "gameType": {"type": "string", "enum": [GAME_TYPE]},
            "gameSettings": {"oneOf": choices, "description": "What is played; which fields it has goes by matchType."},
            "callbackUrl": _text(
                1,
                text_rules.MAX_URL,
                "Absolute http or https URL of visible ASCII, without user name. It gets one POST when the match ends "
                "or is canceled.",
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


def _settings(match_types: Sequence[MatchType], of_mode: Mapping[str, Schema]) -> Schema:
    return _object(
        {
            "matchType": {"type": "string", "enum": [match_type.value for match_type in match_types]},
            "map": {**_MAP, "description": "The first map: a name, or workshop/ and the number of an item."},
            "maps": {
                "type": ["array", "null"],
                "items": _MAP,
                "maxItems": MAX_MAP_POOL,
                "description": "The maps after the first; they start over when the series needs more.",
            },
            **of_mode,
            "serverPassword": _text(
                1,
                text_rules.MAX_PASSWORD,
                "What players type to connect: no quotes, semicolons or control characters, and not the word none.",
                format="server-password",
            ),
            "freezeTime": _whole(0, MAX_FREEZE_TIME_S, "Seconds before each round."),
            "maxRounds": _whole(1, MAX_ROUNDS, "Rounds of a map."),
            "customCvars": _text(
                0,
                MAX_TEXT_BYTES,
                "Console variables, one `name value` a line, at most 200 lines; // begins a comment. Unknown names are "
                "refused with line and reason.",
                format="console-variables",
            ),
        },
        required=("matchType", "map"),
    )


def _series_fields() -> dict[str, Schema]:
    formats = [series_format.value for series_format in SeriesFormat]
    return {
        "seriesFormat": {"type": ["string", "null"], "enum": [*formats, None], "description": "bo1 when left out."},
        "teams": {
            "anyOf": [{"$ref": _at("ListedTeams")}, {"type": "null"}],
            "description": "The two teams; only listed players may connect once one is listed.",
        },
    }


def _deathmatch_fields() -> dict[str, Schema]:
    modes = [mode.value for mode in DmSubMode]
    return {
        "players": {**_PLAYERS, "description": "Who may connect; play begins when all are there."},
        "dmSubMode": {"type": ["string", "null"], "enum": [*modes, None], "description": "ffa when left out."},
        "dmRoundMinutes": {
            "type": ["number", "null"],
            "minimum": 1,
            "maximum": MAX_DM_MINUTES,
            "description": "How long it is played, in minutes; 10 when left out.",
        },
    }


def _refused(fields: Mapping[str, Schema], where: str) -> dict[str, Schema]:
    # Null counts as absent, so it is the one value that a field of another mode may have.
    return {name: {"type": "null", "description": f"Only for {where}."} for name in fields}


def _team_name() -> Schema:
    return _text(
        1,
        text_rules.MAX_TEAM_NAME,
        'Trimmed, without " ; \\ % $ { } ` or //, control, format and line-separator characters.',
        format="team-name",
    )


def _text(shortest: int, longest: int, description: str, **more: str) -> Schema:
    least: Schema = {"minLength": shortest} if shortest else {}
    return {"type": ["string", "null"], **least, "maxLength": longest, **more, "description": description}


def _whole(least: int, most: int, description: str) -> Schema:
    return {"type": ["integer", "null"], "minimum": least, "maximum": most, "description": description}


def _object(properties: Mapping[str, Schema], *, required: Sequence[str] = ()) -> Schema:
    needed: Schema = {"required": list(required)} if required else {}
    return {"type": "object", "properties": dict(properties), **needed, "additionalProperties": False}


def _at(name: str) -> str:
    return f"#/components/schemas/{name}"
