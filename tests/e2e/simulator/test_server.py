"""One server with its sockets: time, console, log and requests, around a machine that stands in for the game."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from matchpod.simulator.options import ServerOptions
from matchpod.simulator.wire import server as server_module
from matchpod.simulator.wire.http_client import HttpClient
from matchpod.simulator.wire.pacer import Pacer
from matchpod.simulator.wire.server import TICK_MS, Birth, SimulatedServer
from tests.e2e.simulator.log_receiver import Answer, LogReceiver, status
from tests.e2e.simulator.loop_thread import LoopThread
from tests.e2e.simulator.rcon_client import ClosedError, RconClient
from tests.e2e.simulator.stand_in import PASSWORD, StandInMachine

START_MS = 1_700_000_000_000
TOKEN = "0123456789abcdef"


class Running:
    """A server in a loop of its own, and what is known of it."""

    def __init__(self, threads: LoopThread, options: ServerOptions, servers: int) -> None:
        self.threads = threads
        self.ended: list[SimulatedServer] = []
        self.machines: list[StandInMachine] = []
        self.client = threads.do(HttpClient)
        self.server = threads.do(
            lambda: SimulatedServer(
                options,
                self.client,
                Pacer(),
                make_machine=self._make,
                birth=Birth(START_MS, TOKEN),
                on_exit=self.ended.append,
                servers=servers,
            )
        )
        threads.call(self.server.bind())
        threads.do(self.server.boot)

    @property
    def port(self) -> int:
        return self.server.options.port

    @property
    def machine(self) -> StandInMachine:
        return self.machines[0]

    def console(self) -> RconClient:
        client = RconClient(self.port)
        assert client.log_in(PASSWORD)
        return client

    def wait_for_the_end(self) -> None:
        until_s = time.monotonic() + 15
        while not self.ended:
            assert time.monotonic() < until_s
            time.sleep(0.01)

    def _make(self, options: ServerOptions, outside: object, *, start_ms: int, instance_token: str) -> StandInMachine:
        assert isinstance(outside, SimulatedServer)
        machine = StandInMachine(options, outside, start_ms=start_ms, instance_token=instance_token)
        self.machines.append(machine)
        return machine


@contextmanager
def running(*commands: str, speed: float = 1.0, servers: int = 1) -> Iterator[Running]:
    with LoopThread() as threads:
        options = ServerOptions(port=0, speed=speed, commands=commands)
        one = Running(threads, options, servers)
        try:
            yield one
        finally:
            threads.call(one.server.stop())
            threads.call(one.client.close())


def test_console_answers_and_the_machine_knows_its_port() -> None:
    with running() as one, one.console() as client:
        assert client.run("echo hello") == "hello"
        assert one.machine.options.port == one.port > 0
        assert one.machine.ran == [("echo hello", client.source)]


def test_commands_of_the_command_line_are_run_at_the_start() -> None:
    with running("echo one", "echo two") as one:
        assert one.machine.ran == [("echo one", ""), ("echo two", "")]


def test_time_runs_as_fast_as_asked_and_never_faster() -> None:
    before_s = time.monotonic()
    with running(speed=50) as one, one.console() as client:
        time.sleep(0.3)
        shown_ms = int(client.run("time"))
        assert 0 < shown_ms <= (time.monotonic() - before_s) * 50_000
        assert shown_ms > 0.2 * 50_000 * 0.5


def test_another_speed_takes_effect_at_once() -> None:
    with running() as one, one.console() as client:
        client.run("beat 1000")
        client.run("speed 100")
        until_s = time.monotonic() + 15
        while one.machine.beats < 30:
            assert time.monotonic() < until_s
            time.sleep(0.02)
        client.run("speed 0")
        shown_ms = client.run("time")
        time.sleep(0.1)
        assert client.run("time") == shown_ms


def test_time_lost_to_a_standstill_is_made_up_for_only_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "MAX_LAG_S", 0.1)
    with running("beat 10") as one, one.console() as client:
        before_ms = int(client.run("time"))
        one.threads.loop.call_soon_threadsafe(time.sleep, 5.0)
        after_ms = int(client.run("time"))
        assert after_ms - before_ms < 4000


def test_time_in_which_nothing_is_due_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "MAX_LAG_S", 0.05)
    with running("beat 300") as one, one.console() as client:
        before_s = time.monotonic()
        before_ms = int(client.run("time"))
        time.sleep(1.0)
        passed_ms = int(client.run("time")) - before_ms
        assert 900 < passed_ms <= (time.monotonic() - before_s) * 1000 + TICK_MS
        assert one.machine.beats >= 4


def test_a_server_without_plans_knows_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "MAX_LAG_S", 0.05)
    with running() as one, one.console() as client:
        before_ms = int(client.run("time"))
        time.sleep(0.5)
        assert int(client.run("time")) - before_ms > 450


def test_a_server_that_is_behind_lets_others_have_their_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "STEP_MS", 1000)
    with running("beat 100", speed=1000) as one:
        agenda = one.machine.agenda

        def step_ms() -> int:
            before_ms = agenda.now_ms
            time.sleep(0.2)
            one.server.execute("echo", "")
            return agenda.now_ms - before_ms

        assert one.threads.do(step_ms) <= 1100
        behind_ms = one.threads.do(lambda: agenda.now_ms)
        until_s = time.monotonic() + 10
        while agenda.now_ms < behind_ms + 190_000:
            assert time.monotonic() < until_s


def test_log_lines_arrive_with_the_posts_of_this_process() -> None:
    with LogReceiver() as receiver, running() as one, one.console() as client:
        client.run(f"listen {receiver.url}")
        client.run("say hello")
        (request,) = receiver.wait_for_requests(1)
        assert request.body.endswith(b'"Console<0>" say "hello"\n')
        assert request.named["X-Server-Instance-Token"] == TOKEN
        assert request.named["X-Server-Addr"] == f"127.0.0.1:{one.port}"
        client.run("say again")
        assert receiver.wait_for_requests(2)[1].body.endswith(b'say "again"\n')


def test_lines_of_the_agenda_arrive_while_nobody_uses_the_console() -> None:
    with LogReceiver() as receiver, running(f"listen {receiver.url}", "beat 100", speed=10):
        receiver.wait_for(lambda: b"beat 50" in b"".join(request.body for request in receiver.requests))


def test_a_refused_post_is_made_again_without_anything_new_to_say() -> None:
    with LogReceiver() as receiver:
        receiver.answers.extend([status(500), status(503)])
        with running(f"listen {receiver.url}", "say hello"):
            receiver.wait_for_requests(3)
            assert len({request.body for request in receiver.requests}) == 1


def test_console_is_silent_while_a_map_loads_and_answers_after_it() -> None:
    with running(speed=10) as one, one.console() as client:
        assert client.run("busy 5000") == "busy"
        begin_s = time.monotonic()
        assert client.run("echo free") == "free"
        assert time.monotonic() - begin_s > 0.3


def test_time_stands_still_while_something_is_fetched() -> None:
    with LogReceiver() as receiver, running(speed=100) as one, one.console() as client:
        receiver.usual = Answer(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody", during=lambda: time.sleep(0.5))
        client.run("beat 100")
        client.run(f"fetch {receiver.url}")
        beats = one.machine.beats
        receiver.wait_for_requests(1)
        time.sleep(0.2)
        assert one.machine.beats == beats
        client.run("echo done")
        assert [(fetched.status, fetched.body) for fetched in one.machine.fetched] == [(200, b"body")]
        assert receiver.requests[0].method == "GET"
        assert receiver.requests[0].named["X-Key"] == "value"


def test_what_cannot_be_fetched_is_told() -> None:
    with running() as one, one.console() as client:
        client.run("fetch nowhere")
        client.run("echo done")
        assert [fetched.status for fetched in one.machine.fetched] == [None]


def test_plugin_events_are_posted_once_and_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "MAX_REPORTS", 3)
    with LogReceiver() as receiver, running() as one:
        receiver.usual = Answer(hangs=True)

        def report() -> None:
            for _ in range(10):
                one.machine.execute(f"report {receiver.url}", "")

        one.threads.do(report)
        receiver.wait_for_requests(3)
        time.sleep(0.1)
        assert len(receiver.requests) == 3
        assert receiver.requests[0].named["Content-Type"] == "application/json; charset=utf-8"


def test_plugin_event_leaves_room_for_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "MAX_REPORTS", 1)
    with LogReceiver() as receiver, running() as one, one.console() as client:
        for count in (1, 2):
            client.run(f"report {receiver.url}")
            receiver.wait_for_requests(count)
            time.sleep(0.2)


def test_consoles_are_dropped_after_the_answer() -> None:
    with running() as one:
        with one.console() as client:
            assert client.run("drop") == "dropped"
            assert client.is_closed()
        with one.console() as client:
            assert client.run("echo back") == "back"


def test_quit_sends_the_last_lines_and_frees_the_port() -> None:
    with LogReceiver() as receiver, running(f"listen {receiver.url}") as one:
        with one.console() as client:
            client.run("quit")
            assert client.is_closed()
        one.wait_for_the_end()
        assert b"".join(request.body for request in receiver.requests).endswith(b"Log file closed\n")
        assert one.server.is_over
        assert not one.server.has_crashed
        with pytest.raises(ConnectionRefusedError):
            RconClient(one.port)


def test_quit_does_not_wait_for_a_dead_receiver_for_long() -> None:
    with LogReceiver() as receiver, running(f"listen {receiver.url}") as one:
        receiver.usual = Answer(hangs=True)
        begin_s = time.monotonic()
        one.threads.call(one.server.stop())
        assert time.monotonic() - begin_s < 60
        assert one.ended == [one.server]


def test_crash_cuts_everything_without_a_word() -> None:
    with LogReceiver() as receiver, running(f"listen {receiver.url}") as one, one.console() as client:
        client.send(99, 2, b"crash")
        client.receive()
        with pytest.raises(ClosedError):
            client.receive()
        one.wait_for_the_end()
        assert one.server.has_crashed
        assert b"quit" not in b"".join(request.body for request in receiver.requests)


def test_hanging_server_keeps_its_sockets_open_and_says_nothing() -> None:
    with LogReceiver() as receiver, running(f"listen {receiver.url}", "beat 10") as one, one.console() as client:
        receiver.wait_for_requests(1)
        client.run("hang")
        time.sleep(0.2)
        beats, posts = one.machine.beats, len(receiver.requests)
        client.socket.settimeout(0.5)
        with pytest.raises(TimeoutError):
            client.run("echo hello")
        with RconClient(one.port) as newcomer:
            newcomer.socket.settimeout(0.3)
            with pytest.raises(TimeoutError):
                newcomer.log_in(PASSWORD)
        assert (one.machine.beats, len(receiver.requests)) == (beats, posts)


@pytest.mark.parametrize("fault", ["fail", "fail_later", "fetch_badly nowhere"])
def test_fault_of_the_machine_is_a_crash_with_its_trace(fault: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR), running() as one, one.console() as client:
        client.send(5, 2, fault.encode())
        one.wait_for_the_end()
        assert one.server.has_crashed
    assert "a fault of the machine" in caplog.text


def test_whoever_connects_before_the_boot_waits_for_it() -> None:
    with running() as one:
        other = one.threads.do(
            lambda: SimulatedServer(
                ServerOptions(port=0),
                one.client,
                Pacer(),
                make_machine=StandInMachine,
                birth=Birth(START_MS, TOKEN),
                on_exit=one.ended.append,
            )
        )
        one.threads.call(other.bind())
        with RconClient(other.options.port) as client:
            client.send(1, 3, PASSWORD.encode())
            time.sleep(0.1)
            one.threads.do(other.boot)
            assert client.receive() == (1, 0, b"")
        one.threads.call(other.stop())


def test_port_in_use_is_told_and_nothing_is_left() -> None:
    with running() as one:
        other = one.threads.do(
            lambda: SimulatedServer(
                ServerOptions(port=one.port),
                one.client,
                Pacer(),
                make_machine=StandInMachine,
                birth=Birth(START_MS, TOKEN),
                on_exit=one.ended.append,
            )
        )
        with pytest.raises(OSError, match="in use"):
            one.threads.call(other.bind())
        one.threads.call(other.stop())
        assert other.is_over


def test_hundreds_share_a_process_by_longer_steps() -> None:
    with running("beat 100", speed=30, servers=500) as one, one.console() as client:
        assert client.run("echo prompt all the same") == "prompt all the same"
