"""Serve RCON: authentication, commands in order, limits and bans.

While the console is busy, all packets wait: the game does not respond during this time either. A connection is closed
after invalid packets, after a command before authentication, if answers stay unread for UNREAD_S, and when its address
is banned for wrong passwords. The load of one server does not starve the other servers of the process.
"""

from __future__ import annotations

import asyncio
from typing import Protocol

from cs2_protocol.rcon import AuthAttempt, CommandReceived, MirrorRequested, ServerConnection, ServerEvent
from cs2_protocol.rcon_frames import RconProtocolError
from cs2_simulator.wire.rcon_bans import BAN_S, BanList

MAX_SESSIONS = 64
"""Maximum number of connections to one server; a client needs one or two. If it is exceeded, the new connection
replaces an unauthenticated one."""

READ_BYTES = 4096
"""Size of the read buffer in bytes: the length of the longest packet."""

UNREAD_S = 10.0
"""Seconds for which a client may leave answers unread. Until they are read, its further commands wait."""

CLOSE_TIMEOUT_S = 1.0
"""Seconds for which a closing connection tries to deliver its last answers."""

TURN_S = 0.005
"""Seconds of work on commands after which a server pauses for as long as it worked, so that other servers can run."""


class ServedConsole(Protocol):
    """The console that executes the commands of clients."""

    @property
    def is_busy(self) -> bool:
        """True while the console is busy and commands must wait."""

    @property
    def rcon_password(self) -> str:
        """The required password. If it is empty, every password is rejected."""

    def execute(self, text: str, source: str) -> str:
        """Run a command for the client at this address, and return the output."""


class RconServer:
    def __init__(
        self, console: ServedConsole, *, has_mirror: bool = True, ban_s: float = BAN_S, delay_s: float = 0.0
    ) -> None:
        self.console = console
        self.has_mirror = has_mirror
        self.delay_s = delay_s
        self.bans = BanList(ban_s=ban_s)
        self._sessions: list[RconSession] = []
        self._server: asyncio.Server | None = None
        self._worked_s = 0.0
        self._rest: asyncio.TimerHandle | None = None

    async def bind(self, ip: str, port: int) -> int:
        """Listen on a port (0: any free port) and return its number.

        Raise OSError if port or address is unavailable.
        """
        loop = asyncio.get_running_loop()
        try:
            self._server = await loop.create_server(lambda: RconSession(self), ip, port)
        except UnicodeError as fault:  # an invalid host name
            raise OSError(f"{ip} is not a valid address") from fault
        bound: int = self._server.sockets[0].getsockname()[1]
        return bound

    @property
    def is_waiting(self) -> bool:
        """True while commands must wait."""
        return self._rest is not None or self.console.is_busy

    def note_work(self, work_s: float) -> None:
        """Record the time spent on a packet. After TURN_S of work, pause so that other servers can run."""
        self._worked_s += work_s
        if self._worked_s >= TURN_S:
            self._rest = asyncio.get_running_loop().call_later(self._worked_s, self._end_rest)
            self._worked_s = 0.0

    def resume(self) -> None:
        """Handle the packets that waited while the console was busy."""
        if not self._sessions or self.is_waiting:
            return
        # A session whose packets were handled moves to the end of the list, so that a busy client does not starve the
        # others.
        for session in tuple(self._sessions):
            if self.is_waiting:
                return
            if session.resume() and session in self._sessions:
                self._sessions.remove(session)
                self._sessions.append(session)

    def drop_all(self) -> None:
        """Close all connections after delivering pending answers."""
        for session in tuple(self._sessions):
            session.close()

    def close(self, *, is_abrupt: bool = False) -> None:
        """Close the port and all connections. If `is_abrupt`, discard pending answers."""
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
        """Accept a connection. Return False if its address is banned, or if MAX_SESSIONS others are authenticated."""
        if self.bans.is_banned(session.host, session.now_s):
            return False
        if len(self._sessions) >= MAX_SESSIONS:
            replaced = next((other for other in self._sessions if not other.is_authenticated), None)
            if replaced is None:
                return False
            self._sessions.remove(replaced)
            replaced.abort()
        self._sessions.append(session)
        return True

    def remove(self, session: RconSession) -> None:
        if session in self._sessions:
            self._sessions.remove(session)

    def note_failure(self, session: RconSession) -> None:
        """Record a wrong password. If this bans the address, close all connections from it."""
        self.bans.note_failure(session.host, session.now_s)
        if self.bans.is_banned(session.host, session.now_s):
            for other in tuple(self._sessions):
                if other.host == session.host:
                    other.close()

    def _end_rest(self) -> None:
        self._rest = None
        self.resume()


class RconSession(asyncio.BufferedProtocol):
    def __init__(self, server: RconServer) -> None:
        self._server = server
        self._connection = ServerConnection()
        self._read_buffer = bytearray(READ_BYTES)
        self._transport: asyncio.Transport | None = None
        self._abort_timer: asyncio.TimerHandle | None = None
        self._password = ""
        self._is_waiting = False
        self._is_unread = False
        self.host = ""
        self._source = ""

    @property
    def now_s(self) -> float:
        return asyncio.get_running_loop().time()

    @property
    def is_authenticated(self) -> bool:
        return self._connection.is_authenticated

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self.host, port = transport.get_extra_info("peername")[:2]
        self._source = f"{self.host}:{port}"
        if not self._server.admit(self):
            self.abort()

    def connection_lost(self, _exc: Exception | None) -> None:
        self._transport = None
        self._abort_in(None)
        self._server.remove(self)

    def get_buffer(self, _sizehint: int) -> bytearray:
        return self._read_buffer

    def buffer_updated(self, nbytes: int) -> None:
        self._handle_packets(bytes(self._read_buffer[:nbytes]))

    def pause_writing(self) -> None:
        """Start the timeout, because the client does not read its answers."""
        self._is_unread = True
        self._abort_in(UNREAD_S)

    def resume_writing(self) -> None:
        """Stop the timeout and continue, because the client has read its answers."""
        self._is_unread = False
        if self._is_open:
            self._abort_in(None)
            self.resume()

    def resume(self) -> bool:
        """Handle the waiting packets. Return False if there were none."""
        if not self._is_waiting or self._is_unread or self._transport is None or self._server.is_waiting:
            return False
        self._is_waiting = False
        self._transport.resume_reading()
        self._handle_packets(b"")
        return True

    def close(self) -> None:
        """Close the connection after all answers have been delivered."""
        if self._transport is not None:
            self._transport.close()
            self._abort_in(CLOSE_TIMEOUT_S)

    def abort(self) -> None:
        """Close the connection immediately."""
        if self._transport is not None:
            self._transport.abort()

    @property
    def _is_open(self) -> bool:
        return self._transport is not None and not self._transport.is_closing()

    def _abort_in(self, wait_s: float | None) -> None:
        """Abort the connection after `wait_s` seconds; None means never. This replaces an earlier timeout."""
        if self._abort_timer is not None:
            self._abort_timer.cancel()
        self._abort_timer = None if wait_s is None else asyncio.get_running_loop().call_later(wait_s, self.abort)

    def _handle_packets(self, data: bytes) -> None:
        """Handle the received packets in order."""
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
        if self._server.delay_s:
            asyncio.get_running_loop().call_later(self._server.delay_s, self._write, packets)
        else:
            self._write(packets)

    def _write(self, packets: bytes) -> None:
        if self._is_open and self._transport is not None:
            self._transport.write(packets)
