"""Define all routes of the console, each with the role that a user needs.

To add a page: add a row to ROUTES, a handler in `pages`, and a template. Rows with a `menu` name appear in the menu.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import ClassVar, Final
from urllib.parse import quote

import msgspec

from matchpod.console.deps import ConsoleDeps
from matchpod.console.pages import (
    access,
    create,
    deliveries,
    files,
    live,
    login,
    match,
    match_list,
    operator,
    overlay,
    regions,
    sheet,
    updates,
    webhooks,
)
from matchpod.console.pages.updates import PAGES, SESSION
from matchpod.console.rendering import page, redirect
from matchpod.console.visit import (
    MAX_FORM_BYTES,
    Visit,
    Who,
)
from matchpod.core.errors import ForbiddenError, MatchpodError
from matchpod.core.requests.query_fields import QueryFields
from matchpod.service.access.rate_limit import RateLimiter
from matchpod.service.fair_turns import TurnKey
from matchpod.web.auth import note_proxy
from matchpod.web.endpoint import Answer, Call, Endpoint, Site, Tag
from matchpod.web.errors import error_headers
from matchpod.web.http.asgi import Scope as HttpScope
from matchpod.web.http.responses import Response
from matchpod.web.query_strings import query_of
from matchpod.web.request_turns import NO_KEY, OPERATORS, queue_of

ROOT: Final = "/console"
OVERLAY: Final = "/overlay"
LOGIN: Final = "/console/login"
PER_MINUTE: Final = 600
"""Maximum number of requests per minute and session. No person sends as many."""
MAX_NEXT_QUERY: Final = 2_000
"""Maximum length of an encoded query that is kept while a user logs in. The log-in page itself accepts longer
queries."""

URL_CHARACTERS: Final = "/?%&=+;:@!$'()*,~-._"
"""Characters that stay unencoded in the URL of a redirect; others are percent-encoded."""

PageHandler = Callable[[Visit], Awaitable[Answer]]
OpenHandler = Callable[[ConsoleDeps, Call], Awaitable[Answer]]


class OpenRoute(msgspec.Struct, frozen=True):
    """A route for everyone, without a session."""

    who: ClassVar[Who] = Who.ANYONE

    method: str
    path: str
    handler: OpenHandler
    is_read: bool = False
    query: tuple[str, ...] = ()


class Route(msgspec.Struct, frozen=True):
    """A route for users with a session."""

    method: str
    path: str
    who: Who
    handler: PageHandler
    is_read: bool = False
    """True for a POST request that changes nothing. Processes that serve only reads answer such requests too."""
    query: tuple[str, ...] | None = ()
    """Names of the query parameters that the handler reads; None if the handler checks the query itself."""
    menu: str = ""
    """Name of the page in the menu; empty if it is not in the menu. The order is that of ROUTES."""


AnyRoute = OpenRoute | Route

ROUTES: Final[tuple[AnyRoute, ...]] = (
    OpenRoute("GET", "/console/assets/{hash}/{file}", files.asset),
    OpenRoute("GET", "/console/login", login.form, query=("next",)),
    OpenRoute("POST", "/console/login", login.by_key, is_read=True),
    OpenRoute("GET", "/console/login/{token}", login.link),
    OpenRoute("POST", "/console/login/{token}", login.by_link, is_read=True),
    Route("POST", "/console/logout", Who.PERSON, login.log_out, is_read=True),
    Route("GET", "/console", Who.PERSON, live.wall, query=live.FILTERS, menu="Live"),
    Route("POST", "/console/acknowledge", Who.REFEREE, live.acknowledge),
    Route("POST", "/console/acknowledge/undo", Who.REFEREE, live.undo),
    Route("POST", "/console/matches/{serverId}/claim", Who.REFEREE, live.claim),
    Route("POST", "/console/matches/{serverId}/unclaim", Who.REFEREE, live.release_claim),
    Route("GET", "/console/stream", Who.PERSON, updates.follow, query=(PAGES, SESSION)),
    Route("GET", "/console/matches/{serverId}", Who.MEMBER, match.show, query=("round", "map", "act", "player", "as")),
    Route("GET", "/console/matches/{serverId}/result.json", Who.MEMBER, match.result),
    Route("GET", "/console/matches/{serverId}/log.txt", Who.MANAGER, match.log),
    Route("GET", "/console/maps/{mapId}/demo", Who.MEMBER, match.demo, query=None),
    Route("POST", "/console/matches/{serverId}/ruling", Who.MANAGER, match.rule),
    Route("POST", "/console/matches/{serverId}/actions", Who.REFEREE, match.request_action),
    Route("POST", "/console/matches/{serverId}/again", Who.MANAGER, match.create_again),
    Route("POST", "/console/matches/{serverId}/{action}", Who.REFEREE, match.act),
    OpenRoute("GET", "/overlay/{token}", overlay.show),
    OpenRoute("GET", "/overlay/{token}/stream", overlay.stream, query=(PAGES,)),
    Route("GET", "/console/matches", Who.MEMBER, match_list.show_list, query=None, menu="Matches"),
    Route("GET", "/console/matches.csv", Who.MEMBER, match_list.download_csv, query=None),
    Route("POST", "/console/selection/cancel", Who.MANAGER, match_list.cancel_selected),
    Route("POST", "/console/selection/redeliver", Who.REFEREE, match_list.redeliver_selected),
    Route("GET", "/console/create", Who.MANAGER, create.form, menu="Create"),
    Route("POST", "/console/create", Who.MANAGER, create.create),
    Route("GET", "/console/create/sheet", Who.MANAGER, sheet.form),
    Route("POST", "/console/create/sheet", Who.MANAGER, sheet.create),
    Route("POST", "/console/create/sheet/check", Who.MANAGER, sheet.check, is_read=True),
    Route("POST", "/console/create/curl", Who.MANAGER, create.as_curl, is_read=True),
    Route("GET", "/console/deliveries", Who.MEMBER, deliveries.show_list, query=None, menu="Deliveries"),
    Route("POST", "/console/deliveries/redeliver", Who.REFEREE, deliveries.redeliver_given_up),
    Route("GET", "/console/deliveries/{id}", Who.MEMBER, deliveries.show),
    Route("GET", "/console/deliveries/{id}/body", Who.MEMBER, deliveries.download_body),
    Route("POST", "/console/deliveries/{id}/redeliver", Who.REFEREE, deliveries.redeliver),
    Route("GET", "/console/webhooks", Who.MEMBER, webhooks.show_list, menu="Webhooks"),
    Route("POST", "/console/webhooks/create", Who.MANAGER, webhooks.create),
    Route("GET", "/console/webhooks/{webhookId}", Who.MEMBER, webhooks.show, query=("page", "pageSize", "state")),
    Route("POST", "/console/webhooks/{webhookId}/change", Who.MANAGER, webhooks.change),
    Route("POST", "/console/webhooks/{webhookId}/on", Who.MANAGER, webhooks.switch_on),
    Route("POST", "/console/webhooks/{webhookId}/off", Who.MANAGER, webhooks.switch_off),
    Route("POST", "/console/webhooks/{webhookId}/test", Who.MANAGER, webhooks.test),
    Route("POST", "/console/webhooks/{webhookId}/rotate", Who.MANAGER, webhooks.rotate),
    Route("POST", "/console/webhooks/{webhookId}/delete", Who.MANAGER, webhooks.delete),
    Route("POST", "/console/webhooks/{webhookId}/redeliver", Who.MANAGER, webhooks.redeliver_given_up),
    Route("GET", "/console/webhooks/{webhookId}/deliveries/{id}", Who.MEMBER, webhooks.show_delivery),
    Route("POST", "/console/webhooks/{webhookId}/deliveries/{id}/redeliver", Who.MANAGER, webhooks.redeliver),
    Route("GET", "/console/regions", Who.PERSON, regions.table, menu="Regions"),
    Route("POST", "/console/regions/{code}/on", Who.OPERATOR, regions.switch_on),
    Route("POST", "/console/regions/{code}/off", Who.OPERATOR, regions.switch_off),
    Route("POST", "/console/regions/{code}/check", Who.OPERATOR, regions.check),
    Route("GET", "/console/access", Who.PERSON, access.overview, query=("before", "page"), menu="Access"),
    Route("POST", "/console/access/keys", Who.OWNER, access.create_key),
    Route("POST", "/console/access/keys/{key_id}/rotate", Who.OWNER, access.rotate_key),
    Route("POST", "/console/access/keys/{key_id}/revoke", Who.OWNER, access.revoke_key),
    Route("POST", "/console/access/secret/reveal", Who.OWNER, access.reveal_secret),
    Route("POST", "/console/access/secret/replace", Who.OWNER, access.replace_secret),
    Route("POST", "/console/access/sessions/end-others", Who.PERSON, access.end_other_sessions, is_read=True),
    Route("POST", "/console/access/sessions/{session_id}/end", Who.PERSON, access.end_session, is_read=True),
    Route("GET", "/console/operator", Who.OPERATOR, operator.overview, menu="Operator"),
    Route("POST", "/console/operator/organizations", Who.OPERATOR, operator.create_organization),
)
_MENU: Final = tuple(route for route in ROUTES if isinstance(route, Route) and route.menu)


def endpoints(deps: ConsoleDeps) -> tuple[Endpoint, ...]:
    limiter = RateLimiter(PER_MINUTE, time.monotonic, owner="this session", unit="requests")
    pages = [
        Endpoint(
            method=route.method,
            path=route.path,
            name=f"{route.method} {route.path}",
            tag=Tag.CONSOLE,
            summary="",
            handler=(
                partial(_handle_open, deps, route)
                if isinstance(route, OpenRoute)
                else partial(_handle, deps, route, limiter=limiter)
            ),
            is_read=route.is_read,
            reads_query=True,
        )
        for route in ROUTES
    ]
    pages += _pages_of_forms(deps, pages)
    return (*pages, *(_with_slash(deps, endpoint) for endpoint in pages))


def error_page(scope: HttpScope, error: MatchpodError) -> Response | None:
    """Return the page that shows an error; None if the request was not for the console or an overlay."""
    path: str = scope["path"]
    if not (path == ROOT or path.startswith((f"{ROOT}/", f"{OVERLAY}/"))):
        return None
    return page("error.html", status=error.status, headers=error_headers(error), error=error)


def _pages_of_forms(deps: ConsoleDeps, pages: Sequence[Endpoint]) -> list[Endpoint]:
    """For each path that only accepts a form, return a GET endpoint that redirects to the page containing the form.

    Browsers show the path in the address bar if the form's response is a page. They request it with GET if the user
    copies or reloads it.
    """
    readable = {endpoint.path for endpoint in pages if endpoint.method == "GET"}
    found = []
    for endpoint in pages:
        if endpoint.path not in readable:
            page_path = endpoint.path
            while page_path not in readable:
                page_path = page_path.rpartition("/")[0]
            handler = partial(_to_page_of_form, deps, page_path.count("/"))
            found.append(msgspec.structs.replace(endpoint, method="GET", name=f"GET {endpoint.path}", handler=handler))
    return found


async def _to_page_of_form(deps: ConsoleDeps, depth: int, _: Site, call: Call) -> Response:
    """Redirect to the path that consists of the first `depth` segments."""
    deps.origins.check(call)
    await call.take_turn(NO_KEY)
    _check_query(call, ())
    return redirect(quote(b"/".join(_raw_path(call).split(b"/")[: depth + 1]), safe=URL_CHARACTERS))


def _raw_path(call: Call) -> bytes:
    path: bytes = call.scope.get("raw_path") or call.scope["path"].encode()
    return path


def _with_slash(deps: ConsoleDeps, endpoint: Endpoint) -> Endpoint:
    """Return an endpoint that redirects from the endpoint's path with a trailing slash to the path without it."""
    path = f"{endpoint.path}/"
    handler = partial(_remove_slash, deps)
    name = f"{endpoint.method} {path}"
    return msgspec.structs.replace(endpoint, path=path, name=name, handler=handler, is_read=True)


