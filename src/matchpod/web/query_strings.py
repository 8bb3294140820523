"""Which parameters does a query string have? Its bytes as pairs of text; what they mean is the reader's business."""

from __future__ import annotations

from urllib.parse import unquote_to_bytes

from matchpod.core.errors import InvalidParamsError
from matchpod.web.endpoint import Call

MAX_QUERY_BYTES = 4096
"""Every parameter of every endpoint at its longest, percent-encoded, fits twice."""


def query_of(call: Call) -> list[tuple[str, str]]:
    """Names and values in the order given; a name without a value has the empty one."""
    query: bytes = call.scope.get("query_string", b"")
    if not query:
        return []
    if len(query) > MAX_QUERY_BYTES:
        raise InvalidParamsError(f"The query is over the limit of {MAX_QUERY_BYTES} bytes.")
    pairs = [part.partition(b"=") for part in query.split(b"&") if part]
    return [(_text(name), _text(value)) for name, _, value in pairs]


def _text(encoded: bytes) -> str:
    # Bytes that are no UTF-8 become lone surrogates: no rule lets those pass, and an answer can name where they were.
    return unquote_to_bytes(encoded.replace(b"+", b" ")).decode(errors="surrogateescape")
