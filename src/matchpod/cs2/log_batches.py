"""Which lines of a log POST are new? Bodies in, each line out exactly once, whatever was repeated, cut or lost.

A server numbers the bytes of a map load from 0 (all its posts or none) and sends a range again, perhaps grown, until
it is acknowledged. Known bytes are cut away; lost bytes are told, never passed over. A line that lost its end is
dropped: cut short, `RoundsPlayed: 12` reads as `RoundsPlayed: 1`. What cannot be told: repeats without offsets
(CS:GO), and a late post of an earlier load that bears no time or begins exactly where the present load was read to.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from zlib import crc32

import msgspec

from matchpod.cs2.log_clock import parse_stamp

MAX_LINE_BYTES = 64 * 1024
"""The longest line of the real logs has under 1 KiB; the rest of a longer line is dropped, so no cursor grows."""

OPENING_LINES = 256
"""How many first lines tell two loads apart. A real load opens with 207 lines, all of them one second's: two real
loads began with 11,046 equal bytes, time stamps included, and differed only in the bots that joined."""

HEAD_BYTES = 64
"""A time stamp and the start of a line: enough where a post does not even hold the whole first line."""

LATE_MS = 5 * 60_000
"""A post this much older than the newest is late; older still, the server's clock was set back (by 30 min or more)."""

MAX_HEADER_CHARS = 128
"""Instance tokens have 16 characters, map names (with a workshop path) fewer than 100."""

MAX_OFFSET_DIGITS = 15
"""A thousand terabytes of log."""


class LogPost(msgspec.Struct, frozen=True, kw_only=True):
    """One HTTP post of log bytes, as its headers describe it; any header may be missing.

    `sent_ms` is the server's own clock when it sent the post, local time as if it were UTC.
    """

    body: bytes
    received_ms: int
    begin: int | None = None
    end: int | None = None
    instance_token: str | None = None
    game_map: str | None = None
    sent_ms: int | None = None


class Gap(msgspec.Struct, frozen=True, tag=True):
    """Bytes before these lines never came."""

    missing_bytes: int


class Restarted(msgspec.Struct, frozen=True, tag=True):
    """These lines are of a new server process."""

    instance_token: str


class MapLoad(msgspec.Struct, frozen=True, tag=True):
    """The byte numbers began again; `number` counts how often they did, from 1.

    That is a map load, or our address was removed from the server and added again: `Loading map` tells which.
    """

    number: int
    game_map: str | None


class Unfinished(msgspec.Struct, frozen=True, tag=True):
    """A line lost its end to a gap, a map load or a restart and was dropped."""

    dropped_bytes: int


class Late(msgspec.Struct, frozen=True, tag=True):
    """The post is of a load or process that is over and was not read; some of its bytes may never have been seen."""

    dropped_bytes: int


class Oversized(msgspec.Struct, frozen=True, tag=True):
    """So many of these lines were cut at MAX_LINE_BYTES."""

    lines: int


class WrongLength(msgspec.Struct, frozen=True, tag=True):
    """The offsets promised another number of bytes than came; the body was believed."""

    promised_bytes: int
    received_bytes: int


Notice = Gap | Restarted | MapLoad | Unfinished | Late | Oversized | WrongLength


class Taken(msgspec.Struct, frozen=True):
    """The new lines of a post, without line ends, and what a reader must know before them."""

    lines: list[bytes]
    notices: tuple[Notice, ...] = ()


