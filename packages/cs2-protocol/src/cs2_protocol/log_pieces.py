"""Split a large log post into pieces, so that the work per stored entry is bounded.

Reading the pieces gives the same lines as reading the post, because each piece has the byte offset at which it begins.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from cs2_protocol.log_batches import MAX_OFFSET_DIGITS

MAX_PIECE_BYTES: Final = 16 * 1024
"""Maximum size of a piece. Reading it takes milliseconds, even if each line is as short and expensive as possible. A
server posts a few KB at a time, and more only after an outage."""

BEGIN: Final = "x-logbytes-beginoffset"
END: Final = "x-logbytes-endoffset"

_LINE_START: Final = b"\nL "
"""A line end that is followed by a line with a time stamp, unlike a line end inside a logged console command."""


def split_post(headers: Mapping[str, str], body: bytes) -> Iterator[tuple[Mapping[str, str], bytes]]:
    """Yield the pieces of a post with their headers. A small post is one piece. Header names must be in lower case."""
    if len(body) <= MAX_PIECE_BYTES:
        yield headers, body
        return
    start = 0
    while start < len(body):
        end = _piece_end(body, start)
        yield _piece_headers(headers, start), body[start:end]
        start = end


def _piece_end(body: bytes, start: int) -> int:
    limit = start + MAX_PIECE_BYTES
    if limit >= len(body):
        return len(body)
    for line_end in (_LINE_START, b"\n"):
        found = body.rfind(line_end, start, limit)
        if found >= start:
            return found + 1
    return limit


def _piece_headers(headers: Mapping[str, str], start: int) -> Mapping[str, str]:
    """Return the headers of a piece, without the end offset. The length of the piece is enough to know its end."""
    piece = {name: value for name, value in headers.items() if name != END}
    begin = headers.get(BEGIN, "").strip()
    if len(begin) <= MAX_OFFSET_DIGITS and begin.isascii() and begin.isdigit():
        piece[BEGIN] = str(int(begin) + start)
    return piece
