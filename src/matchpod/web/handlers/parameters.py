"""All path and query parameters and headers, with their schemas."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from matchpod.core.labels import MAX_LABELED, MAX_LABELS
from matchpod.core.match.played_map import MapStatus
from matchpod.core.requests import action_request, audit_query, callback_query, history_query, match_list_query
from matchpod.core.requests.callback_query import CallbackState
from matchpod.core.requests.field_rules import DATE_SCHEMA
from matchpod.core.requests.text_rules import LABEL_NAME, MAX_EXTERNAL_ID, NO_CONTROL
from matchpod.core.server_status import ServerStatus
from matchpod.core.views import leaderboard
from matchpod.core.views.leaderboard import LeaderboardSort
from matchpod.core.views.progress import PublicPhase
from matchpod.service.ingest import posts as ingest
from matchpod.service.request_keys import MAX_IDEMPOTENCY_KEY
from matchpod.web import event_streams
from matchpod.web.endpoint import Parameter
from matchpod.web.handlers import ops

_UUID: Final = "[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"

_SERVER_ID: Final[dict[str, object]] = {
    "type": "string",
    "pattern": f"^{history_query.SERVER_ID}$",
    "example": "srv_01hf7yat000000000000000000",
}
_DATE_FORMS: Final = (
    "ISO 8601: `2026-09-21`, or with a time, as in `2026-09-21T14:30`, `2026-09-21 14:30:00` or "
    "`2026-09-21T14:30:00.123+02:00`. Zones are `Z`, `+02:00`, `+0200` and `+02`; the default is UTC."
)

SERVER_ID: Final = Parameter(name="id", place="path", text="The `serverId`.", schema=_SERVER_ID)
SERVER_OF_SERIES: Final = Parameter(name="serverId", place="path", text="The server.", schema=_SERVER_ID)
ACTION_ID: Final = Parameter(
    name="actionId",
    place="path",
    text="The `actionId`.",
    schema={
        "type": "string",
        "pattern": f"^{action_request.ACTION_ID}$",
        "example": "action_01hf7yat000000000000000000",
    },
)
CALLBACK_ID: Final = Parameter(
    name="id",
    place="path",
    text="The `id` of the callback.",
    schema={
        "type": "string",
        "pattern": f"^{callback_query.CALLBACK_ID}$",
        "example": "msg_01hf7yat000000000000000000",
    },
)
MAP_ID: Final = Parameter(
    name="mapId",
    place="path",
    text="The `id` of the map.",
    schema={"type": "string", "format": "uuid", "example": "3f1c0a52-6c1e-5b7a-9d3e-0123456789ab"},
)
SERIES_ID: Final = Parameter(
    name="seriesId",
    place="path",
    text="The `seriesId` or the `id` of the series.",
    schema={
        "type": "string",
        "pattern": f"^(ser_[0-9A-Za-z_-]{{1,60}}|{_UUID})$",
        "example": "ser_01hf7yat000000000000000000",
    },
)
EXTERNAL_MATCH_ID: Final = Parameter(
    name="externalMatchId",
    place="path",
    text="The id given at creation, percent-encoded: it may contain slashes and any other character.",
    schema={"type": "string", "minLength": 1, "maxLength": MAX_EXTERNAL_ID, "pattern": NO_CONTROL},
)
IDEMPOTENCY_KEY: Final = Parameter(
    name="Idempotency-Key",
    place="header",
    text="A repeated key with the same body returns the same for 24 hours and does nothing again; the response then has"
    " the header `Idempotent-Replayed: true`. A request without an answer, or answered with 503, may have been carried"
    " out: repeat it with the same key. Two different keys in one request are rejected.",
    schema={"type": "string", "minLength": 1, "maxLength": MAX_IDEMPOTENCY_KEY, "pattern": "^[!-~]+$"},
    is_required=False,
)
RULING_KEY: Final = replace(
    IDEMPOTENCY_KEY,
    text="A repeated key with the same body returns the same ruling for 24 hours and makes no other one. Keys count per"
    " match. Two different keys in one request are rejected.",
)
TRACEPARENT: Final = Parameter(
    name="traceparent",
    place="header",
    text="The trace that the match belongs to (W3C Trace Context). Its callbacks continue this trace. An invalid one is"
    " ignored.",
    schema={"type": "string", "example": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"},
    is_required=False,
)
IF_NONE_MATCH: Final = Parameter(
    name="If-None-Match",
    place="header",
    text="The `ETag` of an earlier response: if it is still current, the status is 304.",
    schema={"type": "string"},
    is_required=False,
)
TOKEN: Final = Parameter(
    name="token",
    place="path",
    text="The token of the match that the game server was configured with.",
    schema={"type": "string", "pattern": "^[0-9A-Za-z_-]{1,128}$"},
)
TOKEN_HEADER: Final = replace(TOKEN, name=ingest.TOKEN_HEADER, place="header")
FILE: Final = Parameter(
    name="file",
    place="path",
    text="The name of the file.",
    schema={"type": "string", "enum": ["docs.css", "docs.js"]},
)

# --- lists --------------------------------------------------------------------------------------------------------


def _query(name: str, text: str, schema: dict[str, object]) -> Parameter:
    return Parameter(name=name, place="query", text=text, schema=schema, is_required=False)


def _integer(at_least: int, at_most: int | None = None, default: int | None = None) -> dict[str, object]:
    bounds = {"minimum": at_least, "maximum": at_most, "default": default}
    return {"type": "integer", **{name: bound for name, bound in bounds.items() if bound is not None}}


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
STATUS: Final = _query("status", "Only those with this status.", {"type": "string", "enum": [*MapStatus]})
OF_SERVER: Final = _query("serverId", "Only those of this server.", _SERVER_ID)
MAP_NAME: Final = _query(
    "map",
    "Only maps with this name, as in the list: a workshop map that was played has the name its server reports, such as "
    "`workshop/987654321/de_name`.",
    {"type": "string", "minLength": 1, "maxLength": history_query.MAX_MAP_NAME, "pattern": NO_CONTROL},
)
DATE_FROM: Final = _query("dateFrom", f"Only those that started at this time or later. {_DATE_FORMS}", DATE_SCHEMA)
DATE_TO: Final = _query(
    "dateTo",
    "Only those that started at this time or before, as for `dateFrom`. A date includes its whole day.",
    DATE_SCHEMA,
)
LABEL: Final = _query(
    history_query.LABEL,
    "Only those with this label: its name, a colon and its value, as in `event:finals`. Give it several times for "
    f"matches with all of these labels. Of the matches with a label, the newest {MAX_LABELED:,} are listed.",
    {
        "type": "array",
        "items": {
            "type": "string",
            "pattern": f"^{LABEL_NAME}:",
            "format": "label",
            "example": "event:finals",
        },
        "maxItems": MAX_LABELS,
    },
)
SERIES_LIST: Final = (PAGE, PAGE_SIZE, STATUS, OF_SERVER, LABEL, DATE_FROM, DATE_TO)
SERVER_SERIES_LIST: Final = (PAGE, PAGE_SIZE, STATUS, DATE_FROM, DATE_TO)
CREATED_FROM: Final = _query("dateFrom", f"Only those created at this time or later. {_DATE_FORMS}", DATE_SCHEMA)
CREATED_TO: Final = _query(
    "dateTo",
    "Only those created at this time or before, as for `dateFrom`. A date includes its whole day.",
    DATE_SCHEMA,
)
SERVERS_LIST: Final = (
    PAGE,
    PAGE_SIZE,
    replace(STATUS, schema={"type": "string", "enum": [*ServerStatus]}),
    _query("phase", "Only those with this phase.", {"type": "string", "enum": [*PublicPhase]}),
    _query(
        "region",
        "Only those in this region.",
        {"type": "string", "minLength": 1, "maxLength": match_list_query.MAX_REGION, "pattern": NO_CONTROL},
    ),
    replace(EXTERNAL_MATCH_ID, place="query", text="Only those created with this id.", is_required=False),
    LABEL,
    CREATED_FROM,
    CREATED_TO,
)
MAPS_LIST: Final = (PAGE, PAGE_SIZE, PAGE_SIZE_ALIAS, MAP_NAME, STATUS, OF_SERVER, LABEL, DATE_FROM, DATE_TO)

CALLBACK_STATE: Final = _query("state", "Only those in this state.", {"type": "string", "enum": [*CallbackState]})
SINCE: Final = _query("since", f"Only those created at this time or later. {_DATE_FORMS}", DATE_SCHEMA)
UNTIL: Final = _query(
    "until", "Only those created at this time or before, as for `since`. A date includes its whole day.", DATE_SCHEMA
)
CALLBACKS_LIST: Final = (PAGE, PAGE_SIZE, CALLBACK_STATE, OF_SERVER, SINCE, UNTIL)

BEFORE: Final = _query(
    "before",
    "Only entries older than the one with this id: the `nextBefore` of the previous response.",
    {"type": "string", "pattern": f"^{audit_query.AUDIT_ID}$", "example": "act_01hf7yat000000000000000000"},
)
AUDIT_LIST: Final = (BEFORE, PAGE_SIZE)

OF_INTERNAL: Final = _query(
    ops.INTERNAL, "Show the endpoints for game servers and operators. It has no value.", {"type": "string"}
)

# --- timelines and leaderboards -----------------------------------------------------------------------------------

AFTER_SEQ: Final = _query(
    "afterSeq",
    "Only items with a `seq` above this: the `nextAfterSeq` of the previous response.",
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
    {"type": "string", "enum": [*LeaderboardSort], "default": LeaderboardSort.KILLS},
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
_QUERY_TEXT: Final = "The same, for clients that cannot set headers. If both are given, the header is used."


def _last_event(schema: dict[str, object], default: str = "") -> tuple[Parameter, Parameter]:
    text = _HEADER_TEXT + default
    header = Parameter(name=event_streams.HEADER, place="header", text=text, schema=schema, is_required=False)
    return header, _query(event_streams.QUERY, _QUERY_TEXT, schema)


LAST_EVENT_OF_MAP: Final = _last_event(_SEQ)
LAST_EVENT_OF_SERVER: Final = _last_event(_SEQS)
LAST_EVENT_OF_ORGANIZATION: Final = _last_event(
    _SEQ, " Without it, the stream begins with the next event; `0` begins with the oldest one that is stored."
)
