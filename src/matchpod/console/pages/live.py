"""Live: all open matches, those that need attention first."""

from __future__ import annotations

from functools import partial
from typing import Final

from matchpod.console.broadcasts import Broadcast
from matchpod.console.rendering import redirect
from matchpod.console.visit import READER_ONLY, Visit
from matchpod.console.wall import Wall
from matchpod.core.errors import ForbiddenError
from matchpod.service.principals import Scope
from matchpod.web.endpoint import Response

NAME: Final = "wall"
"""The name of the wall in streams."""


async def wall(visit: Visit) -> Response:
    """Show the wall; operators have none, and see their own page instead."""
    if visit.user.is_operator:
        return redirect("/console/operator")
    if Scope.SERVERS_READ not in visit.principal.scopes:
        raise ForbiddenError(READER_ONLY)
    broadcast = await broadcast_of(visit)
    shown = broadcast.subject
    return visit.page("live.html", wall=shown, position=broadcast.position)


async def broadcast_of(visit: Visit) -> Broadcast:
    """Return the broadcast of the wall."""
    org_id = visit.principal.org_id
    return await visit.deps.broadcasts.find(NAME, org_id, partial(Wall, visit.deps.overview, org_id))
