"""The ASGI application: route a request, authorize it, call its handler, and record metrics and a log line.

There is no middleware: every request passes through here, and on one slow core, layers of middleware would cost more
than the work that they wrap.
"""

from __future__ import annotations

import functools
import logging
import random
import time
from collections.abc import Callable, Sequence

import msgspec

from matchpod.core.errors import MatchpodError, UnavailableError
from matchpod.core.trace_context import TRACEPARENT
from matchpod.service.access.rate_limit import FairPacer, RateLimiter
from matchpod.service.identity.identifiers import REQUEST_RANDOM_BYTES, new_request_id
from matchpod.service.ingest.posts import TOKEN_HEADER
from matchpod.service.ingest.urls import LOGS_PATH, REPORTS_PATH, SHOTS_PATH
from matchpod.service.operations.readiness import ReadinessState
from matchpod.service.telemetry.log_context import begin_work
from matchpod.service.telemetry.metrics import HttpMetrics
from matchpod.service.telemetry.prometheus import RenderedMetrics
from matchpod.web.access_log import fields_of, is_logged
from matchpod.web.auth import authorize
from matchpod.web.cors import Cors
from matchpod.web.endpoint import Answer, Call, Endpoint, EventStream, Site, Tag
from matchpod.web.errors import InternalServerError, error_response
from matchpod.web.event_streams import DEFAULT_PACE, HEADERS, StreamEnd, StreamPace, send_stream
from matchpod.web.handlers.matches import get_server
from matchpod.web.handlers.ops import METRICS_PER_S
from matchpod.web.handlers.stream_access import StreamAccess
from matchpod.web.handlers.use_cases import OK_BODY
from matchpod.web.http.asgi import Message, Receive, Scope, Send
from matchpod.web.http.compression import compress
from matchpod.web.http.direct import Answer as Answered
from matchpod.web.http.direct import DirectRoute, ReadRoute, Take
from matchpod.web.http.parted_responses import begin, send_parts
from matchpod.web.http.responses import EVENT_STREAM, Header, PartedResponse, Response
from matchpod.web.json_responses import NOT_MODIFIED
from matchpod.web.openapi.docs import read_pages
from matchpod.web.openapi.openapi import describe, describe_internal
from matchpod.web.query_strings import check_names
from matchpod.web.request_bodies import ClientDisconnectedError
from matchpod.web.request_turns import NO_KEY, RequestTurn, queue_of
from matchpod.web.router import OPTIONS, Router
from matchpod.web.routes import ENDPOINTS
from matchpod.web.server_reads import ServerReads
from matchpod.web.services import AccessLog, Services

UNKNOWN_ROUTE = "unknown"
"""Metric label of requests to unknown paths. Clients choose these paths, so the paths themselves are not labels."""

NO_CONTENT = 204

READ_ONLY = "This service serves reads only: it creates, changes and cancels no matches, and stores no logs."
READ_ONLY_RETRY_S = 30
"""Retry-After in seconds of the read-only error, which lasts until an operator acts. Game servers retry on their own.
"""

_TOKEN_HEADER = TOKEN_HEADER.lower().encode()

_log = logging.getLogger(__name__)


ErrorPage = Callable[[Scope, MatchpodError], Response | None]
"""Returns the page that a browser gets for an error; None if the client gets the error as JSON."""


def create_web(
    services: Services,
    *,
    endpoints: tuple[Endpoint, ...] = ENDPOINTS,
    more_endpoints: Sequence[Endpoint] = (),
    error_page: ErrorPage | None = None,
    metrics: HttpMetrics | None = None,
    monotonic: Callable[[], float] = time.monotonic,
    random_bytes: Callable[[int], bytes] | None = None,
    stream_pace: StreamPace = DEFAULT_PACE,
) -> Application:
    """Build the ASGI application for these services; `more_endpoints` are pages that the API description omits.

    If the service listens on several ports, their applications share `metrics`.
    """
    site = Site(
        services=services,
        openapi=functools.partial(describe, endpoints, services.version),
        internal_openapi=functools.partial(describe_internal, endpoints, services.version),
        pages=read_pages(),
        metrics=RenderedMetrics(services.metrics, monotonic),
        metrics_pace=FairPacer(
            METRICS_PER_S, burst=METRICS_PER_S, max_wait_s=services.limits.metrics_wait_s, what="The metrics"
        ),
    )
    # Request ids are not secret, and the system's random source would take a tenth of the time of a request.
    return Application(
        site,
        endpoints=(*endpoints, *more_endpoints),
        error_page=error_page,
        metrics=metrics or HttpMetrics(services.metrics),
        monotonic=monotonic,
        random_bytes=random_bytes or random.Random().randbytes,
        stream_pace=stream_pace,
    )


