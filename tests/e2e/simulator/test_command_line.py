"""`simulate` as a process: what it prints, how it ends, and with which code."""

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
from contextlib import contextmanager
from pathlib import Path

import pytest

from matchpod.simulator.wire.command_line import main
from tests.e2e.simulator.log_receiver import LogReceiver
from tests.e2e.simulator.rcon_client import RconClient
from tests.e2e.simulator.stand_in import StandInMachine

ROOT = Path(__file__).resolve().parents[3]
TIMEOUT_S = 180
START = (
    "import sys\n"
    "from matchpod.simulator.wire.command_line import main\n"
    "from tests.e2e.simulator.stand_in import StandInMachine\n"
    "sys.exit(main(sys.argv[1:], StandInMachine))\n"
)


class Process:
    """A running process with a stand-in machine in each of its servers."""

    def __init__(self, words: str, *, redirections: str = "") -> None:
        self.process = subprocess.Popen(
            ["sh", "-c", f'exec "$@" {redirections}', "sh", sys.executable, "-W", "error", "-c", START, *words.split()],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def ready_line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().rstrip()

    def port(self) -> int:
        found = re.match(r"listening on 127\.0\.0\.1:(\d+) \(RCON\)", self.ready_line())
        assert found is not None
        return int(found[1])

    def end(self, *signals: signal.Signals) -> tuple[int, str]:
        """Signal the process and wait: its exit code and what it said on standard error."""
        for number in signals:
            self.process.send_signal(number)
        _, said = self.process.communicate(timeout=TIMEOUT_S)
        return self.process.returncode, said


@contextmanager
def simulate(words: str, *, redirections: str = "") -> Iterator[Process]:
    one = Process(words, redirections=redirections)
    try:
        yield one
    finally:
        one.process.kill()
        one.process.communicate()


def run(port: int, command: str) -> None:
    with RconClient(port) as client:
        assert client.log_in("x")
        client.send(9, 2, command.encode())
        client.is_closed()


def test_ready_line_says_what_listens_where() -> None:
    with simulate("-port 0 +rcon_password x +map de_nuke --seed 4 --speed 2.5 --scenario tie") as one:
        assert re.fullmatch(
            r"listening on 127\.0\.0\.1:[1-9]\d* \(RCON\), map de_nuke, scenario tie, seed 4, speed 2\.5x",
            one.ready_line(),
        )


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_ends_it_cleanly(number: signal.Signals) -> None:
    with simulate("-port 0 +rcon_password x") as one:
        port = one.port()
        code, said = one.end(number)
    assert code == 0
    assert said == f"ending\n127.0.0.1:{port} quit\n"


def test_last_lines_are_sent_at_a_signal() -> None:
    with LogReceiver() as receiver:
        with simulate("-port 0 +rcon_password x") as one:
            port = one.port()
            with RconClient(port) as client:
                client.log_in("x")
                client.run(f"listen {receiver.url}")
            assert one.end(signal.SIGTERM)[0] == 0
        assert receiver.requests[-1].body.endswith(b"Log file closed\n")


def test_quiet_says_nothing() -> None:
    with simulate("-port 0 +rcon_password x --quiet") as one:
        one.port()
        assert one.end(signal.SIGTERM) == (0, "")


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as one:
        port: int = one.getsockname()[1]
        return port


def _wait_for_console(port: int) -> None:
    until_s = time.monotonic() + TIMEOUT_S
    while True:
        try:
            RconClient(port).socket.close()
        except ConnectionRefusedError:
            assert time.monotonic() < until_s
            time.sleep(0.02)
        else:
            return


@pytest.mark.parametrize("redirections", [">&-", "2>&-", "<&- >&- 2>&-", ">/dev/full 2>/dev/full"])
def test_streams_that_lead_nowhere_make_no_difference(redirections: str) -> None:
    port = _free_port()
    with simulate(f"-port {port} +rcon_password x", redirections=redirections) as one:
        _wait_for_console(port)
        code, said = one.end(signal.SIGTERM)
    assert code == 0
    assert "Traceback" not in said
    assert "rror" not in said


def test_reader_that_went_away_makes_no_difference() -> None:
    port = _free_port()
    with simulate(f"-port {port} +rcon_password x") as one:
        assert one.process.stdout is not None
        one.process.stdout.close()
        _wait_for_console(port)
        code = one.process.poll()
        one.process.terminate()
        assert (code, one.process.wait(TIMEOUT_S)) == (None, 0)
        assert one.process.stderr is not None
        assert "rror" not in one.process.stderr.read()


def test_ready_lines_that_nobody_reads_hold_nothing_up() -> None:
    """A pipe holds 64 KiB."""
    with simulate(f"-port 0 +rcon_password x +map {'m' * 3000} --farm 60") as one:
        ready = one.port()
        with RconClient(ready) as client:
            assert client.log_in("x")
            assert client.run("echo hello") == "hello"
        before_s = time.monotonic()
        one.process.terminate()
        assert one.process.wait(TIMEOUT_S) == 0
        assert time.monotonic() - before_s < 60


def test_slow_reader_gets_all_ready_lines() -> None:
    with simulate(f"-port 0 +rcon_password x +map {'m' * 3000} --farm 60") as one:
        time.sleep(0.5)
        assert len({one.port() for _ in range(60)}) == 60


def test_signal_while_it_starts_ends_it() -> None:
    with simulate("-port 0 --farm 2000") as one:
        time.sleep(0.6)
        before_s = time.monotonic()
        code, _ = one.end(signal.SIGTERM)
        assert time.monotonic() - before_s < 60
    assert code in (0, -signal.SIGTERM)  # the latter before our own code was there to hear it


def test_address_that_is_none_is_told() -> None:
    with simulate("-port 0 -ip a..b") as one:
        assert one.end() == (1, "matchpod simulate: cannot listen: a..b is no address\n")


def test_quit_on_the_console_ends_the_process() -> None:
    with simulate("-port 0 +rcon_password x") as one:
        run(one.port(), "quit")
        assert one.end()[0] == 0


def test_crash_ends_the_process_like_a_segfault() -> None:
    with simulate("-port 0 +rcon_password x") as one:
        port = one.port()
        run(port, "crash")
        assert one.end() == (139, f"127.0.0.1:{port} crashed\n")


def test_farm_outlives_a_crash_and_ends_with_its_last_server() -> None:
    with simulate("-port 0 +rcon_password x --farm 3") as one:
        first, second, third = (one.port() for _ in range(3))
        run(first, "crash")
        with RconClient(second) as client:
            assert client.log_in("x")
            assert client.run("echo alive") == "alive"
        run(second, "quit")
        run(third, "quit")
        code, said = one.end()
    assert code == 0
    assert said == f"127.0.0.1:{first} crashed\n127.0.0.1:{second} quit\n127.0.0.1:{third} quit\n"


def test_port_in_use_is_told() -> None:
    with simulate("-port 0 +rcon_password x") as one:
        port = one.port()
        with simulate(f"-port {port} +rcon_password x") as other:
            code, said = other.end()
    assert code == 1
    assert said.startswith("matchpod simulate: cannot listen: ")
    assert "address already in use" in said


def test_words_that_make_no_sense_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--speed", "fast"]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("matchpod simulate: --speed must be a number")


def test_list_and_help_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list"]) == 0
    assert "full_match  " in capsys.readouterr().out
    assert main(["--help"]) == 0
    assert capsys.readouterr().out.startswith("usage: matchpod simulate")


@pytest.fixture
def untouched_gc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gc, "freeze", lambda: None)
    monkeypatch.setattr(gc, "set_threshold", lambda _threshold: None)


