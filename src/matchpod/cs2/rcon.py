"""What do the bytes of a Source RCON connection say, and which bytes say what we mean? No I/O, both sides.

The rules: a password first, then commands; commands run and are answered in order. A classic engine splits a long
answer, CS2 sends one large packet, neither marks the end: so each command is followed by an empty packet with an id
of its own, which the server mirrors when it gets there. A packet for a later command ends the answers before it.
Two kinds of error: ValueError is our mistake, RconProtocolError is the peer's and ends the stream.
Connecting, timeouts and retries belong to the caller.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Iterator
from enum import StrEnum

import msgspec

RESPONSE_VALUE = 0
"""Server: a part of an answer. Client: the empty packet the server mirrors."""

EXEC_COMMAND = 2
"""Client: run this."""

AUTH_RESPONSE = 2
"""Server: the verdict on a password. The same number as EXEC_COMMAND, told apart by direction."""

AUTH = 3
"""Client: a password."""

REFUSED_ID = -1
"""The id of an AUTH_RESPONSE that says no."""

MIRROR_END = b"\x00\x01\x00\x00"
"""The body a server sends after the mirrored packet."""

MIN_SIZE = 10
"""What the size field of an empty packet counts: id, type and two NULs."""

MAX_RESPONSE_SIZE = 8 * 1024 * 1024
"""CS2 sends whole answers as one packet (cvarlist: hundreds of KB); past this the peer is no game server."""

MAX_REQUEST_SIZE = 4096
"""The classic packet limit; a server needs no more, and strangers can reach it before they give a password."""

MAX_COMMAND_BYTES = 499
"""Source cuts a command at 512 bytes with its arguments; longer work is sent as several commands."""

MAX_OUTSTANDING = 256
"""Commands without an answer. A server this far behind is stuck, and more commands would not help."""

_MAX_ID = 2**31 - 1
_HEADER = struct.Struct("<iii")
_SIZE = struct.Struct("<i")
_NULS = b"\x00\x00"


class RconProtocolError(Exception):
    """The peer sent what RCON cannot mean; nothing after it on this stream can be read."""


class Frame(msgspec.Struct, frozen=True):
    """One packet. The type is a plain number, as a peer may send any."""

    id: int
    type: int
    body: bytes = b""


def encode_frame(frame: Frame) -> bytes:
    """The bytes of a packet."""
    return _HEADER.pack(len(frame.body) + MIN_SIZE, frame.id, frame.type) + frame.body + _NULS


class FrameReader:
    """Cuts a byte stream into packets, whatever its chunks."""

    def __init__(self, max_size: int) -> None:
        self._max_size = max_size
        self._buffer = bytearray()
        self._fault: str | None = None

    @property
    def held_bytes(self) -> int:
        """Bytes of an unfinished packet; never more than one packet of the largest size."""
        return len(self._buffer)

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Take bytes and iterate over the packets they complete; packets not taken come with the next call."""
        if self._fault is None:
            self._buffer += data
        return self._frames()

    def give_up(self, fault: str) -> None:
        """Read no more: from now on every packet asked for is an RconProtocolError with this fault."""
        self._fault = fault
        self._buffer.clear()

    def _frames(self) -> Iterator[Frame]:
        while (size := self._next_size()) is not None:
            end = _SIZE.size + size
            if len(self._buffer) < end:
                return
            _, frame_id, frame_type = _HEADER.unpack_from(self._buffer)
            body = _without_terminators(bytes(self._buffer[_HEADER.size : end]))
            del self._buffer[:end]
            yield Frame(frame_id, frame_type, body)

    def _next_size(self) -> int | None:
        if self._fault is None and len(self._buffer) >= _SIZE.size:
            size: int = _SIZE.unpack_from(self._buffer)[0]
            if MIN_SIZE <= size <= self._max_size:
                return size
            self.give_up(f"packet size {size} is not between {MIN_SIZE} and {self._max_size}")
        if self._fault is not None:
            raise RconProtocolError(self._fault)
        return None


class ClientState(StrEnum):
    """Where a client stands."""

    NEW = "new"
    AUTHENTICATING = "authenticating"
    READY = "ready"
    REFUSED = "refused"


class _Step(StrEnum):
    PASSWORD_SENT = "password_sent"
    ACCEPTED = "accepted"
    REFUSED = "refused"


