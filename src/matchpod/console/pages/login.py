"""Log users in with an API key or a link, and log them out.

A GET request for a link changes nothing, because chat programs open links to show a preview, which would use up the
link. It shows a page with a form, and submitting the form begins the session.
"""

from __future__ import annotations

from matchpod.console.deps import ConsoleDeps
from matchpod.console.notices import read_notice
from matchpod.console.rendering import page, redirect
from matchpod.console.visit import Visit, read_form
from matchpod.core.errors import RateLimitError, UnauthorizedError
from matchpod.service.access.console_sessions import MAX_MS, NewSession
from matchpod.web.auth import client_address
from matchpod.web.endpoint import Call
from matchpod.web.errors import error_headers
from matchpod.web.http.responses import Response
from matchpod.web.query_strings import query_of

HOME = "/console"
KEY_INVALID = "This key is not valid. It may be mistyped, expired or revoked."


async def form(deps: ConsoleDeps, call: Call) -> Response:
    given = dict(query_of(call))
    if await deps.sessions.find(deps.origins.read_cookie(call)) is not None:
        return redirect(_own_path(given.get("next", "")))
    notice = read_notice(deps.origins, call)
    return page("login.html", headers=notice.headers, next=_own_path(given.get("next", "")), notice=notice.text)


async def by_key(deps: ConsoleDeps, call: Call) -> Response:
    given = await read_form(call)
    path = _own_path(given.get("next", ""))
    try:
        session = await deps.sessions.open_by_key(
            given.get("key", ""), user_agent=_user_agent(call), address=client_address(call)
        )
    except UnauthorizedError:
        return page("login.html", status=401, next=path, notice="", fault=KEY_INVALID, is_key_wrong=True)
    except RateLimitError as exc:
        return _too_often(exc, path)
    return await _begin(deps, call, session, path)


async def link(deps: ConsoleDeps, call: Call) -> Response:
    """Show the form that begins a session with the link. The page is the same for valid and invalid links."""
    return page("login_link.html", path=call.scope["path"])


async def by_link(deps: ConsoleDeps, call: Call) -> Response:
    try:
        session = await deps.sessions.open_by_link(
            call.params[0], user_agent=_user_agent(call), address=client_address(call)
        )
    except UnauthorizedError as exc:
        return page("login.html", status=401, next=HOME, notice="", fault=str(exc))
    except RateLimitError as exc:
        return _too_often(exc, HOME)
    return await _begin(deps, call, session, HOME)


async def log_out(visit: Visit) -> Response:
    await visit.deps.sessions.log_out(visit.user)
    return visit.done("/console/login", "logged-out", visit.deps.origins.cookie_header("", max_age_s=0))


async def _begin(deps: ConsoleDeps, call: Call, session: NewSession, path: str) -> Response:
    """Return a redirect with the new session's cookie. End the earlier session of this browser, if there is one."""
    before = await deps.sessions.find(deps.origins.read_cookie(call))
    if before is not None:
        await deps.sessions.log_out(before)
    return redirect(path, deps.origins.cookie_header(session.cookie, max_age_s=MAX_MS // 1000))


def _too_often(error: RateLimitError, path: str) -> Response:
    return page("login.html", status=error.status, headers=error_headers(error), next=path, notice="", fault=str(error))


def _own_path(path: str) -> str:
    """Return path and query of a page of the console (not of the log-in page), otherwise HOME; never another site."""
    is_own = (path == HOME or path.startswith((f"{HOME}/", f"{HOME}?"))) and path.isascii() and path.isprintable()
    return path if is_own and "\\" not in path and not path.startswith(f"{HOME}/login") else HOME


def _user_agent(call: Call) -> str:
    return call.header(b"user-agent") or ""
