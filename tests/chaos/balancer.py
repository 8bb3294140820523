"""A small load balancer between clients and replicas: it polls `/readyz` and forwards each request once.

Game servers and API clients both use it. It never repeats a request: one that fails is answered 502 and counted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from itertools import count

from tests.chaos.http_messages import Request, Response, format_request, read_request, send
from tests.chaos.log_faults import LogFaults

POLL_S = 1.0
FORWARD_S = 60.0
"""Timeout of a forwarded request: longer than any answer takes."""

_READY = format_request("GET", "/readyz", {})
_BAD_GATEWAY = Response(502, b"", b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n")
_FAILURES = (OSError, asyncio.IncompleteReadError, TimeoutError)


class Balancer:
    """Forwards requests to the replicas that are ready, in turn."""

    def __init__(self, ports: Sequence[int], log_faults: LogFaults | None = None, *, late_polls: int = 1) -> None:
        """`late_polls`: after how many polls in a row without an answer in time a replica is no longer ready."""
        self._ports = ports
        self._late_polls = late_polls
        self.log_faults = log_faults or LogFaults(0)
        self._ready: set[int] = set()
        self._turn = count()
        self._tasks: set[asyncio.Task[None]] = set()
        self.forwarded = 0
        self.failed = 0

    async def __aenter__(self) -> Balancer:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, backlog=1024, limit=2**20)
        self.port = int(self._server.sockets[0].getsockname()[1])
        self._polls = [asyncio.create_task(self._poll(port)) for port in self._ports]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in (*self._polls, *self._tasks):
            task.cancel()
        await asyncio.gather(*self._polls, *self._tasks, return_exceptions=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def wait_until_ready(self, count: int) -> None:
        """Wait until this many replicas are known to be ready."""
        while len(self._ready) < count:
            await asyncio.sleep(POLL_S / 10)

    async def _poll(self, port: int) -> None:
        late = 0
        while True:
            is_ready = False
            try:
                async with asyncio.timeout(POLL_S):
                    is_ready = (await send(port, _READY)).status == 200
                late = 0
            except TimeoutError:
                late += 1
                is_ready = port in self._ready and late < self._late_polls
            except _FAILURES:
                late = 0
            if is_ready:
                self._ready.add(port)
            else:
                self._ready.discard(port)
            await asyncio.sleep(POLL_S)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            # Cancelled at the end only: nothing waits for this task.
            with suppress(*_FAILURES, asyncio.CancelledError):
                while (request := await read_request(reader)) is not None:
                    response = await self.log_faults.forward(request, self.forward)
                    if response is None:
                        return
                    writer.write(response.raw)
                    await writer.drain()
        finally:
            self._tasks.discard(task)
            writer.close()

    async def forward(self, request: Request) -> Response:
        """Send a request to a replica; 502 if none is ready or it did not answer."""
        ready = sorted(self._ready)
        if not ready:
            return _BAD_GATEWAY
        self.forwarded += 1
        try:
            async with asyncio.timeout(FORWARD_S):
                return await send(ready[next(self._turn) % len(ready)], request.raw)
        except _FAILURES:
            self.failed += 1
            return _BAD_GATEWAY
