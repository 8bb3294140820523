"""The RCON port, seen by a client that was written from the packet layout alone."""

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

from matchpod.simulator.wire import rcon_server
from matchpod.simulator.wire.rcon_server import MAX_SESSIONS, RconServer
from tests.e2e.simulator.loop_thread import LoopThread
from tests.e2e.simulator.rcon_client import ClosedError, RconClient, packet
from tests.effort import examples

PASSWORD = "open sesame"


class Console:
    """A console that remembers what it was told."""

    def __init__(self) -> None:
        self.is_busy = False
        self.rcon_password = PASSWORD
        self.ran: list[tuple[str, str]] = []

    def execute(self, text: str, source: str) -> str:
        self.ran.append((text, source))
        if text.startswith("big "):
            return "ü" * int(text[4:])
        if text == "work":
            until_s = time.perf_counter() + 0.001
            while time.perf_counter() < until_s:
                pass
        return f"ran {text}"


class Port:
    """A running RCON port."""

    def __init__(self, *, has_mirror: bool = True, ban_s: float = 60.0) -> None:
        self.console = Console()
        self.threads = LoopThread().__enter__()
        self.rcon = self.threads.do(lambda: RconServer(self.console, has_mirror=has_mirror, ban_s=ban_s))
        self.number = self.threads.call(self.rcon.bind("127.0.0.1", 0))

    def close(self) -> None:
        self.threads.do(self.rcon.close)
        self.threads.__exit__(None, None, None)


def _wait_until(is_so: Callable[[], bool]) -> None:
    until_s = time.monotonic() + 10
    while not is_so():
        assert time.monotonic() < until_s
        time.sleep(0.01)


def _open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


async def _longest_wait(for_s: float) -> float:
    """The longest time in which the loop did not come round."""
    loop = asyncio.get_running_loop()
    begin_s = last_s = loop.time()
    longest_s = 0.0
    while last_s < begin_s + for_s:
        await asyncio.sleep(0)
        longest_s = max(longest_s, loop.time() - last_s)
        last_s = loop.time()
    return longest_s


@pytest.fixture
def port() -> Iterator[Port]:
    opened = Port()
    yield opened
    opened.close()


def test_right_password_opens_the_console(port: Port) -> None:
    with RconClient(port.number) as client:
        assert client.log_in(PASSWORD)
        assert client.run("status") == "ran status"
        assert port.console.ran == [("status", client.source)]


def test_wrong_password_is_refused_and_the_right_one_taken_afterwards(port: Port) -> None:
    with RconClient(port.number) as client:
        assert not client.log_in("guess")
        assert client.log_in(PASSWORD)


def test_empty_password_lets_nobody_in(port: Port) -> None:
    port.console.rcon_password = ""
    with RconClient(port.number) as client:
        assert not client.log_in("")


def test_command_before_the_password_is_denied_and_ends_the_connection(port: Port) -> None:
    with RconClient(port.number) as client:
        client.send(7, 2, b"status")
        assert client.receive() == (-1, 2, b"")
        assert client.is_closed()
    assert port.console.ran == []


def test_commands_are_answered_in_their_order(port: Port) -> None:
    with RconClient(port.number) as client:
        client.log_in(PASSWORD)
        client.socket.sendall(b"".join(packet(number, 2, b"echo %d" % number) for number in range(10, 60)))
        assert [client.receive() for _ in range(50)] == [(n, 0, b"ran echo %d" % n) for n in range(10, 60)]


def test_password_and_command_may_come_in_one_piece(port: Port) -> None:
    with RconClient(port.number) as client:
        client.socket.sendall(packet(1, 3, PASSWORD.encode()) + packet(2, 2, b"status"))
        assert [client.receive()[:2] for _ in range(3)] == [(1, 0), (1, 2), (2, 0)]


def test_packets_may_come_in_single_bytes(port: Port) -> None:
    with RconClient(port.number) as client:
        client.log_in(PASSWORD)
        for byte in packet(5, 2, b"status"):
            client.socket.sendall(bytes([byte]))
        assert client.receive() == (5, 0, b"ran status")


def test_large_answer_is_one_packet(port: Port) -> None:
    with RconClient(port.number) as client:
        client.log_in(PASSWORD)
        assert client.run("big 300000") == "ü" * 300_000


def test_empty_packet_is_mirrored_with_its_end_mark(port: Port) -> None:
    with RconClient(port.number) as client:
        client.log_in(PASSWORD)
        client.socket.sendall(packet(5, 2, b"status") + packet(6, 0))
        assert client.receive() == (5, 0, b"ran status")
        assert client.receive() == (6, 0, b"")
        # The end mark is 00 01 00 00 before its two terminators.
        assert client.receive() == (6, 0, b"\x00\x01\x00\x00")


def test_mirror_can_be_switched_off() -> None:
    port = Port(has_mirror=False)
    with RconClient(port.number) as client:
        client.log_in(PASSWORD)
        client.socket.sendall(packet(6, 0) + packet(7, 2, b"status"))
        assert client.receive() == (7, 0, b"ran status")
    port.close()


@pytest.mark.parametrize(
    "nonsense",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        struct.pack("<i", -5) + b"xxxx",
        struct.pack("<i", 3) + b"xxxx",
        struct.pack("<i", 2**30),
    ],
)
def test_nonsense_ends_the_connection(port: Port, nonsense: bytes) -> None:
    with RconClient(port.number) as client:
        client.socket.sendall(nonsense)
        assert client.is_closed()
    with RconClient(port.number) as client:
        assert client.log_in(PASSWORD)


