"""Keep the log bytes of a map in memory for resending; older bytes are compressed.

Nearly all reads concern the newest bytes, which stay uncompressed. The log of a map has 1 to 2 MB; compression reduces
this to a sixth.
"""

from __future__ import annotations

import zlib
from bisect import bisect_right

PACK_BYTES = 32 * 1024
"""Size in bytes of a block before compression. Smaller blocks compress worse; with larger blocks, more bytes stay
uncompressed."""

FASTEST = 1
"""Compression level. It takes 1 µs per line; the best level takes 10 µs and needs a third less memory."""


class KeptBytes:
    """An append-only byte sequence with random access."""

    __slots__ = ("_open", "_open_from", "_packed", "_starts")

    def __init__(self) -> None:
        self._packed: list[bytes] = []
        self._starts: list[int] = []
        self._open = bytearray()
        self._open_from = 0

    def __len__(self) -> int:
        return self._open_from + len(self._open)

    def append(self, more: bytes) -> None:
        self._open += more
        # At least the newest PACK_BYTES bytes stay uncompressed, because they will probably be read soon.
        while len(self._open) >= 2 * PACK_BYTES:
            self._starts.append(self._open_from)
            self._packed.append(zlib.compress(self._open[:PACK_BYTES], FASTEST))
            del self._open[:PACK_BYTES]
            self._open_from += PACK_BYTES

    def read(self, begin: int, end: int) -> bytes:
        """Return the bytes from `begin` to `end` (exclusive)."""
        if begin >= self._open_from:
            return bytes(self._open[begin - self._open_from : end - self._open_from])
        first = bisect_right(self._starts, begin) - 1
        offset = self._starts[first]
        parts: list[bytes | bytearray] = []
        for packed, start in zip(self._packed[first:], self._starts[first:], strict=True):
            if start >= end:
                break
            parts.append(zlib.decompress(packed))
        else:
            parts.append(self._open[: max(0, end - self._open_from)])
        return b"".join(parts)[begin - offset : end - offset]
