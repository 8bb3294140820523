"""Collect a request head from the parser and check it.

The checks are for its size, for a `Host`, for repeated headers, and for encodings of the body.
"""

from __future__ import annotations

import functools
from typing import Final

from matchpod.web.http.errors import HEADERS_TOO_LARGE, NOT_IMPLEMENTED, HttpError

CONTENT_ENCODING: Final = b"content-encoding"
MAX_HEAD_BYTES: Final = 64 * 1024
"""Maximum number of bytes of a request's path and headers together; far more than any proxy sends."""
MAX_HEADERS: Final = 100
"""Maximum number of headers in a request. Proxies add about a dozen."""
TOO_LARGE: Final = f"The request head exceeds the limit of {MAX_HEAD_BYTES} bytes."

MAX_SHARED_NAME: Final = 32
"""Maximum length of a header name to cache, so that all requests share one object for the name."""

_SINGLE: Final = {b"host": "Host", b"authorization": "Authorization"}
"""Headers that must not be repeated: a proxy and this service might each use a different value of the two."""
_WITHOUT_HOST: Final = ("0.9", "1.0")
"""HTTP versions in which `Host` is optional."""
_EXPECT: Final = b"expect"
_TRANSFER_ENCODING: Final = b"transfer-encoding"
_CHUNKED: Final = b"chunked"
_CHECKED: Final = frozenset((*_SINGLE, _EXPECT, _TRANSFER_ENCODING, CONTENT_ENCODING))


class RequestHead:
    """The head of the newest request on a connection. All requests of a connection use the same object."""

    __slots__ = (
        "_bytes",
        "_is_complete",
        "_seen",
        "_transfer_encodings",
        "expects_continue",
        "headers",
        "is_encoded",
        "url",
    )

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Drop the previous request, and begin a new one."""
        self.url = b""
        self.headers: list[tuple[bytes, bytes]] = []
        self.expects_continue = False
        self.is_encoded = False
        """True if the body has a Content-Encoding, such as gzip."""
        self._transfer_encodings: tuple[bytes, ...] = ()
        self._bytes = 0
        self._seen: tuple[bytes, ...] = ()
        self._is_complete = False

    def add_url(self, url: bytes) -> None:
        """Add a part of the request target."""
        self.url += url
        self._bytes += len(url)
        if self._bytes > MAX_HEAD_BYTES:
            raise HttpError(TOO_LARGE)

    def add_header(self, name: bytes, value: bytes) -> None:
        """Add a header. Trailers (headers after the body) count toward the size limit, but are dropped."""
        self._bytes += len(name) + len(value) + 4
        if self._bytes > MAX_HEAD_BYTES:
            raise HttpError(TOO_LARGE)
        if self._is_complete:
            return
        name = _lower(name) if len(name) <= MAX_SHARED_NAME else name.lower()
        if len(self.headers) == MAX_HEADERS:
            raise HttpError(f"The request has more than {MAX_HEADERS} headers.", HEADERS_TOO_LARGE)
        if name in _CHECKED:
            self._check(name, value)
        self.headers.append((name, value))

    def complete(self, http_version: str) -> None:
        """Finish the checks at the end of the head. Headers that arrive later are trailers."""
        self._is_complete = True
        if b"host" not in self._seen and http_version not in _WITHOUT_HOST:
            raise HttpError("The request has no Host header, which HTTP/1.1 requires.")
        if self._transfer_encodings not in ((), (_CHUNKED,)):
            self._reject_transfer_encodings()

    def _check(self, name: bytes, value: bytes) -> None:
        if name == _EXPECT:
            self.expects_continue = self.expects_continue or value.lower() == b"100-continue"
        elif name == _TRANSFER_ENCODING:
            self._transfer_encodings += tuple(coding.strip(b" \t").lower() for coding in value.split(b","))
        elif name == CONTENT_ENCODING:
            self.is_encoded = self.is_encoded or is_encoded(value)
        elif name in self._seen:
            raise HttpError(f"The request has more than one {_SINGLE[name]} header; send it once.")
        else:
            self._seen += (name,)

    def _reject_transfer_encodings(self) -> None:
        *others, last = self._transfer_encodings
        if last == _CHUNKED and _CHUNKED not in others:
            raise HttpError("The only Transfer-Encoding that is supported is chunked.", NOT_IMPLEMENTED)
        raise HttpError("The Transfer-Encoding of a request must be chunked.")


@functools.lru_cache(256)
def _lower(name: bytes) -> bytes:
    return name.lower()


def is_encoded(value: bytes) -> bool:
    """True if a body with this Content-Encoding differs from the plain content."""
    return value.strip(b" \t").lower() not in (b"", b"identity")
