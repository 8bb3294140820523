"""Decide which web pages may read a response (CORS): any page may read the regions, allowed origins the API.

A page must set the header with the key itself, because the browser never adds it. So pages of an allowed origin can use
only keys that they already have.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from matchpod.web.endpoint import Endpoint, Tag
from matchpod.web.http.asgi import Scope
from matchpod.web.http.responses import Header

ANY: Final = "*"
"""The setting that allows all origins."""
API_PREFIX: Final = b"/api/"

_MAX_AGE_S: Final = 600
"""Time in seconds for which a browser may cache the answer to a preflight request. Some browsers allow little more."""
_REQUEST_HEADERS: Final = (
    b"Authorization, Content-Type, Idempotency-Key, If-None-Match, Last-Event-ID, traceparent, tracestate"
)
_EXPOSED: Final[Header] = (b"access-control-expose-headers", b"ETag, Idempotent-Replayed, Retry-After, X-Request-Id")
_VARY: Final[Header] = (b"vary", b"origin")


class Cors:
    """The CORS rules for all responses. Pages of these `origins` may read the API."""

    def __init__(self, origins: Collection[str]) -> None:
        self._allows_any = ANY in origins
        self._origins = frozenset(origin.encode() for origin in origins)

    def headers(self, scope: Scope, endpoint: Endpoint | None) -> tuple[Header, ...]:
        """Return the CORS headers of a response; `endpoint` is None if no endpoint has this method and path."""
        if endpoint is not None and endpoint.any_origin:
            return (_allow(ANY.encode()), _EXPOSED)
        if not self._origins or not _is_of_api(scope, endpoint):
            return ()
        if self._allows_any:
            return (_allow(ANY.encode()), _EXPOSED)
        origin = _header(scope, b"origin")
        return (_allow(origin), _EXPOSED, _VARY) if origin in self._origins else (_VARY,)

    def preflight_headers(
        self, scope: Scope, endpoint: Endpoint | None, methods: Collection[str]
    ) -> tuple[Header, ...]:
        """Return the CORS headers for a preflight request, with which a browser asks what a page may send."""
        allowed = self.headers(scope, endpoint)
        if len(allowed) < 2 or not _header(scope, b"access-control-request-method"):
            return allowed
        return (
            *allowed,
            (b"access-control-allow-methods", ", ".join(methods).encode()),
            (b"access-control-allow-headers", _REQUEST_HEADERS),
            (b"access-control-max-age", b"%d" % _MAX_AGE_S),
        )


def _allow(origin: bytes) -> Header:
    return (b"access-control-allow-origin", origin)


def _is_of_api(scope: Scope, endpoint: Endpoint | None) -> bool:
    if endpoint is None:
        return bool((scope.get("raw_path") or scope["path"].encode()).startswith(API_PREFIX))
    return endpoint.tag is Tag.API


def _header(scope: Scope, name: bytes) -> bytes:
    value: bytes
    for found, value in scope["headers"]:
        if found == name:
            return value
    return b""
