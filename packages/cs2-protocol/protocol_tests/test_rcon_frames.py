"""Tests of RCON packets in arbitrary chunks."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cs2_protocol.rcon import MAX_REQUEST_SIZE
from cs2_protocol.rcon_frames import EXEC_COMMAND, RESPONSE_VALUE, Frame, FrameReader, RconProtocolError, encode_frame

int32 = st.integers(min_value=-(2**31), max_value=2**31 - 1)
frames = st.builds(Frame, id=int32, type=int32, body=st.binary(max_size=60))
chunk_sizes = st.lists(st.integers(min_value=1, max_value=40), max_size=12)


def chunked(data: bytes, sizes: Iterable[int]) -> Iterator[bytes]:
    at = 0
    for size in sizes:
        yield data[at : at + size]
        at += size
    yield data[at:]


def read_all(reader: FrameReader, data: bytes, sizes: Iterable[int] = ()) -> list[Frame]:
    return [frame for chunk in chunked(data, sizes) for frame in reader.feed(chunk)]


def value(frame_id: int, body: bytes = b"") -> bytes:
    return encode_frame(Frame(frame_id, RESPONSE_VALUE, body))


def test_packet_is_encoded_as_the_protocol_requires() -> None:
    assert encode_frame(Frame(7, EXEC_COMMAND, b"status")) == (
        b"\x10\x00\x00\x00\x07\x00\x00\x00\x02\x00\x00\x00status\x00\x00"
    )


@given(st.lists(frames, max_size=6), chunk_sizes)
def test_packets_survive_any_chunking(sent: list[Frame], sizes: list[int]) -> None:
    stream = b"".join(map(encode_frame, sent))
    reader = FrameReader(MAX_REQUEST_SIZE)
    assert read_all(reader, stream, sizes) == sent
    assert list(reader.feed(value(7))) == [Frame(7, RESPONSE_VALUE)]


def test_unconsumed_packets_are_returned_with_the_next_bytes() -> None:
    reader = FrameReader(MAX_REQUEST_SIZE)
    reader.feed(value(1) + value(2))
    assert [frame.id for frame in reader.feed(value(3))] == [1, 2, 3]


@pytest.mark.parametrize("size", [9, 0, -1, -(2**31), MAX_REQUEST_SIZE + 1, 2**31 - 1])
def test_invalid_size_ends_the_stream(size: int) -> None:
    reader = FrameReader(MAX_REQUEST_SIZE)
    with pytest.raises(RconProtocolError, match=str(size)):
        list(reader.feed(struct.pack("<i", size)))
    with pytest.raises(RconProtocolError, match=str(size)):
        list(reader.feed(value(1)))


@pytest.mark.parametrize(
    ("payload", "body"),
    [(b"text\x00\x00", b"text"), (b"text\x00", b"text"), (b"text", b"text"), (b"\x00x\x00", b"\x00x")],
)
def test_missing_terminators_do_not_truncate_the_body(payload: bytes, body: bytes) -> None:
    packet = struct.pack("<iii", 8 + len(payload), 5, RESPONSE_VALUE) + payload
    assert read_all(FrameReader(MAX_REQUEST_SIZE), packet + value(6)) == [Frame(5, 0, body), Frame(6, 0)]


def test_size_may_depend_on_the_id() -> None:
    def max_size_of(frame_id: int) -> int:
        return 20 if frame_id == 5 else MAX_REQUEST_SIZE

    reader = FrameReader(MAX_REQUEST_SIZE)
    assert len(list(reader.feed(value(5, bytes(10)) + value(6, bytes(100)), max_size_of))) == 2
    head = struct.pack("<ii", 21, 5)
    assert list(reader.feed(head[:7], max_size_of)) == [], "the id has not arrived yet"
    with pytest.raises(RconProtocolError, match="21 is not between 10 and 20"):
        list(reader.feed(head[7:], max_size_of))
