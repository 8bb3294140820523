"""Serve the overlay of a match for OBS. It is opened with a token in its URL, not with a session."""

from __future__ import annotations

from functools import partial
from typing import Final

from matchpod.console.deps import ConsoleDeps
from matchpod.console.match_view import match_services
from matchpod.console.overlay_view import OverlayView
from matchpod.console.page_updates import Broadcast
from matchpod.console.pages.updates import positions_of
from matchpod.console.rendering import page
from matchpod.core.errors import NotFoundError
from matchpod.service.identity.principals import Principal, Role, Scope
from matchpod.service.overlays import Overlay
from matchpod.web.endpoint import Call, Credential, EventStream
from matchpod.web.http.responses import Response

NAME: Final = "overlay"
"""Name of the overlay in its stream of events."""


async def show(deps: ConsoleDeps, call: Call) -> Response:
    broadcast = await _broadcast(deps, await _find(deps, call))
    return page("overlay.html", view=broadcast.subject, token=call.params[0], position=broadcast.position)


async def stream(deps: ConsoleDeps, call: Call) -> EventStream:
    """Send changes of the overlay, as a stream that ends when its token is deleted."""
    overlay = await _find(deps, call)
    position = positions_of(call).get(NAME, "")
    frames = deps.broadcasts.view(f"overlay {overlay.server_id}", {await _broadcast(deps, overlay): position})
    credential = Credential(id=deps.overlays.id_of(call.params[0]), still_valid=deps.overlays.valid_tokens)
    return EventStream(call=call, frames=frames, credential=credential)


async def _find(deps: ConsoleDeps, call: Call) -> Overlay:
    overlay = await deps.overlays.find(call.params[0])
    if overlay is None:
        raise NotFoundError("This overlay does not exist, or its link is no longer valid.")
    return overlay


async def _broadcast(deps: ConsoleDeps, overlay: Overlay) -> Broadcast:
    reader = Principal(
        org_id=overlay.org_id, key_id="overlay", role=Role.MEMBER, scopes=frozenset({Scope.SERVERS_READ})
    )
    create = partial(OverlayView, match_services(deps), reader, overlay.server_id)
    return await deps.broadcasts.find(NAME, overlay.server_id, create)