async def _remove_slash(deps: ConsoleDeps, _: Site, call: Call) -> Response:
    """Redirect to the path without the slash. With status 308, browsers submit a form to the new path again."""
    deps.origins.check(call)
    await call.take_turn(NO_KEY)
    path, query = _raw_path(call).removesuffix(b"/"), call.scope.get("query_string", b"")
    return redirect(quote(path + b"?" + query if query else path, safe=URL_CHARACTERS), status=308)


async def _handle_open(deps: ConsoleDeps, route: OpenRoute, _: Site, call: Call) -> Answer:
    deps.origins.check(call)
    await _begin(route, call, NO_KEY)
    return await route.handler(deps, call)


async def _handle(deps: ConsoleDeps, route: Route, _: Site, call: Call, *, limiter: RateLimiter) -> Answer:
    deps.origins.check(call)
    user = await deps.sessions.find(deps.origins.read_cookie(call))
    await _begin(route, call, NO_KEY if user is None else queue_of(user.org_id or OPERATORS, call.method))
    if user is None:
        return _to_login(call)
    limiter.acquire(user.session_id)
    await note_proxy(deps.services.private_callbacks, call)
    visit = Visit(deps=deps, call=call, user=user)
    fault = visit.fault(route.who)
    if fault is not None:
        raise ForbiddenError(fault)
    visit.menu = [(entry.path, entry.menu) for entry in _MENU if _is_in_menu(visit, entry)]
    if route.handler not in (live.wall, updates.follow) and (user.is_operator or visit.may(Who.MEMBER)):
        with suppress(MatchpodError):  # if the database is unavailable, the page itself reports it
            visit.region_alerts = await deps.region_alerts.read(user.org_id)
    return await route.handler(visit)


def _is_in_menu(visit: Visit, route: Route) -> bool:
    """Return whether a user's menu has a page. Operators have no wall: its path redirects to their own page."""
    return visit.may(route.who) and not (route.path == ROOT and visit.user.is_operator)


async def _begin(route: AnyRoute, call: Call, queue: TurnKey) -> None:
    """Read the form of a POST request, wait for the request's turn in the queue, and check the query."""
    if route.method == "POST":
        await call.read_body(MAX_FORM_BYTES)
    await call.take_turn(queue)
    if route.query is not None:
        _check_query(call, route.query)


def _check_query(call: Call, known: tuple[str, ...]) -> None:
    """Raise InvalidParamsError for unknown parameters. Known parameters may be empty, as forms send them."""
    QueryFields([(name, value) for name, value in query_of(call) if value or name not in known], known).check()


def _to_login(call: Call) -> Response:
    if call.scope["method"] != "GET" or call.header(b"accept") == "text/event-stream":
        return page("error.html", status=401, error=None)
    path, query = quote(call.scope["path"]), quote(call.scope.get("query_string", b""))
    return redirect(f"{LOGIN}?next={path}" + (f"%3F{query}" if 0 < len(query) <= MAX_NEXT_QUERY else ""))
