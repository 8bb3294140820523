"""Share the newest items of a map or an organization among its readers. Each item is encoded once per kind of stream.

A channel exists while it has readers. Its newest items are in a ring. Items are published by the writer and also polled
from the database, so they may arrive twice, late, or with gaps. Known items are dropped, and a gap clears the ring. A
reader that needs items that are not in the ring reads the database. The database has all items, unless it has failed
over to a standby that lacked the last items. New items get the numbers of the lost items, so the channel and its
readers rewind to the last item that is still stored.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from itertools import groupby
from typing import Final, Protocol

import msgspec

PAGE: Final = 200
"""Maximum number of items that are read or sent at once (about 60 KB). If a client does not read, they are kept in
memory in addition to the buffer of its connection."""

RING: Final = 64
"""Minimum number of items in a full ring, enough for readers that are half a minute of play behind. The maximum is
twice this number, about 100 KB per map."""

DEFAULT_TYPE: Final = b"message"
"""The event type for items without a valid type. It is the default type of server-sent events."""

_TYPE_FIRST: Final = re.compile(rb'\{"type":"([A-Za-z0-9_.-]{1,64})"')
_TYPE: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}")


class _Typed(msgspec.Struct):
    type: str = ""


_TYPED: Final = msgspec.json.Decoder(_Typed)


class StreamItem:
    """An item of a stream. Its frames (server-sent events) are encoded when they are first needed."""

    __slots__ = ("_frame", "_server_frame", "line", "seq")

    def __init__(self, seq: int, line: bytes) -> None:
        self.seq = seq
        self.line = line
        self._frame: bytes | None = None
        self._server_frame: bytes | None = None

    def frame(self) -> bytes:
        """Return the frame for the stream of the item's map or organization, with the item's number as id."""
        if self._frame is None:
            self._frame = b"id: %d\nevent: %b\ndata: %b\n\n" % (self.seq, type_of(self.line), self.line)
        return self._frame

    def server_frame(self, map_fields: bytes) -> bytes:
        """Return the frame for the stream of a server, without its `id:` line. `map_fields` are JSON members."""
        if self._server_frame is None:
            self._server_frame = b"\nevent: %b\ndata: {%b%b\n\n" % (type_of(self.line), map_fields, self.line[1:])
        return self._server_frame


def type_of(line: bytes) -> bytes:
    """Return the type of an item from its JSON."""
    first = _TYPE_FIRST.match(line)
    if first is not None:
        return first[1]
    try:
        named = _TYPED.decode(line).type
    except msgspec.MsgspecError:
        return DEFAULT_TYPE
    return named.encode() if _TYPE.fullmatch(named) else DEFAULT_TYPE


ReadAfter = Callable[[int], Awaitable[list[tuple[int, bytes]]]]
"""A function that gets an item number, and reads a page of the stored items after it as pairs of number and JSON."""


class Subscriber(Protocol):
    """A reader that waits for new items of a channel."""

    def wake(self) -> None:
        """Called when there are new items. Must not block."""

    def rewind(self, channel: Channel, seq: int) -> None:
        """Called when the items after the number `seq` are lost. The subscriber must go back to this number."""


class Channel:
    """The newest items of a map or an organization, and its subscribers."""

    def __init__(self, ring: int = RING) -> None:
        self.subscribers: set[Subscriber] = set()
        self.newest = 0
        """The highest item number that is known to be stored. The ring is empty, or ends with this item."""
        self.is_current = False
        """True once `newest` was compared with the database. From then on, new items are published or polled."""
        self.is_complete = False
        """True if there will be no further items after `newest`."""
        self._ring: list[StreamItem] = []
        self._ring_size = ring
        self._reading = asyncio.Lock()

    def append(self, first_seq: int, lines: Sequence[bytes]) -> None:
        """Append items that are stored in the database. Known items are ignored."""
        start = max(first_seq, self.newest + 1)
        fresh = lines[start - first_seq :]
        if not fresh:
            return
        if start > self.newest + 1:
            self._ring.clear()
        self._ring += [StreamItem(seq, line) for seq, line in enumerate(fresh, start)]
        if len(self._ring) > 2 * self._ring_size:
            del self._ring[: -self._ring_size]
        self.newest = start + len(fresh) - 1
        self._wake()

    def catch_up(self, newest: int) -> None:
        """Raise `newest` to the number of the last item in the database. It is not lowered here."""
        self.is_current = True
        if newest > self.newest:
            self._ring.clear()
            self.newest = newest
            self._wake()

    async def read_on(self, read_after: ReadAfter) -> None:
        """Read and append the stored items that are not known yet.

        The newest known item is read again for comparison. If it differs, the database has lost the last items, and the
        channel rewinds to the last item that is unchanged. To find that item, up to RING stored items are compared with
        the ring.
        """
        async with self._reading:
            back = 1 if len(self._ring) >= min(self.newest, RING) else RING
            while True:
                newest = self.newest
                start = max(newest - back, 0)
                page = await read_after(start)
                last = self._last_same(start, newest, page)
                if last < newest and back == 1:
                    back = RING
                    continue
                if last < newest:
                    self._rewind(last)
                self._fill(page)
                # Append items with consecutive numbers at once.
                for _, run in groupby(enumerate(page), lambda pair: pair[1][0] - pair[0]):
                    items = [item for _, item in run]
                    self.append(items[0][0], [line for _, line in items])
                if len(page) < PAGE:
                    return
                back = 1

    def _last_same(self, start: int, newest: int, stored: Sequence[tuple[int, bytes]]) -> int:
        """Return the number of the last item between `start` and `newest` that is the same in ring and database."""
        # If the first items are not stored, they were deleted after their retention time.
        last = stored[0][0] - 1 if stored and stored[0][0] <= newest else start
        for seq, line in stored:
            known = self.after(seq - 1, 1)
            if last == newest or seq != last + 1 or (known and known[0].line != line):
                break
            last = seq
        return last

    def _rewind(self, seq: int) -> None:
        del self._ring[max(len(self._ring) - (self.newest - seq), 0) :]
        self.newest = seq
        for subscriber in self.subscribers:
            subscriber.rewind(self, seq)
        self._wake()

    def _fill(self, stored: Sequence[tuple[int, bytes]]) -> None:
        """Insert stored items before the items in the ring, unless there would be a gap."""
        first = self.newest + 1 - len(self._ring)
        before = [StreamItem(seq, line) for seq, line in stored if seq < first]
        if before and before[0].seq + len(before) == first:  # no gap
            self._ring[:0] = before

    def complete(self) -> None:
        """Record that there will be no further items: the map is over, and all its items are known."""
        if not self.is_complete:
            self.is_complete = True
            self._wake()

    def after(self, seq: int, limit: int) -> Sequence[StreamItem] | None:
        """Return at most `limit` items after the number `seq`; None if the first of these items is not in the ring."""
        begin = seq + 1 - (self.newest + 1 - len(self._ring))
        return None if begin < 0 else self._ring[begin : begin + limit]

    def _wake(self) -> None:
        for subscriber in self.subscribers:
            subscriber.wake()


class MapChannel(Channel):
    """The newest items of a map."""

    def __init__(self, map_id: str, server_id: str, map_number: int) -> None:
        super().__init__()
        self.map_id = map_id
        self.server_id = server_id
        self.map_fields = b'"mapId":"%b","mapNumber":%d,' % (map_id.encode(), map_number)
