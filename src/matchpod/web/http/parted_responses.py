"""Send a response part by part. Each part is read only after the client has read enough of the earlier parts.

So a client that does not read costs memory for only a few parts, whatever the size of the response.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

import msgspec

from matchpod.web.http.asgi import Scope, Send
from matchpod.web.http.compression import ENCODING, VARY, accepts_gzip, compress_parts
from matchpod.web.http.responses import CONNECTION, Header, PartedResponse, StreamConnection


async def begin(response: PartedResponse) -> PartedResponse:
    """Read the first part, so that an error while reading it still gets an error response."""
    first = await anext(response.parts, b"")
    return msgspec.structs.replace(response, parts=_continued(first, response.parts))


async def _continued(first: bytes, parts: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    del first
    async for part in parts:
        yield part


async def send_parts(response: PartedResponse, scope: Scope, send: Send, *, more_headers: Sequence[Header]) -> None:
    """Send a response; stop reading its parts if the client disconnects.

    An error while reading a part is raised. The connection is then aborted; otherwise the client would think that the
    response is complete.
    """
    parts: AsyncIterator[bytes] = response.parts
    headers = [(b"content-type", response.content_type), *response.headers, *more_headers]
    if response.length is not None:
        headers.append((b"content-length", b"%d" % response.length))
    else:
        headers.append(VARY)
        if accepts_gzip(scope["headers"]):
            parts = compress_parts(parts)
            headers.append(ENCODING)
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    if scope["method"] != "HEAD":
        connection: StreamConnection | None = (scope.get("extensions") or {}).get(CONNECTION)
        async for part in parts:
            await send({"type": "http.response.body", "body": part, "more_body": True})
            if connection is not None and not connection.is_open:
                return
    await send({"type": "http.response.body", "body": b""})
