"""Generate HTTP load on keep-alive connections and count the responses, or note how long one caller waits for them.

A minimal HTTP/1.1 client that reads only the status and length of a response. Each connection sends its next request
after the response to the last one; no pipelining.
"""

from __future__ import annotations

import asyncio
import itertools
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from time import perf_counter
from typing import cast

from tests.chaos.http_messages import read_response, send

CONNECTIONS = 32
"""Enough to keep one core busy, but few enough for short waits."""

RESPONSE_S = 20.0
"""Timeout of a response."""

_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)


@dataclass(frozen=True)
class Load:
    """The requests to send in order, and the status that every response must have."""

    requests: Iterator[bytes]
    status: bytes


@dataclass(frozen=True)
class LoadResult:
    """The result of a load: responses within the time (`requests`), and all responses (`answers`)."""

    requests: int
    seconds: float
    answers: int


class _Client(asyncio.Protocol):
    """One connection."""

    def __init__(self, load: Load, tally: _Tally) -> None:
        self._load = load
        self._expected = b"HTTP/1.1 " + load.status
        self._tally = tally
        self._waiting = b""
        self._is_finished = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are not subclasses of asyncio's.
        self._transport = cast(asyncio.Transport, transport)
        self._transport.write(next(self._load.requests))

    def data_received(self, data: bytes) -> None:
        if self._waiting:
            data = self._waiting + data
        if not _is_complete(data):
            self._waiting = data
            return
        self._waiting = b""
        if not data.startswith(self._expected):
            self._tally.fail(data)
            return
        self._tally.answers += 1
        if self._tally.is_open:
            self._transport.write(next(self._load.requests))
        else:
            self._is_finished = True
            self._transport.close()
            self._tally.finish()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._is_finished:
            self._tally.fail(b"connection closed")


class _Tally:
    """Counts the responses on all connections of a load, and completes `done` when all are finished or one failed."""

    def __init__(self, connections: int) -> None:
        self.answers = 0
        self.is_open = True
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._unfinished = connections

    def finish(self) -> None:
        self._unfinished -= 1
        if not self._unfinished and not self.done.done():
            self.done.set_result(None)

    def fail(self, answer: bytes) -> None:
        if not self.done.done():
            self.done.set_exception(RuntimeError(f"unexpected response: {answer[:1000].decode(errors='replace')}"))


def _is_complete(data: bytes) -> bool:
    end = data.find(b"\r\n\r\n")
    if end < 0:
        return False
    length = _LENGTH.search(data, 0, end)
    if length is None:
        raise ValueError("response without a content length")
    return len(data) >= end + 4 + int(length[1])


async def run_load(port: int, load: Load, seconds: float, *, connections: int = CONNECTIONS) -> LoadResult:
    """Send requests for some seconds; raise RuntimeError at the first unexpected response."""
    loop, tally = asyncio.get_running_loop(), _Tally(connections)
    begin_s = loop.time()
    for _ in range(connections):
        await loop.create_connection(lambda: _Client(load, tally), "127.0.0.1", port)
    await asyncio.wait([tally.done], timeout=seconds)
    requests, took_s = tally.answers, loop.time() - begin_s
    tally.is_open = False
    async with asyncio.timeout(RESPONSE_S):
        await tally.done
    return LoadResult(requests, took_s, tally.answers)


async def send_request(port: int, request: bytes, status: int) -> bytes:
    """Send one request and return the body of the response."""
    async with asyncio.timeout(RESPONSE_S):
        response = await send(port, request)
    if response.status != status:
        raise RuntimeError(f"unexpected response: {response.raw[:1000].decode(errors='replace')}")
    return response.body


class Caller:
    """Sends requests in turn on one connection, with a pause after each, and keeps how many ms each took."""

    def __init__(self, port: int, requests: Sequence[bytes], *, pause_s: float) -> None:
        self._port = port
        self._requests = requests
        self._pause_s = pause_s
        self._times_ms: list[float] = []

    async def run(self) -> None:
        """Send requests until cancelled; raise RuntimeError at a status other than 200."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        try:
            for request in itertools.cycle(self._requests):
                began_s = perf_counter()
                writer.write(request)
                response = await read_response(reader)
                self._times_ms.append((perf_counter() - began_s) * 1000)
                if response.status != 200:
                    raise RuntimeError(f"unexpected response: {response.raw[:1000].decode(errors='replace')}")
                await asyncio.sleep(self._pause_s)
        finally:
            writer.close()

    async def measure(self, seconds: float) -> list[float]:
        """Send requests for some seconds; return how many ms they took."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.run()
        return self.take()

    def take(self) -> list[float]:
        """Return the times since the last call."""
        taken, self._times_ms = self._times_ms, []
        return taken
