"""Describe the requests of an organization's webhooks in the format of OpenAPI."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from matchpod.core.requests.field_rules import schema_ref
from matchpod.core.requests.json_fields import Schema
from matchpod.core.webhook_events import TEST_EVENT, WebhookEvent
from matchpod.web.openapi.examples import Examples

_EVENTS: Final[Mapping[WebhookEvent, tuple[str, Schema]]] = {
    WebhookEvent.SERVER_RUNNING: ("Players may connect to a server", schema_ref("ServerView")),
    WebhookEvent.MATCH_LIVE: (
        "A map is live. A second event for the same map means that it was restarted",
        schema_ref("MapSummary"),
    ),
    WebhookEvent.MAP_ENDED: (
        "A map was played to its end. A restored round can reopen it, and then it ends again",
        schema_ref("MapDetail"),
    ),
    WebhookEvent.MATCH_PAUSED: ("Play stops at the next freeze time", schema_ref("PausedItem")),
    WebhookEvent.MATCH_RESUMED: ("Play continues after a pause", schema_ref("UnpausedItem")),
    WebhookEvent.MATCH_ENDED: ("A match has a result", schema_ref("MatchView")),
    WebhookEvent.MATCH_CANCELED: ("A match ended without a result", schema_ref("MatchView")),
    WebhookEvent.MATCH_RULED: (
        "An admin ruled on a match that has ended, or withdrew the ruling: then `ruling` is null",
        schema_ref("MatchView"),
    ),
    WebhookEvent.ACTION_DONE: ("An action on a match is done", schema_ref("ActionView")),
    WebhookEvent.ACTION_FAILED: ("An action on a match failed", schema_ref("ActionView")),
    WebhookEvent.DEMO_AVAILABLE: (
        "The demo of a map can be downloaded",
        {"type": "object", "description": "The demo, as when getting it."},
    ),
    WebhookEvent.ANTICHEAT_DETECTED: (
        "The anti-cheat detected something: a hint for human review, never a verdict",
        schema_ref("AntiCheatEntry"),
    ),
    WebhookEvent.ATTENTION_RAISED: ("A person should look at a match", schema_ref("RaisedAttention")),
}
_HEADERS: Final = {
    "webhook-id": "The id of the delivery, the same for every attempt. Use it to ignore duplicates.",
    "webhook-timestamp": "When this attempt was made, in seconds since 1970.",
    "webhook-signature": "`v1,` and a signature with the secret of the webhook (Standard Webhooks). For a day after "
    "the secret was replaced, there are two signatures, separated by a space.",
    "X-Matchpod-Attempt": "The number of the attempt.",
}


def event_schemas(body: Schema) -> dict[str, Schema]:
    """Return the body schemas of all events, by name. `body` is the schema of their common fields."""
    schemas = {_schema(event.value): _body(body, event.value, data) for event, (_, data) in _EVENTS.items()}
    return schemas | {_schema(TEST_EVENT): _body(body, TEST_EVENT, {"type": "object"})}


def any_body() -> Schema:
    """Return a schema that matches every body that a webhook can send."""
    message: Schema = {"type": "object", "properties": {"content": {"type": "string"}}, "required": ["content"]}
    names = [*(event.value for event in _EVENTS), TEST_EVENT]
    return {
        "description": "What a webhook sends: an event, or a message of the format `discord`.",
        "anyOf": [*(schema_ref(_schema(name)) for name in names), message],
    }


def event_requests(examples: Examples) -> dict[str, Schema]:
    """Return the descriptions of the requests for all events, by event type."""
    return {event.value: _request(event.value, summary, examples) for event, (summary, _) in _EVENTS.items()} | {
        TEST_EVENT: _request(TEST_EVENT, "A test, sent on request", examples)
    }


def _request(event: str, summary: str, examples: Examples) -> Schema:
    shown = examples.webhook(event)
    content: Schema = {"schema": schema_ref(_schema(event)), **({"examples": shown} if shown else {})}
    return {
        "post": {
            "operationId": _schema(event)[0].lower() + _schema(event)[1:],
            "summary": summary,
            "description": "Sent to webhooks of the format `json`, at least once. Retried for up to a day, until there "
            "is a 2xx response within 10 s. Redirects are not followed.",
            "parameters": [
                {"name": header, "in": "header", "description": text, "schema": {"type": "string"}}
                for header, text in _HEADERS.items()
            ],
            "requestBody": {"required": True, "content": {"application/json": content}},
            "security": [],
            "responses": {"2XX": {"description": "Received."}},
        }
    }


def _schema(event: str) -> str:
    """Return the schema name of an event. Not ending in `Event`: stream events have such names (`MapEndedEvent`)."""
    return f"{''.join(word.capitalize() for word in event.split('.'))}Webhook"


def _body(body: Schema, event: str, data: Schema) -> Schema:
    fields = body["properties"]
    if not isinstance(fields, dict):
        raise TypeError("the body of a webhook has no fields")
    own: Schema = {
        "type": {"type": "string", "const": event, "description": "The type of the event."},
        "data": {"description": "The same object that the API returns.", **data},
    }
    return {**body, "properties": {**fields, **own}}
