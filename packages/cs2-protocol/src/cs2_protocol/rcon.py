"""Implement the Source RCON protocol for client and server, without I/O.

A client sends a password first, then commands, which are answered in order. Older engines split a long answer into
several packets, CS2 sends one large packet, and neither marks the end of an answer. So the client sends an empty packet
with another id after each command, and the server sends it back (mirrors it) after the answer. A packet that belongs to
a later command also ends all earlier answers. The size of each answer and the rate of all packets are limited.
ValueError means incorrect use by the caller. RconProtocolError means that the peer sent invalid or too many bytes; the
rest of the stream cannot be read. Connecting, timeouts and retries are the caller's responsibility.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum

import msgspec

from cs2_protocol.rcon_frames import (
    AUTH,
    AUTH_RESPONSE,
    EXEC_COMMAND,
    MIN_SIZE,
    RESPONSE_VALUE,
    Frame,
    FrameReader,
    encode_frame,
)

REFUSED_ID = -1
"""The id of an AUTH_RESPONSE packet that rejects the password."""

MIRROR_END = b"\x00\x01\x00\x00"
"""The body of the packet that a server sends after each mirrored packet."""

MAX_ANSWER_BYTES = 256 * 1024
"""Maximum size of an answer in bytes. Most commands have a lower limit."""

MAX_UNEXPECTED_BYTES = 4096
"""Maximum body size of a packet that does not belong to an awaited answer: the original packet limit of the protocol.
The body is ignored."""

BURST_BYTES = 1024 * 1024
"""Maximum number of bytes that a server may send at once after a pause (size of the token bucket)."""

BYTES_PER_S = 256 * 1024
"""Maximum average number of bytes per second from a server. The most frequent poll gets 5 KB five times per second."""

PACKET_BYTES = 4096
"""Bytes that the rate limit counts per packet in addition to its size, because reading 256 empty packets takes more
than a millisecond."""

COMMAND_BYTES = 3 * (PACKET_BYTES + 14)
"""Bytes that a server may additionally send per command: an empty answer, the mirrored packet, and the packet after
it."""

MAX_REQUEST_SIZE = 4096
"""Maximum size of a request in bytes: the original packet limit of the protocol. A low limit matters because clients
send data before they authenticate."""

PASSWORD_VARIABLE = "MATCHPOD_RCON_PASSWORD"
"""Environment variable with the RCON password of a game server. Unlike the command line, it is hidden from other users
of the machine."""

MAX_COMMAND_BYTES = 499
"""Maximum length in bytes of a command with its arguments. The game truncates commands at 512 bytes; split a longer one
into several commands."""

MAX_OUTSTANDING = 256
"""Maximum number of unanswered commands. A server that reaches it is considered stuck."""

_MAX_ID = 2**31 - 1
_TOO_FAST = f"more than {BYTES_PER_S // 1024} KiB per second, counting {PACKET_BYTES} bytes more per packet"


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


# A transition that is not listed is ignored if the server causes it, and raises ValueError if the caller causes it.
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
    """The password is wrong or was changed.

    Commands that are still open are never answered. Further attempts may get the client banned.
    """


class Answer(msgspec.Struct, frozen=True):
    """The server's complete answer to a command."""

    command_id: int
    text: str


class Request(msgspec.Struct, frozen=True):
    """A command to send: the id of its answer, and its bytes."""

    command_id: int
    data: bytes


ClientEvent = AuthAccepted | AuthRefused | Answer


class TokenBucket:
    """Allows `per_second` tokens per second, and `burst` tokens at once after a pause."""

    __slots__ = ("_at_s", "_burst", "_per_second", "_tokens")

    def __init__(self, burst: float, per_second: float) -> None:
        self._burst = burst
        self._per_second = per_second
        self._tokens = burst
        self._at_s: float | None = None

    def spend(self, amount: float, now_s: float) -> bool:
        """Remove tokens from the bucket. If it has too few, return False and remove none."""
        if self._at_s is not None and now_s > self._at_s and self._tokens < self._burst:
            self._tokens = min(self._burst, self._tokens + (now_s - self._at_s) * self._per_second)
        self._at_s = now_s
        if amount > self._tokens:
            return False
        self._tokens -= amount
        return True

    def grant(self, amount: float, max_tokens: float) -> None:
        """Add tokens to the bucket. This may exceed `burst`, but not `max_tokens`."""
        self._tokens = max(self._tokens, min(max_tokens, self._tokens + amount))