# A step that is not listed changes nothing when the server takes it, and is a ValueError when we do.
_CLIENT_STEPS = {
    (ClientState.NEW, _Step.PASSWORD_SENT): ClientState.AUTHENTICATING,
    (ClientState.AUTHENTICATING, _Step.ACCEPTED): ClientState.READY,
    (ClientState.AUTHENTICATING, _Step.REFUSED): ClientState.REFUSED,
    # Changing rcon_password ends the sessions that used the old one.
    (ClientState.READY, _Step.REFUSED): ClientState.REFUSED,
}


class AuthAccepted(msgspec.Struct, frozen=True):
    """The password was right; commands may follow."""


class AuthRefused(msgspec.Struct, frozen=True):
    """The password was wrong, or is no longer right. Open commands get no answer; trying again risks a ban."""


class Answer(msgspec.Struct, frozen=True):
    """Everything the server said to one command."""

    command_id: int
    text: str


class Request(msgspec.Struct, frozen=True):
    """A command on its way: the id its answer will carry, and the bytes to send."""

    command_id: int
    data: bytes


ClientEvent = AuthAccepted | AuthRefused | Answer


class _OpenCommand:
    """A command whose answer is being collected."""

    __slots__ = ("command_id", "mirror_id", "parts")

    def __init__(self, command_id: int, mirror_id: int | None) -> None:
        self.command_id = command_id
        self.mirror_id = mirror_id
        self.parts = bytearray()

    def answer(self) -> Answer:
        # Decoded once and whole: a split may fall inside a character.
        return Answer(self.command_id, self.parts.decode("utf-8", errors="replace"))


class ClientConnection:
    """The side that sends commands. With `mirrors=False` the first packet of an answer is all of it."""

    def __init__(self, *, mirrors: bool = True) -> None:
        self._mirrors = mirrors
        self._reader = FrameReader(MAX_RESPONSE_SIZE)
        self._state = ClientState.NEW
        self._last_id = 0
        self._auth_id = 0
        self._open: deque[_OpenCommand] = deque()

    @property
    def state(self) -> ClientState:
        """Where this client stands."""
        return self._state

    @property
    def outstanding(self) -> tuple[int, ...]:
        """Ids of the commands without an answer, oldest first."""
        return tuple(command.command_id for command in self._open)

    def authenticate(self, password: str) -> bytes:
        """The bytes that offer the password; once a connection."""
        body = _encode_line(password)
        if not self._take(_Step.PASSWORD_SENT):
            raise ValueError("a password was already sent on this connection")
        self._auth_id = self._new_id()
        return encode_frame(Frame(self._auth_id, AUTH, body))

    def command(self, text: str) -> Request:
        """One command to send; others may still be without an answer."""
        body = _encode_line(text)
        if self._state is not ClientState.READY:
            raise ValueError("commands need an accepted password")
        if len(self._open) >= MAX_OUTSTANDING:
            raise ValueError(f"{MAX_OUTSTANDING} commands are without an answer")
        command_id = self._new_id()
        data = encode_frame(Frame(command_id, EXEC_COMMAND, body))
        mirror_id = None
        if self._mirrors:
            mirror_id = self._new_id()
            data += encode_frame(Frame(mirror_id, RESPONSE_VALUE))
        self._open.append(_OpenCommand(command_id, mirror_id))
        return Request(command_id, data)

    def receive(self, data: bytes) -> Iterator[ClientEvent]:
        """Take bytes and iterate, to the end, over what they say; raises RconProtocolError where they go wrong."""
        return self._events(self._reader.feed(data))

    def _events(self, frames: Iterator[Frame]) -> Iterator[ClientEvent]:
        for frame in frames:
            if frame.type == AUTH_RESPONSE:
                yield from self._on_verdict(frame)
            elif frame.type == RESPONSE_VALUE:
                yield from self._on_value(frame)

    def _on_verdict(self, frame: Frame) -> Iterator[ClientEvent]:
        if frame.id == REFUSED_ID:
            if self._take(_Step.REFUSED):
                self._open.clear()
                yield AuthRefused()
        elif frame.id == self._auth_id and self._take(_Step.ACCEPTED):
            yield AuthAccepted()

    def _on_value(self, frame: Frame) -> Iterator[ClientEvent]:
        # Ids nobody waits for: the empty packet before a verdict, the one after a mirror, answers given up.
        if not any(frame.id in (command.command_id, command.mirror_id) for command in self._open):
            return
        while frame.id not in (self._open[0].command_id, self._open[0].mirror_id):
            yield self._open.popleft().answer()
        current = self._open[0]
        if frame.id == current.command_id:
            if len(current.parts) + len(frame.body) > MAX_RESPONSE_SIZE:
                self._reader.give_up(f"an answer is longer than {MAX_RESPONSE_SIZE} bytes")
                return
            current.parts += frame.body
        if frame.id == current.mirror_id or current.mirror_id is None:
            yield self._open.popleft().answer()

    def _take(self, step: _Step) -> bool:
        after = _CLIENT_STEPS.get((self._state, step))
        if after is None:
            return False
        self._state = after
        return True

    def _new_id(self) -> int:
        self._last_id = self._last_id % _MAX_ID + 1
        return self._last_id