class LineSplitter(msgspec.Struct):
    """Bytes in any pieces to lines: split at LF only, one CR before it dropped, empty lines dropped."""

    tail: bytes = b""
    is_skipping: bool = False
    oversized: int = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that end in this chunk; an unended line waits in `tail`."""
        if self.is_skipping:
            end = chunk.find(b"\n")
            if end < 0:
                return []
            self.is_skipping = False
            chunk = chunk[end + 1 :]
        tail = self.tail
        lines = chunk.split(b"\n")
        if tail:
            lines[0] = tail + lines[0]
        self.tail = lines.pop()
        if len(tail) + len(chunk) > MAX_LINE_BYTES:
            self._shorten(lines)
        if b"\r" in chunk or tail.endswith(b"\r"):
            lines = [line.removesuffix(b"\r") for line in lines]
        return list(filter(None, lines))

    def finish(self) -> list[bytes]:
        """The last line of a file that ends without a line end."""
        return self.feed(b"\n")

    def drop_unfinished(self) -> int:
        """Forget the unended line; answers how many of its bytes were waiting."""
        dropped = len(self.tail)
        self.tail = b""
        self.is_skipping = False
        return dropped

    def _shorten(self, lines: list[bytes]) -> None:
        """Cut long lines; an unended long line is given out now and its rest skipped, however the chunks fall."""
        for index, line in enumerate(lines):
            if len(line) > MAX_LINE_BYTES:
                lines[index] = line[:MAX_LINE_BYTES]
                self.oversized += 1
        if len(self.tail) > MAX_LINE_BYTES:
            lines.append(self.tail[:MAX_LINE_BYTES])
            self.oversized += 1
            self.tail = b""
            self.is_skipping = True


class LogCursor(msgspec.Struct):
    """How far one server's log was read. Can be encoded between any two posts and goes on where it was."""

    load_number: int = 1
    end: int = 0
    instance_token: str | None = None
    game_map: str | None = None
    load_sent_ms: int | None = None
    last_sent_ms: int = 0
    previous_token: str | None = None
    opening: list[int] = msgspec.field(default_factory=list)
    head: bytes = b""
    is_opening: bool = True
    splitter: LineSplitter = msgspec.field(default_factory=LineSplitter)

    def take(self, post: LogPost) -> Taken:
        """Read a post: its new lines, after the notices that hold for them."""
        notices: list[Notice] = []
        begin, body = post.begin, post.body
        if begin is not None and post.end is not None and post.end - begin != len(body):
            notices.append(WrongLength(post.end - begin, len(body)))
        if begin == self.end and begin and body and post.instance_token == self.instance_token:
            self.end += len(body)
            fresh = body
        else:
            placed = self._place(post, notices)
            if placed is None:
                return Taken([], tuple(notices))
            fresh = placed
        sent_ms = post.sent_ms
        if sent_ms is not None:
            self.last_sent_ms = sent_ms
            if self.load_sent_ms is None or sent_ms < self.load_sent_ms:
                self.load_sent_ms = sent_ms
        return self._split(fresh, notices)

    def _split(self, fresh: bytes, notices: list[Notice]) -> Taken:
        splitter = self.splitter
        oversized = splitter.oversized
        lines = splitter.feed(fresh)
        if splitter.oversized != oversized:
            notices.append(Oversized(splitter.oversized - oversized))
        if self.is_opening:
            self.opening.extend(map(crc32, lines[: OPENING_LINES - len(self.opening)]))
            self.is_opening = len(self.opening) < OPENING_LINES
        return Taken(lines, tuple(notices))

    def _place(self, post: LogPost, notices: list[Notice]) -> bytes | None:
        """The bytes of a post that were not seen yet; None when it is empty or of a load that is over."""
        if not self._meet(post, notices):
            return None
        begin, body = post.begin, post.body
        if not body:
            return None
        if begin is None:
            return body
        if begin != self.end and not (begin == 0 and self._repeats_opening(body)):
            if self._is_late(post):
                notices.append(Late(len(body)))
                return None
            if begin == 0 or self._is_other_map(post.game_map):
                self._begin_load(notices)
                notices.append(MapLoad(self.load_number, post.game_map))
        if self.game_map is None:
            self.game_map = post.game_map
        repeated = self.end - begin
        if repeated < 0:
            self._drop_unfinished(notices)
            notices.append(Gap(-repeated))
            self.is_opening = False
            repeated = 0
        self.end = max(self.end, begin + len(body))
        if begin <= len(self.head) < HEAD_BYTES:
            self.head += body[len(self.head) - begin : HEAD_BYTES - begin]
        return body[repeated:]

    def _meet(self, post: LogPost, notices: list[Notice]) -> bool:
        """Know the process that speaks; False when it is one that was already replaced."""
        token = post.instance_token
        if token is None or token == self.instance_token:
            return True
        if token == self.previous_token:
            notices.append(Late(len(post.body)))
            return False
        if self.instance_token is not None:
            self._begin_load(notices)
            self.previous_token = self.instance_token
            notices.append(Restarted(token))
        self.instance_token = token
        return True

    def _begin_load(self, notices: list[Notice]) -> None:
        self._drop_unfinished(notices)
        self.load_number += 1
        self.end = 0
        self.game_map = None
        self.load_sent_ms = None
        self.opening = []
        self.head = b""
        self.is_opening = True

    def _drop_unfinished(self, notices: list[Notice]) -> None:
        dropped = self.splitter.drop_unfinished()
        if dropped:
            notices.append(Unfinished(dropped))

    def _repeats_opening(self, body: bytes) -> bool:
        """True when the post, from offset 0, is the present load again and not the start of a new one."""
        if not (self.opening or self.is_opening):
            return False  # the start of this load was never seen; far more often than a resend this is a new load
        shared = min(len(self.head), len(body))
        if body[:shared] != self.head[:shared]:
            return False
        marks = list(map(crc32, LineSplitter().feed(body)[: len(self.opening)]))
        return marks == self.opening[: len(marks)]

    def _is_late(self, post: LogPost) -> bool:
        """True when the server sent the post before the present load began: it was held up on its way here."""
        if post.sent_ms is None or self.load_sent_ms is None:
            return False
        return post.sent_ms < self.load_sent_ms and self.last_sent_ms - post.sent_ms <= LATE_MS

    def _is_other_map(self, game_map: str | None) -> bool:
        return game_map is not None and self.game_map is not None and game_map != self.game_map


def read_post(headers: Mapping[str, str], body: bytes, *, received_ms: int) -> LogPost:
    """A post from its headers, in any case; a header that makes no sense counts as missing."""
    given = {name.lower(): value.strip() for name, value in headers.items()}
    return LogPost(
        body=body,
        received_ms=received_ms,
        begin=_number(given.get("x-logbytes-beginoffset")),
        end=_number(given.get("x-logbytes-endoffset")),
        instance_token=_word(given.get("x-server-instance-token")),
        game_map=_word(given.get("x-game-map")),
        sent_ms=parse_stamp(given.get("x-timestamp", "")),
    )


def lines_of(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The lines of a log file, read in any pieces; its last line needs no line end."""
    splitter = LineSplitter()
    for chunk in chunks:
        yield from splitter.feed(chunk)
    yield from splitter.finish()


def _number(text: str | None) -> int | None:
    if text is None or len(text) > MAX_OFFSET_DIGITS or not (text.isascii() and text.isdigit()):
        return None
    return int(text)


def _word(text: str | None) -> str | None:
    return text[:MAX_HEADER_CHARS] if text else None