class AnswerBudget:
    """Limits the total size of the answers to several commands. `left` is the number of bytes not yet used."""

    def __init__(self, left: int) -> None:
        self.left = left


class _OpenCommand:
    """A command whose answer is being collected."""

    __slots__ = ("_budget", "_limit", "command_id", "mirror_id", "parts")

    def __init__(self, command_id: int, mirror_id: int | None, limit: int, budget: AnswerBudget) -> None:
        self.command_id = command_id
        self.mirror_id = mirror_id
        self.parts = bytearray()
        self._limit = limit
        self._budget = budget

    @property
    def ids(self) -> tuple[int, ...]:
        """Ids of the packets sent for the command: one id, or two if the server mirrors packets."""
        return (self.command_id,) if self.mirror_id is None else (self.command_id, self.mirror_id)

    @property
    def left(self) -> int:
        """Number of bytes by which the answer may still grow."""
        return max(0, min(self._limit - len(self.parts), self._budget.left))

    def collect(self, body: bytes) -> None:
        self.parts += body
        self._budget.left -= len(body)

    def answer(self) -> Answer:
        # Decoded only when complete, because a character may be split between packets.
        return Answer(self.command_id, self.parts.decode("utf-8", errors="replace"))


class ClientConnection:
    """The client side of a connection. `limit_of` returns the maximum number of bytes in the answer to a command.

    Pass `mirrors=False` for servers that do not mirror packets. Each answer is then a single packet.
    """

    def __init__(self, limit_of: Callable[[str], int], *, mirrors: bool = True) -> None:
        self._limit_of = limit_of
        self._mirrors = mirrors
        self._reader = FrameReader(MAX_ANSWER_BYTES + MIN_SIZE)
        self._traffic = TokenBucket(BURST_BYTES, BYTES_PER_S)
        self.state = ClientState.NEW
        self._last_id = 0
        self._auth_id = 0
        self._open: list[_OpenCommand] = []
        self._by_id: dict[int, _OpenCommand] = {}
        """The open commands, by the ids of their packets."""

    @property
    def outstanding(self) -> tuple[int, ...]:
        """Ids of the unanswered commands, oldest first."""
        return tuple(command.command_id for command in self._open)

    def authenticate(self, password: str) -> bytes:
        """Return the bytes that send the password. Only one attempt per connection is allowed."""
        body = _encode_line(password)
        if not self._advance(_AuthStep.PASSWORD_SENT):
            raise ValueError("a password was already sent on this connection")
        self._auth_id = self._new_id()
        return encode_frame(Frame(self._auth_id, AUTH, body))

    def command(self, text: str) -> Request:
        """Return the packets for a command. Earlier commands may still be unanswered."""
        (request,) = self.commands((text,))
        return request

    def commands(self, texts: Sequence[str], budget: AnswerBudget | None = None) -> list[Request]:
        """Return the packets for several commands whose answers share a budget.

        Raise ValueError if any of them cannot be sent.
        """
        bodies = [_encode_line(text) for text in texts]
        if self.state is not ClientState.READY:
            raise ValueError("cannot send a command before the password was accepted")
        if len(self._open) + len(bodies) > MAX_OUTSTANDING:
            raise ValueError(f"{len(self._open)} commands are unanswered; the limit is {MAX_OUTSTANDING}")
        shared = budget or AnswerBudget(sum(map(self._limit_of, texts)))
        return [self._request(body, self._limit_of(text), shared) for body, text in zip(bodies, texts, strict=True)]

    def _request(self, body: bytes, limit: int, budget: AnswerBudget) -> Request:
        command_id = self._new_id()
        data = encode_frame(Frame(command_id, EXEC_COMMAND, body))
        mirror_id = None
        if self._mirrors:
            mirror_id = self._new_id()
            data += encode_frame(Frame(mirror_id, RESPONSE_VALUE))
        opened = _OpenCommand(command_id, mirror_id, limit, budget)
        self._open.append(opened)
        self._traffic.grant(COMMAND_BYTES, BURST_BYTES + MAX_OUTSTANDING * COMMAND_BYTES)
        self._by_id |= dict.fromkeys(opened.ids, opened)
        return Request(command_id, data)

    def receive(self, data: bytes, now_s: float = 0.0) -> Iterator[ClientEvent]:
        """Process received bytes and iterate over their events; raise RconProtocolError for invalid or excess bytes."""
        if not self._traffic.spend(len(data), now_s):
            self._reader.fail(_TOO_FAST)
        return self._events(self._reader.feed(data, self._max_size), now_s)

    def _events(self, frames: Iterator[Frame], now_s: float) -> Iterator[ClientEvent]:
        for frame in frames:
            if not self._traffic.spend(PACKET_BYTES, now_s):
                self._reader.fail(_TOO_FAST)
            elif frame.type == AUTH_RESPONSE:
                yield from self._on_auth_response(frame)
            elif frame.type == RESPONSE_VALUE:
                yield from self._on_value(frame)

    def _on_auth_response(self, frame: Frame) -> Iterator[ClientEvent]:
        if frame.id == REFUSED_ID:
            if self._advance(_AuthStep.REFUSED):
                self._open.clear()
                self._by_id.clear()
                yield AuthRefused()
        elif frame.id == self._auth_id and self._advance(_AuthStep.ACCEPTED):
            yield AuthAccepted()

    def _on_value(self, frame: Frame) -> Iterator[ClientEvent]:
        # Ignore packets with other ids: the packet before an auth response, the packet after a mirrored one, and
        # answers no longer awaited.
        current = self._by_id.get(frame.id)
        if current is None:
            return
        while self._open[0] is not current:
            yield self._close_first()
        if frame.id == current.command_id:
            if len(frame.body) > current.left:
                self._reader.fail("an answer is longer than allowed")
                return
            current.collect(frame.body)
        if frame.id == current.mirror_id or current.mirror_id is None:
            yield self._close_first()

    def _close_first(self) -> Answer:
        first = self._open.pop(0)
        for frame_id in first.ids:
            del self._by_id[frame_id]
        return first.answer()

    def _max_size(self, frame_id: int) -> int:
        """Return the largest size field that a packet with this id may have."""
        command = self._by_id.get(frame_id)
        if command is None or frame_id != command.command_id:
            return MIN_SIZE + MAX_UNEXPECTED_BYTES
        return MIN_SIZE + command.left

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
    """The client sent an empty packet to find the end of an answer. Answer with `mirror`, or not at all."""

    id: int


