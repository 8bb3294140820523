"""Send the changes of all open pages of a browser in one stream."""

from __future__ import annotations

import re
from typing import Final

from matchpod.console.page_updates import Broadcast
from matchpod.console.pages import live, match
from matchpod.console.rendering import HEADERS
from matchpod.console.visit import READER_ONLY, Visit
from matchpod.core.errors import ForbiddenError, InvalidParamsError, NotFoundError, UnauthorizedError
from matchpod.service.identity.principals import Scope
from matchpod.web.endpoint import Call, Credential, EventStream
from matchpod.web.query_strings import query_of

PAGES: Final = "pages"
"""Query parameter with the pages of a stream and their positions, as in `wall:POSITION,match/SERVER_ID:POSITION`. A
page is listed only once."""
SESSION: Final = "session"
"""Query parameter with the id of the session in which the pages were loaded."""
MAX_PAGES: Final = 40

_PAGE: Final = re.compile(r"([a-z]+(?:/[A-Za-z0-9_.-]{1,64})?):([0-9a-f.]{0,32})")


async def follow(visit: Visit) -> EventStream:
    """Send the changes of a browser's pages in a stream that ends with the session.

    UnauthorizedError if the pages were loaded in another session, because they may show another organization.
    """
    if visit.query().get(SESSION, visit.user.session_id) != visit.user.session_id:
        raise UnauthorizedError("These pages belong to a session that has ended.")
    positions: dict[Broadcast, str] = {}
    gone: list[str] = []
    for name, position in positions_of(visit.call).items():
        try:
            positions[await _broadcast(visit, name)] = position
        except NotFoundError:
            gone.append(name)
    return EventStream(
        call=visit.call,
        frames=visit.deps.broadcasts.view(visit.user.org_id or "operator", positions, gone),
        credential=Credential(id=visit.user.session_id, still_valid=visit.deps.sessions.active_sessions),
        headers=HEADERS,
    )


def positions_of(call: Call) -> dict[str, str]:
    """Return, by page name, the position after which changes are sent; if it is empty, all fragments are sent."""
    listed = [page for page in dict(query_of(call)).get(PAGES, "").split(",") if page]
    if len(listed) > MAX_PAGES:
        raise InvalidParamsError(f"{PAGES} has {len(listed)} pages. A stream has at most {MAX_PAGES}.")
    found = [_PAGE.fullmatch(page) for page in listed]
    if None in found:
        raise InvalidParamsError(f"{PAGES} must be names with positions: `wall:POSITION,match/SERVER_ID:POSITION`.")
    return {page[1]: page[2] for page in found if page}


async def _broadcast(visit: Visit, name: str) -> Broadcast:
    """Return a page's broadcast. ForbiddenError if the user may not read matches; NotFoundError if not this page."""
    if Scope.SERVERS_READ not in visit.principal.scopes:
        raise ForbiddenError(READER_ONLY)
    kind, _, shown = name.partition("/")
    if kind == match.KIND:
        try:
            return await match.broadcast_of(visit, shown)
        except ForbiddenError as exc:
            # a single page of another organization must not stop the whole stream
            raise NotFoundError(str(exc)) from exc
    return await live.broadcast_of(visit, name)
