"""Parse the `Range` header of a request for a file (RFC 9110, section 14)."""

from __future__ import annotations

import re
from typing import Final

_RANGE: Final = re.compile(r"bytes=[ \t]*([0-9]{0,18})-([0-9]{0,18})[ \t]*")


class UnsatisfiableRangeError(Exception):
    """The requested range begins after the end of the file."""


def read_range(header: str | None, size: int) -> tuple[int, int] | None:
    """Return the position and length of the requested part; None if the whole file must be sent.

    The whole file is sent if there is no range, more than one range, or an invalid range. Raise UnsatisfiableRangeError
    if the requested part is empty.
    """
    found = _RANGE.fullmatch(header or "")
    if found is None or (found[0] and not (found[1] or found[2])):
        return None
    if not found[1]:
        length = min(int(found[2]), size)
        start = size - length
    else:
        start, last = int(found[1]), int(found[2]) if found[2] else size - 1
        if found[2] and last < start:
            return None
        length = min(last, size - 1) - start + 1
    if length <= 0:
        raise UnsatisfiableRangeError
    return start, length
