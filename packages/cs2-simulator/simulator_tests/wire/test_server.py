"""Tests of one server with its sockets: clock, console, log and requests, with a fake machine."""

from __future__ import annotations

import asyncio
import logging
import select
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from cs2_simulator.options import ServerOptions
from cs2_simulator.wire.http_client import HttpClient
from cs2_simulator.wire.pacer import Pacer
from cs2_simulator.wire.server import MAX_LAG_S, MAX_REPORTS, STEP_MS, TICK_MS, SimulatedServer
from simulator_tests.rcon_client import ClosedError, RconClient
from simulator_tests.wire.fake_machine import PASSWORD, FakeMachine
from simulator_tests.wire.log_receiver import LogReceiver, Response
from simulator_tests.wire.loop_thread import TIMEOUT_S, DrivenLoop, LoopThread, turns

START_MS = 1_700_000_000_000
TOKEN = "0123456789abcdef"


class ServerHarness:
    def __init__(self, loop_thread: LoopThread, options: ServerOptions, servers: int) -> None:
        self.loop_thread = loop_thread
        self.ended: list[SimulatedServer] = []
        self.machines: list[FakeMachine] = []
        self.client = loop_thread.run(HttpClient)
        self._has_ended = threading.Event()
        self.server = self.make_server(options, servers=servers)
        loop_thread.call(self.server.bind())
        loop_thread.run(self.server.boot)

    def make_server(self, options: ServerOptions, *, servers: int = 1) -> SimulatedServer:
        return self.loop_thread.run(
            lambda: SimulatedServer(
                options,
                self.client,
                Pacer(),
                make_machine=self._make_machine,
                start_ms=START_MS,
                instance_token=TOKEN,
                on_exit=self._on_exit,
                servers=servers,
            )
        )

    @property
    def port(self) -> int:
        return self.server.options.port

    @property
    def machine(self) -> FakeMachine:
        return self.machines[0]

    def console(self) -> RconClient:
        client = RconClient(self.port)
        assert client.log_in(PASSWORD)
        return client

    def wait_for_exit(self) -> None:
        assert self._has_ended.wait(TIMEOUT_S)

    def _on_exit(self, server: SimulatedServer) -> None:
        self.ended.append(server)
        self._has_ended.set()

    def _make_machine(
        self, options: ServerOptions, outside: object, *, start_ms: int, instance_token: str
    ) -> FakeMachine:
        assert isinstance(outside, SimulatedServer)
        machine = FakeMachine(options, outside, start_ms=start_ms, instance_token=instance_token)
        self.machines.append(machine)
        return machine


@contextmanager
def run_server(
    *commands: str, speed: float = 1.0, servers: int = 1, is_driven: bool = False
) -> Iterator[ServerHarness]:
    with LoopThread(is_driven=is_driven) as loop_thread:
        options = ServerOptions(port=0, speed=speed, commands=commands)
        harness = ServerHarness(loop_thread, options, servers)
        try:
            yield harness
        finally:
            loop_thread.call(harness.server.stop())
            loop_thread.call(harness.client.close())


def test_console_responds_and_the_machine_has_the_bound_port() -> None:
    with run_server() as harness, harness.console() as client:
        assert client.run("echo hello") == "hello"
        assert harness.machine.options.port == harness.port > 0
        assert harness.machine.executed == [("echo hello", client.source)]


@pytest.mark.parametrize(
    ("beat", "passed_s", "moved_s"),
    [
        pytest.param(None, 1000, 1000, id="a clock without tasks runs on"),
        pytest.param(30_000, 31, 31, id="idle time does not count as lag"),
        pytest.param(10, 60, MAX_LAG_S, id="the clock catches up by the maximum lag"),
    ],
)
@pytest.mark.parametrize("speed", [1, 50])
def test_clock_runs_at_the_configured_speed(beat: int | None, passed_s: float, moved_s: float, speed: int) -> None:
    commands = () if beat is None else (f"beat {beat * speed}",)
    with run_server(*commands, speed=speed, is_driven=True) as harness, harness.console() as client:
        before_ms = int(client.run("time"))
        harness.loop_thread.advance(passed_s)
        slack_ms = 2 * TICK_MS + (beat or 0) * speed if moved_s < passed_s else TICK_MS
        assert 0 <= int(client.run("time")) - before_ms - moved_s * speed * 1000 + TICK_MS <= TICK_MS + slack_ms


def test_changed_speed_takes_effect_immediately() -> None:
    with run_server(is_driven=True) as harness, harness.console() as client:
        client.run("beat 1000")
        client.run("speed 100")
        harness.loop_thread.advance(0.3)
        assert harness.machine.beats in (30, 31)
        client.run("speed 0")
        printed_ms = client.run("time")
        harness.loop_thread.advance(10)
        assert client.run("time") == printed_ms


def test_server_that_is_behind_catches_up_in_limited_steps() -> None:
    with run_server("beat 1000", speed=300, is_driven=True) as harness:
        agenda = harness.machine.agenda

        async def step() -> int:
            before_ms = agenda.now_ms
            assert isinstance(harness.loop_thread.loop, DrivenLoop)
            harness.loop_thread.loop.advance(1)
            harness.server.execute("echo", "")
            step_ms = agenda.now_ms - before_ms
            while agenda.now_ms < before_ms + 299_000:
                await asyncio.sleep(0)
            return step_ms

        assert harness.loop_thread.call(step()) <= STEP_MS + 1000


