"""Build the two OpenAPI 3.1 documents from the list of endpoints: for callers, and for game servers and operators."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from http import HTTPStatus

import msgspec

from matchpod.core.errors import MatchpodError, RateLimitError, UnauthorizedError, UnavailableError
from matchpod.core.requests.field_rules import schema_ref
from matchpod.core.requests.json_fields import Schema
from matchpod.web.endpoint import Endpoint, Parameter, Tag
from matchpod.web.errors import UnsupportedMediaTypeError
from matchpod.web.handlers.parameters import IF_NONE_MATCH
from matchpod.web.http.responses import EVENT_STREAM, JSON
from matchpod.web.openapi.callback_schema import webhooks
from matchpod.web.openapi.error_guide import meaning_of
from matchpod.web.openapi.examples import Examples, read_examples
from matchpod.web.openapi.published_schemas import published_schemas, referenced
from matchpod.web.openapi.webhook_schema import event_requests

_SCHEME = "apiKey"
_TAGS = {
    Tag.API: "For callers, with an API key.",
    Tag.INGEST: "For game servers and their plugins, with the token of the match.",
    Tag.OPERATIONS: "For operators and monitoring.",
}
_LINKED = {
    "getListedCallback": ("getCallback", "items/0/"),
    "getListedMap": ("getMap", "items/0/"),
    "getListedDelivery": ("getDelivery", "items/0/"),
    "getListedWebhook": ("getWebhook", "items/0/"),
    "getListedSeries": ("getSeries", "items/0/"),
    "getListedServer": ("getServer", "items/0/"),
    "getMapOfSeries": ("getMap", "maps/0/"),
}
"""Links to an operation for an item in the response, by link name: the operation, and the path of the item. A link
without an entry has the name of its operation, and its item is the response itself."""

_HEADERS: Mapping[type[MatchpodError], tuple[str, Schema]] = {
    UnauthorizedError: ("WWW-Authenticate", {"type": "string", "const": "Bearer"}),
    UnsupportedMediaTypeError: ("Accept-Encoding", {"type": "string", "const": "identity"}),
    RateLimitError: ("Retry-After", {"type": "integer", "minimum": 1}),
    UnavailableError: ("Retry-After", {"type": "integer", "minimum": 1}),
}

_ETAG: Schema = {
    "ETag": {
        "schema": {"type": "string", "pattern": '^W/"[0-9a-f]{32}"$'},
        "description": "Only if the match, map or series has ended. Send it as `If-None-Match` to get the body only if "
        "it has changed.",
    }
}

_REPLAYED: Schema = {
    "Idempotent-Replayed": {
        "schema": {"type": "string", "const": "true"},
        "description": "Only if this is the response to an earlier request with the same `Idempotency-Key`.",
    }
}


@functools.cache
def describe(endpoints: tuple[Endpoint, ...], version: str) -> bytes:
    """Return the document for callers as JSON. It is built at the first call."""
    text = "A fresh Counter-Strike 2 server for every match, and its full result in one callback."
    info: Schema = {"title": "Matchpod", "version": version, "description": text}
    own = [endpoint for endpoint in endpoints if endpoint.tag is Tag.API]
    sent = webhooks(read_examples()) | event_requests(read_examples())
    return msgspec.json.encode(_document(own, info, {"webhooks": sent}))


@functools.cache
def describe_internal(endpoints: tuple[Endpoint, ...], version: str) -> bytes:
    """Return the document for game servers and operators as JSON. It is built at the first call."""
    text = (
        "The endpoints for game servers and operators. Callers do not need them; the endpoints for callers are in "
        "`/openapi.json`."
    )
    info: Schema = {"title": "Matchpod, internal endpoints", "version": version, "description": text}
    return msgspec.json.encode(_document([endpoint for endpoint in endpoints if endpoint.tag is not Tag.API], info))


def _document(endpoints: Sequence[Endpoint], info: Schema, more: Mapping[str, object] | None = None) -> Schema:
    shapes = [endpoint.returns for endpoint in endpoints if endpoint.returns is not None]
    schemas, components = published_schemas(shapes)
    examples = read_examples()
    returned = iter(schemas)
    paths: dict[str, dict[str, object]] = {}
    operations = {endpoint.name: endpoint for endpoint in endpoints}
    for endpoint in endpoints:
        schema: Schema = next(returned) if endpoint.returns is not None else _other_shape(endpoint)
        operation = _operation(endpoint, schema, examples, operations)
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = operation
    document: Schema = {
        "openapi": "3.1.0",
        "info": info,
        "servers": [{"url": "/", "description": "The service that returned this document."}],
        "tags": [
            {"name": tag.value, "description": text}
            for tag, text in _TAGS.items()
            if any(endpoint.tag is tag for endpoint in endpoints)
        ],
        "paths": paths,
        **(more or {}),
    }
    keys: Schema = {_SCHEME: {"type": "http", "scheme": "bearer", "description": "An API key."}}
    needs_key = any(endpoint.access is not None for endpoint in endpoints)
    document["components"] = {
        "schemas": referenced(document, components),
        "examples": referenced(document, examples.components(), "examples"),
        **({"securitySchemes": keys} if needs_key else {}),
    }
    return document


def _operation(endpoint: Endpoint, schema: Schema, examples: Examples, operations: Mapping[str, Endpoint]) -> Schema:
    operation: Schema = {"operationId": endpoint.name, "tags": [endpoint.tag.value], "summary": endpoint.summary}
    if endpoint.alias_of is not None:
        operation["deprecated"] = True
    if description := _description(endpoint):
        operation["description"] = description
    operation["security"] = [] if endpoint.access is None else [{_SCHEME: []}]
    parameters = (*endpoint.parameters, *((IF_NONE_MATCH,) if endpoint.has_etag else ()))
    if parameters:
        operation["parameters"] = [
            _parameter(parameter, examples.parameter(endpoint, parameter.name)) for parameter in parameters
        ]
    if endpoint.body is not None:
        content = _content(JSON, schema_ref(endpoint.body), examples.request(endpoint))
        operation["requestBody"] = {"required": True, **content}
    elif endpoint.raw_body is not None:
        content = _content(endpoint.raw_body, {}, examples.request(endpoint))
        operation["requestBody"] = {"required": True, **content}
    operation["responses"] = _responses(endpoint, schema, examples, operations)
    return operation


def _description(endpoint: Endpoint) -> str:
    parts = [endpoint.text] if endpoint.text else []
    if endpoint.access is not None:
        needs = f"Needs a key with the scope `{endpoint.access}`"
        roles = " or ".join(f"`{role}`" for role in endpoint.roles)
        parts.append(f"{needs} and the role {roles}." if roles else f"{needs}.")
    return " ".join(parts)


def _parameter(parameter: Parameter, example: str | None) -> Schema:
    return {
        "name": parameter.name,
        "in": parameter.place,
        "required": parameter.is_required,
        **({"deprecated": True} if parameter.is_deprecated else {}),
        "description": parameter.text,
        "schema": parameter.schema,
        **({} if example is None else {"example": example}),
    }


def _responses(endpoint: Endpoint, schema: Schema, examples: Examples, operations: Mapping[str, Endpoint]) -> Schema:
    success = _content(endpoint.content_type, schema, examples.response(endpoint, endpoint.status, ()))
    success["description"] = HTTPStatus(endpoint.status).phrase
    more = {**(_ETAG if endpoint.has_etag else {}), **(_REPLAYED if endpoint.is_repeatable else {})}
    success["headers"] = {**_headers(()), **more}
    if endpoint.links:
        success["links"] = {name: _link(name, operations) for name in endpoint.links}
    by_status: dict[int, list[type[MatchpodError]]] = {}
    for error in endpoint.all_errors:
        by_status.setdefault(error.status, []).append(error)
    failures = {
        str(status): _failure(by_status[status], examples.response(endpoint, status, by_status[status]))
        for status in sorted(by_status)
    }
    if endpoint.has_etag:
        unchanged: Schema = {
            "description": "The earlier response is still current.",
            "headers": {**_headers(()), **_ETAG},
        }
        failures = {"304": unchanged, **failures}
    if endpoint.content_type == EVENT_STREAM and endpoint.events == "TimelineItem":
        failures = {
            "204": {"description": "All items were already received; none will follow.", "headers": _headers(())},
            **failures,
        }
    return {str(endpoint.status): success, **(_ways_to_a_file(success) if endpoint.is_file else {}), **failures}


def _ways_to_a_file(success: Schema) -> Schema:
    """Return the other possible responses to a request for a file: a part of the file, or a redirect."""
    location: Schema = {"Location": {"required": True, "schema": {"type": "string"}}}
    return {
        "206": {**success, "description": "The part of the file that `Range` asks for."},
        "302": {
            "description": "The file is at `Location`, for 15 minutes and without a key.",
            "headers": {**_headers(()), **location},
        },
    }


def _failure(errors: Sequence[type[MatchpodError]], examples: Schema) -> Schema:
    meanings = [f"`{error.code}`: {meaning_of(error.code)}" for error in errors]
    response = _content(JSON, schema_ref("Error"), examples)
    return {"description": " ".join(meanings), "headers": _headers(errors), **response}


def _headers(errors: Iterable[type[MatchpodError]]) -> Schema:
    named = dict(_HEADERS[error] for error in errors if error in _HEADERS)
    shown: Schema = {name: {"required": True, "schema": schema} for name, schema in named.items()}
    return {"X-Request-Id": {"required": True, "schema": {"type": "string", "pattern": "^req_[0-9a-z]{16}$"}}, **shown}


def _link(name: str, operations: Mapping[str, Endpoint]) -> Schema:
    """Return a link to an operation. The last id in its path is from the response, all other ids from the request."""
    operation, place = _LINKED.get(name, (name, ""))
    target = operations[operation]
    *outer, last = (parameter.name for parameter in target.parameters if parameter.place == "path")
    id_field = "serverId" if target.path.startswith("/api/v1/servers/") else "id"
    field = id_field if last in ("id", "mapId") else last
    given = {parameter: f"$request.path.{parameter}" for parameter in outer}
    return {"operationId": operation, "parameters": {**given, last: f"$response.body#/{place}{field}"}}


def _content(media_type: str, schema: Schema, examples: Schema) -> Schema:
    return {"content": {media_type: {"schema": schema, **({"examples": examples} if examples else {})}}}


def _other_shape(endpoint: Endpoint) -> Schema:
    """Return the schema of a response that is stored JSON or not JSON. For a stream, that is the schema of an event."""
    if endpoint.stored is not None:
        return schema_ref(endpoint.stored)
    if endpoint.content_type != EVENT_STREAM:
        return {"type": "string"}
    return schema_ref("StreamEvent" if endpoint.events == "TimelineItem" else "OrganizationStreamEvent")
