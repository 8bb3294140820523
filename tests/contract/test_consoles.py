"""RconConsoles implements the Consoles and RemoteConsole ports, tested with simulated servers."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress

import pytest

from cs2_protocol.console_limits import CVAR_BYTES, MAX_CALL_BYTES, answer_limit
from cs2_protocol.rcon import (
    MAX_OUTSTANDING,
    AuthAttempt,
    ClientConnection,
    CommandReceived,
    MirrorRequested,
    ServerConnection,
)
from cs2_protocol.rcon_frames import Frame, encode_frame
from matchpod.adapters.rcon_client import MAX_WAITING, READ_BYTES, RconConsole, RconConsoles, probe_port
from matchpod.ports import ConsoleAuthError, ConsoleFaultError, ConsoleLostError
from tests.contract.simulator_process import PASSWORD, SimulatorProcess, free_ports
from tests.lying_server import FAULTS, Lie, LyingServer

HOST = "127.0.0.1"
LIMIT_S = 60.0


@pytest.fixture(autouse=True)
async def no_tasks_left() -> AsyncIterator[None]:
    """Fail if a test leaves tasks behind."""
    yield
    async with asyncio.timeout(5):
        while len(asyncio.all_tasks()) > 1:
            await asyncio.sleep(0.001)


@pytest.fixture(scope="module")
def server() -> Iterator[SimulatorProcess]:
    """Provide a server for all tests that leave it as it was."""
    with SimulatorProcess() as process:
        yield process


async def open_console(server: SimulatorProcess) -> RconConsole:
    return await RconConsoles().open(HOST, server.port, PASSWORD)


class FakeServer:
    """A server in this process with configurable answers, for behavior that the simulator does not have."""

    def __init__(self, *, answer: str = "", held: int = 0, is_silent: bool = False) -> None:
        """Answers are held until this number of commands has arrived."""
        self._answer = answer
        self._held = held
        self._is_silent = is_silent
        self.received: list[str] = []

    async def __aenter__(self) -> int:
        self._server = await asyncio.start_server(self._serve, HOST, 0)
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def __aexit__(self, *_exc: object) -> None:
        self._server.close()
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection, waiting = ServerConnection(), b""
        while chunk := await reader.read(4096):
            for event in connection.receive(chunk):
                waiting += self._react(connection, event)
            if len(self.received) >= self._held or not self.received:
                writer.write(waiting)
                waiting = b""
        writer.close()

    def _react(self, connection: ServerConnection, event: object) -> bytes:
        match event:
            case AuthAttempt(id=attempt_id):
                return b"" if self._is_silent else connection.accept(attempt_id)
            case CommandReceived(id=command_id, text=command):
                self.received.append(command)
                return connection.answer(command_id, self._answer or f"answer to {command}")
            case MirrorRequested(id=mirror_id):
                return connection.mirror(mirror_id)
        return b""


async def test_closed_console_is_freed_without_the_garbage_collector(server: SimulatorProcess) -> None:
    """A match opens several, and garbage is collected rarely."""
    gc.collect()
    gc.disable()
    try:
        console = await open_console(server)
        await console.run("status")
        await console.close()
        parts = [weakref.ref(part) for part in (console, console._connection, console._reading)]
        del console
        assert [part() for part in parts] == [None, None, None]
    finally:
        gc.enable()


async def test_concurrent_calls_get_their_own_answers(server: SimulatorProcess) -> None:
    console = await open_console(server)
    answers = await asyncio.gather(*(console.run(f"echo {number}") for number in range(MAX_WAITING)))
    assert answers == [f"{number}\n" for number in range(MAX_WAITING)]
    await console.close()


async def test_commands_of_one_call_are_sent_before_the_first_answer() -> None:
    async with FakeServer(held=3) as port:
        console = await RconConsoles().open(HOST, port, PASSWORD)
        async with asyncio.timeout(LIMIT_S):
            assert await console.run_all(["a", "b", "c"]) == ["answer to a", "answer to b", "answer to c"]
        await console.close()


async def test_call_with_a_command_that_cannot_be_sent_sends_none(server: SimulatorProcess) -> None:
    console = await open_console(server)
    before = await console.run("mp_maxrounds")
    with pytest.raises(ValueError, match="line"):
        await console.run_all(["mp_maxrounds 6666", "two\nlines"])
    assert await console.run("mp_maxrounds") == before
    await console.close()


async def test_wrong_password_is_rejected_without_showing_it(server: SimulatorProcess) -> None:
    with pytest.raises(ConsoleAuthError) as rejected:
        await RconConsoles().open(HOST, server.port, "a wrong password")
    assert "a wrong password" not in str(rejected.value)


async def test_password_that_cannot_be_sent_is_rejected_without_showing_it() -> None:
    with pytest.raises(ConsoleAuthError) as rejected:
        await RconConsoles().open(HOST, 1, "two\nlines")
    assert "two" not in str(rejected.value)


async def test_closed_port_raises_console_lost() -> None:
    (port,) = free_ports(1)
    with pytest.raises(ConsoleLostError):
        await RconConsoles().open(HOST, port, PASSWORD)
    assert await probe_port(HOST, port) is False


async def test_unknown_host_raises_console_lost() -> None:
    with pytest.raises(ConsoleLostError):
        await RconConsoles().open("no such host", 1, PASSWORD)
    assert await probe_port("no such host", 1) is None


async def test_connection_closed_during_authentication_raises_console_lost() -> None:
    closer = await asyncio.start_server(lambda _reader, writer: writer.close(), HOST, 0)
    with pytest.raises(ConsoleLostError):
        await RconConsoles().open(HOST, closer.sockets[0].getsockname()[1], PASSWORD)
    closer.close()
    await closer.wait_closed()


async def test_too_many_unanswered_commands_close_the_connection(server: SimulatorProcess) -> None:
    console = await open_console(server)
    with server.frozen():
        for _ in range(MAX_OUTSTANDING):
            command = asyncio.create_task(console.run("echo 1"))
            await asyncio.sleep(0)
            command.cancel()
            await asyncio.gather(command, return_exceptions=True)
        with pytest.raises(ConsoleLostError, match="too many"):
            await console.run("echo 2")


async def test_authentication_without_answer_times_out() -> None:
    async with FakeServer(is_silent=True) as port:
        with pytest.raises(ConsoleLostError, match=r"timed out after 0\.2 s"):
            await RconConsoles(open_s=0.2).open(HOST, port, PASSWORD)


async def _until_lost(console: RconConsole, command: str) -> None:
    """Run a command that closes the connection, and wait until it is closed; the answer may still arrive first."""
    with suppress(ConsoleLostError):
        await console.run(command)
        while True:
            await console.run("echo still here")


async def test_timed_out_command_closes_the_connection_for_all_calls(server: SimulatorProcess) -> None:
    console = await open_console(server)
    with server.frozen():
        answers = await asyncio.gather(
            console.run("echo 1", timeout_s=0.3), console.run("echo 2", timeout_s=30), return_exceptions=True
        )
        assert [type(answer) for answer in answers] == [ConsoleLostError, ConsoleLostError]
        with pytest.raises(ConsoleLostError):
            await console.run("echo 3")
        await console.close()


async def test_changed_password_closes_the_connection(server: SimulatorProcess) -> None:
    await _until_lost(await open_console(server), "rcon_password another")
    with pytest.raises(ConsoleAuthError):
        await open_console(server)
    await _until_lost(await RconConsoles().open(HOST, server.port, "another"), f"rcon_password {PASSWORD}")


async def test_closing_twice_is_allowed_and_fails_waiting_calls(server: SimulatorProcess) -> None:
    console = await open_console(server)
    with server.frozen():
        command = asyncio.create_task(console.run("echo hello", timeout_s=30))
        await asyncio.sleep(0)
        await console.close()
        await console.close()
        with pytest.raises(ConsoleLostError):
            await command


async def test_cancelled_call_does_not_affect_other_answers(server: SimulatorProcess) -> None:
    console = await open_console(server)
    command = asyncio.create_task(console.run("echo first"))
    await asyncio.sleep(0)
    command.cancel()
    assert await console.run("echo second") == "second\n"
    assert command.cancelled()
    await console.close()


async def test_too_many_concurrent_calls_close_the_connection(server: SimulatorProcess) -> None:
    console = await open_console(server)
    with server.frozen():
        answers = await asyncio.gather(*(console.run("echo 1") for _ in range(MAX_WAITING + 1)), return_exceptions=True)
        assert {type(answer) for answer in answers} == {ConsoleLostError}


# --- servers that lie -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lie", FAULTS)
async def test_server_that_sends_what_it_may_not_is_at_fault(lie: Lie) -> None:
    async with LyingServer(lie) as port:
        console = await RconConsoles().open(HOST, port, PASSWORD)
        async with asyncio.timeout(LIMIT_S):
            for command in ("mp_maxrounds", "again") if lie is Lie.HUGE_CVAR else ("status_json", "again"):
                with pytest.raises(ConsoleFaultError, match=r"packet size|KiB per second"):
                    await console.run(command, timeout_s=LIMIT_S)
        await console.close()


async def test_server_that_floods_before_it_accepts_the_password_is_at_fault() -> None:
    async def serve(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while True:
                writer.write(encode_frame(Frame(1, 0)) * 1000)
                await writer.drain()

    server = await asyncio.start_server(serve, HOST, 0)
    with pytest.raises(ConsoleFaultError, match="KiB per second"):
        await RconConsoles(open_s=LIMIT_S).open(HOST, server.sockets[0].getsockname()[1], PASSWORD)
    server.close()


async def test_answers_of_one_call_are_limited_together() -> None:
    async with FakeServer(answer="x" * CVAR_BYTES) as port:
        console = await RconConsoles().open(HOST, port, PASSWORD)
        fitting = MAX_CALL_BYTES // CVAR_BYTES
        answers = await console.run_all(["mp_buytime"] * fitting)
        assert [len(answer) for answer in answers] == [CVAR_BYTES] * fitting
        await console.close()
        console = await RconConsoles().open(HOST, port, PASSWORD)
        with pytest.raises(ConsoleFaultError, match="packet size"):
            await console.run_all(["mp_buytime"] * (fitting + 1))


async def test_answer_that_never_ends_times_out_although_bytes_arrive() -> None:
    async with LyingServer(Lie.DRIP) as port:
        console = await RconConsoles().open(HOST, port, PASSWORD)
        with pytest.raises(ConsoleLostError, match="no answer within 1 s"):
            await console.run("status_json", timeout_s=1.0)


async def test_others_run_while_many_packets_are_read() -> None:
    chunks, turns = 4, 0
    reader = asyncio.StreamReader(limit=READ_BYTES)
    reader.feed_data(encode_frame(Frame(1, 0, bytes(1010))) * (chunks * READ_BYTES // 1024))
    reader.feed_eof()
    server = await asyncio.start_server(lambda _reader, writer: writer.close(), HOST, 0)
    _, writer = await asyncio.open_connection(HOST, server.sockets[0].getsockname()[1])
    console = RconConsole(reader, writer, ClientConnection(answer_limit), name="test")
    async with asyncio.timeout(LIMIT_S):
        while not reader.at_eof():
            turns += 1
            await asyncio.sleep(0)
    assert turns >= chunks
    await console.close()
    server.close()
