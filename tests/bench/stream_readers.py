"""Who reads a thousand streams at once, and knows in the end that nothing was missing? As little work as that takes.

HTTP/1.1 by hand over asyncio's sockets. A reader keeps no events: for each map he has a check sum of what he was sent
and how many events that were, which is compared with what the polled timeline makes of the same (see `Told`). He also
notes when what came. When his connection ends he comes back, with the id of the last event, until he is told by a 204
that there is nothing more.
"""

from __future__ import annotations

import asyncio
import socket
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import cast
from zlib import crc32

HEAD_END = b"\r\n\r\n"
CHUNK_END = b"\r\n"
EVENT_END = b"\n\n"
ID = b"id: "
DATA = b"\ndata: "
MAP_FIELD = b'{"mapId":"'
UUID_SIZE = 36

SLEEPY_BUFFER, SLEEPY_SEGMENT = 1, 88
"""Of one who never reads: the least the system grants. Else it would keep megabytes for him over loopback, where
segments are large: more than any timeline has, so that nobody would notice that he does not read."""


class Told:
    """What was told of one map: how many events, a sum of their data in order, and when which came."""

    __slots__ = ("arrivals", "count", "sum")

    def __init__(self) -> None:
        self.count = 0
        self.sum = 0
        self.arrivals = array("d")
        """Three numbers each time: when, how many events were here then, since when the connection was open."""

    def add(self, item: bytes) -> None:
        """Next came this item."""
        self.count += 1
        self.sum = crc32(item, self.sum)

    def note(self, now_s: float, opened_s: float) -> None:
        """What was added last came now, over a connection that is open since then."""
        if self.arrivals and self.arrivals[-3] == now_s:
            self.arrivals[-2] = self.count
        else:
            self.arrivals.extend((now_s, self.count, opened_s))

    @classmethod
    def of(cls, items: Sequence[bytes]) -> Told:
        """What is told of a map that has this timeline."""
        told = cls()
        for item in items:
            told.add(item)
        return told


@dataclass
class Crowd:
    """What all readers have in common."""

    port: int
    key: str
    events: int = 0
    """Delivered so far, to all of them."""
    opened: int = 0
    """Connections that were answered 200 so far."""
    breaks: int = 0
    """Connections that ended in the middle and not by their readers' will."""
    returns: int = 0
    """How often a reader hung up and came back."""
    over: int = 0
    """Readers who were told that there is nothing more."""
    failures: list[str] = field(default_factory=list)
    changed: asyncio.Event = field(default_factory=asyncio.Event)


