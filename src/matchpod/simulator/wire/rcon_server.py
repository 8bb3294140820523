"""How does a server answer on its RCON port? Sessions with a password, commands in order, and doors that shut.

While the console is busy everything waits, as the game then answers nobody. What is no RCON ends the connection, as
does a command before the password, an answer that nobody fetches, and an address that guesses passwords. However much
is asked of one server, the others of the process have their turn.
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
"""Connections to one server at a time; a service needs one or two. One more takes the place of one without password."""

READ_BYTES = 4096
"""What is read of a connection at a time: as long as the longest packet."""

UNREAD_S = 10.0
"""How long a client may leave an answer unread. Until it reads on, its further commands wait."""

FAREWELL_S = 1.0
"""How long a connection that is being closed tries to deliver its last answers."""

TURN_S = 0.005
"""After so much work for its consoles a server lets everybody else have as much time."""


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
        self._worked_s = 0.0
        self._rest: asyncio.TimerHandle | None = None

    async def bind(self, ip: str, port: int) -> int:
        """Listen on a port, 0: any free one; answers which. OSError when it is in use, or the address is not ours."""
        loop = asyncio.get_running_loop()
        try:
            self._server = await loop.create_server(lambda: RconSession(self), ip, port)
        except UnicodeError as fault:  # a name that no resolver takes
            raise OSError(f"{ip} is no address") from fault
        bound: int = self._server.sockets[0].getsockname()[1]
        return bound

    @property
    def is_waiting(self) -> bool:
        """True while commands must wait."""
        return self._rest is not None or self.console.is_busy

    def note_work(self, work_s: float) -> None:
        """A packet took so long; after a turn's worth of them everybody else comes first."""
        self._worked_s += work_s
        if self._worked_s >= TURN_S:
            self._rest = asyncio.get_running_loop().call_later(self._worked_s, self._go_on)
            self._worked_s = 0.0

    def resume(self) -> None:
        """Go on with what waited while the console was busy."""
        if not self._sessions or self.is_waiting:
            return
        # Whoever had a turn goes to the end, so that one who asks without end is not the only one heard.
        for session in tuple(self._sessions):
            if self.is_waiting:
                return
            if session.resume() and session in self._sessions:
                self._sessions.remove(session)
                self._sessions.append(session)

    def drop_all(self) -> None:
        """Cut all connections; answers already given are still delivered."""
        for session in tuple(self._sessions):
            session.close()

    def close(self, *, is_abrupt: bool = False) -> None:
        """Shut the port and all connections, abruptly without what they still had to deliver."""
        if self._server is not None:
            self._server.close()
            self._server = None
        if self._rest is not None:
            self._rest.cancel()
        for session in tuple(self._sessions):
            if is_abrupt:
                session.abort()
            else:
                session.close()

    def admit(self, session: RconSession) -> bool:
        """Let a connection in, unless its address is banned or there are too many."""
        if self.bans.is_banned(session.host, session.now_s):
            return False
        if len(self._sessions) >= MAX_SESSIONS:
            idler = next((other for other in self._sessions if not other.is_authenticated), None)
            if idler is None:
                return False
            self._sessions.remove(idler)
            idler.abort()
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

    def _go_on(self) -> None:
        self._rest = None
        self.resume()


class RconSession(asyncio.BufferedProtocol):
    """One RCON connection."""

    def __init__(self, server: RconServer) -> None:
        self._server = server
        self._connection = ServerConnection()
        self._read_buffer = bytearray(READ_BYTES)
        self._transport: asyncio.Transport | None = None
        self._end: asyncio.TimerHandle | None = None
        self._password = ""
        self._is_waiting = False
        self._is_unread = False
        self.host = ""
        self._source = ""

    @property
    def now_s(self) -> float:
        """The time of the event loop."""
        return asyncio.get_running_loop().time()

    @property
    def is_authenticated(self) -> bool:
        """True when a right password was given."""
        return self._connection.is_authenticated

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
        self._end_in(None)
        self._server.forget(self)

    def get_buffer(self, _sizehint: int) -> bytearray:
        """Where the next bytes go."""
        return self._read_buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Bytes came."""
        self._handle_packets(bytes(self._read_buffer[:nbytes]))

    def pause_writing(self) -> None:
        """The client does not fetch its answers."""
        self._is_unread = True
        self._end_in(UNREAD_S)

    def resume_writing(self) -> None:
        """The client fetched its answers."""
        self._is_unread = False
        if self._is_open:
            self._end_in(None)
            self.resume()

    def resume(self) -> bool:
        """Go on with packets that waited; False when none did."""
        if not self._is_waiting or self._is_unread or self._transport is None or self._server.is_waiting:
            return False
        self._is_waiting = False
        self._transport.resume_reading()
        self._handle_packets(b"")
        return True

    def close(self) -> None:
        """End the connection when all answers are delivered."""
        if self._transport is not None:
            self._transport.close()
            self._end_in(FAREWELL_S)

    def abort(self) -> None:
        """End the connection at once."""
        if self._transport is not None:
            self._transport.abort()

    @property
    def _is_open(self) -> bool:
        return self._transport is not None and not self._transport.is_closing()

    def _end_in(self, wait_s: float | None) -> None:
        """Give the client so much time from now on; None: as much as it wants."""
        if self._end is not None:
            self._end.cancel()
        self._end = None if wait_s is None else asyncio.get_running_loop().call_later(wait_s, self.abort)

    def _handle_packets(self, data: bytes) -> None:
        """Handle the packets that are there in order, one after the other."""
        events = self._connection.receive(data)
        loop = asyncio.get_running_loop()
        while self._is_open:
            if self._is_unread or self._server.is_waiting:
                self._wait()
                return
            begin_s = loop.time()
            try:
                event = next(events, None)
            except RconProtocolError:
                self.abort()
                return
            if event is None:
                return
            self._handle(event)
            self._server.note_work(loop.time() - begin_s)

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
        if self._is_open and self._transport is not None:
            self._transport.write(packets)
