"""Open the stream of a page."""

from __future__ import annotations

from matchpod.console.broadcasts import Broadcast
from matchpod.console.rendering import HEADERS
from matchpod.console.visit import Visit
from matchpod.web.endpoint import Call, Credential, EventStream
from matchpod.web.query_strings import query_of


def stream_of(visit: Visit, broadcast: Broadcast) -> EventStream:
    """Return the stream of a page; it ends with the session."""
    frames = visit.deps.broadcasts.view(broadcast, visit.user.org_id or "operator", position_of(visit.call))
    return EventStream(
        call=visit.call,
        frames=frames,
        credential=Credential(id=visit.user.session_id, still_valid=visit.deps.sessions.active_sessions),
        headers=HEADERS,
    )


def position_of(call: Call) -> str:
    """Return the position after which changes are sent: that of the last event, else that of the page."""
    return call.header(b"last-event-id") or dict(query_of(call)).get("after", "")