class StreamReader(asyncio.Protocol):
    """One reader; the same object for all his connections, one at a time."""

    def __init__(self, crowd: Crowd, path: str, *, leaves_after: Sequence[int] = (), away_s: float = 1.0) -> None:
        self.path = path
        self.maps: dict[bytes, Told] = {}
        """What he was told, by the id of the map; by nothing in the stream of a map, which does not name it."""
        self.last_id = b""
        self.is_over = False
        self._crowd = crowd
        self._leaves_after = sorted(leaves_after, reverse=True)
        """After so many events he hangs up."""
        self._away_s = away_s
        self._count = 0
        self._opened_s = 0.0
        self.names_maps = "/servers/" in path
        self._transport: asyncio.Transport | None = None
        self._waiting = b""
        self._has_head = False
        self._has_end = False

    def __len__(self) -> int:
        return self._count

    async def connect(self) -> None:
        """Open the stream, where it was left."""
        self._waiting, self._has_head, self._has_end = b"", False, False
        await asyncio.get_running_loop().create_connection(lambda: self, "127.0.0.1", self._crowd.port)

    # --- the connection ---------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.write(stream_request(self.path, self._crowd.key, self.last_id))

    def data_received(self, data: bytes) -> None:
        if self._waiting:
            data = self._waiting + data
        begin = 0
        if not self._has_head:
            begin = self._read_head(data)
            if not self._has_head:
                self._waiting = data
                return
        while not self._has_end and self._transport is not None:
            line_end = data.find(CHUNK_END, begin)
            if line_end < 0:
                break
            size = int(data[begin:line_end], 16)
            end = line_end + 2 + size
            if len(data) < end + 2:
                break
            self._take(data[line_end + 2 : end])
            begin = end + 2
        self._waiting = data[begin:]

    def connection_lost(self, exc: Exception | None) -> None:
        if self.is_over:
            return
        if self._transport is None:
            self._crowd.returns += 1
        elif not self._has_end:
            self._crowd.breaks += 1
        self._transport = None
        asyncio.get_running_loop().call_later(0 if self._has_end else self._away_s, self._come_back)

    def _come_back(self) -> None:
        self._returning = asyncio.get_running_loop().create_task(self._try_to_come_back())

    async def _try_to_come_back(self) -> None:
        try:
            await self.connect()
        except OSError as exc:
            self._fail(f"no way back: {exc}")

    def _read_head(self, data: bytes) -> int:
        end = data.find(HEAD_END)
        if end < 0:
            return 0
        self._has_head = True
        self._opened_s = monotonic()
        if data.startswith(b"HTTP/1.1 200"):
            self._crowd.opened += 1
        elif data.startswith(b"HTTP/1.1 204"):
            self._has_end = self.is_over = True
            self._crowd.over += 1
            cast(asyncio.Transport, self._transport).close()
        else:
            self._fail(data.decode(errors="replace"))
        self._crowd.changed.set()
        return end + len(HEAD_END)

    def _fail(self, why: str) -> None:
        self._crowd.failures.append(f"{self.path}: {why[:1000]}")
        self._crowd.changed.set()
        self.is_over = True
        if self._transport is not None:
            self._transport.abort()

    # --- what is told -----------------------------------------------------------------------------------------------

    def _take(self, part: bytes) -> None:
        """A part of the body, as the service sent it: whole events, or nothing that counts."""
        if not part:
            self._has_end = True
            return
        if not part.startswith(ID):
            return  # how long to wait before one comes back, or a sign of life
        if not part.endswith(EVENT_END):
            self._fail("a part of an event")
            return
        before, now_s = self._count, monotonic()
        for event in part[:-2].split(EVENT_END):
            self._take_event(event).note(now_s, self._opened_s)
        self._crowd.events += self._count - before
        if self._leaves_after and self._count >= self._leaves_after[-1] and self._transport is not None:
            self._leaves_after.pop()
            self._transport.abort()
            self._transport = None

    def _take_event(self, event: bytes) -> Told:
        self.last_id = event[len(ID) : event.find(b"\n")]
        item = event[event.find(DATA) + len(DATA) :]
        name = b""
        self._count += 1
        if self.names_maps:
            name = item[len(MAP_FIELD) : len(MAP_FIELD) + UUID_SIZE]
            if sum(map(int, self.last_id.split(b"."))) != self._count:
                self._fail(f"event {self._count} has the id {self.last_id!r}")
        elif int(self.last_id) != self._count:
            self._fail(f"event {self._count} has the id {self.last_id!r}")
        told = self.maps.get(name)
        if told is None:
            told = self.maps[name] = Told()
        told.add(item)
        return told


class Sleeper:
    """One who opens a stream and never reads."""

    def __init__(self, crowd: Crowd, path: str) -> None:
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SLEEPY_BUFFER)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, SLEEPY_SEGMENT)
        self._socket.connect(("127.0.0.1", crowd.port))
        self._socket.sendall(stream_request(path, crowd.key))

    def close(self) -> None:
        """Hang up."""
        self._socket.close()


def stream_request(path: str, key: str, last_id: bytes = b"") -> bytes:
    """What asks for a stream, or for the rest of it."""
    head = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {key}\r\n".encode()
    return head + (b"Last-Event-ID: %b\r\n" % last_id if last_id else b"") + b"\r\n"
