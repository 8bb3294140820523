"""Store JSON in less space: compressed, and without the result, which another row has.

Rows of recently ended matches, and of earlier versions, are not packed. The functions here read both.
"""

from __future__ import annotations

import zlib
from typing import Final

_LEVEL: Final = 9
_ZLIB: Final = b"x"
"""The first byte of zlib data; no JSON begins with it."""
_RESULT: Final = b'"result":'
_CUT: Final = _RESULT + b"null"
_LACKS_RESULT: Final = b"-"
"""The first byte of a body whose result was cut out."""


def pack(json: bytes) -> bytes:
    """Compress JSON, unless it is compressed already."""
    return json if is_packed(json) else zlib.compress(json, _LEVEL)


def unpack(stored: bytes) -> bytes:
    """Return the JSON; bytes that are neither JSON nor compressed JSON are returned as they are."""
    try:
        return zlib.decompress(stored) if is_packed(stored) else stored
    except zlib.error:
        return stored


def is_packed(stored: bytes) -> bool:
    return stored.startswith(_ZLIB)


def cut_result(body: bytes, result: bytes) -> bytes:
    """Return the body of a callback without the result, or unchanged if it does not contain it."""
    whole = _RESULT + result
    return body if whole not in body else _LACKS_RESULT + body.replace(whole, _CUT, 1)


def lacks_result(body: bytes) -> bool:
    """True if the result was cut out of the body of a callback."""
    return body.startswith(_LACKS_RESULT)


def insert_result(body: bytes, result: bytes) -> bytes:
    """Return the body with its result inserted again, or unchanged if no result was cut out."""
    # Everything before the result is text in which quotes are escaped, so the first occurrence is the right one.
    return body.removeprefix(_LACKS_RESULT).replace(_CUT, _RESULT + result, 1) if lacks_result(body) else body
