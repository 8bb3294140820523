"""Handlers for demos: send a file or a part of it, or redirect to its storage."""

from __future__ import annotations

from typing import Final

from matchpod.core.requests.demo_query import read_demo_query
from matchpod.service.reading.demos import Download
from matchpod.web.endpoint import Call, Site
from matchpod.web.errors import RangeNotSatisfiableError
from matchpod.web.http.byte_ranges import UnsatisfiableRangeError, read_range
from matchpod.web.http.responses import Header, PartedResponse, Response
from matchpod.web.json_responses import NO_STORE
from matchpod.web.query_strings import query_of
from matchpod.web.services import Services

DEMO_TYPE: Final = "application/octet-stream"
FOUND: Final = 302
PARTIAL: Final = 206


async def get_demo_file(site: Site, call: Call) -> Response | PartedResponse:
    number = read_demo_query(query_of(call))
    file = await site.services.demos.download(call.caller, call.params[0], number)
    return demo_response(site.services, call, file, headers=NO_STORE)


def demo_response(
    services: Services, call: Call, file: Download, *, headers: tuple[Header, ...]
) -> Response | PartedResponse:
    """Return the file, the requested part of it, or a redirect to its storage. Used by the API and the console."""
    if file.link is not None:
        return Response(b"", FOUND, headers=((b"location", file.link.encode()), *headers))
    tag = f'"{file.sha256}"'
    start, length, status = 0, file.size, 200
    headers = (
        (b"accept-ranges", b"bytes"),
        (b"etag", tag.encode()),
        (b"content-disposition", f'attachment; filename="{file.file_name}"'.encode()),
        *headers,
    )
    if call.header(b"if-range") in (None, tag):
        try:
            wanted = read_range(call.header(b"range"), file.size)
        except UnsatisfiableRangeError as exc:
            raise RangeNotSatisfiableError(file.size) from exc
        if wanted is not None:
            (start, length), status = wanted, PARTIAL
            shown = f"bytes {start}-{start + length - 1}/{file.size}"
            headers = ((b"content-range", shown.encode()), *headers)
    return PartedResponse(
        parts=services.demos.read(file, start, length),
        content_type=DEMO_TYPE.encode(),
        headers=headers,
        status=status,
        length=length,
    )
