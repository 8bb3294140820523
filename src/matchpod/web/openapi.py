"""Build the OpenAPI 3.1 document from the list of endpoints and the types of their responses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import get_args

import msgspec

from matchpod.core.errors import MatchpodError, RateLimitError, UnauthorizedError, UnavailableError
from matchpod.core.organization_events import OrganizationEvent
from matchpod.core.progress import Deadline, RosterPlayer, Sides
from matchpod.core.result_shapes import DeathmatchResult, LiveMatch, SeriesResult
from matchpod.core.round_shapes import RoundEntry
from matchpod.core.timeline_items import TimelineItem
from matchpod.cs2.shots_report import ShotsReport
from matchpod.web.callback_schema import callback_schemas, webhooks
from matchpod.web.endpoint import EVENT_STREAM, JSON, Endpoint, Parameter, Tag
from matchpod.web.errors import ErrorBody
from matchpod.web.request_schema import create_match_schemas, redelivery_schemas
from matchpod.web.services import Services

Schema = dict[str, object]

_REF = "#/components/schemas/{name}"
_SCHEME = "apiKey"
_NAMES = {
    "ServerView": "Server",
    "MatchView": "Match",
    "RegionView": "Region",
    "ErrorBody": "Error",
    "SeriesItem": "Series",
    "MapSummary": "Map",
    "LeaderboardView": "Leaderboard",
    "CallbackItem": "Callback",
    "RoundsView": "Rounds",
    "RoundEntry": "Round",
}
"""Types that have a different name in the document."""

_SHAPES = (
    ErrorBody,
    LiveMatch,
    Deadline,
    Sides,
    RosterPlayer,
    SeriesResult,
    DeathmatchResult,
    RoundEntry,
    ShotsReport,
    OrganizationEvent,
    TimelineItem,
)
"""Types that no endpoint returns by itself; the last two are unions."""

_TAGS = {
    Tag.API: "For callers, with an API key.",
    Tag.INGEST: "For game servers and their plugins, with the token of the match.",
    Tag.OPERATIONS: "For operators and monitoring.",
}
_LINKED = {
    "getServer": ("getServer", "id", "serverId"),
    "cancelMatch": ("cancelMatch", "id", "serverId"),
    "getMatchByExternalId": ("getMatchByExternalId", "externalMatchId", "externalMatchId"),
    "listServerSeries": ("listServerSeries", "serverId", "serverId"),
    "getSeries": ("getSeries", "seriesId", "seriesId"),
    "getListedSeries": ("getSeries", "seriesId", "items/0/seriesId"),
    "getListedServer": ("getServer", "id", "items/0/serverId"),
    "getListedMap": ("getMap", "mapId", "items/0/id"),
    "getMapOfSeries": ("getMap", "mapId", "maps/0/id"),
    "getListedCallback": ("getCallback", "id", "items/0/id"),
    "getCallback": ("getCallback", "id", "id"),
    "redeliverCallback": ("redeliverCallback", "id", "id"),
    "getMapEvents": ("getMapEvents", "mapId", "id"),
    "getMapLeaderboard": ("getMapLeaderboard", "mapId", "id"),
    "getMapRounds": ("getMapRounds", "mapId", "id"),
}
"""Links: the operation, its parameter, and the field of the response to use for it."""

_MEANINGS = {
    "INVALID_PARAMS": "The body or a parameter breaks a rule; `details` lists every fault.",
    "UNAUTHORIZED": "The key or token is missing or not valid.",
    "FORBIDDEN": "The key lacks the scope or role, or this belongs to another organization.",
    "NOT_FOUND": "It does not exist.",
    "SERVER_NOT_RUNNING": "The match has already ended in another way.",
    "IDEMPOTENCY_CONFLICT": "The Idempotency-Key was used with another body.",
    "CALLBACK_WAITING": "An attempt is under way or scheduled.",
    "GONE": "The match has ended or does not exist: stop sending.",
    "PAYLOAD_TOO_LARGE": "The body exceeds the limit.",
    "RATE_LIMIT_EXCEEDED": "Too many requests, live matches or open streams; `Retry-After` is the seconds to wait.",
    "SERVER_ERROR": "An internal error; the request id identifies it in the service's log.",
    "SERVICE_UNAVAILABLE": "Starting, stopping, or the database is unavailable; `Retry-After` says when to retry.",
}
"""The description of each error code."""

_HEADERS: Mapping[type[MatchpodError], tuple[str, Schema]] = {
    UnauthorizedError: ("WWW-Authenticate", {"type": "string", "const": "Bearer"}),
    RateLimitError: ("Retry-After", {"type": "integer", "minimum": 1}),
    UnavailableError: ("Retry-After", {"type": "integer", "minimum": 1}),
}


def describe(endpoints: Sequence[Endpoint], services: Services) -> bytes:
    """Return the document as JSON."""
    shapes = [endpoint.returns for endpoint in endpoints if endpoint.returns is not None]
    schemas, components = msgspec.json.schema_components((*shapes, *_SHAPES), ref_template=_REF)
    components["TimelineItem"] = {"description": "Something that happened; `type` says what.", **schemas[-1]}
    components["OrganizationEvent"] = {"description": "What changed in a match; `type` says what.", **schemas[-2]}
    returned = iter(schemas)
    operations: dict[str, dict[str, object]] = {}
    for endpoint in endpoints:
        schema: Schema = next(returned) if endpoint.returns is not None else _other_shape(endpoint)
        operations.setdefault(endpoint.path, {})[endpoint.method.lower()] = _operation(endpoint, schema)
    _fill_in_raw(components)
    _describe_tags(components)
    components["StreamEvent"] = _stream_event("TimelineItem")
    components["OrganizationStreamEvent"] = _stream_event("OrganizationEvent")
    regions = [region.code for region in services.regions.all()]
    written = {**create_match_schemas(regions), **redelivery_schemas(), **callback_schemas()}
    if duplicates := written.keys() & components.keys():
        raise ValueError(f"two schemas share a name: {', '.join(duplicates)}")
    components.update(written)
    document = {
        "openapi": "3.1.0",
        "info": {
            "title": "Matchpod",
            "version": services.version,
            "description": "A fresh Counter-Strike 2 server for every match, and its full result in one callback.",
        },
        "tags": [{"name": tag.value, "description": text} for tag, text in _TAGS.items()],
        "paths": operations,
        "webhooks": webhooks(),
        "components": {
            "schemas": {_NAMES.get(name, name): schema for name, schema in components.items()},
            "securitySchemes": {_SCHEME: {"type": "http", "scheme": "bearer", "description": "An API key."}},
        },
    }
    return msgspec.json.encode(_rename_refs(document))


def _operation(endpoint: Endpoint, schema: Schema) -> Schema:
    operation: Schema = {"operationId": endpoint.name, "tags": [endpoint.tag.value], "summary": endpoint.summary}
    if description := _description(endpoint):
        operation["description"] = description
    if endpoint.access is not None:
        operation["security"] = [{_SCHEME: []}]
    if endpoint.parameters:
        operation["parameters"] = [_parameter(parameter) for parameter in endpoint.parameters]
    if endpoint.body is not None:
        operation["requestBody"] = _content(JSON, _ref(endpoint.body), is_body=True)
    elif endpoint.raw_body is not None:
        operation["requestBody"] = _content(endpoint.raw_body, {}, is_body=True)
    operation["responses"] = _responses(endpoint, schema)
    return operation


def _description(endpoint: Endpoint) -> str:
    parts = [endpoint.text] if endpoint.text else []
    if endpoint.access is not None:
        needs = f"Needs a key with the scope `{endpoint.access}`"
        roles = " or ".join(f"`{role}`" for role in endpoint.roles)
        parts.append(f"{needs} and the role {roles}." if roles else f"{needs}.")
    return " ".join(parts)


def _parameter(parameter: Parameter) -> Schema:
    return {
        "name": parameter.name,
        "in": parameter.place,
        "required": parameter.is_required,
        "description": parameter.text,
        "schema": parameter.schema,
    }


def _responses(endpoint: Endpoint, schema: Schema) -> Schema:
    success = _content(endpoint.content_type, schema)
    success["description"] = HTTPStatus(endpoint.status).phrase
    success["headers"] = _headers(())
    if endpoint.links:
        success["links"] = {name: _link(name) for name in endpoint.links}
    by_status: dict[int, list[type[MatchpodError]]] = {}
    for error in endpoint.errors:
        by_status.setdefault(error.status, []).append(error)
    failures = {str(status): _failure(by_status[status]) for status in sorted(by_status)}
    if endpoint.content_type == EVENT_STREAM and endpoint.events == "TimelineItem":
        failures = {
            "204": {"description": "All items were already received; none will follow.", "headers": _headers(())},
            **failures,
        }
    return {str(endpoint.status): success, **failures}


def _failure(errors: Sequence[type[MatchpodError]]) -> Schema:
    meanings = [f"`{error.code}`: {_MEANINGS[error.code]}" for error in errors]
    response = _content(JSON, _ref("ErrorBody"))
    return {"description": " ".join(meanings), "headers": _headers(errors), **response}


def _headers(errors: Iterable[type[MatchpodError]]) -> Schema:
    named = dict(_HEADERS[error] for error in errors if error in _HEADERS)
    shown: Schema = {name: {"required": True, "schema": schema} for name, schema in named.items()}
    return {"X-Request-Id": {"required": True, "schema": {"type": "string", "pattern": "^req_[0-9a-z]{16}$"}}, **shown}


def _link(name: str) -> Schema:
    operation, parameter, field = _LINKED[name]
    return {"operationId": operation, "parameters": {parameter: f"$response.body#/{field}"}}


def _content(media_type: str, schema: Schema, *, is_body: bool = False) -> Schema:
    content: Schema = {"content": {media_type: {"schema": schema}}}
    return {"required": True, **content} if is_body else content


def _fill_in_raw(components: Mapping[str, Schema]) -> None:
    """Set the schemas of fields that hold stored JSON: msgspec cannot know their types."""
    null: Schema = {"type": "null"}
    for name, field, schema in (
        ("ServerView", "match", _one_of(_ref("LiveMatch"), null)),
        ("ServerView", "deadline", _one_of(_ref("Deadline"), null)),
        ("ServerView", "sides", _one_of(_ref("Sides"), null)),
        ("ServerView", "roster", _one_of(_list_of(_ref("RosterPlayer")), null)),
        ("MatchView", "result", _one_of(_ref("SeriesResult"), _ref("DeathmatchResult"), null)),
        ("MapDetail", "players", _list_of(_one_of(_ref("MapPlayer"), _ref("DeathmatchPlayer")))),
        ("MapDetail", "antiCheat", _list_of(_ref("AntiCheatEntry"))),
        ("CallbackDetail", "body", _one_of(_ref("MatchOver"), _ref("MatchCanceled"))),
        ("RoundsView", "rounds", _list_of(_ref("RoundEntry"))),
        ("EventsPage", "items", _list_of(_ref("TimelineItem"))),
    ):
        _properties(components, name)[field].update(schema)


def _properties(components: Mapping[str, Schema], name: str) -> dict[str, Schema]:
    properties = components[name]["properties"]
    if not isinstance(properties, dict):
        raise TypeError(f"{name} has no fields")
    return properties


def _describe_tags(components: Mapping[str, Schema]) -> None:
    """Add the description of `type`: it is the tag of the structs, not one of their fields."""
    for item in get_args(TimelineItem):
        _properties(components, item.__name__)["type"]["description"] = "The type of the item."
    for event in get_args(OrganizationEvent):
        _properties(components, event.__name__)["type"]["description"] = "The type of the event."


def _other_shape(endpoint: Endpoint) -> Schema:
    """Return the schema of a response that is not JSON; for a stream, that of one parsed event."""
    if endpoint.content_type != EVENT_STREAM:
        return {"type": "string"}
    return _ref("StreamEvent" if endpoint.events == "TimelineItem" else "OrganizationStreamEvent")


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
                "contentSchema": _ref(schema),
                "description": f"The item as JSON, of the type `{schema}`.",
            },
        },
        "required": ["id", "event", "data"],
    }


def _ref(name: str) -> Schema:
    return {"$ref": _REF.format(name=name)}


def _one_of(*schemas: Schema) -> Schema:
    return {"anyOf": list(schemas)}


def _list_of(schema: Schema) -> Schema:
    return {"type": "array", "items": schema}


def _rename_refs(value: object) -> object:
    """Rewrite all references to types that have a different name in the document."""
    if isinstance(value, dict):
        return {key: _renamed_ref(item) if key == "$ref" else _rename_refs(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_rename_refs(item) for item in value]
    return value


def _renamed_ref(ref: str) -> str:
    name = ref.rsplit("/", 1)[-1]
    return _REF.format(name=_NAMES.get(name, name))
