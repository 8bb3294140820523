"""How many answers does a server give in a while? Keep-alive connections, the next request when the answer is there.

HTTP/1.1 by hand, as little as counting needs: the status and the length of an answer. No pipelining.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

CONNECTIONS = 32
"""Enough to keep one core busy, few enough that nobody waits for long."""

ANSWER_S = 20.0
"""No answer may take longer."""

_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)


@dataclass(frozen=True)
class Load:
    """What is asked, one request after another, and the status every answer must have."""

    requests: Iterator[bytes]
    status: bytes


@dataclass(frozen=True)
class Counted:
    """What came of a load: answers within the time, and with those that came after it."""

    requests: int
    seconds: float
    answers: int


class _Client(asyncio.Protocol):
    """One connection."""

    def __init__(self, load: Load, tally: _Tally) -> None:
        self._load = load
        self._right = b"HTTP/1.1 " + load.status
        self._tally = tally
        self._waiting = b""
        self._has_left = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are no subclasses of asyncio's.
        self._transport = cast(asyncio.Transport, transport)
        self._transport.write(next(self._load.requests))

    def data_received(self, data: bytes) -> None:
        if self._waiting:
            data = self._waiting + data
        answer = _whole_answer(data)
        if answer is None:
            self._waiting = data
            return
        self._waiting = b""
        if not data.startswith(self._right):
            self._tally.fail(data)
            return
        self._tally.answers += 1
        self._tally.last = answer
        if self._tally.is_open:
            self._transport.write(next(self._load.requests))
        else:
            self._has_left = True
            self._transport.close()
            self._tally.leave()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._has_left:
            self._tally.fail(b"the connection was closed")


class _Tally:
    """What all connections of a load have in common."""

    def __init__(self, connections: int) -> None:
        self.answers = 0
        self.last = b""
        self.is_open = True
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._left = connections

    def leave(self) -> None:
        self._left -= 1
        if not self._left and not self.done.done():
            self.done.set_result(None)

    def fail(self, answer: bytes) -> None:
        if not self.done.done():
            self.done.set_exception(RuntimeError(f"a wrong answer: {answer[:1000].decode(errors='replace')}"))


def _whole_answer(data: bytes) -> bytes | None:
    """The body of an answer, once all of it is there."""
    end = data.find(b"\r\n\r\n")
    if end < 0:
        return None
    length = _LENGTH.search(data, 0, end)
    if length is None:
        raise ValueError("an answer without a length")
    body = data[end + 4 :]
    return body if len(body) >= int(length[1]) else None


async def run_load(port: int, load: Load, seconds: float, *, connections: int = CONNECTIONS) -> Counted:
    """Keep a server busy for a while; RuntimeError when one answer is not as it must be."""
    loop, tally = asyncio.get_running_loop(), _Tally(connections)
    begin_s = loop.time()
    for _ in range(connections):
        await loop.create_connection(lambda: _Client(load, tally), "127.0.0.1", port)
    await asyncio.wait([tally.done], timeout=seconds)
    requests, took_s = tally.answers, loop.time() - begin_s
    tally.is_open = False
    async with asyncio.timeout(ANSWER_S):
        await tally.done
    return Counted(requests, took_s, tally.answers)


async def ask(port: int, request: bytes, status: bytes) -> bytes:
    """The body of the answer to one request."""
    tally = _Tally(1)
    tally.is_open = False
    client = _Client(Load(iter([request]), status), tally)
    await asyncio.get_running_loop().create_connection(lambda: client, "127.0.0.1", port)
    async with asyncio.timeout(ANSWER_S):
        await tally.done
    return tally.last