class Application:
    """The ASGI application of the main port, and of the port for probes and metrics."""

    def __init__(
        self,
        site: Site,
        *,
        endpoints: Sequence[Endpoint],
        error_page: ErrorPage | None,
        metrics: HttpMetrics,
        monotonic: Callable[[], float],
        random_bytes: Callable[[int], bytes],
        stream_pace: StreamPace,
    ) -> None:
        self._site = site
        self._router = Router(endpoints)
        self._error_page = error_page
        self._cors = Cors(site.services.cors_origins)
        self._monotonic = monotonic
        self._random_bytes = random_bytes
        limit = site.services.limits.rate_limit
        self._limiter = None if limit is None else RateLimiter(limit, monotonic, owner="this key", unit="requests")
        self._metrics = metrics
        _preset(metrics, endpoints)
        self._stream_pace = stream_pace
        self._stream_access = StreamAccess(stream_pace.check_s)
        self._access_log = site.services.access_log
        self._get_server = next((endpoint for endpoint in endpoints if endpoint.handler is get_server), None)

    @property
    def direct_routes(self) -> Sequence[DirectRoute]:
        """The routes of log posts, shots and plugin reports, which are answered without a task and a request id.

        Most requests are such posts. If the access log has a line for each post, there are no such routes.
        """
        if self._access_log is AccessLog.ALL:
            return ()
        ingest = self._site.services.ingest
        return (
            self._direct_route(LOGS_PATH, ingest.take_log),
            self._direct_route(SHOTS_PATH, lambda token, _, body, stored: ingest.take_shots(token, body, stored)),
            self._direct_route(REPORTS_PATH, self._take_report),
        )

    def _direct_route(self, path: str, store: Take) -> DirectRoute:
        """Return the route whose requests are stored with `store`, while this process is ready and not read-only."""
        services = self._site.services

        def take(path_rest: str, headers: Sequence[Header], body: bytes, answer: Answered) -> bool:
            if services.readiness.state is not ReadinessState.READY or services.readiness.read_only is not None:
                return False
            started = self._monotonic()

            def stored(is_stored: bool) -> None:
                answer(is_stored)
                if is_stored:
                    self._record(path, "POST", 200, started=started, request_id="")

            return store(path_rest, headers, body, stored)

        return DirectRoute(prefix=path.partition("{")[0].encode(), take=take, response=OK_BODY)

    @property
    def server_reads(self) -> ReadRoute | None:
        """The route for polls of a server, the most frequent requests of callers; None if the application answers.

        The application answers polls if it has no such endpoint, or if the access log has a line for each poll.
        """
        endpoint = self._get_server
        if endpoint is None or is_logged(self._access_log, endpoint):
            return None
        reads = ServerReads(
            self._site.services,
            endpoint,
            limiter=self._limiter,
            cors=self._cors,
            new_request_id=lambda: new_request_id(self._random_bytes(REQUEST_RANDOM_BYTES)),
            record=lambda started, request_id: self._record(
                endpoint.path, endpoint.method, 200, started=started, request_id=request_id
            ),
            monotonic=self._monotonic,
        )
        return ReadRoute(prefix=endpoint.path.partition("{")[0].encode(), read=reads.read)

    def _take_report(self, path_rest: str, headers: Sequence[Header], body: bytes, stored: Answered) -> bool:
        if path_rest:
            return False
        token = next((value for name, value in headers if name == _TOKEN_HEADER), b"").decode("latin-1")
        return self._site.services.ingest.take_report(token, body, stored)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = self._monotonic()
        request_id = new_request_id(self._random_bytes(REQUEST_RANDOM_BYTES))
        turn = RequestTurn(self._site.services.fair_turns, scope, self._metrics.waiting)
        call = Call(scope=scope, receive=receive, turn=turn)
        begin_work(request_id=request_id, traceparent=call.header(TRACEPARENT.encode()))
        try:
            response = await self._respond(call, request_id)
        except ClientDisconnectedError:
            route, method = _labels(call)
            self._log_request(call, route, method, None, duration_s=self._monotonic() - started, request_id=request_id)
            return
        finally:
            turn.end()
        route, method = _labels(call)
        cors = () if method == OPTIONS else self._cors.headers(scope, call.endpoint)
        if isinstance(response, EventStream):
            # A stream is recorded when it starts, because its duration depends on the match, not on the service.
            self._record(route, method, 200, started=started, request_id=request_id, call=call)
            await self._stream(response, send, request_id, route=route, cors=cors)
            return
        if isinstance(response, PartedResponse):
            self._record(route, method, response.status, started=started, request_id=request_id, call=call)
            response = msgspec.structs.replace(response, parts=turn.parts(response.parts))
            await send_parts(response, scope, send, more_headers=((b"x-request-id", request_id.encode()), *cors))
            return
        await _send(send, response, request_id, more_headers=cors, is_head=scope["method"] == "HEAD")
        self._record(route, method, response.status, started=started, request_id=request_id, call=call)

    async def _respond(self, call: Call, request_id: str) -> Answer:
        """Call the handler and return its response, or the response for the error that it raised."""
        scope = call.scope
        try:
            response = await self._find(call)
        except MatchpodError as error:
            response = await self._fail(call, error, request_id)
        except ClientDisconnectedError:
            raise
        except Exception:  # noqa: BLE001 - the caller gets only the request id, which finds the traceback in the log
            route, method = _labels(call)
            _log.exception("request failed", extra={"request_id": request_id, "route": route, "method": method})
            response = self._error(scope, internal_error(), request_id)
        return await compress(response, scope) if isinstance(response, Response) else response

    async def _find(self, call: Call) -> Answer:
        if call.scope["method"] == OPTIONS:
            await call.take_turn(NO_KEY)
            return self._options(call.scope)
        call.endpoint, call.params = self._router.find(call.scope)
        return await self._handle(call.endpoint, call)

    async def _fail(self, call: Call, error: MatchpodError, request_id: str) -> Response:
        """Return the response for an error. Wait for a turn first, because there may be a flood of wrong requests."""
        try:
            await call.take_turn(NO_KEY if call.principal is None else queue_of(call.principal.org_id, call.method))
        except MatchpodError as rejected:
            return self._error(call.scope, rejected, request_id)
        return self._error(call.scope, _hide_internal_error(error, request_id), request_id)

    def _error(self, scope: Scope, error: MatchpodError, request_id: str) -> Response:
        page = None if self._error_page is None else self._error_page(scope, error)
        return page or error_response(error, request_id)

    def _options(self, scope: Scope) -> Response:
        """Answer a CORS preflight request, which browsers send without the key."""
        endpoint, methods = self._router.options(scope)
        allow: Header = (b"allow", ", ".join(methods).encode())
        headers = (allow, *self._cors.preflight_headers(scope, endpoint, methods))
        return Response(b"", NO_CONTENT, headers=headers)

    async def _stream(
        self, stream: EventStream, send: Send, request_id: str, *, route: str, cors: Sequence[Header]
    ) -> None:
        headers = [*HEADERS, (b"x-request-id", request_id.encode()), *stream.headers, *cors]
        start: Message = {"type": "http.response.start", "status": 200, "headers": headers}
        if stream.call.scope["method"] == "HEAD":
            stream.frames.close()
            await send(start)
            await send({"type": "http.response.body", "body": b""})
            return
        self._metrics.streams.add(1)
        reason = StreamEnd.FAILED
        try:
            with self._stream_access.watch(stream) as watched:
                reason = await send_stream(stream, send, start=start, request_id=request_id, pace=self._stream_pace)
            if watched.is_ended:
                reason = StreamEnd.REFUSED
        finally:
            self._metrics.streams.add(-1)
            self._metrics.streams_ended.inc(route, reason)
        level = logging.INFO if reason is StreamEnd.SLOW else logging.DEBUG
        _log.log(level, "stream ended", extra={"request_id": request_id, "route": route, "reason": reason.value})

    async def _handle(self, endpoint: Endpoint, call: Call) -> Answer:
        services = self._site.services
        if not endpoint.is_queued:
            call.turn = None
        state = services.readiness.state
        if state is not ReadinessState.READY and not _is_available_while(endpoint, state):
            raise UnavailableError(f"The service is {state}. Retry later.", retry_after_s=1)
        if services.readiness.read_only is not None and not _is_read(endpoint):
            raise UnavailableError(READ_ONLY, retry_after_s=READ_ONLY_RETRY_S)
        if endpoint.access is not None:
            principal = await authorize(
                services.access, self._limiter, endpoint, call, private_callbacks=services.private_callbacks
            )
            if endpoint.body is not None:  # before the turn, so that a slow client does not occupy a turn
                await call.read_body(services.limits.max_body_bytes)
            await call.take_turn(queue_of(principal.org_id, call.method))
        elif endpoint.tag is not Tag.CONSOLE:  # pages of the console look up their session before the turn
            await call.take_turn(NO_KEY)
        if call.scope.get("query_string"):
            check_names(endpoint, call)
        answer = await endpoint.handler(self._site, call)
        return await begin(answer) if isinstance(answer, PartedResponse) else answer

    def _record(
        self, route: str, method: str, status: int, *, started: float, request_id: str, call: Call | None = None
    ) -> None:
        duration_s = self._monotonic() - started
        self._metrics.requests.inc(route, method, str(status))
        self._metrics.seconds.observe(duration_s, route, f"{status // 100}xx")
        if call is not None or _log.isEnabledFor(logging.DEBUG):  # `call` is None for a direct answer
            self._log_request(call, route, method, status, duration_s=duration_s, request_id=request_id)

    def _log_request(
        self, call: Call | None, route: str, method: str, status: int | None, *, duration_s: float, request_id: str
    ) -> None:
        """Log a request, for the access log or for debugging; `status` is None if the client disconnected early."""
        is_access = call is not None and is_logged(self._access_log, call.endpoint)
        level = logging.INFO if is_access else logging.DEBUG
        if _log.isEnabledFor(level):
            about = {"request_id": request_id, "route": route, "method": method if call is None else call.method}
            measured = {"status": status, "duration_ms": round(duration_s * 1000, 3)}
            _log.log(level, "request", extra={**about, **measured, **({} if call is None else fields_of(call))})


