"""Read a thousand streams at once with little CPU, and check that no event is missing or repeated.

A minimal HTTP/1.1 client on asyncio. A reader stores no events: it counts them and checks that their ids are
consecutive. When its connection ends, it reconnects with the id of the last event, until the service responds 204: there
are no further events.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from tests.chaos.http_messages import format_request

HEAD_END = b"\r\n\r\n"
CHUNK_END = b"\r\n"
EVENT_END = b"\n\n"
ID = b"id: "

STALLED_BUFFER, STALLED_SEGMENT = 1, 88
"""Receive buffer and segment size of a client that never reads: the minimum of the system. Otherwise, loopback would
buffer megabytes, more than any timeline has, and the service could not notice that the client does not read."""


@dataclass
class ReaderGroup:
    """Settings and totals that all readers share."""

    port: int
    headers: Mapping[str, str]
    events: int = 0
    """Events delivered to all readers so far."""
    chunks: int = 0
    """Chunks that contained events."""
    size: int = 0
    """Bytes received."""
    opened: int = 0
    """Connections that got status 200 so far."""
    broken: int = 0
    """Connections that ended unexpectedly."""
    reconnects: int = 0
    """How often readers disconnected on purpose, to reconnect later."""
    finished: int = 0
    """Readers that received the final 204."""
    failures: list[str] = field(default_factory=list)
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def request(self, path: str, last_id: bytes = b"") -> bytes:
        """Return the request for a stream, or for the rest of it."""
        position = {"Last-Event-ID": last_id.decode()} if last_id else {}
        return format_request("GET", path, {**self.headers, **position})


class StreamReader(asyncio.Protocol):
    """A reader of one stream, which reconnects when its connection ends."""

    def __init__(
        self, group: ReaderGroup, path: str, *, disconnects_after: Sequence[int] = (), reconnect_s: float = 1.0
    ) -> None:
        self.path = path
        self.last_id = b""
        self.is_finished = False
        self._group = group
        self._disconnects_after = sorted(disconnects_after, reverse=True)
        """The event counts after which it disconnects, in descending order."""
        self._reconnect_s = reconnect_s
        self._count = 0
        self._transport: asyncio.Transport | None = None
        self._unread = b""
        self._has_head = False
        self._has_end = False

    def __len__(self) -> int:
        return self._count

    async def connect(self) -> None:
        """Open the stream, starting after the last received event."""
        self._unread, self._has_head, self._has_end = b"", False, False
        await asyncio.get_running_loop().create_connection(lambda: self, "127.0.0.1", self._group.port)

    def stop(self) -> None:
        """Disconnect for good from a stream that does not end by itself."""
        self.is_finished = True
        if self._transport is not None:
            self._transport.abort()

    # --- the connection ---------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.write(self._group.request(self.path, self.last_id))

    def data_received(self, data: bytes) -> None:
        self._group.size += len(data)
        if self._unread:
            data = self._unread + data
        begin = 0
        if not self._has_head:
            begin = self._read_head(data)
            if not self._has_head:
                self._unread = data
                return
        while not self._has_end and self._transport is not None:
            line_end = data.find(CHUNK_END, begin)
            if line_end < 0:
                break
            size = int(data[begin:line_end], 16)
            end = line_end + 2 + size
            if len(data) < end + 2:
                break
            self._has_end = not size
            self.read_chunk(data[line_end + 2 : end])
            begin = end + 2
        self._unread = data[begin:]

    def connection_lost(self, exc: Exception | None) -> None:
        if self.is_finished:
            return
        if self._transport is None:
            self._group.reconnects += 1
        elif not self._has_end:
            self._group.broken += 1
        self._transport = None
        asyncio.get_running_loop().call_later(0 if self._has_end else self._reconnect_s, self._reconnect)

    def _reconnect(self) -> None:
        self._reconnecting = asyncio.get_running_loop().create_task(self._try_reconnect())

    async def _try_reconnect(self) -> None:
        try:
            await self.connect()
        except OSError as exc:
            self._fail(f"cannot reconnect: {exc}")

    def _read_head(self, data: bytes) -> int:
        end = data.find(HEAD_END)
        if end < 0:
            return 0
        self._has_head = True
        if data.startswith(b"HTTP/1.1 200"):
            self._group.opened += 1
        elif data.startswith(b"HTTP/1.1 204"):
            self._has_end = self.is_finished = True
            self._group.finished += 1
            cast(asyncio.Transport, self._transport).close()
        else:
            self._fail(data.decode(errors="replace"))
        self._group.changed.set()
        return end + len(HEAD_END)

    def _fail(self, why: str) -> None:
        self._group.failures.append(f"{self.path}: {why[:1000]}")
        self._group.changed.set()
        self.stop()

    # --- events -----------------------------------------------------------------------------------------------------

    def read_chunk(self, chunk: bytes) -> None:
        """Read a chunk of the body: whole events, the reconnect delay, a comment, or the end."""
        if not chunk.startswith(ID):
            return  # the end, the reconnect delay, or a keep-alive comment
        if not chunk.endswith(EVENT_END):
            self._fail("incomplete event")
            return
        events = chunk[:-2].split(EVENT_END)
        for event in events:
            self._count_event(event)
        self._group.events += len(events)
        self._group.chunks += 1
        if self._disconnects_after and self._count >= self._disconnects_after[-1] and self._transport is not None:
            self._disconnects_after.pop()
            self._transport.abort()
            self._transport = None

    def _count_event(self, event: bytes) -> None:
        """Count an event; its id has the number of events of each map until then."""
        self.last_id = event[len(ID) : event.find(b"\n")]
        self._count += 1
        if sum(map(int, self.last_id.split(b"."))) != self._count:
            self._fail(f"event {self._count} has the id {self.last_id!r}")


class StalledClient:
    """A client that opens a stream and never reads."""

    def __init__(self, group: ReaderGroup, path: str) -> None:
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, STALLED_BUFFER)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, STALLED_SEGMENT)
        self._socket.connect(("127.0.0.1", group.port))
        self._socket.sendall(group.request(path))

    def close(self) -> None:
        self._socket.close()
