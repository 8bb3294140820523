"""How does a server answer on its RCON port? Sessions with a password, commands in order, and doors that shut.

While the console is busy everything waits, as the game then answers nobody. What is no RCON ends the connection, as
does a command before the password, an answer that nobody fetches, and an address that guesses passwords.
"""

from __future__ import annotations

import asyncio
from typing import Protocol

from matchpod.cs2.rcon import (
    AuthAttempt,
    CommandReceived,
    MirrorRequested,
    RconProtocolError,
    ServerConnection,
    ServerEvent,
)
from matchpod.simulator.wire.rcon_bans import BAN_S, BanList

MAX_SESSIONS = 64
"""Connections to one server at a time; a service needs one or two."""

MAX_UNREAD_BYTES = 4 * 1024 * 1024
"""Answers a client has not fetched. The longest one, the list of all variables, has some hundred KB."""


class RconConsole(Protocol):
    """What runs the commands."""

    @property
    def is_busy(self) -> bool:
        """True while commands must wait."""

    @property
    def rcon_password(self) -> str:
        """The password asked for; empty: nobody gets in."""

    def execute(self, text: str, source: str) -> str:
        """Run a command for the client at this address and answer what the console prints."""


class RconServer:
    """The RCON port of one server."""

    def __init__(self, console: RconConsole, *, has_mirror: bool = True, ban_s: float = BAN_S) -> None:
        self.console = console
        self.has_mirror = has_mirror
        self.bans = BanList(ban_s=ban_s)
        self._sessions: list[RconSession] = []
        self._server: asyncio.Server | None = None

    async def bind(self, ip: str, port: int) -> int:
        """Listen on a port, 0: any free one; answers which. OSError when it is in use."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: RconSession(self), ip, port)
        bound: int = self._server.sockets[0].getsockname()[1]
        return bound

    def resume(self) -> None:
        """Go on with what waited while the console was busy."""
        for session in tuple(self._sessions):
            session.resume()

    def drop_all(self) -> None:
        """Cut all connections; answers already given are still delivered."""
        for session in tuple(self._sessions):
            session.close()

    def close(self, *, is_abrupt: bool = False) -> None:
        """Shut the port and all connections, abruptly without what they still had to deliver."""
        if self._server is not None:
            self._server.close()
            self._server = None
        for session in tuple(self._sessions):
            if is_abrupt:
                session.abort()
            else:
                session.close()

    def admit(self, session: RconSession) -> bool:
        """Let a connection in, unless its address is banned or there are too many."""
        if len(self._sessions) >= MAX_SESSIONS or self.bans.is_banned(session.host, session.now_s):
            return False
        self._sessions.append(session)
        return True

    def forget(self, session: RconSession) -> None:
        """A connection ended."""
        if session in self._sessions:
            self._sessions.remove(session)

    def note_failure(self, session: RconSession) -> None:
        """A wrong password came; an address that is banned for it loses all its connections."""
        self.bans.note_failure(session.host, session.now_s)
        if self.bans.is_banned(session.host, session.now_s):
            for other in tuple(self._sessions):
                if other.host == session.host:
                    other.close()


class RconSession(asyncio.Protocol):
    """One RCON connection."""

    def __init__(self, server: RconServer) -> None:
        self._server = server
        self._connection = ServerConnection()
        self._transport: asyncio.Transport | None = None
        self._password = ""
        self._is_waiting = False
        self.host = ""
        self._source = ""

    @property
    def now_s(self) -> float:
        """The time of the event loop."""
        return asyncio.get_running_loop().time()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client came."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self.host, port = transport.get_extra_info("peername")[:2]
        self._source = f"{self.host}:{port}"
        if not self._server.admit(self):
            self.abort()

    def connection_lost(self, _exc: Exception | None) -> None:
        """The connection ended."""
        self._transport = None
        self._server.forget(self)

    def data_received(self, data: bytes) -> None:
        """Bytes came; the packets in them are handled in order, one after the other."""
        events = self._connection.receive(data)
        while self._is_open:
            if self._server.console.is_busy:
                self._wait()
                return
            try:
                event = next(events, None)
            except RconProtocolError:
                self.abort()
                return
            if event is None:
                return
            self._handle(event)

    def resume(self) -> None:
        """Go on with packets that waited."""
        if self._is_waiting and self._transport is not None and not self._server.console.is_busy:
            self._is_waiting = False
            self._transport.resume_reading()
            self.data_received(b"")

    def close(self) -> None:
        """End the connection when all answers are delivered."""
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """End the connection at once."""
        if self._transport is not None:
            self._transport.abort()

    @property
    def _is_open(self) -> bool:
        return self._transport is not None and not self._transport.is_closing()

    def _wait(self) -> None:
        if self._transport is not None and not self._is_waiting:
            self._is_waiting = True
            self._transport.pause_reading()

    def _handle(self, event: ServerEvent) -> None:
        connection = self._connection
        console = self._server.console
        if isinstance(event, AuthAttempt):
            self._authenticate(event)
        elif not connection.is_authenticated or self._password != console.rcon_password:
            self._send(connection.deny())
            self.close()
        elif isinstance(event, CommandReceived):
            self._send(connection.answer(event.id, console.execute(event.text, self._source)))
        elif isinstance(event, MirrorRequested) and self._server.has_mirror:
            self._send(connection.mirror(event.id))

    def _authenticate(self, attempt: AuthAttempt) -> None:
        password = self._server.console.rcon_password
        if password and attempt.password == password:
            self._password = password
            self._send(self._connection.accept(attempt.id))
        else:
            self._send(self._connection.refuse(attempt.id))
            self._server.note_failure(self)

    def _send(self, packets: bytes) -> None:
        if self._transport is None or self._transport.is_closing():
            return
        self._transport.write(packets)
        if self._transport.get_write_buffer_size() > MAX_UNREAD_BYTES:
            self.abort()