class NotAuthenticated(msgspec.Struct, frozen=True):
    """The client sent something before authenticating: answer with `deny`, then close the connection."""

    id: int


ServerEvent = AuthAttempt | CommandReceived | MirrorRequested | NotAuthenticated


class ServerConnection:
    """The server side of a connection, for a simulated server."""

    def __init__(self) -> None:
        self._reader = FrameReader(MAX_REQUEST_SIZE)
        self.is_authenticated = False

    def receive(self, data: bytes) -> Iterator[ServerEvent]:
        """Process received bytes and iterate over the client's requests; raise RconProtocolError for invalid bytes.

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
        """Return the packets that accept a password: as in the game, an empty packet and then the auth response."""
        self.is_authenticated = True
        return encode_frame(Frame(attempt_id, RESPONSE_VALUE)) + encode_frame(Frame(attempt_id, AUTH_RESPONSE))

    def refuse(self, attempt_id: int) -> bytes:
        """Return the packets that reject a password. A client that was authenticated before no longer is."""
        return encode_frame(Frame(attempt_id, RESPONSE_VALUE)) + self.deny()

    def deny(self) -> bytes:
        """Return only the rejecting packet, for a command before authentication or after a password change."""
        self.is_authenticated = False
        return encode_frame(Frame(REFUSED_ID, AUTH_RESPONSE))

    def answer(self, command_id: int, text: str, *, split_at: int | None = None) -> bytes:
        """Return the answer to a command: one packet as in CS2, or packets of `split_at` bytes as in older engines."""
        body = text.encode("utf-8", errors="replace")
        step = split_at or max(len(body), 1)
        parts = [body[start : start + step] for start in range(0, len(body), step)] or [b""]
        return b"".join(encode_frame(Frame(command_id, RESPONSE_VALUE, part)) for part in parts)

    def mirror(self, mirror_id: int) -> bytes:
        """Return the mirrored empty packet and the packet that always follows it."""
        mirrored = encode_frame(Frame(mirror_id, RESPONSE_VALUE))
        return mirrored + encode_frame(Frame(mirror_id, RESPONSE_VALUE, MIRROR_END))


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
