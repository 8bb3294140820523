"""Tests of the compressed log buffer."""

from __future__ import annotations

import pickle

from hypothesis import given
from hypothesis import strategies as st

from cs2_simulator.kept_bytes import PACK_BYTES, KeptBytes
from protocol_tests.effort import examples


def filled(pieces: int, size: int) -> tuple[KeptBytes, bytes]:
    buffer = KeptBytes()
    whole = bytearray()
    for number in range(pieces):
        piece = (b"%07d\n" % number) * (size // 8)
        buffer.append(piece)
        whole += piece
    return buffer, bytes(whole)


@examples(30)
@given(st.data())
def test_any_range_is_read_as_it_was_written(data: st.DataObject) -> None:
    buffer, whole = filled(pieces=12, size=data.draw(st.sampled_from([800, 16_000, 40_000])))
    begin = data.draw(st.integers(0, len(whole)))
    end = data.draw(st.integers(begin, len(whole)))
    assert buffer.read(begin, end) == whole[begin:end]
    assert len(buffer) == len(whole)


def test_old_bytes_are_compressed() -> None:
    buffer, whole = filled(pieces=100, size=20_000)
    assert len(whole) == 2_000_000
    assert len(pickle.dumps(buffer)) < 3 * PACK_BYTES
