"""Compress a response with gzip if the client accepts gzip and the response is large enough.

Streams are not compressed: their events are small, and must not wait for further events.
"""

from __future__ import annotations

import asyncio
import zlib
from collections import OrderedDict
from collections.abc import AsyncIterator, Iterable
from functools import lru_cache
from typing import Final

import msgspec

from matchpod.web.http.asgi import Scope
from matchpod.web.http.responses import Header, Response

MIN_BYTES: Final = 1024
"""Minimum size in bytes of a body to compress. A smaller body fits into one packet anyway."""
MAX_INLINE_BYTES: Final = 64 * 1024
"""Maximum size in bytes of a body to compress in the event loop, which takes about half a millisecond. Larger bodies
are compressed in a thread, so that other requests do not have to wait."""

MAX_KEPT: Final = 16
"""Maximum number of shared bodies that are cached in compressed form: API descriptions, pages and metrics, each of up
to a few hundred kilobytes."""

MAX_PARSED: Final = 256
"""Maximum number of parsed `Accept-Encoding` headers to cache, each of up to a kilobyte. Each kind of client sends
another header."""

_LEVEL: Final = 1
"""The fastest level of gzip. It makes our JSON five to eight times smaller. Level 6 would save another fifth, but take
twice the time."""
_GZIP_BITS: Final = 31
"""A window of 32 KiB and the gzip format, as the argument `wbits` of zlib."""
_SMALL_GZIP_BITS: Final = 16 + 13
"""A window of 8 KiB and the gzip format, as the argument `wbits` of zlib."""
_SMALL_MEMORY: Final = 6
"""The memory level of zlib. With it and the small window, a response that its client does not read occupies 64 KiB
instead of 256. Logs become four times smaller either way."""
_MAX_HEADER: Final = 1024
"""Maximum number of bytes of an `Accept-Encoding` header to read. Clients list only a few codings."""
VARY: Final[Header] = (b"vary", b"accept-encoding")
ENCODING: Final[Header] = (b"content-encoding", b"gzip")


_kept: OrderedDict[bytes, bytes] = OrderedDict()
"""Compressed forms by shared body. A lookup is cheap, because `bytes` objects cache their hash and are compared by
identity first."""


async def compress(response: Response, scope: Scope) -> Response:
    """Return the response, compressed if the client accepts gzip and the body is large enough."""
    body = response.body
    if len(body) < MIN_BYTES:
        return response
    if not accepts_gzip(scope["headers"]):
        return msgspec.structs.replace(response, headers=(*response.headers, VARY))
    packed = _kept.get(body) if response.is_shared else None
    if response.packable is not None:
        packed = response.packable.packed
    if packed is None:
        packed = gzipped(body) if len(body) <= MAX_INLINE_BYTES else await asyncio.to_thread(gzipped, body)
    if response.packable is not None:
        response.packable.packed = packed
    if response.is_shared:
        _keep(body, packed)
    return msgspec.structs.replace(response, body=packed, headers=(*response.headers, ENCODING, VARY))


async def compress_parts(parts: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Compress the parts of a body. Yield compressed bytes as soon as there are any."""
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, _SMALL_GZIP_BITS, _SMALL_MEMORY)
    async for part in parts:
        for start in range(0, len(part), MAX_INLINE_BYTES):
            if packed := packer.compress(part[start : start + MAX_INLINE_BYTES]):
                yield packed
    yield packer.flush()


def accepts_gzip(headers: Iterable[Header]) -> bool:
    """True if the client accepts gzip. `*` in the header includes gzip, unless gzip has its own entry."""
    return _accepts_gzip(b",".join([value for name, value in headers if name == b"accept-encoding"])[:_MAX_HEADER])


@lru_cache(MAX_PARSED)
def _accepts_gzip(text: bytes) -> bool:
    accepted: dict[str, bool] = {}
    for part in text.decode("latin-1").lower().split(","):
        coding, _, parameter = part.partition(";")
        accepted[coding.strip()] = _weight(parameter) > 0
    return accepted.get("gzip", accepted.get("x-gzip", accepted.get("*", False)))


def _weight(parameter: str) -> float:
    name, _, value = parameter.partition("=")
    if name.strip() != "q":
        return 1.0
    try:
        return float(value)
    except ValueError:
        return 0.0


def _keep(body: bytes, packed: bytes) -> None:
    _kept[body] = packed
    _kept.move_to_end(body)
    if len(_kept) > MAX_KEPT:
        _kept.popitem(last=False)


def gzipped(body: bytes) -> bytes:
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP_BITS)
    return packer.compress(body) + packer.flush()
