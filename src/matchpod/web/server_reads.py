"""Answer polls of a server without a task and an ASGI scope, from a cached body if nothing has changed.

The application answers unusual requests for a server; its response is the same.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Final

from matchpod.service.access.rate_limit import RateLimiter
from matchpod.service.identity.principals import Principal
from matchpod.service.operations.readiness import ReadinessState
from matchpod.web.cors import Cors
from matchpod.web.endpoint import Endpoint
from matchpod.web.http.compression import ENCODING, MAX_INLINE_BYTES, MIN_BYTES, VARY, accepts_gzip, gzipped
from matchpod.web.http.exchange import format_headers
from matchpod.web.http.responses import JSON, Header
from matchpod.web.json_responses import NO_STORE
from matchpod.web.proxy_signs import proxy_sign
from matchpod.web.services import Services

_UNUSUAL: Final = frozenset("/?#%")
"""Characters that mean that the rest of a path is not just an id."""
_TYPE_AND_LENGTH: Final = f"\r\ncontent-type: {JSON}\r\ncontent-length: %d\r\nx-request-id: %b\r\n".encode()
_SMALL: Final = format_headers(NO_STORE) + b"\r\n"
_PLAIN: Final = format_headers((*NO_STORE, VARY)) + b"\r\n"
_PACKED: Final = format_headers((*NO_STORE, ENCODING, VARY)) + b"\r\n"


class ServerReads:
    """Answers usual GET requests for a server."""

    def __init__(
        self,
        services: Services,
        endpoint: Endpoint,
        *,
        limiter: RateLimiter | None,
        cors: Cors,
        new_request_id: Callable[[], str],
        record: Callable[[float, str], None],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Call `record` for each answered request, with its start time and request id."""
        self._services = services
        self._endpoint = endpoint
        self._limiter = limiter
        self._cors = cors
        self._new_request_id = new_request_id
        self._record = record
        self._monotonic = monotonic

    def read(self, server_id: str, headers: Sequence[Header]) -> tuple[bytes, ...] | None:
        """Return the parts of the response after its `date` header; None if the application has to answer."""
        started = self._monotonic()
        services = self._services
        if services.readiness.state is not ReadinessState.READY or not _UNUSUAL.isdisjoint(server_id):
            return None
        principal = self._principal(headers)
        if principal is not None and services.private_callbacks.is_watching and proxy_sign(headers) is not None:
            return None  # the application answers, and records the sign of a proxy
        encoded = None if principal is None else services.matches.get_at_once(principal, server_id)
        if principal is None or encoded is None or len(encoded.body) > MAX_INLINE_BYTES:
            return None
        if self._limiter is not None:
            self._limiter.acquire(principal.key_id)
        body, head = encoded.body, _SMALL if len(encoded.body) < MIN_BYTES else _PLAIN
        if head is _PLAIN and accepts_gzip(headers):
            if encoded.packed is None:
                encoded.packed = gzipped(body)
            body, head = encoded.packed, _PACKED
        if cors := self._cors.headers({"headers": headers}, self._endpoint):
            head = b"%b%b\r\n" % (head[:-2], format_headers(cors))
        request_id = self._new_request_id()
        self._record(started, request_id)
        return (_TYPE_AND_LENGTH % (len(body), request_id.encode()), head, body)

    def _principal(self, headers: Sequence[Header]) -> Principal | None:
        """Return the caller; None unless their key is cached, within its rate limit, and permits reading servers."""
        for name, value in headers:
            if name == b"authorization":
                principal = self._services.access.known(value)
                break
        else:
            return None
        if principal is None or self._endpoint.access not in principal.scopes:
            return None
        if self._endpoint.roles and principal.role not in self._endpoint.roles:
            return None
        return principal if self._limiter is None or self._limiter.has(principal.key_id) else None
