"""An independent RCON client for tests, with plain sockets and no code shared with the server.

A packet is `int32 size | int32 id | int32 type | body | 00 00`, little endian; size does not include itself.
"""

from __future__ import annotations

import socket
import struct
from types import TracebackType

TIMEOUT_S = 120.0


class ClosedError(Exception):
    """The server closed the connection."""


class RconClient:
    def __init__(self, port: int, *, receive_buffer: int | None = None) -> None:
        self.socket = socket.socket()
        if receive_buffer is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(TIMEOUT_S)
        try:
            self.socket.connect(("127.0.0.1", port))
        except OSError:
            self.socket.close()
            raise
        self.last_id = 0

    def __enter__(self) -> RconClient:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _exc: BaseException | None, _tb: TracebackType | None
    ) -> None:
        self.socket.close()

    @property
    def source(self) -> str:
        host, port = self.socket.getsockname()
        return f"{host}:{port}"

    def send(self, packet_id: int, packet_type: int, body: bytes = b"") -> None:
        self.socket.sendall(packet(packet_id, packet_type, body))

    def receive(self) -> tuple[int, int, bytes]:
        (size,) = struct.unpack("<i", self._exactly(4))
        payload = self._exactly(size)
        packet_id, packet_type = struct.unpack("<ii", payload[:8])
        assert payload.endswith(b"\0\0")
        return packet_id, packet_type, payload[8:-2]

    def log_in(self, password: str) -> bool:
        """Authenticate. Return True if the password was accepted. Fail if no empty packet precedes the result."""
        self.last_id += 1
        self.send(self.last_id, 3, password.encode())
        assert self.receive() == (self.last_id, 0, b"")
        result_id, packet_type, _ = self.receive()
        assert packet_type == 2
        assert result_id in (self.last_id, -1)
        return result_id != -1

    def run(self, command: str) -> str:
        self.last_id += 1
        self.send(self.last_id, 2, command.encode())
        packet_id, packet_type, body = self.receive()
        assert (packet_id, packet_type) == (self.last_id, 0)
        return body.decode()

    def is_closed(self) -> bool:
        """Wait until the server closes the connection. Return False if it sends data instead."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionError:
            return True

    def _exactly(self, size: int) -> bytes:
        parts = bytearray()
        while len(parts) < size:
            try:
                more = self.socket.recv(size - len(parts))
            except ConnectionError as exc:
                raise ClosedError from exc
            if not more:
                raise ClosedError
            parts += more
        return bytes(parts)


def packet(packet_id: int, packet_type: int, body: bytes = b"") -> bytes:
    return struct.pack("<iii", len(body) + 10, packet_id, packet_type) + body + b"\0\0"
