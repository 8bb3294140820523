"""How does a request become a response? One ASGI callable: look-up, admission, handler, errors, numbers, log line.

Written by hand on the bare protocol: every request passes here, and on one slow core layers of middleware cost more
than the work they wrap.
"""

from __future__ import annotations

import functools
import logging
import random
import time
from collections.abc import Callable

from starlette.types import Message, Receive, Scope, Send

from matchpod.core.errors import MatchpodError, UnavailableError
from matchpod.service.identifiers import REQUEST_RANDOM_BYTES, new_request_id
from matchpod.service.readiness import ReadinessState
from matchpod.web.auth import admit
from matchpod.web.bodies import CallerGoneError
from matchpod.web.docs import read_pages
from matchpod.web.endpoint import Answer, Call, Endpoint, EventStream, Site, Tag
from matchpod.web.errors import ServerFault, answer_to
from matchpod.web.event_streams import HEADERS, Ending, pour
from matchpod.web.lookup import Lookup
from matchpod.web.openapi import describe
from matchpod.web.rate_limit import RateLimiter
from matchpod.web.routes import ENDPOINTS
from matchpod.web.services import Services

UNKNOWN_ROUTE = "unknown"
"""The label of requests to paths that are not there: the paths themselves are anybody's invention."""

NO_CONTENT = 204

_log = logging.getLogger(__name__)


def create_web(
    services: Services,
    *,
    monotonic: Callable[[], float] = time.monotonic,
    random_bytes: Callable[[int], bytes] | None = None,
) -> Application:
    """The web of these services, as an ASGI application."""
    openapi = functools.cache(functools.partial(describe, ENDPOINTS, services))
    site = Site(services=services, openapi=openapi, pages=read_pages())
    # Request ids guard nothing, so chance need not be asked from the system: that would take a tenth of a request.
    return Application(site, monotonic=monotonic, random_bytes=random_bytes or random.Random().randbytes)


class Application:
    """The ASGI callable."""

    def __init__(self, site: Site, *, monotonic: Callable[[], float], random_bytes: Callable[[int], bytes]) -> None:
        self._site = site
        self._lookup = Lookup(ENDPOINTS)
        self._monotonic = monotonic
        self._random_bytes = random_bytes
        limit = site.services.limits.rate_limit
        self._limiter = None if limit is None else RateLimiter(limit, monotonic)
        metrics = site.services.metrics
        self._requests = metrics.counter(
            "matchpod_http_requests_total", "Requests that were answered.", ("route", "method", "status")
        )
        self._seconds = metrics.histogram(
            "matchpod_http_request_seconds", "How long requests took.", ("route", "status_class")
        )
        self._streams = metrics.gauge("matchpod_streams", "Streams that are open.")
        self._streams_ended = metrics.counter(
            "matchpod_streams_ended_total", "Streams that ended, by why.", ("route", "why")
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; of other kinds of connection only the server's own start and stop are known."""
        if scope["type"] != "http":
            await _answer_other(scope, receive, send)
            return
        began = self._monotonic()
        request_id = new_request_id(self._random_bytes(REQUEST_RANDOM_BYTES))
        route, method = UNKNOWN_ROUTE, UNKNOWN_ROUTE
        try:
            endpoint, params = self._lookup.find(scope)
            route, method = endpoint.path, endpoint.method
            call = Call(scope=scope, receive=receive, params=params)
            answer: Answer | EventStream = await self._handle(endpoint, call)
        except MatchpodError as error:
            answer = answer_to(_told(error, request_id), request_id)
        except CallerGoneError:
            _log.debug("caller gone", extra={"request_id": request_id, "route": route})
            return
        except Exception:  # noqa: BLE001 - the caller learns nothing but the id under which the traceback is found
            _log.exception("request failed", extra={"request_id": request_id, "route": route, "method": method})
            answer = answer_to(_server_fault(), request_id)
        if isinstance(answer, EventStream):
            # Noted when it begins: how long it goes on is the length of a match, and says nothing about us.
            self._note(route, method, 200, began=began, request_id=request_id)
            await self._stream(answer, send, request_id, route)
            return
        await _send(send, answer, request_id, is_head=scope["method"] == "HEAD")
        self._note(route, method, answer.status, began=began, request_id=request_id)

    async def _stream(self, stream: EventStream, send: Send, request_id: str, route: str) -> None:
        headers = [*HEADERS, (b"x-request-id", request_id.encode())]
        start: Message = {"type": "http.response.start", "status": 200, "headers": headers}
        if stream.call.scope["method"] == "HEAD":
            stream.frames.close()
            await send(start)
            await send({"type": "http.response.body", "body": b""})
            return
        self._streams.add(1)
        ending = Ending.FAILED
        try:
            ending = await pour(stream, send, start=start, request_id=request_id)
        finally:
            self._streams.add(-1)
            self._streams_ended.inc(route, ending)
        level = logging.INFO if ending is Ending.SLOW else logging.DEBUG
        _log.log(level, "stream ended", extra={"request_id": request_id, "route": route, "reason": ending.value})

    async def _handle(self, endpoint: Endpoint, call: Call) -> Answer | EventStream:
        services = self._site.services
        state = services.readiness.state
        if state is not ReadinessState.READY and not _answers_while(endpoint, state):
            raise UnavailableError(f"The service is {state}; try again.", retry_after_s=1)
        if endpoint.access is not None:
            call.principal = await admit(services.access, self._limiter, endpoint, call)
        return await endpoint.handler(self._site, call)

    def _note(self, route: str, method: str, status: int, *, began: float, request_id: str) -> None:
        took_s = self._monotonic() - began
        self._requests.inc(route, method, str(status))
        self._seconds.observe(took_s, route, f"{status // 100}xx")
        if _log.isEnabledFor(logging.DEBUG):
            _log.debug(
                "request",
                extra={
                    "request_id": request_id,
                    "route": route,
                    "method": method,
                    "status": status,
                    "duration_ms": round(took_s * 1000, 3),
                },
            )


def _answers_while(endpoint: Endpoint, state: ReadinessState) -> bool:
    # What a game server sends while we drain is stored and read by whoever takes the match over; refused, it would
    # be sent again and again until then.
    is_storing = endpoint.tag is Tag.INGEST and state is ReadinessState.DRAINING
    return endpoint.tag is Tag.OPERATIONS or is_storing


def _told(error: MatchpodError, request_id: str) -> MatchpodError:
    if error.status != 500:
        return error
    _log.error("request failed", extra={"request_id": request_id, "reason": str(error)})
    return _server_fault()


def _server_fault() -> ServerFault:
    return ServerFault("Something went wrong here; the request id finds it in the log.")


async def _send(send: Send, answer: Answer, request_id: str, *, is_head: bool) -> None:
    headers = [
        (b"content-type", answer.content_type),
        (b"content-length", b"%d" % len(answer.body)),
        (b"x-request-id", request_id.encode()),
        *answer.headers,
    ]
    if answer.status == NO_CONTENT:
        del headers[:2]  # which HTTP forbids there
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if is_head else answer.body})


async def _answer_other(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.close", "code": 1000})
        return
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return
