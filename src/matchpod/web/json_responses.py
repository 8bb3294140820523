"""Build JSON responses for callers. Finished maps, series and results have an ETag, so that they are not sent again.

The ETag is a digest of the body, so it changes if the statistics are recomputed. It is weak, because a compressed
response has the same ETag. Live data has no ETag, because it changes with every request.
"""

from __future__ import annotations

import hashlib
import re
from typing import Final

import msgspec

from matchpod.web.endpoint import Call
from matchpod.web.http.responses import Header, Response

NO_STORE: Final[tuple[Header, ...]] = ((b"cache-control", b"no-store"),)
"""Headers of responses with passwords or live scores, which no cache may store."""
NO_CACHE: Final[tuple[Header, ...]] = ((b"cache-control", b"no-cache"),)
"""Headers of responses that need no key. Caches must revalidate them each time, because they describe the current
state."""
NOT_MODIFIED: Final = 304
REPLAYED: Final[Header] = (b"idempotent-replayed", b"true")

_MAX_HEADER: Final = 4096
"""Maximum number of characters of `If-None-Match` to read; enough for dozens of ETags."""
_DIGEST_BYTES: Final = 16
_TAG: Final = re.compile(r'(?:W/)?("[^"]*")')
_VARY: Final[Header] = (b"vary", b"accept-encoding")
"""A header of 304 responses. The full response, which may be compressed, has the same header."""
_REVALIDATE: Final[Header] = (b"cache-control", b"private, no-cache")
"""Lets the caller cache the response, but revalidate it before each use. Shared caches may not store it."""

_encoder = msgspec.json.Encoder()


def private_json(view: object, status: int = 200, *, is_replayed: bool = False) -> Response:
    """Return a response that no cache may store. `is_replayed` marks the repeated result of an earlier request."""
    return Response(_encoder.encode(view), status, headers=(*NO_STORE, REPLAYED) if is_replayed else NO_STORE)


def final_json(call: Call, view: object, *, has_ended: bool) -> Response:
    """Return the view as JSON. With `has_ended`, the response has an ETag, and is 304 if the caller sent that ETag."""
    if not has_ended:
        return private_json(view)
    body = _encoder.encode(view)
    tag = f'"{hashlib.blake2b(body, digest_size=_DIGEST_BYTES).hexdigest()}"'
    headers: tuple[Header, ...] = ((b"etag", f"W/{tag}".encode()), _REVALIDATE)
    if _matches(call.list_header(b"if-none-match"), tag):
        return Response(b"", NOT_MODIFIED, headers=(*headers, _VARY))
    return Response(body, headers=headers)


def _matches(header: str | None, tag: str) -> bool:
    if header is None:
        return False
    return header.strip() == "*" or tag in _TAG.findall(header[:_MAX_HEADER])
