"""All endpoints, with their permissions, parameters, responses and errors.

The router and the description of the API are both built from this list. The endpoints for the history are in
`history_routes`, for callbacks in `callback_routes`, for webhooks in `webhook_routes`, and for actions on matches in
`action_routes`. To add an endpoint, add an `Endpoint` here and its handler in the module for its subject.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from matchpod.core import errors
from matchpod.core.requests.audit_query import read_audit_query
from matchpod.core.requests.match_list_query import read_match_list_query
from matchpod.core.rulings import RULING_DAYS, Ruling
from matchpod.service.access.audit import AuditPage
from matchpod.service.identity.principals import MANAGERS, Role
from matchpod.service.ingest.urls import ANTICHEAT_PATH, LOGS_PATH, MATCH_PATH, REPORTS_PATH, SHOTS_PATH
from matchpod.service.reading.match_head import MatchView, ServerView
from matchpod.service.reading.server_lists import ServersPage
from matchpod.service.region_checks.requests import RegionCheckView
from matchpod.service.regions.regions import RegionView
from matchpod.service.telemetry.prometheus import CONTENT_TYPE
from matchpod.web.endpoint import Endpoint, Tag, api_act, api_read
from matchpod.web.errors import ANYWHERE, GoneError, UnsupportedMediaTypeError
from matchpod.web.handlers import ingest, matches, ops, parameters, use_cases
from matchpod.web.handlers.action_routes import ACTIONS
from matchpod.web.handlers.callback_routes import CALLBACKS
from matchpod.web.handlers.history_routes import HISTORY
from matchpod.web.handlers.webhook_routes import WEBHOOKS

CHECK_PATH: Final = "/api/v1/regions/{code}/check"
RULING_PATH: Final = "/api/v1/servers/{id}/ruling"

_ingest_post: Final = partial(
    Endpoint,
    method="POST",
    tag=Tag.INGEST,
    is_queued=False,
    returns=use_cases.Accepted,
    errors=(*ANYWHERE, errors.UnauthorizedError, errors.PayloadTooLargeError, UnsupportedMediaTypeError, GoneError),
)
_operation: Final = partial(
    Endpoint, method="GET", tag=Tag.OPERATIONS, errors=(errors.MatchpodError, errors.InvalidParamsError)
)

METRICS: Final = _operation(
    path="/metrics",
    name="getMetrics",
    summary="Metrics for Prometheus",
    text="The metrics are at most a second old. If `MATCHPOD_OPS_PORT` is set, they are at that port only.",
    content_type=CONTENT_TYPE,
    errors=(errors.MatchpodError, errors.InvalidParamsError, errors.RateLimitError),
    handler=ops.metrics,
    is_queued=False,
)
PROBES: Final = (
    _operation(
        path="/healthz",
        name="getHealth",
        summary="Liveness of the process",
        returns=ops.Health,
        handler=ops.healthz,
        is_queued=False,
    ),
    _operation(
        path="/readyz",
        name="getReadiness",
        summary="Readiness of the process, with reasons if it is not ready",
        returns=ops.Health,
        errors=ANYWHERE,
        handler=ops.readyz,
        is_queued=False,
    ),
)

ENDPOINTS: Final[tuple[Endpoint, ...]] = (
    # --- the API ------------------------------------------------------------------------------------------------------
    api_act(
        path="/api/v1/matches",
        name="createMatch",
        summary="Create a match",
        text="Creates a server for one match. It is `allocating` at first; players may connect once it is `running`.",
        parameters=(parameters.IDEMPOTENCY_KEY, parameters.TRACEPARENT),
        body="CreateMatch",
        status=201,
        returns=ServerView,
        links=("getServer", "cancelMatch", "getResult", "getLog", "getMatchByExternalId", "listServerSeries"),
        handler=matches.create,
    ),
    api_read(
        path="/api/v1/matches/{externalMatchId}",
        name="getMatchByExternalId",
        summary="Get a match by your own id",
        text="The newest match with this `externalMatchId`. `result` is null while it is in progress and if it was "
        "canceled; otherwise it is the `result` of the `match_over` callback.",
        parameters=(parameters.EXTERNAL_MATCH_ID,),
        returns=MatchView,
        has_etag=True,
        links=("getServer",),
        handler=use_cases.view(
            lambda services: services.matches.by_external_id, has_ended=lambda view: view.ended_at is not None
        ),
    ),
    api_read(
        path="/api/v1/servers",
        name="listServers",
        summary="List servers",
        text="Newest first. A server has one match; `phase` says where the match stands, and `reason` why it ended.",
        parameters=parameters.SERVERS_LIST,
        returns=ServersPage,
        links=("getListedServer",),
        handler=use_cases.view(lambda services: services.matches.server_list, read_match_list_query),
    ),
    api_read(
        path="/api/v1/servers/{id}",
        name="getServer",
        summary="Get a server and its live match",
        text="`match` is null unless the server is running. `rconPassword` is shown to keys that can create matches.",
        parameters=(parameters.SERVER_ID,),
        returns=ServerView,
        links=("cancelMatch", "getResult", "getLog", "ruleMatch", "withdrawRuling", "getMatchByExternalId"),
        handler=matches.get_server,
    ),
    api_read(
        path="/api/v1/servers/{id}/result",
        name="getResult",
        summary="Get the result of a match",
        text="The `result` of the `match_over` callback, byte for byte. 409 while the match is in progress, 404 if it "
        "was canceled.",
        parameters=(parameters.SERVER_ID,),
        stored="MatchResult",
        has_etag=True,
        errors=(errors.MatchNotEndedError,),
        handler=matches.get_result,
    ),
    api_read(
        path="/api/v1/servers/{id}/log",
        name="getLog",
        summary="Get the log of a game server",
        text="All lines that the server has posted so far, as they were received, without passwords. Empty before "
        "the first line, and when the retention period of logs is over.",
        roles=MANAGERS,
        parameters=(parameters.SERVER_ID,),
        content_type=matches.LOG_TYPE,
        handler=matches.get_log,
    ),
    api_act(
        path="/api/v1/servers/{id}/cancel",
        name="cancelMatch",
        summary="Cancel a match",
        text="Ends the match and destroys its server. Canceling again returns the same response and sends no callback.",
        parameters=(parameters.SERVER_ID,),
        returns=use_cases.Accepted,
        errors=(errors.ServerNotRunningError,),
        handler=use_cases.act(lambda services: services.matches.cancel),
    ),
    api_act(
        path=RULING_PATH,
        name="ruleMatch",
        summary="Rule on a match that has ended",
        text="Declares a winner, or the match void, where the result should not stand: after a no-show, or if the "
        f"wrong team won. Allowed for {RULING_DAYS} days after the end; a new ruling replaces the previous one. The "
        "outcome does not change, and no callback is sent. The ruling is shown beside the result as `ruling`, and is "
        "in the stream of the organization.",
        parameters=(parameters.SERVER_ID, parameters.RULING_KEY),
        body="RuleMatch",
        status=201,
        returns=Ruling,
        errors=(
            errors.MatchNotEndedError,
            errors.RulingTooLateError,
        ),
        handler=matches.rule,
    ),
    api_act(
        method="DELETE",
        path=RULING_PATH,
        name="withdrawRuling",
        summary="Withdraw the ruling on a match",
        text="Afterwards the match has no ruling; an earlier, replaced ruling is not restored. 404 if there is none.",
        parameters=(parameters.SERVER_ID,),
        returns=use_cases.Accepted,
        errors=(errors.RulingTooLateError,),
        handler=use_cases.act(lambda services: services.rulings.withdraw),
    ),
    Endpoint(
        method="GET",
        path="/api/v1/regions",
        name="listRegions",
        tag=Tag.API,
        summary="List the regions",
        text="The `code` of a region is the `region` of a new match. No key is needed.",
        returns=list[RegionView],
        any_origin=True,
        errors=ANYWHERE,
        handler=matches.list_regions,
    ),
    api_act(
        path=CHECK_PATH,
        name="checkRegion",
        summary="Check the game servers of a region",
        text="Logs in to each free server, queries its setup, and waits for a log post. If a check is in progress, it "
        "is returned. 429 less than 10 s after the previous check. Only available if the installation has one "
        "organization; with several, its operators check regions.",
        roles=(Role.OWNER,),
        parameters=(parameters.REGION, parameters.ALLOCATE),
        status=202,
        returns=RegionCheckView,
        handler=matches.check_region,
    ),
    api_read(
        path=CHECK_PATH,
        name="getRegionCheck",
        summary="Get the newest check of a region",
        text="Servers are added as they are checked. 404 if the region was never checked.",
        roles=(Role.OWNER,),
        parameters=(parameters.REGION,),
        returns=RegionCheckView,
        handler=use_cases.view(lambda services: services.region_checks.read_as),
    ),
    *ACTIONS,
    *CALLBACKS,
    *WEBHOOKS,
    *HISTORY,
    api_read(
        path="/api/v1/audit",
        name="listAudit",
        summary="List the audit log",
        text="The entries of the organization's audit log, newest first: changed keys and secrets, canceled matches, "
        "callbacks that were sent again, log-ins to the console. Entries are kept for a year. For the next page, "
        "pass the `nextBefore` of the response as `before`.",
        roles=MANAGERS,
        parameters=parameters.AUDIT_LIST,
        returns=AuditPage,
        handler=use_cases.view(lambda services: services.audit.list, read_audit_query),
    ),
    # --- from game servers --------------------------------------------------------------------------------------------
    _ingest_post(
        path=LOGS_PATH,
        name="takeLog",
        summary="Store log lines of a game server",
        parameters=(parameters.TOKEN,),
        raw_body="text/plain",
        errors=(*ANYWHERE, errors.PayloadTooLargeError, UnsupportedMediaTypeError, GoneError),
        handler=ingest.post_log,
    ),
    _ingest_post(
        path=REPORTS_PATH,
        name="takeReport",
        summary="Store a report of the match plugin",
        parameters=(parameters.TOKEN_HEADER,),
        raw_body="application/json",
        handler=ingest.post_report,
    ),
    _ingest_post(
        path=SHOTS_PATH,
        name="takeShots",
        summary="Store the shots of all players in a round, counted by a plugin",
        parameters=(parameters.TOKEN,),
        body="ShotsReport",
        text="Absolute counts of one round: repeat or correct a report by sending it again, in any order.",
        handler=ingest.post_shots,
    ),
    _ingest_post(
        path=ANTICHEAT_PATH,
        name="takeDetection",
        summary="Store a detection of an anti-cheat plugin",
        parameters=(parameters.TOKEN,),
        raw_body="application/json",
        handler=ingest.post_detection,
    ),
    Endpoint(
        method="GET",
        path=MATCH_PATH,
        name="getMatchFile",
        tag=Tag.INGEST,
        is_queued=False,
        summary="Get the match file for the match plugin",
        parameters=(parameters.TOKEN_HEADER,),
        returns=dict,
        errors=(*ANYWHERE, errors.UnauthorizedError),
        handler=ingest.get_match_file,
    ),
    # --- for operators ------------------------------------------------------------------------------------------------
    *PROBES,
    METRICS,
    _operation(
        path="/openapi.json",
        name="getDescription",
        summary="The description of the API for callers, as OpenAPI",
        returns=dict,
        handler=ops.openapi,
    ),
    _operation(
        path="/openapi-internal.json",
        name="getInternalDescription",
        summary="This description, as OpenAPI",
        returns=dict,
        handler=ops.internal_openapi,
    ),
    _operation(
        path="/docs",
        name="getDocumentation",
        summary="The description of the API as a page",
        parameters=(parameters.OF_INTERNAL,),
        content_type="text/html; charset=utf-8",
        handler=ops.docs,
    ),
    _operation(
        path="/docs/assets/{file}",
        name="getDocumentationFile",
        summary="A file of the documentation page",
        parameters=(parameters.FILE,),
        content_type="text/*",
        errors=(errors.MatchpodError, errors.InvalidParamsError, errors.NotFoundError),
        handler=ops.docs_asset,
    ),
)

OPS_ENDPOINTS: Final = (*PROBES, METRICS)
"""The endpoints of the port for probes and metrics, if there is such a port."""
WITHOUT_METRICS: Final = tuple(endpoint for endpoint in ENDPOINTS if endpoint is not METRICS)
"""The endpoints of the main port if there is another port for metrics."""
