"""Serve the static files of pages: style sheets, scripts, the icon."""

from __future__ import annotations

from matchpod.console.deps import ConsoleDeps
from matchpod.console.rendering import asset_path, assets
from matchpod.core.errors import NotFoundError
from matchpod.web.endpoint import Call
from matchpod.web.http.responses import Response


async def asset(_: ConsoleDeps, call: Call) -> Response:
    """Return a file if its URL contains the hash of its content.

    During a rolling update, a page of one version may ask a process of another: its file would be cached for a year
    under the wrong hash.
    """
    name = call.params[1]
    found = assets().get(name)
    if found is None or call.scope["path"] != asset_path(name):
        raise NotFoundError("There is no such file in this version of the service.")
    return found
