"""Implement the Source RCON protocol for client and server, without I/O.

A client sends a password first, then commands, which are answered in order. Older engines split a long answer, CS2
sends one large packet, and neither marks the end: so each command is followed by an empty packet with its own id, which
the server mirrors after the answer. A packet for a later command also ends the earlier answers.
ValueError means incorrect use by the caller; RconProtocolError means invalid bytes from the peer and ends the stream.
Connecting, timeouts and retries are the caller's responsibility.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Iterator, Sequence
from enum import StrEnum

import msgspec

RESPONSE_VALUE = 0
"""Server: part of an answer. Client: the empty packet to be mirrored."""

EXEC_COMMAND = 2
"""Client: run a command."""

AUTH_RESPONSE = 2
"""Server: the result of authentication. The same number as EXEC_COMMAND, distinguished by direction."""

AUTH = 3
"""Client: authenticate with a password."""

REFUSED_ID = -1
"""The id of an AUTH_RESPONSE that refuses the password."""

MIRROR_END = b"\x00\x01\x00\x00"
"""The body a server sends after the mirrored packet."""

MIN_SIZE = 10
"""The size field of an empty packet, which counts id, type and two NULs."""

MAX_RESPONSE_SIZE = 8 * 1024 * 1024
"""Largest answer accepted. CS2 sends one packet (cvarlist: hundreds of KB); no game server sends a larger one."""

MAX_REQUEST_SIZE = 4096
"""Largest request accepted: the classic packet limit, low because clients send before they authenticate."""

PASSWORD_VARIABLE = "MATCHPOD_RCON_PASSWORD"
"""Environment variable of a game server: its RCON password. Other users of the machine do not see it there."""

MAX_COMMAND_BYTES = 499
"""Most bytes of a command with its arguments. Source truncates it at 512; send several commands instead."""

MAX_OUTSTANDING = 256
"""Maximum number of unanswered commands; a server this far behind is stuck."""

_MAX_ID = 2**31 - 1
_HEADER = struct.Struct("<iii")
_SIZE = struct.Struct("<i")
_NULS = b"\x00\x00"


class RconProtocolError(Exception):
    """The peer sent invalid data; the rest of the stream cannot be read."""


class Frame(msgspec.Struct, frozen=True):
    """One packet. The type is a plain int, because a peer may send any number."""

    id: int
    type: int
    body: bytes = b""


def encode_frame(frame: Frame) -> bytes:
    """Encode a packet."""
    return _HEADER.pack(len(frame.body) + MIN_SIZE, frame.id, frame.type) + frame.body + _NULS


class FrameReader:
    """Splits a byte stream into packets."""

    def __init__(self, max_size: int) -> None:
        self._max_size = max_size
        self._buffer = bytearray()
        self._fault: str | None = None

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Append bytes and iterate over the packets they complete; the next call yields packets not yet consumed."""
        if self._fault is None:
            self._buffer += data
        return self._frames()

    def fail(self, fault: str) -> None:
        """Stop reading: from now on, iterating raises RconProtocolError with this fault."""
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
            self.fail(f"packet size {size} is not between {MIN_SIZE} and {self._max_size}")
        if self._fault is not None:
            raise RconProtocolError(self._fault)
        return None


class ClientState(StrEnum):
    """The authentication state of a client."""

    NEW = "new"
    AUTHENTICATING = "authenticating"
    READY = "ready"
    REFUSED = "refused"


class _AuthStep(StrEnum):
    PASSWORD_SENT = "password_sent"
    ACCEPTED = "accepted"
    REFUSED = "refused"


# A transition that is not listed is ignored if the server causes it, and a ValueError if the caller does.
_CLIENT_TRANSITIONS = {
    (ClientState.NEW, _AuthStep.PASSWORD_SENT): ClientState.AUTHENTICATING,
    (ClientState.AUTHENTICATING, _AuthStep.ACCEPTED): ClientState.READY,
    (ClientState.AUTHENTICATING, _AuthStep.REFUSED): ClientState.REFUSED,
    # Changing rcon_password ends sessions that used the old password.
    (ClientState.READY, _AuthStep.REFUSED): ClientState.REFUSED,
}


class AuthAccepted(msgspec.Struct, frozen=True):
    """The password was accepted; commands may follow."""


