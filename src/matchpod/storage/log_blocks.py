"""Pack consecutive log entries into a compressed block, and unpack the block without loss.

Bodies are text; bzip2 compresses them to three quarters of the size that the fastest xz preset achieves. The headers of
an entry are longer than its body but differ little between entries, so they are split at each quote and stored by
column.
"""

from __future__ import annotations

import bz2
import lzma
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise, repeat
from typing import Final

import msgspec

META_PRESET: Final = 1
"""The xz preset for all data except bodies. Higher presets take several times as long and save only a tenth."""

_XZ_MAGIC: Final = b"\xfd7zXZ\x00"
_QUOTE: Final = b'"'
_MAX_DIGITS: Final = 18


class LogColumns(msgspec.Struct, frozen=True, kw_only=True):
    """Log entries, stored by column. The entries are numbered without gaps, from `first_seq`."""

    first_seq: int
    kinds: list[str]
    received_ms: list[int]
    headers: list[bytes]
    bodies: list[bytes]
    attempts: list[str]


class _Column(msgspec.Struct, frozen=True, array_like=True):
    """One column of header parts, encoded as texts, numbers, a first number with deltas, or one constant."""

    constant: bytes = b""
    texts: list[bytes] = []
    numbers: list[int] = []
    steps: list[int] = []

    @classmethod
    def pack(cls, parts: Sequence[bytes]) -> _Column:
        if parts.count(parts[0]) == len(parts):
            return cls(constant=parts[0])
        if not all(map(_is_number, parts)):
            return cls(texts=list(parts))
        numbers = [int(part) for part in parts]
        steps = _steps(numbers)
        # The deltas of log positions equal the sizes of the posts. The block contains these already, so they compress
        # well.
        return cls(steps=steps) if 2 * sum(map(abs, steps)) < sum(numbers) else cls(numbers=numbers)

    def unpack(self) -> Iterator[bytes]:
        """Iterate over the parts of the column; a constant repeats endlessly."""
        if self.texts:
            return iter(self.texts)
        numbers = self.numbers or accumulate(self.steps)
        return (b"%d" % number for number in numbers) if self.numbers or self.steps else repeat(self.constant)


class _Meta(msgspec.Struct, frozen=True, array_like=True):
    first_seq: int
    kinds: list[str]
    received_ms: list[int]
    """Time of the first entry in ms; then, per entry, the difference to the time of the previous entry."""
    sizes: list[int]
    """Size of each body in bytes."""
    widths: list[int]
    """Per entry, the number of parts into which its headers are split."""
    columns: dict[int, list[_Column]]
    """Columns of header parts, by width. All headers with the same number of parts (width) share a list of columns."""
    attempts: list[str] = []
    """Per entry, the attempt that sent it; empty in blocks of earlier versions, which did not store attempts."""


class _Block(msgspec.Struct, frozen=True, array_like=True):
    meta: bytes
    bodies: bytes


class _XzBlock(msgspec.Struct, frozen=True, array_like=True):
    """The oldest block format, which is still read: all bodies and columns in one xz stream."""

    seqs: list[int]
    kinds: list[str]
    received_ms: list[int]
    headers: list[bytes]
    sizes: list[int]
    bodies: bytes


def pack(entries: LogColumns) -> bytes:
    split = [headers.split(_QUOTE) for headers in entries.headers]
    by_width: dict[int, list[list[bytes]]] = {}
    for parts in split:
        by_width.setdefault(len(parts), []).append(parts)
    meta = _Meta(
        first_seq=entries.first_seq,
        kinds=entries.kinds,
        received_ms=_steps(entries.received_ms),
        sizes=[len(body) for body in entries.bodies],
        widths=[len(parts) for parts in split],
        columns={width: [_Column.pack(parts) for parts in zip(*rows, strict=True)] for width, rows in by_width.items()},
        attempts=entries.attempts,
    )
    packed = lzma.compress(msgspec.msgpack.encode(meta), preset=META_PRESET)
    return msgspec.msgpack.encode(_Block(packed, bz2.compress(b"".join(entries.bodies))))


def unpack(block: bytes) -> LogColumns:
    if block.startswith(_XZ_MAGIC):
        old = msgspec.msgpack.decode(lzma.decompress(block), type=_XzBlock)
        return LogColumns(
            first_seq=old.seqs[0],
            kinds=old.kinds,
            received_ms=old.received_ms,
            headers=old.headers,
            bodies=_cut(old.bodies, old.sizes),
            attempts=[""] * len(old.seqs),
        )
    stored = msgspec.msgpack.decode(block, type=_Block)
    meta = msgspec.msgpack.decode(lzma.decompress(stored.meta), type=_Meta)
    parts = {width: [column.unpack() for column in columns] for width, columns in meta.columns.items()}
    return LogColumns(
        first_seq=meta.first_seq,
        kinds=meta.kinds,
        received_ms=list(accumulate(meta.received_ms)),
        headers=[_QUOTE.join(map(next, parts[width])) for width in meta.widths],
        bodies=_cut(bz2.decompress(stored.bodies), meta.sizes),
        attempts=meta.attempts or [""] * len(meta.kinds),
    )


def _cut(bodies: bytes, sizes: Sequence[int]) -> list[bytes]:
    return [bodies[end - size : end] for size, end in zip(sizes, accumulate(sizes), strict=True)]


def _steps(numbers: Sequence[int]) -> list[int]:
    return [*numbers[:1], *(after - before for before, after in pairwise(numbers))]


def _is_number(text: bytes) -> bool:
    """True if the text is a number, and converting it back to text gives the same text."""
    return text.isdigit() and len(text) <= _MAX_DIGITS and (len(text) == 1 or not text.startswith(b"0"))
