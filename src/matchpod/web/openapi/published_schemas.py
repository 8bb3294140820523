"""Build the published JSON Schemas of all responses from the Python types that are encoded.

The types have names for readers of the code; the schemas get their published names here. This module adds what msgspec
cannot know: the schemas of stored JSON, which fields are times, and the discriminators of unions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, get_args

import msgspec

from matchpod.core.model import MatchType
from matchpod.core.requests.field_rules import schema_ref
from matchpod.core.requests.json_fields import Schema
from matchpod.core.views.match_progress import PendingAction
from matchpod.core.views.organization_event_shapes import OrganizationEvent, RaisedAttention
from matchpod.core.views.progress import Deadline, RosterPlayer, Sides
from matchpod.core.views.result_shapes import DeathmatchResult, LiveMatch, SeriesResult
from matchpod.core.views.round_shapes import RoundEntry
from matchpod.core.views.timeline_items import TimelineItem
from matchpod.cs2.shots_report import ShotsReport
from matchpod.service.end_match import MATCH_CANCELED, MATCH_OVER
from matchpod.service.webhooks.bodies import WebhookBody
from matchpod.web.errors import ErrorBody
from matchpod.web.http.responses import JSON
from matchpod.web.openapi.callback_schema import callback_schemas
from matchpod.web.openapi.request_schema import request_schemas
from matchpod.web.openapi.webhook_schema import any_body, event_schemas

_AT: Final = "#/components/schemas/"
_NAMES: Final = {
    "ServerView": "Server",
    "MatchView": "Match",
    "RegionView": "Region",
    "ErrorBody": "Error",
    "FaultDetail": "Fault",
    "SeriesItem": "Series",
    "MapSummary": "Map",
    "LeaderboardView": "Leaderboard",
    "CallbackItem": "Callback",
    "WebhookView": "Webhook",
    "DeliveryItem": "Delivery",
    "RoundsView": "Rounds",
    "RoundEntry": "Round",
}
"""Published names of the types whose names in the code differ."""

_SHAPES: Final = (
    ErrorBody,
    LiveMatch,
    Deadline,
    Sides,
    RosterPlayer,
    PendingAction,
    SeriesResult,
    DeathmatchResult,
    RoundEntry,
    ShotsReport,
    WebhookBody,
    RaisedAttention,
    OrganizationEvent,
    TimelineItem,
)
"""Types that no endpoint returns as a whole, only as parts of responses or events. The last two are unions."""

_TIME: Final = re.compile(r"\w+At|at|timestamp|until|oldSecretUntil|since|failingSince|nextSince")
"""Matches the names of fields whose values are times."""
_TIME_FORMAT: Final = "date-time"


def published_schemas(returned: Sequence[object]) -> tuple[list[Schema], dict[str, Schema]]:
    """Return the schemas of these types, and the schemas of all types in them by published name."""
    schemas, components = msgspec.json.schema_components((*returned, *_SHAPES), ref_template=_AT + "{name}")
    components["TimelineItem"] = {"description": "Something that happened; `type` says what.", **schemas[-1]}
    components["OrganizationEvent"] = {"description": "What changed in a match; `type` says what.", **schemas[-2]}
    _fill_in_raw(components)
    _describe_tags(components)
    _list_modes(components)
    for schema in components.values():
        _mark_times(schema)
    components["StreamEvent"] = _stream_event("TimelineItem")
    components["OrganizationStreamEvent"] = _stream_event("OrganizationEvent")
    components["MatchResult"] = _result()
    components["CallbackBody"] = _callback_body()
    components["DeliveredBody"] = any_body()
    written = {**request_schemas(), **callback_schemas(), **event_schemas(components["WebhookBody"])}
    if duplicates := written.keys() & components.keys():
        raise ValueError(f"two schemas share a name: {', '.join(duplicates)}")
    components.update(written)
    named = {_NAMES.get(name, name): _published(schema) for name, schema in components.items()}
    return [_published(schema) for schema in schemas[: len(returned)]], named


def referenced(value: object, components: Mapping[str, Schema], kind: str = "schemas") -> dict[str, Schema]:
    """Return the components that a part of a document refers to, directly or indirectly, in their original order."""
    found: set[str] = set()
    waiting = [value]
    while waiting:
        for name in _refs(waiting.pop(), f"#/components/{kind}/"):
            if name not in found:
                found.add(name)
                waiting.append(components[name])
    return {name: component for name, component in components.items() if name in found}


def _refs(value: object, prefix: str) -> Iterable[str]:
    if isinstance(value, dict):
        for key, item in value.items():
            if key == "$ref" and isinstance(item, str) and item.startswith(prefix):
                yield item.removeprefix(prefix)
            else:
                yield from _refs(item, prefix)
    elif isinstance(value, list):
        for item in value:
            yield from _refs(item, prefix)


# --- what the types do not say ------------------------------------------------------------------------------------


def _fill_in_raw(components: Mapping[str, Schema]) -> None:
    """Set the schemas of the fields that contain stored JSON: msgspec does not know its type."""
    null: Schema = {"type": "null"}
    for name, field, schema in (
        ("ServerView", "match", _any_of(schema_ref("LiveMatch"), null)),
        ("ServerView", "deadline", _any_of(schema_ref("Deadline"), null)),
        ("ServerView", "sides", _any_of(schema_ref("Sides"), null)),
        ("ServerView", "roster", _any_of(_list_of(schema_ref("RosterPlayer")), null)),
        ("ServerView", "pendingAction", _any_of(schema_ref("PendingAction"), null)),
        ("MatchView", "result", _any_of(schema_ref("MatchResult"), null)),
        ("MapDetail", "players", _list_of(_any_of(schema_ref("MapPlayer"), schema_ref("DeathmatchPlayer")))),
        ("MapDetail", "antiCheat", _list_of(schema_ref("AntiCheatEntry"))),
        ("CallbackDetail", "body", schema_ref("CallbackBody")),
        ("DeliveryDetail", "body", schema_ref("DeliveredBody")),
        ("WebhookBody", "data", {"type": "object"}),
        ("DemoAvailableEvent", "demo", {"type": "object"}),
        ("RoundsView", "rounds", _list_of(schema_ref("RoundEntry"))),
        ("EventsPage", "items", _list_of(schema_ref("TimelineItem"))),
    ):
        if name in components:
            _properties(components, name)[field].update(schema)


def _describe_tags(components: Mapping[str, Schema]) -> None:
    """Describe the `type` property, which is the tag of the structs, so no field has a description for it."""
    for item in get_args(TimelineItem):
        _properties(components, item.__name__)["type"]["description"] = "The type of the item."
    for event in get_args(OrganizationEvent):
        _properties(components, event.__name__)["type"]["description"] = "The type of the event."


def _list_modes(components: Mapping[str, Schema]) -> None:
    """Limit the values of `gameMode`. Each kind of result has its own values, so that clients can tell them apart."""
    others = [mode.value for mode in MatchType if mode is not MatchType.DEATHMATCH]
    meaning = "The match type that was played."
    for name, schema in (
        ("SeriesResult", {"type": "string", "enum": others}),
        ("DeathmatchResult", {"type": "string", "const": MatchType.DEATHMATCH.value}),
    ):
        _properties(components, name)["gameMode"] = {"description": meaning, **schema}
    for name in ("SeriesItem", "SeriesDetail", "MapSummary", "MapDetail"):
        if name in components:
            _properties(components, name)["gameMode"] = {"description": meaning, **schema_ref("MatchType")}


def _result() -> Schema:
    shapes = {mode.value: "DeathmatchResult" if mode is MatchType.DEATHMATCH else "SeriesResult" for mode in MatchType}
    return _union("gameMode", shapes, "The result of a match; `gameMode` says which shape it has.")


def _callback_body() -> Schema:
    shapes = {MATCH_OVER: "MatchOver", MATCH_CANCELED: "MatchCanceled"}
    return _union("eventType", shapes, "The body of a callback; `eventType` says which one.")


def _union(field: str, shapes: Mapping[str, str], description: str) -> Schema:
    """Return the union of schemas in which the value of `field` selects the schema."""
    return {
        "description": description,
        "oneOf": [schema_ref(name) for name in dict.fromkeys(shapes.values())],
        "discriminator": {"propertyName": field, "mapping": {value: _AT + name for value, name in shapes.items()}},
    }


def _mark_times(schema: Schema) -> None:
    fields = schema.get("properties")
    for name, field in fields.items() if isinstance(fields, dict) else ():
        if _TIME.fullmatch(name):
            for choice in field.get("anyOf", [field]):
                if choice.get("type") == "string":
                    choice["format"] = _TIME_FORMAT


def _stream_event(schema: str) -> Schema:
    return {
        "description": "One event of a stream.",
        "type": "object",
        "properties": {
            "id": {"type": "string", "description": "The `Last-Event-ID` to reconnect with."},
            "event": {"type": "string", "description": "The `type` of the item."},
            "data": {
                "type": "string",
                "contentMediaType": JSON,
                "contentSchema": schema_ref(schema),
                "description": f"The item as JSON, of the type `{schema}`.",
            },
        },
        "required": ["id", "event", "data"],
    }


def _properties(components: Mapping[str, Schema], name: str) -> dict[str, Schema]:
    properties = components[name]["properties"]
    if not isinstance(properties, dict):
        raise TypeError(f"{name} has no fields")
    return properties


def _any_of(*schemas: Schema) -> Schema:
    return {"anyOf": list(schemas)}


def _list_of(schema: Schema) -> Schema:
    return {"type": "array", "items": schema}


# --- published names ----------------------------------------------------------------------------------------------


def _published(schema: Mapping[str, object]) -> Schema:
    """Return the schema without the titles, which are names of our types, and with all references renamed."""
    is_enum = isinstance(schema.get("enum"), list) and "type" not in schema  # all our enums are strings
    texts: Schema = {"type": "string"} if is_enum else {}
    kept = {key: _renamed(item) for key, item in schema.items() if key != "title" or not isinstance(item, str)}
    return {**texts, **kept}


def _renamed(value: object) -> object:
    if isinstance(value, dict):
        return _published(value)
    if isinstance(value, list):
        return [_renamed(item) for item in value]
    if isinstance(value, str) and value.startswith(_AT):
        name = value.removeprefix(_AT)
        return _AT + _NAMES.get(name, name)
    return value
