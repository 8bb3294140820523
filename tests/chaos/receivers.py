"""Receive callbacks on one port, and respond per path as a good or a bad receiver would."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from contextlib import suppress

import msgspec

from tests.chaos.http_messages import Request, read_request
from tests.chaos.plan import Receiver
from tests.e2e.service.callback_receiver import Received

SLOW_S = 2.0
DRIP_S = 0.5
HUGE_CHUNK = b"x" * 65_536
_OK = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
_FAIL = b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n"
_REDIRECT = b"HTTP/1.1 307 Temporary Redirect\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n"
_ENDLESS = b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000000\r\n\r\n"


class Arrival:
    """One received callback; `is_accepted` becomes True when a 2xx response has been sent."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.at_s = time.monotonic()
        self.is_accepted = False

    @property
    def end(self) -> str:
        """How the match ended: `match_over`, or the reason of its cancellation."""
        body = msgspec.json.decode(self.request.body)
        return str(body.get("reason") or body["eventType"])

    def is_signed_with(self, secret: str) -> bool:
        """True if it has a valid signature for this secret."""
        return Received("", self.request.headers, self.request.body, 0.0).is_signed_with(secret)


class Receivers:
    """The HTTP server; `arrivals` are by path, in order."""

    def __init__(self) -> None:
        self.arrivals: defaultdict[str, list[Arrival]] = defaultdict(list)
        self._kinds: dict[str, Receiver] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Receivers:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, backlog=4096, limit=2**20)
        self.port = int(self._server.sockets[0].getsockname()[1])
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def url(self, name: str, kind: Receiver = Receiver.ACCEPT) -> str:
        """Return the URL for the callbacks of one match."""
        self._kinds[f"/{name}"] = kind
        return f"http://127.0.0.1:{self.port}/{name}"

    def at(self, name: str) -> list[Arrival]:
        """Return what has arrived for one match."""
        return self.arrivals.get(f"/{name}", [])

    def stray(self) -> list[str]:
        """Return paths that no match has."""
        return sorted(self.arrivals.keys() - self._kinds.keys())

    @property
    def count(self) -> int:
        """Return how many callbacks have arrived."""
        return sum(map(len, self.arrivals.values()))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            # Cancelled at the end only: nothing waits for this task.
            with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
                while (request := await read_request(reader)) is not None:
                    arrival = Arrival(request)
                    got = self.arrivals[request.path]
                    got.append(arrival)
                    kind = self._kinds.get(request.path, Receiver.ACCEPT)
                    if not await _respond(kind, len(got), arrival, writer):
                        return
        finally:
            self._tasks.discard(task)
            writer.close()


async def _respond(kind: Receiver, number: int, arrival: Arrival, writer: asyncio.StreamWriter) -> bool:
    """Respond to the callback with this number at its path; return whether the connection goes on."""
    is_first = number == 1
    if kind is Receiver.SLOW:
        await asyncio.sleep(SLOW_S)
    if kind is Receiver.HANG:
        await asyncio.Event().wait()
    if kind is Receiver.RESET or (kind is Receiver.RESET_ONCE and is_first):
        writer.transport.abort()
        return False
    if kind is Receiver.DRIP:
        for byte in b"HTTP/1.1 200 OK\r\nX-Slow: " + b"." * 10_000:
            writer.write(bytes([byte]))
            await writer.drain()
            await asyncio.sleep(DRIP_S)
    if kind is Receiver.HUGE:
        arrival.is_accepted = True
        writer.write(_ENDLESS)
        while True:
            writer.write(HUGE_CHUNK)
            await writer.drain()
    answer = _OK
    if kind is Receiver.FAIL or (kind is Receiver.FAIL_ONCE and is_first):
        answer = _FAIL
    elif kind is Receiver.REDIRECT:
        answer = _REDIRECT
    writer.write(answer)
    await writer.drain()
    arrival.is_accepted = answer is _OK
    return True
