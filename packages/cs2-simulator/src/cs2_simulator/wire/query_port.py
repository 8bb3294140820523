"""Answer the UDP query of server browsers (A2S_INFO), as a game server does even if RCON is switched off."""

from __future__ import annotations

import asyncio
import struct
from typing import cast

from cs2_protocol.server_query import INFO_REQUEST, REPLY_HEAD
from cs2_simulator.options import ServerOptions

_GAME = "Counter-Strike 2"
_APP_ID = 730


class QueryPort(asyncio.DatagramProtocol):
    def __init__(self, options: ServerOptions) -> None:
        self._reply = _info(options)
        self._transport: asyncio.DatagramTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.DatagramTransport, transport)  # not an instance of it in Python 3.11

    def datagram_received(self, data: bytes, addr: tuple[str | object, int]) -> None:
        """Answer the first query with a challenge, as the game does, so that a spoofed sender is not flooded."""
        if self._transport is None or not data.startswith(INFO_REQUEST):
            return
        is_challenged = len(data) >= len(INFO_REQUEST) + 4
        self._transport.sendto(self._reply if is_challenged else REPLY_HEAD + b"A\x01\x02\x03\x04", addr)


def _info(options: ServerOptions) -> bytes:
    texts = b"".join(text.encode() + b"\0" for text in (_GAME, options.map, "csgo", _GAME))
    return REPLY_HEAD + b"I\x11" + texts + struct.pack("<HBBB", _APP_ID & 0xFFFF, 0, 10, 0) + b"dl\0\x01"
