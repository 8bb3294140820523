"""How do we speak with a server's console? Connections over TCP around the RCON rules of `cs2.rcon`.

One command at a time, in the order of the callers. Any trouble closes the connection and is a ConsoleLostError to
everyone who waits on it: opening another one is the caller's choice. No text of an error holds a password or command.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

from matchpod.cs2.rcon import (
    MAX_OUTSTANDING,
    Answer,
    AuthAccepted,
    AuthRefused,
    ClientConnection,
    ClientEvent,
    RconProtocolError,
)
from matchpod.ports import ConsoleLostError, ConsoleRefusedError

OPEN_S = 5.0
"""Connecting and the verdict on the password together; a server that loads a map takes longer and is asked again."""

CLOSE_S = 1.0
"""How long a closing connection may take before it is dropped."""

MAX_WAITING = 64
"""Callers that wait for their turn. A match needs two or three; with more the server is stuck."""

READ_BYTES = 65536


async def accepts(host: str, port: int, *, timeout_s: float = OPEN_S) -> bool | None:
    """Whether a port takes connections: False when it refuses them, None when nothing answers."""
    try:
        async with asyncio.timeout(timeout_s):
            _, writer = await asyncio.open_connection(host, port)
    except ConnectionRefusedError:
        return False
    except (OSError, UnicodeError):  # a TimeoutError is an OSError
        return None
    writer.transport.abort()
    return True


class RconConsoles:
    """Opens consoles over RCON."""

    def __init__(self, *, open_s: float = OPEN_S) -> None:
        self._open_s = open_s

    async def open(self, host: str, port: int, password: str) -> RconConsole:
        """Connect and authenticate. ConsoleLostError or ConsoleRefusedError when that fails."""
        try:
            async with asyncio.timeout(self._open_s):
                return await self._connect(host, port, password)
        except TimeoutError as exc:
            raise ConsoleLostError(f"no console at {host}:{port} within {self._open_s:g} s") from exc

    async def _connect(self, host: str, port: int, password: str) -> RconConsole:
        connection = ClientConnection()
        try:
            greeting = connection.authenticate(password)
        except ValueError as exc:
            raise ConsoleRefusedError(f"the password for {host}:{port} is not one that can be sent: {exc}") from exc
        try:
            reader, writer = await asyncio.open_connection(host, port)
        except TimeoutError:
            raise
        except (OSError, UnicodeError) as exc:
            raise ConsoleLostError(f"no connection to {host}:{port}: {exc}") from exc
        console = RconConsole(reader, writer, connection, name=f"{host}:{port}")
        try:
            await console.log_in(greeting)
        except BaseException:
            await console.close()
            raise
        return console


class RconConsole:
    """One connection; commands follow when `log_in` has returned."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, connection: ClientConnection, *, name: str
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._connection = connection
        self._name = name
        self._turn = asyncio.Lock()
        self._waiting = 0
        self._fault: str | None = None
        self._is_refused = False
        self._verdict: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._answer: asyncio.Future[str] | None = None
        self._command_id = 0
        self._reading = asyncio.create_task(self._read())

    async def log_in(self, greeting: bytes) -> None:
        """Send the password and wait for the verdict; how long is the caller's choice."""
        await self._send(greeting)
        await asyncio.wait([self._verdict, self._reading], return_when=asyncio.FIRST_COMPLETED)
        if self._is_refused:
            raise ConsoleRefusedError(f"{self._name} refuses the password")
        if not self._verdict.done():
            raise self._lost()

    async def run(self, command: str, *, timeout_s: float = 10.0) -> str:
        """Run one command and return its whole answer; the time limit counts from its turn on.

        ConsoleLostError when no answer came; the connection is then closed. ValueError when the text is no command.
        A caller that is cancelled leaves the connection open, and the answer is thrown away when it comes.
        """
        if self._waiting >= MAX_WAITING:
            self._end(f"more than {MAX_WAITING} commands wait")
        self._waiting += 1
        try:
            async with self._turn:
                return await self._run(command, timeout_s)
        finally:
            self._waiting -= 1

    async def close(self) -> None:
        """Close the connection; closing twice changes nothing."""
        self._end("the connection was closed")
        await asyncio.wait([self._reading], timeout=CLOSE_S)
        with suppress(OSError):
            async with asyncio.timeout(CLOSE_S):
                await self._writer.wait_closed()

    async def _run(self, command: str, timeout_s: float) -> str:
        if len(self._connection.outstanding) >= MAX_OUTSTANDING:
            self._end("the answers to too many commands were given up")
        if self._fault is not None:
            raise self._lost()
        request = self._connection.command(command)
        self._command_id = request.command_id
        self._answer = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(timeout_s):
                await self._send(request.data)
                return await self._answer
        except TimeoutError as exc:
            self._end(f"no answer within {timeout_s:g} s")
            await self.close()
            raise self._lost() from exc
        except ConsoleLostError:
            await self.close()
            raise
        finally:
            self._answer = None

    async def _send(self, packets: bytes) -> None:
        if self._fault is not None:
            raise self._lost()
        self._writer.write(packets)
        try:
            await self._writer.drain()
        except TimeoutError:
            raise
        except OSError as exc:
            self._end(str(exc))
            raise self._lost() from exc

    async def _read(self) -> None:
        try:
            while chunk := await self._reader.read(READ_BYTES):
                for event in self._connection.receive(chunk):
                    self._take(event)
        except (OSError, RconProtocolError) as exc:
            self._end(str(exc))
        finally:
            self._end("the server closed the connection")

    def _take(self, event: ClientEvent) -> None:
        match event:
            case AuthAccepted():
                if not self._verdict.done():
                    self._verdict.set_result(None)
            case AuthRefused():
                self._is_refused = True
                self._end("the password is not, or no longer, the right one")
            case Answer(command_id=command_id, text=text):
                # Others are answers to commands whose callers were cancelled.
                if self._answer is not None and not self._answer.done() and command_id == self._command_id:
                    self._answer.set_result(text)

    def _end(self, fault: str) -> None:
        """Drop the connection; the first fault is the one that everybody hears. The reader then ends by itself."""
        if self._fault is not None:
            return
        self._fault = fault
        self._writer.transport.abort()
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(self._lost())

    def _lost(self) -> ConsoleLostError:
        return ConsoleLostError(f"{self._name}: {self._fault}")
