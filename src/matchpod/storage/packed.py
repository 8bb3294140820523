"""Store JSON in less space: compressed, and without a result that is stored in another row anyway.

JSON of recently ended matches, and of earlier versions, is stored unchanged. The functions here read both forms.
"""

from __future__ import annotations

import zlib
from typing import Final

_LEVEL: Final = 9
_ZLIB: Final = b"x"
"""First byte of zlib data; JSON never begins with it."""
_RESULT: Final = b'"result":'
_CUT: Final = _RESULT + b"null"
_LACKS_RESULT: Final = b"-"
"""First byte of a callback body from which the result was removed."""


def pack(json: bytes) -> bytes:
    """Compress JSON; return already compressed JSON unchanged."""
    return json if is_packed(json) else zlib.compress(json, _LEVEL)


def unpack(stored: bytes) -> bytes:
    """Return the JSON, decompressed if necessary. Bytes that are neither JSON nor zlib data are returned unchanged."""
    try:
        return zlib.decompress(stored) if is_packed(stored) else stored
    except zlib.error:
        return stored


def is_packed(stored: bytes) -> bool:
    return stored.startswith(_ZLIB)


def cut_result(body: bytes, result: bytes) -> bytes:
    """Return the body of a callback without its result; return it unchanged if it does not contain the result."""
    whole = _RESULT + result
    return body if whole not in body else _LACKS_RESULT + body.replace(whole, _CUT, 1)


def lacks_result(body: bytes) -> bool:
    """True if the result was removed from the body of this callback."""
    return body.startswith(_LACKS_RESULT)


def insert_result(body: bytes, result: bytes) -> bytes:
    """Return the body with its result inserted again; unchanged if no result was removed."""
    # Before the result, the body contains only text whose quotes are escaped, so the first match is the right position.
    return body.removeprefix(_LACKS_RESULT).replace(_CUT, _RESULT + result, 1) if lacks_result(body) else body
