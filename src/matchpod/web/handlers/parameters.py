"""All path and query parameters and headers, with their schemas."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec.structs import replace

from matchpod.core import search_words
from matchpod.core.labels import MAX_LABELED, MAX_LABELS
from matchpod.core.match.played_map import MapStatus
from matchpod.core.requests import (
    action_request,
    audit_query,
    callback_query,
    demo_query,
    history_query,
    match_list_query,
    webhook_request,
)
from matchpod.core.requests.callback_query import CallbackState
from matchpod.core.requests.check_query import YesOrNo
from matchpod.core.requests.field_rules import DATE_SCHEMA
from matchpod.core.requests.text_rules import LABEL_NAME, MAX_EXTERNAL_ID, NO_CONTROL
from matchpod.core.server_status import ServerStatus
from matchpod.core.views import leaderboard
from matchpod.core.views.leaderboard import LeaderboardSort
from matchpod.core.views.progress import PublicPhase
from matchpod.service.ingest import posts as ingest
from matchpod.service.request_keys import MAX_IDEMPOTENCY_KEY
from matchpod.web import event_streams
from matchpod.web.endpoint import KEY_HEADER, Parameter
from matchpod.web.handlers import ops

_UUID: Final = "[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"


def _path(name: str, text: str, schema: dict[str, object]) -> Parameter:
    return Parameter(name=name, place="path", text=text, schema=schema)


def _header(name: str, text: str, schema: dict[str, object]) -> Parameter:
    return Parameter(name=name, place="header", text=text, schema=schema, is_required=False)


def _query(name: str, text: str, schema: dict[str, object]) -> Parameter:
    return Parameter(name=name, place="query", text=text, schema=schema, is_required=False)


def _id(pattern: str, prefix: str) -> dict[str, object]:
    return {"type": "string", "pattern": f"^{pattern}$", "example": f"{prefix}_01hf7yat000000000000000000"}


def _text(max_length: int, pattern: str = NO_CONTROL) -> dict[str, object]:
    return {"type": "string", "minLength": 1, "maxLength": max_length, "pattern": pattern}


def _one_of(values: Iterable[str]) -> dict[str, object]:
    return {"type": "string", "enum": [*values]}


def _integer(at_least: int, at_most: int | None = None, default: int | None = None) -> dict[str, object]:
    bounds = {"minimum": at_least, "maximum": at_most, "default": default}
    return {"type": "integer", **{name: bound for name, bound in bounds.items() if bound is not None}}


_SERVER_ID: Final = _id(history_query.SERVER_ID, "srv")
_DATE_FORMS: Final = (
    "ISO 8601: `2026-09-21`, or with a time, as in `2026-09-21T14:30`, `2026-09-21 14:30:00` or "
    "`2026-09-21T14:30:00.123+02:00`. Zones are `Z`, `+02:00`, `+0200` and `+02`; the default is UTC."
)

SERVER_ID: Final = _path("id", "The `serverId`.", _SERVER_ID)
REGION: Final = _path("code", "The `code` of the region.", _text(match_list_query.MAX_REGION))
ALLOCATE: Final = _query(
    "allocate",
    "Whether the check may allocate a waiting pod, which is deleted afterwards. Without `yes`, regions whose servers "
    "are pods are not checked.",
    {**_one_of(YesOrNo), "default": YesOrNo.NO},
)
SERVER_OF_SERIES: Final = _path("serverId", "The server.", _SERVER_ID)
ACTION_ID: Final = _path("actionId", "The `actionId`.", _id(action_request.ACTION_ID, "action"))
CALLBACK_ID: Final = _path("id", "The `id` of the callback.", _id(callback_query.CALLBACK_ID, "msg"))
WEBHOOK_ID: Final = _path("webhookId", "The `id` of the webhook.", _id(webhook_request.WEBHOOK_ID, "wh"))
DELIVERY_ID: Final = _path("id", "The `id` of the delivery.", _id(webhook_request.DELIVERY_ID, "msg"))
MAP_ID: Final = _path(
    "mapId",
    "The `id` of the map.",
    {"type": "string", "format": "uuid", "example": "3f1c0a52-6c1e-5b7a-9d3e-0123456789ab"},
)
DEMO_NUMBER: Final = _query(
    demo_query.NUMBER,
    "The `number` of the file. The default is the last file that is available.",
    _integer(1, demo_query.MAX_NUMBER),
)
RANGE: Final = _header(
    "Range",
    "The requested part, such as `bytes=1000-1999`; several parts at once are not supported. With `If-Range` and "
    "the `ETag` of an earlier part, the whole file is sent if it has changed.",
    {"type": "string"},
)
SERIES_ID: Final = _path(
    "seriesId", "The `seriesId` or the `id` of the series.", _id(f"(ser_[0-9A-Za-z_-]{{1,60}}|{_UUID})", "ser")
)
EXTERNAL_MATCH_ID: Final = _path(
    "externalMatchId",
    "The id given at creation, percent-encoded: it may contain slashes and any other character.",
    _text(MAX_EXTERNAL_ID),
)
IDEMPOTENCY_KEY: Final = _header(
    KEY_HEADER,
    "For 24 hours, a repeated key with the same body returns the same response without executing the request again; the"
    " response then has the header `Idempotent-Replayed: true`. A request without an answer, or answered with 503, may"
    " have been executed: retry it with the same key. Two different keys in one request are rejected.",
    _text(MAX_IDEMPOTENCY_KEY, "^[!-~]+$"),
)
RULING_KEY: Final = replace(
    IDEMPOTENCY_KEY,
    text="For 24 hours, a repeated key with the same body returns the same ruling and makes no second one. Keys count"
    " per match. Two different keys in one request are rejected.",
)
TRACEPARENT: Final = _header(
    "traceparent",
    "The trace that the match belongs to (W3C Trace Context). Its callbacks continue this trace. An invalid value is"
    " ignored.",
    {"type": "string", "example": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"},
)
IF_NONE_MATCH: Final = _header(
    "If-None-Match",
    "The `ETag` of an earlier response: if it is still current, the status is 304.",
    {"type": "string"},
)
TOKEN: Final = _path(
    "token",
    "The token of the match that the game server was configured with.",
    {"type": "string", "pattern": "^[0-9A-Za-z_-]{1,128}$"},
)
TOKEN_HEADER: Final = replace(TOKEN, name=ingest.TOKEN_HEADER, place="header")
FILE: Final = _path("file", "The name of the file.", _one_of(("docs.css", "docs.js")))

# --- lists --------------------------------------------------------------------------------------------------------

PAGE: Final = _query("page", "The number of the page.", _integer(1, history_query.MAX_PAGE, 1))
PAGE_SIZE: Final = _query(
    "pageSize",
    "The maximum number of items per page.",
    _integer(1, history_query.MAX_PAGE_SIZE, history_query.DEFAULT_PAGE_SIZE),
)
PAGE_SIZE_ALIAS: Final = replace(
    _query(
        "limit",
        "Another name for `pageSize`; if both are given, they must be equal.",
        _integer(1, history_query.MAX_PAGE_SIZE),
    ),
    is_deprecated=True,
)
STATUS: Final = _query("status", "Only items with this status.", _one_of(MapStatus))
OF_SERVER: Final = _query("serverId", "Only items of this server.", _SERVER_ID)
MAP_NAME: Final = _query(
    "map",
    "Only maps with this name, as in the list: a workshop map that was played has the name its server reports, such as "
    "`workshop/987654321/de_name`.",
    _text(history_query.MAX_MAP_NAME),
)
DATE_FROM: Final = _query("dateFrom", f"Only items that started at this time or later. {_DATE_FORMS}", DATE_SCHEMA)
DATE_TO: Final = _query(
    "dateTo",
    "Only items that started at this time or before, as for `dateFrom`. A date includes its whole day.",
    DATE_SCHEMA,
)
LABEL: Final = _query(
    history_query.LABEL,
    "Only items with this label: its name, a colon and its value, as in `event:finals`. If the parameter is repeated, "
    f"a match must have all of these labels. Only the newest {MAX_LABELED:,} matches with a label are listed.",
    {
        "type": "array",
        "items": {"type": "string", "pattern": f"^{LABEL_NAME}:", "format": "label", "example": "event:finals"},
        "maxItems": MAX_LABELS,
    },
)
SERIES_LIST: Final = (PAGE, PAGE_SIZE, STATUS, OF_SERVER, LABEL, DATE_FROM, DATE_TO)
SERVER_SERIES_LIST: Final = (PAGE, PAGE_SIZE, STATUS, DATE_FROM, DATE_TO)
CREATED_FROM: Final = _query("dateFrom", f"Only servers created at this time or later. {_DATE_FORMS}", DATE_SCHEMA)
CREATED_TO: Final = _query(
    "dateTo",
    "Only servers created at this time or before, as for `dateFrom`. A date includes its whole day.",
    DATE_SCHEMA,
)
SERVERS_LIST: Final = (
    PAGE,
    PAGE_SIZE,
    _query(
        match_list_query.SEARCH,
        "Only servers whose match contains these words, in the external id, the teams, the labels, the players"
        " (SteamIDs, and names once a map has ended) or the reason. The beginning of a word is enough, except for"
        f" numbers of up to 3 digits. Only the {search_words.MAX_WORDS} longest words are used. If all of them are"
        f" frequent, only some of the newest {MAX_LABELED:,} matches with them are searched. A new match can be found"
        " after a few seconds.",
        _text(search_words.MAX_SEARCH),
    ),
    _query(
        match_list_query.OUTCOME,
        "Only servers whose match ended like this: with a result, without a result, or because of a failure.",
        _one_of(match_list_query.ListedOutcome),
    ),
    replace(STATUS, schema=_one_of(ServerStatus)),
    _query("phase", "Only servers with this phase.", _one_of(PublicPhase)),
    _query("region", "Only servers in this region.", _text(match_list_query.MAX_REGION)),
    replace(EXTERNAL_MATCH_ID, place="query", text="Only servers created with this id.", is_required=False),
    LABEL,
    CREATED_FROM,
    CREATED_TO,
)
MAPS_LIST: Final = (PAGE, PAGE_SIZE, PAGE_SIZE_ALIAS, MAP_NAME, STATUS, OF_SERVER, LABEL, DATE_FROM, DATE_TO)

CALLBACK_STATE: Final = _query("state", "Only items in this state.", _one_of(CallbackState))
SINCE: Final = _query("since", f"Only items created at this time or later. {_DATE_FORMS}", DATE_SCHEMA)
UNTIL: Final = _query(
    "until", "Only items created at this time or before, as for `since`. A date includes its whole day.", DATE_SCHEMA
)
CALLBACKS_LIST: Final = (PAGE, PAGE_SIZE, CALLBACK_STATE, OF_SERVER, SINCE, UNTIL)

DELIVERIES_LIST: Final = (WEBHOOK_ID, PAGE, PAGE_SIZE, CALLBACK_STATE, SINCE, UNTIL)

BEFORE: Final = _query(
    "before",
    "Only entries older than the entry with this id, which is the `nextBefore` of the previous response.",
    _id(audit_query.AUDIT_ID, "act"),
)
AUDIT_LIST: Final = (BEFORE, PAGE_SIZE)

OF_INTERNAL: Final = _query(
    ops.INTERNAL, "Show the endpoints for game servers and operators. It has no value.", {"type": "string"}
)

# --- timelines and leaderboards -----------------------------------------------------------------------------------

AFTER_SEQ: Final = _query(
    "afterSeq",
    "Only items with a `seq` above this number, which is the `nextAfterSeq` of the previous response.",
    _integer(0, history_query.MAX_SEQ, 0),
)
EVENTS_LIMIT: Final = _query(
    "limit",
    f"The maximum number of items; values above {history_query.MAX_EVENTS} count as {history_query.MAX_EVENTS}.",
    _integer(1, default=history_query.DEFAULT_EVENTS),
)
SORT_BY: Final = _query(
    "sortBy",
    "The statistic to sort by, highest first.",
    {**_one_of(LeaderboardSort), "default": LeaderboardSort.KILLS},
)
LEADERBOARD_LIMIT: Final = _query(
    "limit", "The maximum number of players.", _integer(1, leaderboard.MAX_LIMIT, leaderboard.DEFAULT_LIMIT)
)

# --- streams ------------------------------------------------------------------------------------------------------

_SEQ: Final[dict[str, object]] = {"type": "string", "pattern": f"^{event_streams.NUMBER}$"}
_SEQS: Final[dict[str, object]] = {
    "type": "string",
    "pattern": rf"^{event_streams.NUMBER}(\.{event_streams.NUMBER}){{0,{event_streams.MAX_PARTS - 1}}}$",
}
_HEADER_TEXT: Final = "The `id` of the last event you received; clients send it automatically when they reconnect."
_QUERY_TEXT: Final = (
    "The same as the header `Last-Event-ID`, for clients that cannot set headers. If both are given, the header counts."
)


def _last_event(schema: dict[str, object], default: str = "") -> tuple[Parameter, Parameter]:
    header = _header(event_streams.HEADER, _HEADER_TEXT + default, schema)
    return header, _query(event_streams.QUERY, _QUERY_TEXT, schema)


LAST_EVENT_OF_MAP: Final = _last_event(_SEQ)
LAST_EVENT_OF_SERVER: Final = _last_event(_SEQS)
LAST_EVENT_OF_ORGANIZATION: Final = _last_event(
    _SEQ, " Without it, the stream begins with the next event; with `0`, it begins with the oldest stored event."
)
