"""Bytes come back as they were put in, from memory that stays small."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from matchpod.simulator.kept_bytes import PACK_BYTES, KeptBytes
from tests.effort import examples


def filled(pieces: int, size: int) -> tuple[KeptBytes, bytes]:
    kept = KeptBytes()
    whole = bytearray()
    for number in range(pieces):
        piece = (b"%07d\n" % number) * (size // 8)
        kept.append(piece)
        whole += piece
    return kept, bytes(whole)


@examples(60)
@given(st.data())
def test_any_stretch_reads_as_it_was_written(data: st.DataObject) -> None:
    kept, whole = filled(pieces=12, size=data.draw(st.sampled_from([800, 16_000, 40_000])))
    begin = data.draw(st.integers(0, len(whole)))
    end = data.draw(st.integers(begin, len(whole)))
    assert kept.read(begin, end) == whole[begin:end]
    assert len(kept) == len(whole)


def test_old_bytes_are_packed() -> None:
    kept, whole = filled(pieces=100, size=20_000)
    assert len(whole) == 2_000_000
    assert kept.held_bytes < 3 * PACK_BYTES


def test_nothing_is_kept_at_first() -> None:
    kept = KeptBytes()
    assert len(kept) == 0
    assert kept.held_bytes == 0
    assert kept.read(0, 0) == b""
