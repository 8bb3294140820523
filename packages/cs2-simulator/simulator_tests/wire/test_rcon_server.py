"""Tests of the RCON server with an independent client."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import struct
import time
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cs2_simulator.wire.rcon_server import CLOSE_TIMEOUT_S, MAX_SESSIONS, UNREAD_S, RconServer
from protocol_tests.effort import examples
from simulator_tests.rcon_client import RconClient, packet
from simulator_tests.wire.loop_thread import LoopThread

PASSWORD = "open sesame"
TOO_BIG = b"big 5000000"
"""A command with an answer that the buffers of both sockets cannot hold."""


class Console:
    def __init__(self) -> None:
        self.is_busy = False
        self.rcon_password = PASSWORD
        self.executed: list[tuple[str, str]] = []

    def execute(self, text: str, source: str) -> str:
        self.executed.append((text, source))
        if text.startswith("big "):
            return "ü" * int(text[4:])
        if text == "work":
            until_s = time.perf_counter() + 0.001
            while time.perf_counter() < until_s:
                pass
        return f"ran {text}"


class RconHarness:
    def __init__(self, *, has_mirror: bool = True, ban_s: float = 60.0, is_driven: bool = False) -> None:
        self.console = Console()
        self.loop_thread = LoopThread(is_driven=is_driven).__enter__()
        self.rcon = self.loop_thread.run(lambda: RconServer(self.console, has_mirror=has_mirror, ban_s=ban_s))
        self.port = self.loop_thread.call(self.rcon.bind("127.0.0.1", 0))

    def close(self) -> None:
        self.loop_thread.run(self.rcon.close)
        self.loop_thread.__exit__(None, None, None)


def _wait_until(is_met: Callable[[], bool]) -> None:
    until_s = time.monotonic() + 10
    while not is_met():
        assert time.monotonic() < until_s
        time.sleep(0.01)


def _open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


async def _longest_wait(for_s: float) -> float:
    loop = asyncio.get_running_loop()
    begin_s = last_s = loop.time()
    longest_s = 0.0
    while last_s < begin_s + for_s:
        await asyncio.sleep(0)
        longest_s = max(longest_s, loop.time() - last_s)
        last_s = loop.time()
    return longest_s


@pytest.fixture
def harness() -> Iterator[RconHarness]:
    opened = RconHarness()
    yield opened
    opened.close()


@pytest.fixture
def driven() -> Iterator[RconHarness]:
    """A server whose clock stands still until the test advances it."""
    opened = RconHarness(is_driven=True)
    yield opened
    opened.close()


def test_correct_password_gives_access_to_the_console(harness: RconHarness) -> None:
    with RconClient(harness.port) as client:
        assert client.log_in(PASSWORD)
        assert client.run("status") == "ran status"
        assert harness.console.executed == [("status", client.source)]


def test_empty_password_rejects_every_client(harness: RconHarness) -> None:
    harness.console.rcon_password = ""
    with RconClient(harness.port) as client:
        assert not client.log_in("")


def test_command_before_authentication_closes_the_connection(harness: RconHarness) -> None:
    with RconClient(harness.port) as client:
        client.send(7, 2, b"status")
        assert client.receive() == (-1, 2, b"")
        assert client.is_closed()
    assert harness.console.executed == []


def test_packet_may_arrive_in_single_bytes(harness: RconHarness) -> None:
    with RconClient(harness.port) as client:
        client.log_in(PASSWORD)
        for byte in packet(5, 2, b"status"):
            client.socket.sendall(bytes([byte]))
        assert client.receive() == (5, 0, b"ran status")


def test_empty_packet_is_mirrored_with_an_end_mark(harness: RconHarness) -> None:
    with RconClient(harness.port) as client:
        client.log_in(PASSWORD)
        client.socket.sendall(packet(5, 2, b"status") + packet(6, 0))
        assert client.receive() == (5, 0, b"ran status")
        assert client.receive() == (6, 0, b"")
        # The end mark is 00 01 00 00 before its two terminators.
        assert client.receive() == (6, 0, b"\x00\x01\x00\x00")


def test_mirror_can_be_switched_off() -> None:
    harness = RconHarness(has_mirror=False)
    with RconClient(harness.port) as client:
        client.log_in(PASSWORD)
        client.socket.sendall(packet(6, 0) + packet(7, 2, b"status"))
        assert client.receive() == (7, 0, b"ran status")
    harness.close()


@pytest.mark.parametrize(
    "garbage",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        struct.pack("<i", -5) + b"xxxx",
        struct.pack("<i", 3) + b"xxxx",
        struct.pack("<i", 2**30),
    ],
)
def test_invalid_packet_closes_the_connection(harness: RconHarness, garbage: bytes) -> None:
    with RconClient(harness.port) as client:
        client.socket.sendall(garbage)
        assert client.is_closed()
    with RconClient(harness.port) as client:
        assert client.log_in(PASSWORD)


def test_all_packets_wait_while_the_console_is_busy(harness: RconHarness) -> None:
    with RconClient(harness.port) as client, RconClient(harness.port) as newcomer:
        client.log_in(PASSWORD)
        harness.console.is_busy = True
        client.send(5, 2, b"first")
        client.send(6, 2, b"second")
        newcomer.send(1, 3, PASSWORD.encode())
        client.socket.settimeout(0.3)
        with pytest.raises(TimeoutError):
            client.receive()
        assert harness.console.executed == []
        harness.loop_thread.run(harness.rcon.resume)
        harness.console.is_busy = False
        harness.loop_thread.run(harness.rcon.resume)
        client.socket.settimeout(15)
        assert client.receive() == (5, 0, b"ran first")
        assert client.receive() == (6, 0, b"ran second")
        assert newcomer.receive() == (1, 0, b"")


def test_changed_password_ends_existing_sessions(harness: RconHarness) -> None:
    with RconClient(harness.port) as client:
        client.log_in(PASSWORD)
        harness.console.rcon_password = "changed"
        client.send(5, 2, b"status")
        assert client.receive() == (-1, 2, b"")
        assert client.is_closed()
    assert harness.console.executed == []


def test_client_that_does_not_read_answers_is_disconnected(driven: RconHarness) -> None:
    with RconClient(driven.port, receive_buffer=4096) as client:
        client.log_in(PASSWORD)
        before = _open_files()
        for number in range(2):
            client.send(number, 2, TOO_BIG)
        _wait_until(lambda: driven.console.executed != [])
        driven.loop_thread.advance(UNREAD_S - 1)
        assert _open_files() == before
        driven.loop_thread.advance(2)
        _wait_until(lambda: _open_files() == before - 1)
    assert len(driven.console.executed) == 1


def test_commands_of_a_slow_reader_are_all_answered(harness: RconHarness) -> None:
    with RconClient(harness.port, receive_buffer=4096) as client:
        client.log_in(PASSWORD)
        for number in range(40):
            client.send(number, 2, b"big 200000")
        _wait_until(lambda: harness.console.executed != [])
        assert len(harness.console.executed) < 40
        assert [client.receive()[0] for _ in range(40)] == list(range(40))


def test_closing_connection_waits_only_briefly_for_its_reader(driven: RconHarness) -> None:
    with RconClient(driven.port, receive_buffer=4096) as client:
        client.log_in(PASSWORD)
        client.send(1, 2, TOO_BIG)
        _wait_until(lambda: driven.console.executed != [])
        before = _open_files()
        driven.loop_thread.run(driven.rcon.drop_all)
        driven.loop_thread.advance(CLOSE_TIMEOUT_S / 2)
        assert _open_files() == before
        driven.loop_thread.advance(CLOSE_TIMEOUT_S)
        _wait_until(lambda: _open_files() == before - 1)


def test_flood_of_commands_does_not_starve_other_clients(harness: RconHarness) -> None:
    with RconClient(harness.port) as flood, RconClient(harness.port) as other:
        assert flood.log_in(PASSWORD)
        assert other.log_in(PASSWORD)
        flood.socket.sendall(b"".join(packet(number, 2, b"work") for number in range(5000)))
        assert other.run("status") == "ran status"
        assert 0 < len(harness.console.executed) < 200
        longest_s = harness.loop_thread.call(_longest_wait(0.3))
    assert longest_s < 2


def test_number_of_connections_is_limited(harness: RconHarness) -> None:
    clients = [RconClient(harness.port) for _ in range(MAX_SESSIONS)]
    assert all(client.log_in(PASSWORD) for client in clients)
    with RconClient(harness.port) as one_more:
        assert one_more.is_closed()
    for client in clients:
        client.socket.close()


def test_new_connection_over_the_limit_replaces_an_unauthenticated_one(harness: RconHarness) -> None:
    idle_clients = [RconClient(harness.port) for _ in range(MAX_SESSIONS)]
    with RconClient(harness.port) as client:
        assert client.log_in(PASSWORD)
        assert idle_clients[0].is_closed()
        assert client.run("status") == "ran status"
    for idle_client in idle_clients:
        idle_client.socket.close()


@examples(30)
@given(data=st.binary(max_size=300), is_authenticated=st.booleans(), cuts=st.lists(st.integers(1, 300), max_size=5))
def test_server_survives_any_input(data: bytes, is_authenticated: bool, cuts: list[int]) -> None:
    with contextlib.closing(RconHarness(ban_s=0.0)) as harness:
        with RconClient(harness.port) as client, contextlib.suppress(ConnectionError):
            if is_authenticated:
                client.log_in(PASSWORD)
            positions = sorted({0, *(cut for cut in cuts if cut < len(data)), len(data)})
            for begin, end in itertools.pairwise(positions):
                client.socket.sendall(data[begin:end])
        with RconClient(harness.port) as client:
            assert client.log_in(PASSWORD)
            assert client.run("status") == "ran status"


def test_abrupt_close_closes_port_and_connections(harness: RconHarness) -> None:
    with RconClient(harness.port) as client:
        client.log_in(PASSWORD)
        harness.loop_thread.run(lambda: harness.rcon.close(is_abrupt=True))
        assert client.is_closed()
        with pytest.raises(ConnectionRefusedError):
            RconClient(harness.port)
