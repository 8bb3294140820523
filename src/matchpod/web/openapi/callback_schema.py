"""Describe the callbacks `matchOver` and `matchCanceled` as OpenAPI webhooks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from matchpod.core.effects import CancelReason
from matchpod.core.model import GAME_TYPE
from matchpod.core.requests.field_rules import schema_ref
from matchpod.core.requests.json_fields import Schema
from matchpod.service.end_match import MATCH_CANCELED, MATCH_OVER
from matchpod.web.openapi.examples import Examples

_PLAYERS: Final[Schema] = {"type": "array", "items": {"type": "string"}}
_HEADERS: Final = {
    "Authorization": "The `callbackAuthToken` given at creation; left out if there was none.",
    "webhook-id": "The id of the callback, the same for every attempt. Use it to ignore duplicates.",
    "webhook-timestamp": "When this attempt was made, in seconds since 1970.",
    "webhook-signature": "`v1,` and a signature with the organization's webhook secret (Standard Webhooks).",
    "traceparent": "The trace of the match (W3C Trace Context), which continues the trace of the request that created "
    "it, if that had one.",
    "X-Matchpod-Attempt": "The number of the attempt: 1, 2 for the retry, and the next one each time you or the "
    "operator of the service send the callback again. An attempt that is repeated has the same number.",
}


def callback_schemas() -> dict[str, Schema]:
    """Return the schemas of the two callback bodies, by name."""
    result: Schema = {
        **schema_ref("MatchResult"),
        "description": "The full result, the same as when getting the match by external id.",
    }
    reasons = ", ".join(f"`{reason}`" for reason in CancelReason)
    listed = "Only for `incomplete_roster`: listed players who"
    return {
        "MatchOver": _body(
            MATCH_OVER,
            {
                "result": result,
                "forfeit": {"type": "boolean", "description": "Whether a team forfeited the match; left out if not."},
            },
            required=("result",),
        ),
        "MatchCanceled": _body(
            MATCH_CANCELED,
            {
                "reason": {"type": "string", "description": f"Why: {reasons}."},
                "missingPlayers": {**_PLAYERS, "description": f"{listed} never connected."},
                "connectedPlayers": {**_PLAYERS, "description": f"{listed} connected at least once."},
                "absentPlayers": {
                    **_PLAYERS,
                    "description": f"{listed} were not on the server at the end, because they never connected or had "
                    "left.",
                },
                "logComplete": {
                    "type": "boolean",
                    "description": "Whether the log of the server is complete. If not, statistics of its maps may be "
                    "too low. Left out if nothing was played, or if this is not known.",
                },
            },
            required=("reason",),
        ),
    }


def webhooks(examples: Examples) -> dict[str, Schema]:
    """Return the descriptions of the two callback requests, by name."""
    return {
        "matchOver": _webhook(
            "matchOver", "A match has a result: it was played to its end, or forfeited", "MatchOver", examples
        ),
        "matchCanceled": _webhook("matchCanceled", "A match ended without a result", "MatchCanceled", examples),
    }


def _webhook(name: str, summary: str, schema: str, examples: Examples) -> Schema:
    content: Schema = {"schema": schema_ref(schema), "examples": examples.webhook(name)}
    return {
        "post": {
            "operationId": name,
            "summary": summary,
            "description": "Sent to the `callbackUrl`, and again 5 s later if there was no 2xx response within 10 s. "
            "Redirects are not followed. A callback can arrive more than twice, always with the same `webhook-id` and "
            "the same bytes. An attempt during which the service itself stopped is repeated, at most 8 times per hour. "
            "You or the operator of the service can also send a callback again.",
            "parameters": [
                {"name": header, "in": "header", "description": text, "schema": {"type": "string"}}
                for header, text in _HEADERS.items()
            ],
            "requestBody": {"required": True, "content": {"application/json": content}},
            "security": [],
            "responses": {"2XX": {"description": "Received."}},
        }
    }


def _body(event: str, extra: Mapping[str, Schema], *, required: tuple[str, ...]) -> Schema:
    common: dict[str, Schema] = {
        "eventType": {"type": "string", "const": event},
        "gameId": {"type": "string", "const": GAME_TYPE},
        "externalMatchId": {"type": ["string", "null"], "description": "As given at creation."},
        "serverId": {"type": "string"},
        "sessionId": {"type": "string", "description": "The `gameId` of the server."},
        "timestamp": {
            "type": "string",
            "format": "date-time",
            "description": "When the match ended: ISO 8601 in UTC, with milliseconds.",
        },
    }
    marks: dict[str, Schema] = {
        "labels": {
            "type": "object",
            "additionalProperties": {"type": "string"},
            "description": "The `labels` given at creation; left out if there are none.",
        },
        "simulated": {"type": "boolean", "description": "Whether the match is in a sandbox; left out if not."},
    }
    return {"type": "object", "properties": {**common, **marks, **extra}, "required": [*common, *required]}