def _labels(call: Call) -> tuple[str, str]:
    """Return the route and the method of a request, as labels for its metrics."""
    if call.endpoint is not None:
        return call.endpoint.path, call.endpoint.method
    return UNKNOWN_ROUTE, OPTIONS if call.scope["method"] == OPTIONS else UNKNOWN_ROUTE


def _preset(metrics: HttpMetrics, endpoints: Sequence[Endpoint]) -> None:
    """Create the time series of usual responses and of our errors, so that they begin at 0.

    A histogram of durations has many series, so it is only created in advance for endpoints that programs call.
    """
    for endpoint in endpoints:
        is_for_programs = endpoint.tag in (Tag.API, Tag.INGEST)
        errors = ("500", "503") if is_for_programs else ("500",)
        metrics.requests.preset((endpoint.path,), (endpoint.method,), (str(endpoint.status), *errors))
        if is_for_programs:
            metrics.seconds.preset((endpoint.path,), (f"{endpoint.status // 100}xx",))
        if endpoint.content_type == EVENT_STREAM:
            metrics.streams_ended.preset((endpoint.path,), StreamEnd)


def _is_available_while(endpoint: Endpoint, state: ReadinessState) -> bool:
    if state is ReadinessState.DRAINING:
        return True
    # While the process stops, it stores posts of game servers, which would otherwise retry until the next process runs.
    is_storing = endpoint.tag is Tag.INGEST and state is ReadinessState.STOPPING
    return endpoint.tag is Tag.OPERATIONS or is_storing


def _is_read(endpoint: Endpoint) -> bool:
    """True if a read-only process serves this endpoint. Game servers need the process that drives their match."""
    return endpoint.tag is not Tag.INGEST and (endpoint.method == "GET" or endpoint.is_read)


def _hide_internal_error(error: MatchpodError, request_id: str) -> MatchpodError:
    if error.status != 500:
        return error
    _log.error("request failed", extra={"request_id": request_id, "reason": str(error)})
    return internal_error()


def internal_error() -> InternalServerError:
    """Return the error that a caller gets after an internal error. It hides the cause."""
    return InternalServerError("Internal error. The request id identifies it in the service's log.")


async def _send(
    send: Send, response: Response, request_id: str, *, more_headers: Sequence[Header], is_head: bool
) -> None:
    headers = [
        (b"content-type", response.content_type),
        (b"content-length", b"%d" % len(response.body)),
        (b"x-request-id", request_id.encode()),
        *response.headers,
        *more_headers,
    ]
    if response.status in (NO_CONTENT, NOT_MODIFIED):
        # 204 and 304 have no body, so no Content-Type. A 304's Content-Length would be that of the full response.
        del headers[:2]
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if is_head else response.body})
