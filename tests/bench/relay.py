"""Relay what game servers send to a service, note when each game is over, and if wanted send it as a real network would.

Run as `python -m tests.bench.relay FILE`, it sends in small segments, bodies after their heads; the file, which may
appear later, has the port of the service.
"""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from time import monotonic

import uvloop

SEGMENT = 1_460
"""Bytes of a TCP segment on Ethernet."""
GAME_OVER = b"Game Over: "

_ADDRESS = re.compile(rb"\r\nX-Server-Addr: [\d.]+:(\d+)\r\n")


class Relay:
    """Passes every connection on to the service at the port that `upstream_port` returns."""

    def __init__(self, upstream_port: Callable[[], int], *, in_segments: bool = False) -> None:
        self._upstream_port = upstream_port
        self._in_segments = in_segments
        self.game_over_s: dict[int, float] = {}
        """When the post with `Game Over` was passed on, by the port of the game server."""

    async def open(self) -> None:
        self._server = await asyncio.start_server(self._relay, "127.0.0.1", 0, backlog=1_024)
        self.port = int(self._server.sockets[0].getsockname()[1])

    def close(self) -> None:
        self._server.close()

    def observer(self) -> Callable[[bytes], None]:
        """Return what reads the data of one connection before it is passed on."""
        server, last = 0, b""

        def observe(data: bytes) -> None:
            nonlocal server, last
            seen = last + data  # a read may end within the text
            for found in _ADDRESS.finditer(seen):
                server = int(found[1])
            if GAME_OVER in seen:
                self.game_over_s[server] = monotonic()
            last = b"" if GAME_OVER in seen else data[-64:]

        return observe

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # Cancelled at the end only: nothing waits for this task.
        with suppress(OSError, asyncio.CancelledError):
            inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", self._upstream_port())
            await asyncio.gather(
                self._pass_on(reader, inner_writer, self.observer()), self._pass_on(inner_reader, writer, None)
            )

    async def _pass_on(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, observe: Callable[[bytes], None] | None
    ) -> None:
        try:
            while data := await reader.read(65_536):
                if observe is not None:
                    observe(data)
                if observe is None or not self._in_segments:
                    writer.write(data)
                    continue
                for part in _segments(data):
                    writer.write(part)
                    await asyncio.sleep(0.001)  # longer than the service needs to read what has arrived
        finally:
            writer.close()


def _segments(data: bytes) -> Iterator[bytes]:
    head, end, body = data.partition(b"\r\n\r\n")
    for part in (head + end, body):
        for first in range(0, len(part), SEGMENT):
            yield part[first : first + SEGMENT]


async def serve(file: Path) -> None:
    """Relay in segments until the process ends."""
    relay = Relay(lambda: int(file.read_text()), in_segments=True)
    await relay.open()
    print(f"listening on 127.0.0.1:{relay.port}", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(serve(Path(sys.argv[1])))
