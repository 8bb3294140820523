"""What do the bytes of an HTTP/1.1 answer say? Status and body, within limits. No I/O.

Only what a client of GET and POST needs: bodies by length, in chunks, or up to the end of the connection. Whatever
else a peer may send is a ResponseError.
"""

from __future__ import annotations

import re

MAX_HEAD_BYTES = 16 * 1024
"""Status line and headers of an answer; our peers send a few hundred bytes."""

MAX_BODY_BYTES = 2 * 1024 * 1024
"""A match configuration has a few KB; an answer beyond this is cut off, not read."""

MAX_CHUNK_LINE_BYTES = 1024

_STATUS = re.compile(rb"HTTP/1\.([01]) ([1-9]\d\d)(?: [^\r\n]*)?", re.ASCII)
_LENGTH = re.compile(rb"\d{1,10}", re.ASCII)
_CHUNK = re.compile(rb"([0-9A-Fa-f]{1,8})[ \t]*(?:;.*)?", re.DOTALL)
_NO_BODY = (204, 205, 304)


class ResponseError(Exception):
    """The peer sent what is no answer, or one larger than we read."""


class ResponseReader:
    """Reads one answer from bytes in any pieces."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._body = bytearray()
        self._has_head = False
        self._length: int | None = None
        self._is_chunked = False
        self._chunk_left: int | None = None
        self.status = 0
        self.is_done = False
        self.is_reusable = False
        """True when the connection can carry another request after this answer."""

    @property
    def has_begun(self) -> bool:
        """True when anything was received."""
        return self._has_head or bool(self._buffer)

    @property
    def body(self) -> bytes:
        """The body as far as it came."""
        return bytes(self._body)

    def feed(self, more: bytes) -> None:
        """Take bytes; raises ResponseError where they go wrong."""
        self._buffer += more
        while not self._has_head:
            end = self._buffer.find(b"\r\n\r\n")
            if end > MAX_HEAD_BYTES or (end < 0 and len(self._buffer) > MAX_HEAD_BYTES):
                raise ResponseError("the headers of the answer are too long")
            if end < 0:
                return
            head = bytes(self._buffer[:end])
            del self._buffer[: end + 4]
            self._read_head(head)
        if self._is_chunked:
            self._read_chunks()
        else:
            self._read_plain()
        if self.is_done and self._buffer:
            self.is_reusable = False  # nobody asked for more

    def finish(self) -> None:
        """The connection ended; raises ResponseError when the answer did not."""
        if self.is_done:
            return
        if not self._has_head or self._is_chunked or self._length is not None:
            raise ResponseError("the connection ended before the answer did")
        self.is_done = True

    def _read_head(self, head: bytes) -> None:
        first, *lines = head.split(b"\r\n")
        found = _STATUS.fullmatch(first)
        if found is None:
            raise ResponseError("the answer is not HTTP")
        self.status = int(found[2])
        if 100 <= self.status < 200:
            return  # the answer itself follows
        self._has_head = True
        headers: dict[bytes, bytes] = {}
        for line in lines:
            name, _, value = line.partition(b":")
            headers[name.strip().lower()] = value.strip()
        keeps_open = b"keep-alive" if found[1] == b"0" else b""
        connection = headers.get(b"connection", b"").lower()
        self.is_reusable = connection != b"close" and keeps_open in connection
        self._choose_body(headers)

    def _choose_body(self, headers: dict[bytes, bytes]) -> None:
        length = headers.get(b"content-length")
        if self.status in _NO_BODY:
            self._length = 0
        elif b"chunked" in headers.get(b"transfer-encoding", b"").lower():
            self._is_chunked = True
        elif length is None:
            self.is_reusable = False
        elif _LENGTH.fullmatch(length):
            self._length = int(length)
            self._limit(self._length)
        else:
            raise ResponseError("the length of the answer is no number")

    def _read_plain(self) -> None:
        wanted = len(self._buffer) if self._length is None else self._length - len(self._body)
        self._take(wanted)
        self.is_done = self._length is not None and len(self._body) == self._length

    def _read_chunks(self) -> None:
        while not self.is_done:
            if self._chunk_left is not None:
                self._chunk_left -= self._take(self._chunk_left)
                if self._chunk_left or len(self._buffer) < 2:
                    return
                del self._buffer[:2]  # the line end after a chunk
                self._chunk_left = None
            line = self._take_line()
            if line is None:
                return
            found = _CHUNK.fullmatch(line)
            if found is None:
                raise ResponseError("a chunk of the answer has no size")
            self._chunk_left = int(found[1], 16)
            self._limit(len(self._body) + self._chunk_left)
            if self._chunk_left == 0:
                # Trailers nobody sends would be left over, and then the connection is not used again.
                self.is_reusable = self.is_reusable and self._buffer == b"\r\n"
                self._buffer.clear()
                self.is_done = True

    def _take_line(self) -> bytes | None:
        end = self._buffer.find(b"\r\n")
        if end > MAX_CHUNK_LINE_BYTES or (end < 0 and len(self._buffer) > MAX_CHUNK_LINE_BYTES):
            raise ResponseError("a chunk of the answer has no size")
        if end < 0:
            return None
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 2]
        return line

    def _take(self, wanted: int) -> int:
        taken = min(wanted, len(self._buffer))
        self._body += self._buffer[:taken]
        del self._buffer[:taken]
        self._limit(len(self._body))
        return taken

    def _limit(self, size: int) -> None:
        if size > MAX_BODY_BYTES:
            raise ResponseError("the answer is too long")