class AuthRefused(msgspec.Struct, frozen=True):
    """The password is wrong or was changed. Open commands stay unanswered; further attempts risk a ban."""


class Answer(msgspec.Struct, frozen=True):
    """The server's complete answer to a command."""

    command_id: int
    text: str


class Request(msgspec.Struct, frozen=True):
    """A command to send: the id of its answer, and its bytes."""

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
        # Decoded as a whole, because a character may be split between packets.
        return Answer(self.command_id, self.parts.decode("utf-8", errors="replace"))


class ClientConnection:
    """The client side. With `mirrors=False`, for servers that do not mirror, an answer is one packet."""

    def __init__(self, *, mirrors: bool = True) -> None:
        self._mirrors = mirrors
        self._reader = FrameReader(MAX_RESPONSE_SIZE)
        self.state = ClientState.NEW
        self._last_id = 0
        self._auth_id = 0
        self._open: deque[_OpenCommand] = deque()

    @property
    def outstanding(self) -> tuple[int, ...]:
        """Ids of the unanswered commands, oldest first."""
        return tuple(command.command_id for command in self._open)

    def authenticate(self, password: str) -> bytes:
        """Return the bytes that send the password, once per connection."""
        body = _encode_line(password)
        if not self._advance(_AuthStep.PASSWORD_SENT):
            raise ValueError("a password was already sent on this connection")
        self._auth_id = self._new_id()
        return encode_frame(Frame(self._auth_id, AUTH, body))

    def command(self, text: str) -> Request:
        """Return a command to send; earlier commands may still be unanswered."""
        (request,) = self.commands((text,))
        return request

    def commands(self, texts: Sequence[str]) -> list[Request]:
        """Return commands to send; ValueError if one of them cannot be sent, and then none is."""
        bodies = [_encode_line(text) for text in texts]
        if self.state is not ClientState.READY:
            raise ValueError("cannot send a command before the password was accepted")
        if len(self._open) + len(bodies) > MAX_OUTSTANDING:
            raise ValueError(f"{len(self._open)} commands are unanswered, at most {MAX_OUTSTANDING} may be")
        return [self._request(body) for body in bodies]

    def _request(self, body: bytes) -> Request:
        command_id = self._new_id()
        data = encode_frame(Frame(command_id, EXEC_COMMAND, body))
        mirror_id = None
        if self._mirrors:
            mirror_id = self._new_id()
            data += encode_frame(Frame(mirror_id, RESPONSE_VALUE))
        self._open.append(_OpenCommand(command_id, mirror_id))
        return Request(command_id, data)

    def receive(self, data: bytes) -> Iterator[ClientEvent]:
        """Append bytes and iterate over all their events; raise RconProtocolError if they are invalid."""
        return self._events(self._reader.feed(data))

    def _events(self, frames: Iterator[Frame]) -> Iterator[ClientEvent]:
        for frame in frames:
            if frame.type == AUTH_RESPONSE:
                yield from self._on_auth_response(frame)
            elif frame.type == RESPONSE_VALUE:
                yield from self._on_value(frame)

    def _on_auth_response(self, frame: Frame) -> Iterator[ClientEvent]:
        if frame.id == REFUSED_ID:
            if self._advance(_AuthStep.REFUSED):
                self._open.clear()
                yield AuthRefused()
        elif frame.id == self._auth_id and self._advance(_AuthStep.ACCEPTED):
            yield AuthAccepted()

    def _on_value(self, frame: Frame) -> Iterator[ClientEvent]:
        # Ignore other ids: the empty packets before an auth response and after a mirror, and abandoned answers.
        if not any(frame.id in (command.command_id, command.mirror_id) for command in self._open):
            return
        while frame.id not in (self._open[0].command_id, self._open[0].mirror_id):
            yield self._open.popleft().answer()
        current = self._open[0]
        if frame.id == current.command_id:
            if len(current.parts) + len(frame.body) > MAX_RESPONSE_SIZE:
                self._reader.fail(f"an answer is longer than {MAX_RESPONSE_SIZE} bytes")
                return
            current.parts += frame.body
        if frame.id == current.mirror_id or current.mirror_id is None:
            yield self._open.popleft().answer()

    def _advance(self, step: _AuthStep) -> bool:
        after = _CLIENT_TRANSITIONS.get((self.state, step))
        if after is None:
            return False
        self.state = after
        return True

    def _new_id(self) -> int:
        self._last_id = self._last_id % _MAX_ID + 1
        return self._last_id


