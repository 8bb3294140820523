"""Tests of the `simulate` process: output, signals and exit codes."""

from __future__ import annotations

import gc
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from cs2_simulator.wire.command_line import main
from simulator_tests.rcon_client import RconClient
from simulator_tests.wire.fake_machine import FakeMachine
from simulator_tests.wire.log_receiver import LogReceiver

ROOT = Path(__file__).resolve().parents[2]
TIMEOUT_S = 180
START = (
    "import sys\n"
    "from cs2_simulator.wire.command_line import main\n"
    "from simulator_tests.wire.fake_machine import FakeMachine\n"
    "sys.exit(main(sys.argv[1:], FakeMachine))\n"
)


class SimulateProcess:
    def __init__(self, arguments: str, *, redirections: str = "") -> None:
        self.popen = subprocess.Popen(
            [
                "sh",
                "-c",
                f'exec "$@" {redirections}',
                "sh",
                sys.executable,
                "-W",
                "error",
                "-c",
                START,
                *arguments.split(),
            ],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def ready_line(self) -> str:
        assert self.popen.stdout is not None
        return self.popen.stdout.readline().rstrip()

    def port(self) -> int:
        found = re.match(r"listening on 127\.0\.0\.1:(\d+) \(RCON\)", self.ready_line())
        assert found is not None
        return int(found[1])

    def end(self, *signals: signal.Signals) -> tuple[int, str]:
        """Send these signals, if any, and wait for the end. Return the exit code and standard error."""
        for number in signals:
            self.popen.send_signal(number)
        _, errors = self.popen.communicate(timeout=TIMEOUT_S)
        return self.popen.returncode, errors


@contextmanager
def simulate(arguments: str, *, redirections: str = "") -> Iterator[SimulateProcess]:
    process = SimulateProcess(arguments, redirections=redirections)
    try:
        yield process
    finally:
        process.popen.kill()
        process.popen.communicate()


def run(port: int, command: str) -> None:
    with RconClient(port) as client:
        assert client.log_in("x")
        client.send(9, 2, command.encode())
        client.is_closed()


def test_ready_line_contains_address_and_options() -> None:
    with simulate("-port 0 +rcon_password x +map de_nuke --seed 4 --speed 2.5 --scenario tie") as process:
        assert re.fullmatch(
            r"listening on 127\.0\.0\.1:[1-9]\d* \(RCON\), map de_nuke, scenario tie, seed 4, speed 2\.5x",
            process.ready_line(),
        )


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_stops_the_process_after_the_last_log_lines_are_sent(number: signal.Signals) -> None:
    with LogReceiver() as receiver:
        with simulate("-port 0 +rcon_password x") as process:
            port = process.port()
            with RconClient(port) as client:
                client.log_in("x")
                client.run(f"listen {receiver.url}")
            assert process.end(number) == (0, f"stopping\n127.0.0.1:{port} quit\n")
        assert receiver.requests[-1].body.endswith(b"Log file closed\n")


def _wait_for_listener(process: SimulateProcess) -> None:
    """Wait until the process itself listens. A connection could also reach another program that has the port."""
    folder = Path(f"/proc/{process.popen.pid}")
    until_s = time.monotonic() + TIMEOUT_S
    while True:
        rows = [line.split() for line in (folder / "net/tcp").read_text().splitlines()[1:]]
        listeners = {f"socket:[{row[9]}]" for row in rows if row[3] == "0A"}
        for file in (folder / "fd").iterdir():
            with suppress(FileNotFoundError):
                if os.readlink(file) in listeners:
                    return
        assert process.popen.poll() is None
        assert time.monotonic() < until_s
        time.sleep(0.02)


@pytest.mark.parametrize("redirections", ["<&- >&- 2>&-", ">/dev/full 2>/dev/full"])
def test_process_works_with_closed_or_full_output_streams(redirections: str) -> None:
    with simulate("-port 0 +rcon_password x", redirections=redirections) as process:
        _wait_for_listener(process)
        code, errors = process.end(signal.SIGTERM)
    assert code == 0
    assert "Traceback" not in errors
    assert "rror" not in errors


def test_process_works_after_the_reader_closed_the_pipe() -> None:
    with simulate("-port 0 +rcon_password x") as process:
        assert process.popen.stdout is not None
        process.popen.stdout.close()
        _wait_for_listener(process)
        code = process.popen.poll()
        process.popen.terminate()
        assert (code, process.popen.wait(TIMEOUT_S)) == (None, 0)
        assert process.popen.stderr is not None
        assert "rror" not in process.popen.stderr.read()


def test_unread_ready_lines_wait_for_their_reader_without_blocking_the_process() -> None:
    """A pipe buffers 64 KiB, about 20 of these lines."""
    with simulate(f"-port 0 +rcon_password x +map {'m' * 3000} --farm 60") as process:
        ready = process.port()
        with RconClient(ready) as client:
            assert client.log_in("x")
            assert client.run("echo hello") == "hello"
        assert len({ready, *(process.port() for _ in range(30))}) == 31
        before_s = time.monotonic()
        process.popen.terminate()
        assert process.popen.wait(TIMEOUT_S) == 0
        assert time.monotonic() - before_s < 60


def test_farm_survives_a_crash_and_ends_with_its_last_server() -> None:
    with simulate("-port 0 +rcon_password x --farm 3") as process:
        first, second, third = (process.port() for _ in range(3))
        run(first, "crash")
        with RconClient(second) as client:
            assert client.log_in("x")
            assert client.run("echo alive") == "alive"
        run(second, "quit")
        run(third, "quit")
        code, errors = process.end()
    assert code == 0
    assert errors == f"127.0.0.1:{first} crashed\n127.0.0.1:{second} quit\n127.0.0.1:{third} quit\n"


def test_invalid_arguments_are_reported(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--speed", "fast"]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("cs2-simulator: --speed must be a number")


@pytest.fixture
def unchanged_gc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gc, "freeze", lambda: None)
    monkeypatch.setattr(gc, "set_threshold", lambda _threshold: None)


@pytest.mark.usefixtures("unchanged_gc")
def test_second_signal_exits_immediately(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    codes: list[int] = []
    monkeypatch.setattr(os, "_exit", codes.append)

    class Signalling(FakeMachine):
        def boot(self) -> None:
            os.kill(os.getpid(), signal.SIGTERM)

        def execute(self, text: str, source: str) -> str:
            os.kill(os.getpid(), signal.SIGTERM)
            return super().execute(text, source)

    assert main(["-port", "0", "--quiet"], Signalling) == 0
    assert codes == [0]
    assert capsys.readouterr().err == "", "it is quiet"


@pytest.mark.usefixtures("unchanged_gc")
def test_crash_of_the_only_server_exits_with_code_139(monkeypatch: pytest.MonkeyPatch) -> None:
    codes: list[int] = []
    monkeypatch.setattr(os, "_exit", codes.append)
    assert main(["-port", "0", "+crash", "--quiet"], FakeMachine) == 0
    assert codes == [139]


@pytest.mark.usefixtures("unchanged_gc")
def test_signal_during_startup_stops_the_process(capsys: pytest.CaptureFixture[str]) -> None:
    booted: list[FakeMachine] = []

    class Signalling(FakeMachine):
        def boot(self) -> None:
            booted.append(self)
            if len(booted) == 1:
                os.kill(os.getpid(), signal.SIGTERM)

    assert main(["-port", "0", "--farm", "200"], Signalling) == 0
    assert capsys.readouterr().out == ""
    assert len(booted) < 200


def test_port_in_use_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        assert main(["-port", str(other.getsockname()[1])], FakeMachine) == 1
    errors = capsys.readouterr().err
    assert errors.startswith("cs2-simulator: cannot listen: ")
    assert "address already in use" in errors


def test_invalid_address_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["-port", "0", "-ip", "a..b"], FakeMachine) == 1
    assert capsys.readouterr().err == "cs2-simulator: cannot listen: a..b is not a valid address\n"
