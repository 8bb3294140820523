"""What do the readers of one map share? Its newest items, each encoded once, and the news that there is another one.

A channel is there while somebody reads the map. Items come by being told and by looking into the database, so the same
ones may come twice, late or with some left out in between: what is known already is dropped, and a hole empties the
ring. A reader who needs what is not in it reads the database, where everything is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, Protocol

import msgspec

RING: Final = 64
"""Items kept at least, once there were as many: half a minute of play, for readers who are a little behind. Twice as
many take some 100 KB, for each map that somebody reads."""

DEFAULT_TYPE: Final = b"message"
"""What the protocol takes for the type of an event that names none."""

_TYPE_FIRST: Final = re.compile(rb'\{"type":"([A-Za-z0-9_.-]{1,64})"')
_TYPE: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}")


class _Typed(msgspec.Struct):
    type: str = ""


_TYPED: Final = msgspec.json.Decoder(_Typed)


class Frame:
    """One item as it is sent; each form is made when the first reader wants it."""

    __slots__ = ("_alone", "_among", "line", "seq")

    def __init__(self, seq: int, line: bytes) -> None:
        self.seq = seq
        self.line = line
        self._alone: bytes | None = None
        self._among: bytes | None = None

    def alone(self) -> bytes:
        """In the stream of its map, with its number as id."""
        if self._alone is None:
            self._alone = b"id: %d\nevent: %b\ndata: %b\n\n" % (self.seq, type_of(self.line), self.line)
        return self._alone

    def among(self, place: bytes) -> bytes:
        """In a stream of several maps, without the id; `place` is the JSON that says which map it is of."""
        if self._among is None:
            self._among = b"\nevent: %b\ndata: {%b%b\n\n" % (type_of(self.line), place, self.line[1:])
        return self._among


def type_of(line: bytes) -> bytes:
    """The type of an item, read from its JSON."""
    first = _TYPE_FIRST.match(line)
    if first is not None:
        return first[1]
    try:
        named = _TYPED.decode(line).type
    except msgspec.MsgspecError:
        return DEFAULT_TYPE
    return named.encode() if _TYPE.fullmatch(named) else DEFAULT_TYPE


class Listener(Protocol):
    """Who waits for news."""

    def wake(self) -> None:
        """There is something new; nothing is to be waited for in here."""


class Channel:
    """The newest items of a map, and who wants to hear of more."""

    def __init__(self, map_id: str, server_id: str, map_number: int) -> None:
        self.map_id = map_id
        self.server_id = server_id
        self.place = b'"mapId":"%b","mapNumber":%d,' % (map_id.encode(), map_number)
        self.listeners: set[Listener] = set()
        self.newest = 0
        """The greatest number of an item that is known to be stored; the ring, unless it is empty, ends with it."""
        self.is_current = False
        """True once `newest` was compared with the database; from then on whatever is stored gets told or looked up."""
        self.is_complete = False
        """True when there will be no item after `newest`."""
        self._ring: list[Frame] = []

    def take(self, first_seq: int, lines: Sequence[bytes]) -> None:
        """These items were stored."""
        start = max(first_seq, self.newest + 1)
        fresh = lines[start - first_seq :]
        if not fresh:
            return
        if start > self.newest + 1:
            self._ring.clear()
        self._ring += [Frame(seq, line) for seq, line in enumerate(fresh, start)]
        if len(self._ring) > 2 * RING:
            del self._ring[:-RING]
        self.newest = start + len(fresh) - 1
        self._wake()

    def catch_up(self, newest: int) -> None:
        """The last item in the database has this number."""
        self.is_current = True
        if newest > self.newest:
            self._ring.clear()
            self.newest = newest
            self._wake()

    def complete(self) -> None:
        """The map is over, and `newest` was compared with the database since."""
        if not self.is_complete:
            self.is_complete = True
            self._wake()

    def after(self, seq: int, limit: int) -> Sequence[Frame] | None:
        """The items that follow this one, at most so many; None when they are not in the ring any more."""
        begin = seq + 1 - (self.newest + 1 - len(self._ring))
        return None if begin < 0 else self._ring[begin : begin + limit]

    def _wake(self) -> None:
        for listener in self.listeners:
            listener.wake()
