"""Connect to server consoles over RCON, and run commands; `cs2_protocol.rcon` implements the protocol.

Calls run one at a time, in order. All commands of a call are sent at once, because a server reads its consoles once per
frame and answers all commands that have arrived. A lost or slow connection is closed, and all waiting calls raise
ConsoleLostError; it is up to the caller to reconnect. If a server sends invalid bytes or exceeds a limit, calls raise
ConsoleFaultError. Error messages never contain a password or command.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress

from cs2_protocol.console_limits import MAX_CALL_BYTES, answer_limit
from cs2_protocol.rcon import (
    MAX_OUTSTANDING,
    Answer,
    AnswerBudget,
    AuthAccepted,
    AuthRefused,
    ClientConnection,
    ClientEvent,
)
from cs2_protocol.rcon_frames import RconProtocolError
from matchpod.ports import ConsoleAuthError, ConsoleError, ConsoleFaultError, ConsoleLostError

OPEN_S = 5.0
"""Timeout in seconds for connecting and authenticating. A server that is loading a map takes longer; the connection is
then retried."""

CLOSE_S = 1.0
"""Timeout in seconds for each step of `close`: the end of the reader task, and the end of the socket."""

MAX_WAITING = 64
"""Maximum number of queued calls. A match needs two or three; with many more, the server must be stuck."""

MAX_SENT = 32
"""Maximum number of commands that are sent at once. Further commands are sent after the answers to these."""

READ_BYTES = 4096
"""Maximum number of bytes read per iteration of the event loop, enough for most answers. If they are 300 empty packets,
parsing them takes a millisecond."""


async def probe_port(host: str, port: int, *, timeout_s: float = OPEN_S) -> bool | None:
    """Return True if a port accepts connections, False if it refuses them, None if there is no answer in time."""
    try:
        async with asyncio.timeout(timeout_s):
            _, writer = await asyncio.open_connection(host, port)
    except ConnectionRefusedError:
        return False
    except (OSError, UnicodeError):  # OSError includes TimeoutError
        return None
    writer.transport.abort()
    return True


class RconConsoles:
    def __init__(self, *, open_s: float = OPEN_S) -> None:
        self._open_s = open_s

    async def open(self, host: str, port: int, password: str) -> RconConsole:
        try:
            async with asyncio.timeout(self._open_s):
                return await self._connect(host, port, password)
        except TimeoutError as exc:
            raise ConsoleLostError(
                f"the connection to RCON at {host}:{port} timed out after {self._open_s:g} s"
            ) from exc

    async def _connect(self, host: str, port: int, password: str) -> RconConsole:
        connection = ClientConnection(answer_limit)
        try:
            auth_packet = connection.authenticate(password)
        except ValueError as exc:
            raise ConsoleAuthError(f"the password for {host}:{port} cannot be sent: {exc}") from exc
        try:
            reader, writer = await asyncio.open_connection(host, port, limit=READ_BYTES)
        except TimeoutError:
            raise
        except (OSError, UnicodeError) as exc:
            raise ConsoleLostError(f"no connection to {host}:{port}: {exc}") from exc
        console = RconConsole(reader, writer, connection, name=f"{host}:{port}")
        try:
            await console.log_in(auth_packet)
        except BaseException:
            await console.close()
            raise
        return console


class RconConsole:
    """A connection to a console. `log_in` must return before commands are run."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, connection: ClientConnection, *, name: str
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._connection = connection
        self._name = name
        self._turn = asyncio.Lock()
        self._waiting = 0
        self._error: ConsoleError | None = None
        self._is_rejected = False
        self._accepted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._answers: dict[int, asyncio.Future[str]] = {}
        self._reading = asyncio.create_task(self._read())

    async def log_in(self, auth_packet: bytes) -> None:
        """Send the password and wait until it is accepted or rejected; the caller sets the timeout."""
        await self._send(auth_packet)
        await asyncio.wait([self._accepted, self._reading], return_when=asyncio.FIRST_COMPLETED)
        if self._is_rejected:
            raise ConsoleAuthError(f"{self._name} rejected the password")
        if not self._accepted.done():
            raise self._lost()

    async def run(self, command: str, *, timeout_s: float = 10.0) -> str:
        """Run a command and return its complete answer; errors as in `run_all`."""
        (answer,) = await self.run_all((command,), timeout_s=timeout_s)
        return answer

    async def run_all(self, commands: Sequence[str], *, timeout_s: float = 10.0) -> list[str]:
        """Send commands and return their complete answers. The timeout excludes the wait for earlier calls.

        The commands are sent in batches of MAX_SENT, each with the whole timeout. If an answer does not arrive in time,
        the connection is closed and ConsoleLostError raised. Raise ConsoleFaultError if an answer, or the sum of all
        answers, is too long (`cs2_protocol.console_limits`), and ValueError if a command cannot be sent. If a call is
        cancelled, the connection stays open, and the answers to its commands are discarded when they arrive.
        """
        if self._waiting >= MAX_WAITING:
            self._end(f"more than {MAX_WAITING} commands are waiting")
        self._waiting += 1
        try:
            async with self._turn:
                found, budget = list[str](), AnswerBudget(MAX_CALL_BYTES)
                for begin in range(0, len(commands), MAX_SENT):
                    found += await self._run(commands[begin : begin + MAX_SENT], budget, timeout_s)
                return found
        finally:
            self._waiting -= 1

    async def close(self) -> None:
        self._end("the connection was closed")
        await asyncio.wait([self._reading], timeout=CLOSE_S)
        with suppress(OSError):
            async with asyncio.timeout(CLOSE_S):
                await self._writer.wait_closed()

    async def _run(self, commands: Sequence[str], budget: AnswerBudget, timeout_s: float) -> list[str]:
        if len(self._connection.outstanding) + len(commands) > MAX_OUTSTANDING:
            self._end("too many commands without an answer")
        if self._error is not None:
            raise self._lost()
        requests = self._connection.commands(commands, budget)
        loop = asyncio.get_running_loop()
        self._answers = {request.command_id: loop.create_future() for request in requests}
        try:
            async with asyncio.timeout(timeout_s):
                await self._send(b"".join(request.data for request in requests))
                return await asyncio.gather(*self._answers.values())
        except TimeoutError as exc:
            self._end(f"no answer within {timeout_s:g} s")
            await self.close()
            raise self._lost() from exc
        except ConsoleError:
            await self.close()
            raise
        finally:
            for answer in self._answers.values():
                if not answer.cancel() and not answer.cancelled():
                    answer.exception()  # retrieved here, in case the call failed before awaiting it
            self._answers = {}

    async def _send(self, packets: bytes) -> None:
        if self._error is not None:
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
        now_s = asyncio.get_running_loop().time
        try:
            while chunk := await self._reader.read(READ_BYTES):
                for event in self._connection.receive(chunk, now_s()):
                    self._handle(event)
                await asyncio.sleep(0)  # reading buffered bytes does not wait, so let other tasks run
        except RconProtocolError as exc:
            self._end(str(exc), ConsoleFaultError)
        except OSError as exc:
            self._end(str(exc))
        finally:
            self._end("the server closed the connection")

    def _handle(self, event: ClientEvent) -> None:
        match event:
            case AuthAccepted():
                if not self._accepted.done():
                    self._accepted.set_result(None)
            case AuthRefused():
                self._is_rejected = True
                self._end("the password was rejected")
            case Answer(command_id=command_id, text=text):
                answer = self._answers.get(command_id)  # None if the answer belongs to a cancelled call
                if answer is not None and not answer.done():
                    answer.set_result(text)

    def _end(self, fault: str, kind: type[ConsoleError] = ConsoleLostError) -> None:
        """Abort the connection, which also ends the reader task. Only the first fault is kept and reported."""
        if self._error is not None:
            return
        self._error = kind(f"{self._name}: {fault}")
        self._writer.transport.abort()
        for answer in self._answers.values():
            if not answer.done():
                answer.set_exception(self._lost())

    def _lost(self) -> ConsoleError:
        """Return a new exception with the fault of the connection, because each failing call needs its own."""
        error = self._error or ConsoleLostError(self._name)
        return type(error)(*error.args)
