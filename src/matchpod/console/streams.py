"""Open the stream of a page."""

from __future__ import annotations

from functools import partial

from matchpod.console.broadcasts import Broadcast
from matchpod.console.deps import ConsoleDeps
from matchpod.console.rendering import HEADERS
from matchpod.console.visit import Visit
from matchpod.core.errors import UnavailableError
from matchpod.web.endpoint import Call, EventStream
from matchpod.web.query_strings import query_of


def stream_of(visit: Visit, broadcast: Broadcast) -> EventStream:
    """Return the stream of a page; it ends with the session."""
    frames = visit.deps.broadcasts.view(broadcast, visit.user.org_id or "operator", position_of(visit.call))
    return EventStream(
        call=visit.call,
        frames=frames,
        is_authorized=partial(_is_authorized, visit.deps, visit.call, visit.user.org_id),
        headers=HEADERS,
    )


def position_of(call: Call) -> str:
    """Return the position after which changes are sent: that of the last event, else that of the page."""
    return call.header(b"last-event-id") or dict(query_of(call)).get("after", "")


async def _is_authorized(deps: ConsoleDeps, call: Call, org_id: str | None) -> bool:
    try:
        user = await deps.sessions.find(deps.doors.read_cookie(call), is_use=False)
    except UnavailableError:
        return True  # the session cannot be checked now, and nothing new is read during an outage
    return user is not None and user.org_id == org_id
