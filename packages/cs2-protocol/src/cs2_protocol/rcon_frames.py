"""Split a byte stream into RCON packets, without I/O."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator

import msgspec

RESPONSE_VALUE = 0
"""Packet type. From a server: part of an answer. From a client: the empty packet that the server mirrors."""

EXEC_COMMAND = 2
"""Packet type, from a client: run a command."""

AUTH_RESPONSE = 2
"""Packet type, from a server: the result of authentication. It has the same number as EXEC_COMMAND, which only clients
send."""

AUTH = 3
"""Packet type, from a client: authenticate with a password."""

MIN_SIZE = 10
"""The size field of an empty packet, which counts id, type and two NULs."""

_HEADER = struct.Struct("<iii")
_SIZE = struct.Struct("<i")
_NULS = b"\x00\x00"


class RconProtocolError(Exception):
    """The peer sent invalid data. The rest of the stream cannot be read."""


class Frame(msgspec.Struct, frozen=True):
    """One packet. The type is a plain int, because a peer may send any number."""

    id: int
    type: int
    body: bytes = b""


def encode_frame(frame: Frame) -> bytes:
    """Encode a packet."""
    return _HEADER.pack(len(frame.body) + MIN_SIZE, frame.id, frame.type) + frame.body + _NULS


class FrameReader:
    """Splits a byte stream into packets."""

    def __init__(self, max_size: int) -> None:
        self._max_size = max_size
        self._buffer = bytearray()
        self._fault: str | None = None

    def feed(self, data: bytes, max_size_of: Callable[[int], int] | None = None) -> Iterator[Frame]:
        """Append bytes and iterate over the packets they complete.

        Packets that are not consumed are returned by the next call.

        `max_size_of` returns the maximum size field of a packet by its id; the limit of the reader still applies. The
        function is not stored: a reference to the owner of this reader would be a reference cycle.
        """
        if self._fault is None:
            self._buffer += data
        return self._frames(max_size_of)

    def fail(self, fault: str) -> None:
        """Stop reading: from now on, iterating raises RconProtocolError with this message."""
        self._fault = fault
        self._buffer.clear()

    def _frames(self, max_size_of: Callable[[int], int] | None) -> Iterator[Frame]:
        while (size := self._next_size(max_size_of)) is not None:
            end = _SIZE.size + size
            if len(self._buffer) < end:
                return
            _, frame_id, frame_type = _HEADER.unpack_from(self._buffer)
            body = _without_terminators(bytes(self._buffer[_HEADER.size : end]))
            del self._buffer[:end]
            yield Frame(frame_id, frame_type, body)

    def _next_size(self, max_size_of: Callable[[int], int] | None) -> int | None:
        """Return the size field of the next packet; None if it has not arrived."""
        size: int | None = None
        if self._fault is None and len(self._buffer) >= _SIZE.size:
            size, max_size = _SIZE.unpack_from(self._buffer)[0], self._max_size
            if max_size_of is not None and len(self._buffer) >= 2 * _SIZE.size:
                max_size = min(max_size, max_size_of(_SIZE.unpack_from(self._buffer, _SIZE.size)[0]))
            if not MIN_SIZE <= size <= max_size:
                self.fail(f"packet size {size} is not between {MIN_SIZE} and {max_size}")
        if self._fault is not None:
            raise RconProtocolError(self._fault)
        return size


def _without_terminators(payload: bytes) -> bytes:
    # Some servers omit one or both of the NULs. The last bytes are then part of the body.
    if payload.endswith(_NULS):
        return payload[:-2]
    return payload.removesuffix(b"\x00")
