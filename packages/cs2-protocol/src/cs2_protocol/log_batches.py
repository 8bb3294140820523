"""Extract the new lines of log POSTs, each line exactly once, even if posts are repeated, split or lost.

The byte offsets of posts start at 0 with each map load; some servers send no offsets at all. A server resends a range
of bytes, possibly extended by new bytes, until the range is acknowledged. Bytes that were already read are skipped, and
missing bytes are reported. A line whose end is missing is dropped: `RoundsPlayed: 12` could have been cut to
`RoundsPlayed: 1`. `post_order` sorts posts that arrive out of order.
Three cases are not detected: repeated posts without offsets (CS:GO), a late post of an earlier map load if the post has
no time stamp, and a post of another map load if its offset happens to fit the current load.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from zlib import crc32

import msgspec

from cs2_protocol.log_clock import parse_stamp

MAX_LINE_BYTES = 16 * 1024
"""Maximum number of bytes kept of a line; it limits the size of a stored cursor. Real lines have less than 1 KiB. A
truncated line is not parsed: even if all its characters have four bytes, it exceeds the reader's `MAX_LINE_CHARS`."""

OPENING_LINES = 256
"""Number of leading lines of a map load that are compared to distinguish two loads. In a real log, 207 lines were
printed within the first second of a load. Two real loads began with 11,046 identical bytes, time stamps included, and
differed only in the bots that joined."""

CHECKSUM_BYTES = 4
"""Size in bytes of the checksum of a line. Checksums are stored as one bytes object, which needs a tenth of the memory
of integers."""

HEAD_BYTES = 64
"""Number of leading bytes of a map load that are compared if a post is shorter than one line. They cover a time stamp
and some text."""

LATE_MS = 5 * 60_000
"""Maximum age in milliseconds, relative to the last post, of a post that counts as late. A larger difference means that
the server's clock was set back."""

MAX_HEADER_CHARS = 128
"""Maximum number of characters kept of a header value. Instance tokens have 16, map names with a workshop path fewer
than 100."""

MAX_OFFSET_DIGITS = 15
"""Maximum number of digits of a byte offset: enough for a log of 1,000 terabytes."""


class LogPost(msgspec.Struct, frozen=True, kw_only=True):
    """One HTTP post of log bytes, with the values of its headers. Any header may be missing.

    `sent_ms` is the server's local time when it sent the post, read as if it were UTC.
    """

    body: bytes
    received_ms: int
    begin: int | None = None
    end: int | None = None
    instance_token: str | None = None
    game_map: str | None = None
    sent_ms: int | None = None


class Gap(msgspec.Struct, frozen=True, tag=True):
    """Bytes are missing before the new lines."""

    missing_bytes: int


class Restarted(msgspec.Struct, frozen=True, tag=True):
    """The new lines come from a new server process."""

    instance_token: str


class MapLoad(msgspec.Struct, frozen=True, tag=True):
    """A map load began: the byte offsets restarted at 0. Loads are numbered from 1.

    Offsets also restart if the log address was removed and added again. Only a real map load logs `Loading map`.
    """

    number: int
    game_map: str | None


class Unfinished(msgspec.Struct, frozen=True, tag=True):
    """A line was dropped because a gap, a map load or a restart cut off its end."""

    dropped_bytes: int


class Late(msgspec.Struct, frozen=True, tag=True):
    """The post belongs to an earlier load or process and was ignored. It may contain bytes that were never read."""

    dropped_bytes: int


class Oversized(msgspec.Struct, frozen=True, tag=True):
    """`lines` new lines were longer than MAX_LINE_BYTES and were truncated."""

    lines: int


class WrongLength(msgspec.Struct, frozen=True, tag=True):
    """The offsets do not match the length of the body. They were corrected to the length of the body."""

    promised_bytes: int
    received_bytes: int


LogNotice = Gap | Restarted | MapLoad | Unfinished | Late | Oversized | WrongLength


class NewLines(msgspec.Struct, frozen=True):
    """The new lines of a post, without line ends, and the notices that apply to them."""

    lines: list[bytes]
    notices: tuple[LogNotice, ...] = ()


