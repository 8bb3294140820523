"""Serve the static files of pages: style sheets, scripts and the icon."""

from __future__ import annotations

from matchpod.console.deps import ConsoleDeps
from matchpod.console.rendering import asset_path, assets
from matchpod.core.errors import NotFoundError
from matchpod.web.endpoint import Call
from matchpod.web.http.responses import Response


async def asset(_: ConsoleDeps, call: Call) -> Response:
    """Return a file if its URL contains the hash of its content; otherwise NotFoundError.

    During a rolling update, a page of one version may request a file from a process of another version. Without this
    check, browsers would cache that file for a year under the hash of a different file.
    """
    name = call.params[1]
    found = assets().get(name)
    if found is None or call.scope["path"] != asset_path(name):
        raise NotFoundError("There is no such file in this version of the service.")
    return found
