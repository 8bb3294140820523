"""Check whether a host has a public address, whether a port accepts connections, and whether a game answers via UDP."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from cs2_protocol.server_query import INFO_REQUEST, is_answer
from matchpod.adapters.rcon_client import probe_port
from matchpod.core.requests.addresses import is_public

ANSWER_S = 1.0
"""Timeout in seconds for the answer of a game. Games answer within a tick."""

TRIES = 2
"""Number of queries to send to a game, because UDP packets may be lost."""

LOOKUP_S = 5.0


class SocketProbe:
    """Implements the server probe with sockets."""

    async def accepts(self, host: str, port: int) -> bool | None:
        return await probe_port(host, port, timeout_s=2 * ANSWER_S)

    async def has_game(self, host: str, port: int) -> bool:
        answered = asyncio.Event()
        try:
            transport, _ = await asyncio.get_running_loop().create_datagram_endpoint(
                lambda: _Query(answered), remote_addr=(host, port)
            )
        except (OSError, UnicodeError):
            return False
        try:
            for _ in range(TRIES):
                transport.sendto(INFO_REQUEST)
                with suppress(TimeoutError):
                    async with asyncio.timeout(ANSWER_S):
                        await answered.wait()
                        return True
            return False
        finally:
            transport.close()

    async def is_public(self, host: str) -> bool:
        try:
            async with asyncio.timeout(LOOKUP_S):
                found = await asyncio.get_running_loop().getaddrinfo(host, None)
        except (OSError, UnicodeError):
            return False
        return any(is_public(str(address[0])) for *_, address in found)


class _Query(asyncio.DatagramProtocol):
    def __init__(self, answered: asyncio.Event) -> None:
        self._answered = answered

    def datagram_received(self, data: bytes, addr: tuple[str | object, int]) -> None:
        if is_answer(data):
            self._answered.set()