class AuthAttempt(msgspec.Struct, frozen=True):
    """A client sent a password: answer with `accept` or `refuse`."""

    id: int
    password: str


class CommandReceived(msgspec.Struct, frozen=True):
    """An authenticated client sent a command."""

    id: int
    text: str


class MirrorRequested(msgspec.Struct, frozen=True):
    """The client marks the end of its command: answer with `mirror`, or do not answer."""

    id: int


class NotAuthenticated(msgspec.Struct, frozen=True):
    """The client sent something before authenticating: answer with `deny`, then close."""

    id: int


ServerEvent = AuthAttempt | CommandReceived | MirrorRequested | NotAuthenticated


class ServerConnection:
    """The server side, for a simulated server."""

    def __init__(self) -> None:
        self._reader = FrameReader(MAX_REQUEST_SIZE)
        self.is_authenticated = False

    def receive(self, data: bytes) -> Iterator[ServerEvent]:
        """Append bytes and iterate over the client's requests; raise RconProtocolError if they are invalid.

        Handle each event before getting the next: a chunk may contain both the password and a command.
        """
        return self._events(self._reader.feed(data))

    def _events(self, frames: Iterator[Frame]) -> Iterator[ServerEvent]:
        for frame in frames:
            if frame.type == AUTH:
                yield AuthAttempt(frame.id, _decode(frame.body))
            elif not self.is_authenticated:
                yield NotAuthenticated(frame.id)
            elif frame.type == EXEC_COMMAND:
                yield CommandReceived(frame.id, _decode(frame.body))
            elif frame.type == RESPONSE_VALUE:
                yield MirrorRequested(frame.id)

    def accept(self, attempt_id: int) -> bytes:
        """Accept the password: an empty packet, then the auth response, like a game server."""
        self.is_authenticated = True
        return encode_frame(Frame(attempt_id, RESPONSE_VALUE)) + encode_frame(Frame(attempt_id, AUTH_RESPONSE))

    def refuse(self, attempt_id: int) -> bytes:
        """Refuse the password; an earlier authentication becomes invalid, too."""
        return encode_frame(Frame(attempt_id, RESPONSE_VALUE)) + self.deny()

    def deny(self) -> bytes:
        """Return only the refusal, for a command before authentication or after a password change."""
        self.is_authenticated = False
        return encode_frame(Frame(REFUSED_ID, AUTH_RESPONSE))

    def answer(self, command_id: int, text: str, *, split_at: int | None = None) -> bytes:
        """Return the answer to a command: one packet as in CS2, or parts of `split_at` bytes as in older engines."""
        body = text.encode("utf-8", errors="replace")
        step = split_at or max(len(body), 1)
        parts = [body[start : start + step] for start in range(0, len(body), step)] or [b""]
        return b"".join(encode_frame(Frame(command_id, RESPONSE_VALUE, part)) for part in parts)

    def mirror(self, mirror_id: int) -> bytes:
        """Return the mirrored empty packet and the packet that always follows it."""
        mirrored = encode_frame(Frame(mirror_id, RESPONSE_VALUE))
        return mirrored + encode_frame(Frame(mirror_id, RESPONSE_VALUE, MIRROR_END))


def _without_terminators(payload: bytes) -> bytes:
    # Some servers omit one or both of the NULs; the bytes in their place belong to the body.
    if payload.endswith(_NULS):
        return payload[:-2]
    return payload.removesuffix(b"\x00")


def _encode_line(text: str) -> bytes:
    # A newline would start a second command. The message omits the text, which may be a secret.
    if any(separator in text for separator in "\x00\n\r"):
        raise ValueError("a command must be one line without NUL")
    body = text.encode("utf-8")
    if len(body) > MAX_COMMAND_BYTES:
        raise ValueError(f"a command may have at most {MAX_COMMAND_BYTES} bytes")
    return body


def _decode(body: bytes) -> str:
    return body.decode("utf-8", errors="replace")