@pytest.mark.usefixtures("untouched_gc")
def test_process_ends_when_its_server_quits(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["-port", "0", "+quit"], StandInMachine) == 0
    printed = capsys.readouterr()
    assert printed.out.startswith("listening on 127.0.0.1:")
    assert printed.err.endswith(" quit\n")


@pytest.mark.usefixtures("untouched_gc")
def test_process_ends_at_a_signal(capsys: pytest.CaptureFixture[str]) -> None:
    class Signalling(StandInMachine):
        def boot(self) -> None:
            os.kill(os.getpid(), signal.SIGTERM)

    assert main(["-port", "0"], Signalling) == 0
    assert capsys.readouterr().err.startswith("ending\n")


@pytest.mark.usefixtures("untouched_gc")
def test_second_signal_ends_it_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    codes: list[int] = []
    monkeypatch.setattr(os, "_exit", codes.append)

    class Signalling(StandInMachine):
        def boot(self) -> None:
            os.kill(os.getpid(), signal.SIGTERM)

        def execute(self, text: str, source: str) -> str:
            os.kill(os.getpid(), signal.SIGTERM)
            return super().execute(text, source)

    assert main(["-port", "0", "--quiet"], Signalling) == 0
    assert codes == [0]


@pytest.mark.usefixtures("untouched_gc")
def test_crash_of_the_only_server_has_the_code_of_a_segfault(monkeypatch: pytest.MonkeyPatch) -> None:
    codes: list[int] = []
    monkeypatch.setattr(os, "_exit", codes.append)
    assert main(["-port", "0", "+crash", "--quiet"], StandInMachine) == 0
    assert codes == [139]


def test_taken_port_is_told_in_process(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert main(["-port", str(taken.getsockname()[1])], StandInMachine) == 1
    assert "cannot listen" in capsys.readouterr().err