class AuthAttempt(msgspec.Struct, frozen=True):
    """A client offers a password: answer with `accept` or `refuse`."""

    id: int
    password: str


class CommandReceived(msgspec.Struct, frozen=True):
    """An authenticated client wants a command run."""

    id: int
    text: str


class MirrorRequested(msgspec.Struct, frozen=True):
    """The client marks the end of its command: answer with `mirror`, or not at all."""

    id: int


class NotAuthenticated(msgspec.Struct, frozen=True):
    """Something other than a password came first: answer with `deny`, then close."""

    id: int


ServerEvent = AuthAttempt | CommandReceived | MirrorRequested | NotAuthenticated


class ServerConnection:
    """The side that runs commands, for a simulated server."""

    def __init__(self) -> None:
        self._reader = FrameReader(MAX_REQUEST_SIZE)
        self._is_authenticated = False

    @property
    def is_authenticated(self) -> bool:
        """True after `accept`."""
        return self._is_authenticated

    def receive(self, data: bytes) -> Iterator[ServerEvent]:
        """Take bytes and iterate over what the client asks; raises RconProtocolError where they go wrong.

        Handle each event before taking the next: a command may come in the chunk of its password.
        """
        return self._events(self._reader.feed(data))

    def _events(self, frames: Iterator[Frame]) -> Iterator[ServerEvent]:
        for frame in frames:
            if frame.type == AUTH:
                yield AuthAttempt(frame.id, _decode(frame.body))
            elif not self._is_authenticated:
                yield NotAuthenticated(frame.id)
            elif frame.type == EXEC_COMMAND:
                yield CommandReceived(frame.id, _decode(frame.body))
            elif frame.type == RESPONSE_VALUE:
                yield MirrorRequested(frame.id)

    def accept(self, attempt_id: int) -> bytes:
        """Take the password: an empty packet, then the verdict, as game servers do."""
        self._is_authenticated = True
        return encode_frame(Frame(attempt_id, RESPONSE_VALUE)) + encode_frame(Frame(attempt_id, AUTH_RESPONSE))

    def refuse(self, attempt_id: int) -> bytes:
        """Refuse the password; an earlier one no longer counts either."""
        return encode_frame(Frame(attempt_id, RESPONSE_VALUE)) + self.deny()

    def deny(self) -> bytes:
        """The verdict alone: to a command without a password, or to a session whose password was changed."""
        self._is_authenticated = False
        return encode_frame(Frame(REFUSED_ID, AUTH_RESPONSE))

    def answer(self, command_id: int, text: str, *, split_at: int | None = None) -> bytes:
        """The answer to a command: one packet of any size as in CS2, or parts of `split_at` bytes as before it."""
        body = text.encode("utf-8", errors="replace")
        step = split_at or max(len(body), 1)
        parts = [body[start : start + step] for start in range(0, len(body), step)] or [b""]
        return b"".join(encode_frame(Frame(command_id, RESPONSE_VALUE, part)) for part in parts)

    def mirror(self, mirror_id: int) -> bytes:
        """The mirrored empty packet and the one that always follows it."""
        mirrored = encode_frame(Frame(mirror_id, RESPONSE_VALUE))
        return mirrored + encode_frame(Frame(mirror_id, RESPONSE_VALUE, MIRROR_END))


def _without_terminators(payload: bytes) -> bytes:
    # Some servers forget one of the two NULs, or both; what stands in their place belongs to the body.
    if payload.endswith(_NULS):
        return payload[:-2]
    return payload.removesuffix(b"\x00")


def _encode_line(text: str) -> bytes:
    # A newline would start a second command. The text stays out of the message: it may be a secret.
    if any(separator in text for separator in "\x00\n\r"):
        raise ValueError("a command is one line without NUL")
    body = text.encode("utf-8")
    if len(body) > MAX_COMMAND_BYTES:
        raise ValueError(f"a command has at most {MAX_COMMAND_BYTES} bytes")
    return body


def _decode(body: bytes) -> str:
    return body.decode("utf-8", errors="replace")
