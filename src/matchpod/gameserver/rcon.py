"""Ask the console of the game over RCON.

Only until the server is ready, and then for one `quit`: the service changes the password.
"""

from __future__ import annotations

import re
import socket
import struct
from contextlib import suppress
from typing import BinaryIO

MAX_BYTES = 1024 * 1024  # of a packet; real ones have a few KB

LOADED_MAP = re.compile(r"^loaded spawngroup\( *\d+\) *: *SV: *\[\d+: (\S+) \| main lump \| mapload\]", re.MULTILINE)
"""The line of `status` with the loaded map; the other spawn groups of a map end in `point_prefab`."""

_HEADER = struct.Struct("<iii")


def ask(address: tuple[str, int], password: str, command: str, timeout_s: float) -> str:
    """Run a console command and return its output; raise OSError if that fails, PermissionError for the password."""
    with socket.create_connection(address, timeout_s) as connection, connection.makefile("rb") as stream:
        connection.sendall(_packet(1, 3, password))
        while (answer := _read_packet(stream))[1] != 2:
            pass
        if answer[0] == -1:
            raise PermissionError("RCON rejected the password")
        connection.sendall(_packet(2, 2, command) + _packet(3, 0, ""))
        parts = []
        # The output ends with the mirrored empty packet; without one, when the game closes or stops sending.
        with suppress(OSError):
            while (answer := _read_packet(stream))[0] != 3:
                parts.append(answer[2])
        return b"".join(parts).decode("utf-8", "replace")


def _packet(number: int, kind: int, body: str) -> bytes:
    return _HEADER.pack(len(body.encode()) + 10, number, kind) + body.encode() + b"\0\0"


def _read_packet(stream: BinaryIO) -> tuple[int, int, bytes]:
    head = stream.read(_HEADER.size)
    if len(head) < _HEADER.size:
        raise OSError("the game closed the connection")
    size, number, kind = _HEADER.unpack(head)
    if not 10 <= size <= MAX_BYTES:
        raise OSError("the port does not speak RCON")
    return number, kind, stream.read(size - 8)[:-2]