def test_guessing_bans_the_address_for_a_while(port: Port) -> None:
    with RconClient(port.number) as honest, RconClient(port.number) as client:
        assert honest.log_in(PASSWORD)
        for _ in range(5):
            assert not client.log_in("guess")
        assert client.is_closed()
        assert honest.is_closed()
    with RconClient(port.number) as again:
        assert again.is_closed()


def test_ban_ends() -> None:
    port = Port(ban_s=0.0)
    with RconClient(port.number) as client:
        for _ in range(7):
            assert not client.log_in("guess")
        assert client.log_in(PASSWORD)
    port.close()


def test_while_the_console_is_busy_everything_waits(port: Port) -> None:
    with RconClient(port.number) as client, RconClient(port.number) as newcomer:
        client.log_in(PASSWORD)
        port.console.is_busy = True
        client.send(5, 2, b"first")
        client.send(6, 2, b"second")
        newcomer.send(1, 3, PASSWORD.encode())
        client.socket.settimeout(0.3)
        with pytest.raises(TimeoutError):
            client.receive()
        assert port.console.ran == []
        port.threads.do(port.rcon.resume)
        port.console.is_busy = False
        port.threads.do(port.rcon.resume)
        client.socket.settimeout(15)
        assert client.receive() == (5, 0, b"ran first")
        assert client.receive() == (6, 0, b"ran second")
        assert newcomer.receive() == (1, 0, b"")


def test_another_password_ends_sessions_of_the_old_one(port: Port) -> None:
    with RconClient(port.number) as client:
        client.log_in(PASSWORD)
        port.console.rcon_password = "changed"
        client.send(5, 2, b"status")
        assert client.receive() == (-1, 2, b"")
        assert client.is_closed()
    assert port.console.ran == []


def test_dropping_cuts_all_connections_and_the_port_stays(port: Port) -> None:
    with RconClient(port.number) as client:
        client.log_in(PASSWORD)
        port.threads.do(port.rcon.drop_all)
        with pytest.raises(ClosedError):
            client.run("status")
    with RconClient(port.number) as client:
        assert client.log_in(PASSWORD)


def test_client_that_fetches_no_answers_is_cut(port: Port, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rcon_server, "UNREAD_S", 0.3)
    with RconClient(port.number, receive_buffer=4096) as client:
        client.log_in(PASSWORD)
        before = _open_files()
        for number in range(100):
            client.send(number, 2, b"big 200000")
        _wait_until(lambda: _open_files() == before - 1)
    assert len(port.console.ran) < 100


def test_commands_of_a_slow_reader_wait_and_are_all_answered(port: Port) -> None:
    with RconClient(port.number, receive_buffer=4096) as client:
        client.log_in(PASSWORD)
        for number in range(40):
            client.send(number, 2, b"big 200000")
        _wait_until(lambda: port.console.ran != [])
        assert len(port.console.ran) < 40
        assert [client.receive()[0] for _ in range(40)] == list(range(40))


def test_connection_being_closed_does_not_wait_for_its_reader_for_long(
    port: Port, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rcon_server, "FAREWELL_S", 0.1)
    with RconClient(port.number, receive_buffer=4096) as client:
        client.log_in(PASSWORD)
        for number in range(40):
            client.send(number, 2, b"big 200000")
        _wait_until(lambda: port.console.ran != [])
        before = _open_files()
        port.threads.do(port.rcon.drop_all)
        _wait_until(lambda: _open_files() == before - 1)


def test_flood_of_commands_leaves_time_to_others(port: Port) -> None:
    with RconClient(port.number) as flood, RconClient(port.number) as other:
        assert flood.log_in(PASSWORD)
        assert other.log_in(PASSWORD)
        flood.socket.sendall(b"".join(packet(number, 2, b"work") for number in range(5000)))
        assert other.run("status") == "ran status"
        assert 0 < len(port.console.ran) < 200
        longest_s = port.threads.call(_longest_wait(0.3))
    assert longest_s < 2


def test_connections_are_limited(port: Port) -> None:
    clients = [RconClient(port.number) for _ in range(MAX_SESSIONS)]
    assert all(client.log_in(PASSWORD) for client in clients)
    with RconClient(port.number) as one_more:
        assert one_more.is_closed()
    for client in clients:
        client.socket.close()


def test_those_who_give_no_password_make_room_for_others(port: Port) -> None:
    idlers = [RconClient(port.number) for _ in range(MAX_SESSIONS)]
    with RconClient(port.number) as client:
        assert client.log_in(PASSWORD)
        assert idlers[0].is_closed()
        assert client.run("status") == "ran status"
    for idler in idlers:
        idler.socket.close()


@examples(60)
@given(data=st.binary(max_size=300), begins_well=st.booleans(), cuts=st.lists(st.integers(1, 300), max_size=5))
def test_whatever_comes_the_port_goes_on(data: bytes, begins_well: bool, cuts: list[int]) -> None:
    with contextlib.closing(Port(ban_s=0.0)) as port:
        with RconClient(port.number) as client, contextlib.suppress(ConnectionError):
            if begins_well:
                client.log_in(PASSWORD)
            places = sorted({0, *(cut for cut in cuts if cut < len(data)), len(data)})
            for begin, end in itertools.pairwise(places):
                client.socket.sendall(data[begin:end])
        with RconClient(port.number) as client:
            assert client.log_in(PASSWORD)
            assert client.run("status") == "ran status"


def test_closing_abruptly_cuts_everything(port: Port) -> None:
    with RconClient(port.number) as client:
        client.log_in(PASSWORD)
        port.threads.do(lambda: port.rcon.close(is_abrupt=True))
        assert client.is_closed()
        with pytest.raises(ConnectionRefusedError):
            RconClient(port.number)
