"""Send commands to the console of the game over RCON.

The password is valid until the server is ready; then the service changes it. `quit` is still tried once to end the
game, in case the password has not been changed.
"""

from __future__ import annotations

import re
import socket
import struct
import time
from contextlib import suppress

MAX_BYTES = 256 * 1024  # limit for all packets of a connection in total; the answer to `status` has a few KB

LOADED_MAP = re.compile(r"^loaded spawngroup\( *\d+\) *: *SV: *\[\d+: (\S+) \| main lump \| mapload\]", re.MULTILINE)
"""The line of `status` that names the loaded map. The lines of a map's other spawn groups end in `point_prefab`."""

_HEADER = struct.Struct("<iii")


def ask(address: tuple[str, int], password: str, command: str, timeout_s: float) -> str:
    """Run a console command and return its output; raise PermissionError for a wrong password, OSError otherwise."""
    with socket.create_connection(address, timeout_s) as connection:
        stream = _Stream(connection, timeout_s)
        connection.sendall(_packet(1, 3, password))
        while (answer := _read_packet(stream))[1] != 2:
            pass
        if answer[0] == -1:
            raise PermissionError("RCON rejected the password")
        connection.sendall(_packet(2, 2, command) + _packet(3, 0, ""))
        parts = []
        # The output is complete when the mirrored empty packet arrives. A closed connection or a limit also ends it.
        with suppress(OSError):
            while (answer := _read_packet(stream))[0] != 3:
                parts.append(answer[2])
        return b"".join(parts).decode("utf-8", "replace")


def _packet(number: int, kind: int, body: str) -> bytes:
    return _HEADER.pack(len(body.encode()) + 10, number, kind) + body.encode() + b"\0\0"


class _Stream:
    """Reads from a connection. Total bytes and time are limited, since a compromised game may send data endlessly."""

    def __init__(self, connection: socket.socket, timeout_s: float) -> None:
        self._connection = connection
        self._until_s = time.monotonic() + timeout_s
        self._left = MAX_BYTES

    def read(self, size: int) -> bytes:
        self._left -= size
        if self._left < 0:
            raise OSError(f"the game sent more than {MAX_BYTES} bytes")
        data = bytearray()
        while len(data) < size:
            left_s = self._until_s - time.monotonic()
            if left_s <= 0:
                raise OSError("the game did not answer in time")
            self._connection.settimeout(left_s)
            part = self._connection.recv(size - len(data))
            if not part:
                raise OSError("the game closed the connection")
            data += part
        return bytes(data)


def _read_packet(stream: _Stream) -> tuple[int, int, bytes]:
    size, number, kind = _HEADER.unpack(stream.read(_HEADER.size))
    if not 10 <= size <= MAX_BYTES:
        raise OSError("the program on this port does not speak RCON")
    return number, kind, stream.read(size - 8)[:-2]
