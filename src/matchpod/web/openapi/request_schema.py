"""Build the JSON Schemas of request bodies from the tables of their fields.

A `format` in a schema names a rule that no pattern can express; the description explains it. These rules cannot be
expressed at all: a player is in one team only; both teams together list at most 32 players; `sides` has one entry for
each map to play; `knife` needs a listed player; `forfeit` as `onNoShow` needs listed players in both teams;
`recordDemo: true` needs a listed player, and a storage for demos; `mapsWon` must not decide the series.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from matchpod.core.match.actions import ACTIONS, ActionType
from matchpod.core.model import MatchType
from matchpod.core.requests import action_request, webhook_request
from matchpod.core.requests import request_table as table
from matchpod.core.requests.callback_query import SINCE
from matchpod.core.requests.field_rules import schema_ref
from matchpod.core.requests.json_fields import AnyField, Schema
from matchpod.core.requests.ruling_request import RULING

_SHAPES: Final = ("SeriesSettings", "DeathmatchSettings", "OtherSettings")


def request_schemas() -> dict[str, Schema]:
    """Return the schemas of all request bodies, by name."""
    return {
        **create_match_schemas(),
        "RedeliverCallbacks": _object((SINCE,)),
        **_action_schemas(),
        "RuleMatch": _object(RULING),
        "CreateWebhook": _object(webhook_request.CREATE),
        "ChangeWebhook": _object(webhook_request.CHANGE),
    }


def create_match_schemas() -> dict[str, Schema]:
    return {
        "CreateMatch": _object(table.BODY),
        "GameSettings": _game_settings(),
        **{
            name: _settings([match_type for match_type in MatchType if _settings_name(match_type) == name])
            for name in _SHAPES
        },
        "ListedTeams": _object(tuple(table.LISTED_TEAMS.values())),
        "ListedTeam": _object(table.TEAM),
        "Overtime": _object(table.OVERTIME_RULES),
        "MapsWon": _object(tuple(table.MAPS_GIVEN.values())),
    }


def _action_schemas() -> dict[str, Schema]:
    """Return the schema of the body that requests an action, and one schema per type of action, by name."""
    fields = {field.name: field for field in action_request.FIELDS}
    shapes: dict[str, Schema] = {}
    for action_type, rule in ACTIONS.items():
        own = [msgspec.structs.replace(fields[field.name], is_required=True) for field in rule.fields]
        shape = _object((action_request.TYPE, *own, action_request.REASON, action_request.BY))
        shape["properties"] = {**_properties(shape), "type": _type_of(action_type)}
        shapes[_action_name(action_type)] = {"description": rule.text, **shape}
    mapping = {action_type.value: schema_ref(_action_name(action_type))["$ref"] for action_type in ACTIONS}
    choice: Schema = {
        "description": "An action on a match; `type` says which.",
        "oneOf": [schema_ref(name) for name in shapes],
        "discriminator": {"propertyName": "type", "mapping": mapping},
    }
    return {"ActOnMatch": choice, **shapes}


def _type_of(action_type: ActionType) -> Schema:
    return {"type": "string", "enum": [action_type.value], "description": action_request.TYPE.meaning}


def _action_name(action_type: ActionType) -> str:
    return f"{action_type.value[0].upper()}{action_type.value[1:]}Action"


def _properties(shape: Schema) -> dict[str, Schema]:
    found = shape["properties"]
    return found if isinstance(found, dict) else {}


def _game_settings() -> Schema:
    names = {match_type.value: _settings_name(match_type) for match_type in MatchType}
    return {
        "description": "The settings of a match; `matchType` says which fields there are.",
        "oneOf": [schema_ref(name) for name in dict.fromkeys(names.values())],
        "discriminator": {
            "propertyName": table.MATCH_TYPE.name,
            "mapping": {match_type: schema_ref(name)["$ref"] for match_type, name in names.items()},
        },
    }


def _settings_name(match_type: MatchType) -> str:
    if match_type is MatchType.DEATHMATCH:
        return "DeathmatchSettings"
    return "SeriesSettings" if match_type.has_series else "OtherSettings"


def _settings(match_types: list[MatchType]) -> Schema:
    """Return the settings schema for match types that have the same fields."""
    # Fields for these match types come before fields for other match types.
    of_modes = [field for field in table.SETTINGS if field.match_types]
    own_first = iter(sorted(of_modes, key=lambda field: not field.is_for(match_types[0])))
    fields = [next(own_first) if field.match_types else field for field in table.SETTINGS]
    properties = {
        field.name: _property(field) if field.is_for(match_types[0]) else _only_null(field) for field in fields
    }
    properties[table.MATCH_TYPE.name] = {"type": "string", "enum": [match_type.value for match_type in match_types]}
    return _shape(properties, fields)


def _only_null(field: AnyField) -> Schema:
    # Null counts as absent, so null is the only value allowed for a field of other match types.
    return {"type": "null", "description": f"Only for {' and '.join(field.match_types)}."}


def _object(fields: Sequence[AnyField]) -> Schema:
    properties = {field.name: _property(field) for field in fields}
    return _shape(properties, fields)


def _shape(properties: Mapping[str, Schema], fields: Sequence[AnyField]) -> Schema:
    required = [field.name for field in fields if field.is_required]
    if_required: Schema = {"required": required} if required else {}
    return {"type": "object", "properties": dict(properties), **if_required, "additionalProperties": False}


def _property(field: AnyField) -> Schema:
    schema = field.rule.schema if field.is_required else _or_null(field.rule.schema)
    meaning: Schema = {"description": field.meaning} if field.meaning else {}
    example: Schema = {"example": field.example} if field.example else {}
    return {**schema, **meaning, **example}


def _or_null(schema: Schema) -> Schema:
    """Return the schema with null as an additional value, because the field is optional."""
    if "$ref" in schema:
        return {"anyOf": [schema, {"type": "null"}]}
    choices = schema.get("enum")
    with_null: Schema = {"enum": [*choices, None]} if isinstance(choices, list) else {}
    return {**schema, "type": [schema["type"], "null"], **with_null}