def test_log_lines_are_posted_with_token_and_address() -> None:
    with LogReceiver() as receiver, run_server() as harness, harness.console() as client:
        client.run(f"listen {receiver.url}")
        client.run("say hello")
        (request,) = receiver.wait_for_requests(1)
        assert request.body.endswith(b'"Console<0>" say "hello"\n')
        assert request.header_map["X-Server-Instance-Token"] == TOKEN
        assert request.header_map["X-Server-Addr"] == f"127.0.0.1:{harness.port}"
        client.run("say again")
        assert receiver.wait_for_requests(2)[1].body.endswith(b'say "again"\n')


def test_console_does_not_respond_during_a_map_load() -> None:
    with run_server(speed=10) as harness, harness.console() as client:
        assert client.run("busy 5000") == "busy"
        begin_s = time.monotonic()
        assert client.run("echo free") == "free"
        assert time.monotonic() - begin_s > 0.3


def test_clock_stops_during_a_fetch() -> None:
    answers = threading.Event()
    with (
        LogReceiver() as receiver,
        run_server(speed=100, is_driven=True) as harness,
        harness.console() as client,
    ):
        receiver.default = Response(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody", during=answers.wait)
        client.run("beat 100")
        client.run(f"fetch {receiver.url}")
        beats = harness.machine.beats
        receiver.wait_for_requests(1)
        harness.loop_thread.advance(5)
        assert harness.machine.beats == beats
        answers.set()
        client.run("echo done")
        assert [(fetched.status, fetched.body) for fetched in harness.machine.fetched] == [(200, b"body")]
        assert receiver.requests[0].method == "GET"
        assert receiver.requests[0].header_map["X-Key"] == "value"


def test_plugin_events_are_dropped_while_too_many_are_pending() -> None:
    answers = threading.Event()
    with LogReceiver() as receiver, run_server() as harness:
        receiver.default = Response(during=answers.wait)

        def report(times: int) -> None:
            for _ in range(times):
                harness.machine.execute(f"report {receiver.url}", "")

        harness.loop_thread.run(lambda: report(MAX_REPORTS + 10))
        receiver.wait_for_requests(MAX_REPORTS)
        answers.set()
        assert harness.loop_thread.finish_tasks() == 0
        harness.loop_thread.run(lambda: report(1))
        assert harness.loop_thread.finish_tasks() == 0
        assert len(receiver.requests) == MAX_REPORTS + 1, "each is posted once, and an answer makes room for the next"
        assert receiver.requests[0].header_map["Content-Type"] == "application/json; charset=utf-8"


def test_connections_are_dropped_after_the_answer() -> None:
    with run_server() as harness:
        with harness.console() as client:
            assert client.run("drop") == "dropped"
            assert client.is_closed()
        with harness.console() as client:
            assert client.run("echo back") == "back"


def test_quit_sends_the_last_lines_and_frees_the_port() -> None:
    with LogReceiver() as receiver, run_server(f"listen {receiver.url}") as harness:
        with harness.console() as client:
            client.run("quit")
            assert client.is_closed()
        harness.wait_for_exit()
        assert b"".join(request.body for request in receiver.requests).endswith(b"Log file closed\n")
        assert harness.server.is_over
        assert not harness.server.has_crashed
        with pytest.raises(ConnectionRefusedError):
            RconClient(harness.port)


def test_crash_closes_connections_without_sending_logs() -> None:
    with LogReceiver() as receiver, run_server(f"listen {receiver.url}") as harness, harness.console() as client:
        client.send(99, 2, b"crash")
        client.receive()
        with pytest.raises(ClosedError):
            client.receive()
        harness.wait_for_exit()
        assert harness.server.has_crashed
        assert b"quit" not in b"".join(request.body for request in receiver.requests)


def test_hanging_server_keeps_its_sockets_open_without_responding() -> None:
    with (
        LogReceiver() as receiver,
        run_server(f"listen {receiver.url}", "beat 10", is_driven=True) as harness,
        harness.console() as client,
    ):
        harness.loop_thread.advance(1)
        receiver.wait_for_requests(1)
        client.run("hang")
        harness.loop_thread.advance(1)
        harness.loop_thread.finish_tasks()
        beats, posts = harness.machine.beats, len(receiver.requests)
        client.send(1, 2, b"echo hello")
        with RconClient(harness.port) as newcomer:
            newcomer.send(1, 3, PASSWORD.encode())
            harness.loop_thread.advance(60)
            assert select.select([client.socket, newcomer.socket], [], [], 0.2) == ([], [], [])
        assert (harness.machine.beats, len(receiver.requests)) == (beats, posts)


@pytest.mark.parametrize("fault", ["fail", "fail_later", "fetch_and_fail nowhere"])
def test_exception_in_the_machine_is_logged_and_crashes_the_server(
    fault: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR), run_server() as harness, harness.console() as client:
        client.send(5, 2, fault.encode())
        harness.wait_for_exit()
        assert harness.server.has_crashed
    assert "machine failed" in caplog.text


def test_client_that_connects_before_boot_waits() -> None:
    with run_server() as harness:
        other = harness.make_server(ServerOptions(port=0))
        harness.loop_thread.call(other.bind())
        with RconClient(other.options.port) as client:
            client.send(1, 3, PASSWORD.encode())
            harness.loop_thread.call(turns())
            harness.loop_thread.run(other.boot)
            assert client.receive() == (1, 0, b"")
        harness.loop_thread.call(other.stop())


def test_server_responds_with_the_longer_steps_of_a_large_farm() -> None:
    with run_server("beat 100", speed=30, servers=500) as harness, harness.console() as client:
        assert client.run("echo hello") == "hello"