class LineSplitter(msgspec.Struct):
    """Splits chunks of bytes into lines at LF only; removes one CR before each LF, and skips empty lines."""

    tail: bytes = b""
    is_skipping: bool = False
    oversized: int = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the lines that end in this chunk. A line without its end is kept until the next chunk."""
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
            self._truncate(lines)
        if b"\r" in chunk or tail.endswith(b"\r"):
            lines = [line.removesuffix(b"\r") for line in lines]
        return list(filter(None, lines))

    def finish(self) -> list[bytes]:
        """Return the last line of a file if the file does not end with a line end."""
        return self.feed(b"\n")

    def drop_unfinished(self) -> int:
        """Drop the line whose end has not arrived, and return its number of bytes."""
        dropped = len(self.tail)
        self.tail = b""
        self.is_skipping = False
        return dropped

    def _truncate(self, lines: list[bytes]) -> None:
        """Truncate long lines. A long unfinished line is added to `lines` now; its rest will be skipped."""
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
    """The position up to which one server's log was read. It can be stored after any post."""

    load_number: int = 1
    end: int = 0
    instance_token: str | None = None
    game_map: str | None = None
    load_sent_ms: int | None = None
    last_sent_ms: int = 0
    previous_token: str | None = None
    opening: bytes = b""
    """Checksums of the first lines of the current load."""
    head: bytes = b""
    is_opening: bool = True
    splitter: LineSplitter = msgspec.field(default_factory=LineSplitter)

    def read(self, post: LogPost) -> NewLines:
        """Return the new lines of a post with the notices that apply to them."""
        notices: list[LogNotice] = []
        begin, body = post.begin, post.body
        if begin is not None and post.end is not None and post.end - begin != len(body):
            notices.append(WrongLength(post.end - begin, len(body)))
        if begin == self.end and begin and body and post.instance_token == self.instance_token:
            self.end += len(body)
            fresh = body
        else:
            new_bytes = self._new_bytes(post, notices)
            if new_bytes is None:
                return NewLines([], tuple(notices))
            fresh = new_bytes
        sent_ms = post.sent_ms
        if sent_ms is not None:
            self.last_sent_ms = sent_ms
            if self.load_sent_ms is None or sent_ms < self.load_sent_ms:
                self.load_sent_ms = sent_ms
        return self._split(fresh, notices)

    def is_ahead(self, post: LogPost) -> bool:
        """True if bytes of the same load before this post were not read: they are lost, or have not arrived yet."""
        begin = post.begin
        if not begin or not post.body:
            return False
        if self._is_other_process(post):
            return post.instance_token != self.previous_token
        if begin == self.end:
            return False
        return (begin > self.end or self._is_other_map(post.game_map)) and not self._is_late(post)

    def begins_load(self, post: LogPost) -> bool:
        """True if the post is the first of a new map load, or of a new server process."""
        if post.begin != 0 or not post.body:
            return False
        if self._is_other_process(post):
            return post.instance_token != self.previous_token
        return self.end > 0 and not self._is_late(post) and not self._repeats_opening(post.body)

    def _split(self, fresh: bytes, notices: list[LogNotice]) -> NewLines:
        splitter = self.splitter
        oversized = splitter.oversized
        lines = splitter.feed(fresh)
        if splitter.oversized != oversized:
            notices.append(Oversized(splitter.oversized - oversized))
        if self.is_opening:
            self.opening += _checksums(lines[: OPENING_LINES - len(self.opening) // CHECKSUM_BYTES])
            self.is_opening = len(self.opening) < OPENING_LINES * CHECKSUM_BYTES
        return NewLines(lines, tuple(notices))

    def _new_bytes(self, post: LogPost, notices: list[LogNotice]) -> bytes | None:
        """Return the bytes of a post not read yet; None if it is empty, or from an earlier load or process."""
        if not self._check_process(post, notices):
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

    def _check_process(self, post: LogPost, notices: list[LogNotice]) -> bool:
        """Record which server process sent the post. Return False if a newer process has already sent posts."""
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

    def _begin_load(self, notices: list[LogNotice]) -> None:
        self._drop_unfinished(notices)
        self.load_number += 1
        self.end = 0
        self.game_map = None
        self.load_sent_ms = None
        self.opening = b""
        self.head = b""
        self.is_opening = True

    def _drop_unfinished(self, notices: list[LogNotice]) -> None:
        dropped = self.splitter.drop_unfinished()
        if dropped:
            notices.append(Unfinished(dropped))

    def _repeats_opening(self, body: bytes) -> bool:
        """True if the post, which starts at offset 0, repeats the current load instead of starting a new one."""
        if not (self.opening or self.is_opening):
            return False  # the start of the current load is unknown: a new load is far more likely than a resend
        shared = min(len(self.head), len(body))
        if body[:shared] != self.head[:shared]:
            return False
        checksums = _checksums(LineSplitter().feed(body)[: len(self.opening) // CHECKSUM_BYTES])
        return self.opening.startswith(checksums)

    def _is_late(self, post: LogPost) -> bool:
        """True if the server sent the post before the current load began, and it was delayed on the way."""
        if post.sent_ms is None or self.load_sent_ms is None:
            return False
        return post.sent_ms < self.load_sent_ms and self.last_sent_ms - post.sent_ms <= LATE_MS

    def _is_other_process(self, post: LogPost) -> bool:
        token = post.instance_token
        return token != self.instance_token and token is not None and self.instance_token is not None

    def _is_other_map(self, game_map: str | None) -> bool:
        return game_map is not None and self.game_map is not None and game_map != self.game_map


def read_post(headers: Mapping[str, str], body: bytes, *, received_ms: int) -> LogPost:
    """Build a LogPost from HTTP headers, whose names may be in any case. An invalid header counts as missing."""
    lowered = {name.lower(): value.strip() for name, value in headers.items()}
    return LogPost(
        body=body,
        received_ms=received_ms,
        begin=_offset(lowered.get("x-logbytes-beginoffset")),
        end=_offset(lowered.get("x-logbytes-endoffset")),
        instance_token=_header_text(lowered.get("x-server-instance-token")),
        game_map=_header_text(lowered.get("x-game-map")),
        sent_ms=parse_stamp(lowered.get("x-timestamp", "")),
    )


def split_lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the lines of a log file, which is passed in chunks. The last line needs no line end."""
    splitter = LineSplitter()
    for chunk in chunks:
        yield from splitter.feed(chunk)
    yield from splitter.finish()


def _checksums(lines: Iterable[bytes]) -> bytes:
    return b"".join(crc32(line).to_bytes(CHECKSUM_BYTES) for line in lines)


def _offset(text: str | None) -> int | None:
    if text is None or len(text) > MAX_OFFSET_DIGITS or not (text.isascii() and text.isdigit()):
        return None
    return int(text)


def _header_text(text: str | None) -> str | None:
    return text[:MAX_HEADER_CHARS] if text else None
