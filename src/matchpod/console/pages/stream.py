"""The stream of a browser: what changes on all pages that it shows."""

from __future__ import annotations

from matchpod.console.broadcasts import Broadcast
from matchpod.console.pages import live, match
from matchpod.console.rendering import HEADERS
from matchpod.console.streams import SESSION, positions_of
from matchpod.console.visit import READER_ONLY, Visit
from matchpod.core.errors import ForbiddenError, NotFoundError, UnauthorizedError
from matchpod.service.identity.principals import Scope
from matchpod.web.endpoint import Credential, EventStream


async def follow(visit: Visit) -> EventStream:
    """Send what changes on the pages of a browser. The stream ends with the session.

    UnauthorizedError if the pages were loaded in another session: they may show another organization.
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


async def _broadcast(visit: Visit, name: str) -> Broadcast:
    """Return the broadcast of a page. ForbiddenError as for the page; NotFoundError if there is none."""
    if Scope.SERVERS_READ not in visit.principal.scopes:
        raise ForbiddenError(READER_ONLY)
    kind, _, server_id = name.partition("/")
    if kind == match.KIND:
        try:
            return await match.broadcast_of(visit, server_id)
        except ForbiddenError as exc:
            raise NotFoundError(str(exc)) from exc  # one page of another organization does not stop the others
    if name != live.NAME:
        raise NotFoundError("There is no such page.")
    return await live.broadcast_of(visit)
