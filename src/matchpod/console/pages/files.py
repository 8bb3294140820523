"""The files that pages use: style sheets, scripts, the icon."""

from __future__ import annotations

from matchpod.console.deps import ConsoleDeps
from matchpod.console.rendering import assets
from matchpod.core.errors import NotFoundError
from matchpod.web.endpoint import Call, Response


async def asset(_: ConsoleDeps, call: Call) -> Response:
    """Return a file; the hash in its address only makes browsers load it again after a change."""
    found = assets().get(call.params[1])
    if found is None:
        raise NotFoundError("There is no such file.")
    return found
