"""Tests of one server with its sockets: clock, console, log and requests, with a fake machine."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from cs2_simulator.options import ServerOptions
from cs2_simulator.wire import server as server_module
from cs2_simulator.wire.http_client import HttpClient
from cs2_simulator.wire.pacer import Pacer
from cs2_simulator.wire.server import TICK_MS, SimulatedServer
from simulator_tests.wire.fake_machine import PASSWORD, FakeMachine
from simulator_tests.wire.log_receiver import LogReceiver, Response, status
from simulator_tests.wire.loop_thread import LoopThread
from tests.rcon_client import ClosedError, RconClient

START_MS = 1_700_000_000_000
TOKEN = "0123456789abcdef"


class ServerHarness:
    """A server in its own event loop."""

    def __init__(self, loop_thread: LoopThread, options: ServerOptions, servers: int) -> None:
        self.loop_thread = loop_thread
        self.ended: list[SimulatedServer] = []
        self.machines: list[FakeMachine] = []
        self.client = loop_thread.run(HttpClient)
        self.server = loop_thread.run(
            lambda: SimulatedServer(
                options,
                self.client,
                Pacer(),
                make_machine=self._make_machine,
                start_ms=START_MS,
                instance_token=TOKEN,
                on_exit=self.ended.append,
                servers=servers,
            )
        )
        loop_thread.call(self.server.bind())
        loop_thread.run(self.server.boot)

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
        until_s = time.monotonic() + 15
        while not self.ended:
            assert time.monotonic() < until_s
            time.sleep(0.01)

    def _make_machine(
        self, options: ServerOptions, outside: object, *, start_ms: int, instance_token: str
    ) -> FakeMachine:
        assert isinstance(outside, SimulatedServer)
        machine = FakeMachine(options, outside, start_ms=start_ms, instance_token=instance_token)
        self.machines.append(machine)
        return machine


@contextmanager
def run_server(*commands: str, speed: float = 1.0, servers: int = 1) -> Iterator[ServerHarness]:
    with LoopThread() as loop_thread:
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


def test_commands_of_the_options_run_at_boot() -> None:
    with run_server("echo one", "echo two") as harness:
        assert harness.machine.executed == [("echo one", ""), ("echo two", "")]


def test_clock_runs_at_the_configured_speed_and_never_faster() -> None:
    before_s = time.monotonic()
    with run_server(speed=50) as harness, harness.console() as client:
        time.sleep(0.3)
        printed_ms = int(client.run("time"))
        assert 0 < printed_ms <= (time.monotonic() - before_s) * 50_000
        assert printed_ms > 0.2 * 50_000 * 0.5


def test_changed_speed_takes_effect_immediately() -> None:
    with run_server() as harness, harness.console() as client:
        client.run("beat 1000")
        client.run("speed 100")
        until_s = time.monotonic() + 15
        while harness.machine.beats < 30:
            assert time.monotonic() < until_s
            time.sleep(0.02)
        client.run("speed 0")
        printed_ms = client.run("time")
        time.sleep(0.1)
        assert client.run("time") == printed_ms


def test_clock_catches_up_by_at_most_the_maximum_lag(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "MAX_LAG_S", 0.1)
    with run_server("beat 10") as harness, harness.console() as client:
        before_ms = int(client.run("time"))
        harness.loop_thread.loop.call_soon_threadsafe(time.sleep, 5.0)
        after_ms = int(client.run("time"))
        assert after_ms - before_ms < 4000


def test_idle_time_does_not_count_as_lag(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "MAX_LAG_S", 1.0)
    with run_server("beat 3000") as harness, harness.console() as client:
        before_s = time.monotonic()
        before_ms = int(client.run("time"))
        time.sleep(4.0)
        passed_ms = int(client.run("time")) - before_ms
        # More than the 1 s to catch up and the first of two beats: a slow machine may lose the rest.
        assert 2000 < passed_ms <= (time.monotonic() - before_s) * 1000 + TICK_MS


def test_clock_advances_without_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "MAX_LAG_S", 0.05)
    with run_server() as harness, harness.console() as client:
        before_ms = int(client.run("time"))
        time.sleep(0.5)
        assert int(client.run("time")) - before_ms > 450  # never less on a slow machine: nothing limits it


def test_server_that_is_behind_catches_up_in_limited_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "STEP_MS", 1000)
    with run_server("beat 100", speed=1000) as harness:
        agenda = harness.machine.agenda

        def step_ms() -> int:
            before_ms = agenda.now_ms
            time.sleep(0.2)
            harness.server.execute("echo", "")
            return agenda.now_ms - before_ms

        assert harness.loop_thread.run(step_ms) <= 1100
        behind_ms = harness.loop_thread.run(lambda: agenda.now_ms)
        until_s = time.monotonic() + 10
        while agenda.now_ms < behind_ms + 190_000:
            assert time.monotonic() < until_s


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


def test_lines_of_scheduled_tasks_are_posted_without_console_use() -> None:
    with LogReceiver() as receiver, run_server(f"listen {receiver.url}", "beat 100", speed=10):
        receiver.wait_for(lambda: b"beat 50" in b"".join(request.body for request in receiver.requests))


def test_failed_post_is_retried_without_new_lines() -> None:
    with LogReceiver() as receiver:
        receiver.responses.extend([status(500), status(503)])
        with run_server(f"listen {receiver.url}", "say hello"):
            receiver.wait_for_requests(3)
            assert len({request.body for request in receiver.requests}) == 1


def test_console_does_not_respond_during_a_map_load() -> None:
    with run_server(speed=10) as harness, harness.console() as client:
        assert client.run("busy 5000") == "busy"
        begin_s = time.monotonic()
        assert client.run("echo free") == "free"
        assert time.monotonic() - begin_s > 0.3


def test_clock_stops_during_a_fetch() -> None:
    with LogReceiver() as receiver, run_server(speed=100) as harness, harness.console() as client:
        receiver.default = Response(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody", during=lambda: time.sleep(0.5))
        client.run("beat 100")
        client.run(f"fetch {receiver.url}")
        beats = harness.machine.beats
        receiver.wait_for_requests(1)
        time.sleep(0.2)
        assert harness.machine.beats == beats
        client.run("echo done")
        assert [(fetched.status, fetched.body) for fetched in harness.machine.fetched] == [(200, b"body")]
        assert receiver.requests[0].method == "GET"
        assert receiver.requests[0].header_map["X-Key"] == "value"


def test_failed_fetch_is_reported() -> None:
    with run_server() as harness, harness.console() as client:
        client.run("fetch nowhere")
        client.run("echo done")
        assert [fetched.status for fetched in harness.machine.fetched] == [None]


def test_plugin_events_are_posted_once_and_dropped_while_too_many_are_pending(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "MAX_REPORTS", 3)
    with LogReceiver() as receiver, run_server() as harness:
        receiver.default = Response(hangs=True)

        def report() -> None:
            for _ in range(10):
                harness.machine.execute(f"report {receiver.url}", "")

        harness.loop_thread.run(report)
        receiver.wait_for_requests(3)
        time.sleep(0.1)
        assert len(receiver.requests) == 3
        assert receiver.requests[0].header_map["Content-Type"] == "application/json; charset=utf-8"


def test_finished_plugin_event_makes_room_for_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "MAX_REPORTS", 1)
    with LogReceiver() as receiver, run_server() as harness, harness.console() as client:
        for count in (1, 2):
            client.run(f"report {receiver.url}")
            receiver.wait_for_requests(count)
            time.sleep(0.2)


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


def test_quit_waits_only_briefly_for_a_hanging_receiver() -> None:
    with LogReceiver() as receiver, run_server(f"listen {receiver.url}") as harness:
        receiver.default = Response(hangs=True)
        begin_s = time.monotonic()
        harness.loop_thread.call(harness.server.stop())
        assert time.monotonic() - begin_s < 60
        assert harness.ended == [harness.server]


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
        run_server(f"listen {receiver.url}", "beat 10") as harness,
        harness.console() as client,
    ):
        receiver.wait_for_requests(1)
        client.run("hang")
        time.sleep(0.2)
        beats, posts = harness.machine.beats, len(receiver.requests)
        client.socket.settimeout(0.5)
        with pytest.raises(TimeoutError):
            client.run("echo hello")
        with RconClient(harness.port) as newcomer:
            newcomer.socket.settimeout(0.3)
            with pytest.raises(TimeoutError):
                newcomer.log_in(PASSWORD)
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
        other = harness.loop_thread.run(
            lambda: SimulatedServer(
                ServerOptions(port=0),
                harness.client,
                Pacer(),
                make_machine=FakeMachine,
                start_ms=START_MS,
                instance_token=TOKEN,
                on_exit=harness.ended.append,
            )
        )
        harness.loop_thread.call(other.bind())
        with RconClient(other.options.port) as client:
            client.send(1, 3, PASSWORD.encode())
            time.sleep(0.1)
            harness.loop_thread.run(other.boot)
            assert client.receive() == (1, 0, b"")
        harness.loop_thread.call(other.stop())


def test_port_in_use_is_reported_and_resources_are_freed() -> None:
    with run_server() as harness:
        other = harness.loop_thread.run(
            lambda: SimulatedServer(
                ServerOptions(port=harness.port),
                harness.client,
                Pacer(),
                make_machine=FakeMachine,
                start_ms=START_MS,
                instance_token=TOKEN,
                on_exit=harness.ended.append,
            )
        )
        with pytest.raises(OSError, match="in use"):
            harness.loop_thread.call(other.bind())
        harness.loop_thread.call(other.stop())
        assert other.is_over


def test_server_responds_with_the_longer_steps_of_a_large_farm() -> None:
    with run_server("beat 100", speed=30, servers=500) as harness, harness.console() as client:
        assert client.run("echo hello") == "hello"
