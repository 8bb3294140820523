"""Tests of whole matches on real simulator processes, with independent clients."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from cs2_protocol import console_commands
from cs2_protocol.log_batches import read_post
from matchpod.core.model import GameSettings, MatchType, TeamRoster
from matchpod.cs2 import match_commands
from matchpod.cs2.match_reader import MatchReader
from simulator_tests.rcon_client import ClosedError, RconClient
from simulator_tests.wire.log_receiver import LogReceiver, status

PASSWORD = "sesame"
TIMEOUT_S = 400.0
DAY_MS = 86_400_000
TEAM1 = tuple(str(76561198000000000 + number) for number in (11, 12))
TEAM2 = tuple(str(76561198000000000 + number) for number in (21, 22))
WINGMAN = GameSettings(
    match_type=MatchType.WINGMAN,
    maps=("de_nuke",),
    max_rounds=4,
    freeze_time=1,
    team1=TeamRoster("Alpha", TEAM1),
    team2=TeamRoster("Beta", TEAM2),
)


class Simulator:
    """A simulator process. Its port is in its first line of output."""

    def __init__(self, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [
                sys.executable,
                "-W",
                "error",
                "-m",
                "matchpod",
                "simulate",
                "-port",
                "0",
                "+rcon_password",
                PASSWORD,
                *arguments,
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        found = re.match(r"listening on 127\.0\.0\.1:(\d+) ", self.process.stdout.readline())
        assert found is not None
        self.port = int(found[1])

    def run(self, *commands: str) -> str:
        """Run each command on a new connection; retry if a map change closes it. Return the last answer."""
        answer = ""
        for command in commands:
            answer = self._retry(lambda command=command: self._run(command))  # type: ignore[misc]
        return answer

    def _run(self, command: str) -> str:
        with RconClient(self.port) as client:
            assert client.log_in(PASSWORD)
            return client.run(command)

    def _retry(self, request: Callable[[], str]) -> str:
        for _ in range(5):
            try:
                return request()
            except ClosedError:
                time.sleep(0.2)
        return request()

    def end(self) -> int:
        if self.process.poll() is None:
            self.process.terminate()
        _, errors = self.process.communicate(timeout=TIMEOUT_S)
        assert "Traceback" not in errors
        return self.process.returncode


LOCKSTEP = ("+sim_lockstep", "1")
"""Game time waits for the log: otherwise, on a busy machine, the next map may load before a match's end is sent."""


@contextmanager
def simulator(*arguments: str) -> Iterator[Simulator]:
    process = Simulator(*arguments)
    try:
        yield process
    finally:
        process.end()


class Reader:
    """Reads a match from the requests of a receiver."""

    def __init__(self, receiver: LogReceiver, settings: GameSettings) -> None:
        self.receiver = receiver
        self.match_reader = MatchReader.create(settings, 0)
        self.read_count = 0
        self.effects: list[str] = []

    def read_new(self) -> None:
        for request in self.receiver.requests[self.read_count :]:
            self.read_count += 1
            if request.target.startswith("/log"):
                post = read_post(request.header_map, request.body, received_ms=round(request.at_s * 1000))
                reading = self.match_reader.read_post(post)
            else:
                reading = self.match_reader.read_report(request.body, round(request.at_s * 1000))
            self.effects += [type(effect).__name__ for effect in reading.effects]

    def wait(self, is_reached: Callable[[], bool]) -> None:
        until_s = time.monotonic() + TIMEOUT_S
        while not is_reached():
            assert time.monotonic() < until_s, f"timed out after {self.match_reader.lines_read} lines"
            time.sleep(0.05)
            self.read_new()


def test_manually_configured_match_is_played_and_read() -> None:
    settings = GameSettings(match_type=MatchType.COMPETITIVE, maps=("de_mirage",))
    with (
        LogReceiver() as receiver,
        simulator("--speed", "300", "--seed", "4", "+map", "de_mirage", *LOCKSTEP) as server,
    ):
        server.run("log on", "mp_logdetail 3", "mp_maxrounds 4", "mp_freezetime 2", "mp_warmuptime 10")
        assert server.run("mp_maxrounds") == "mp_maxrounds = 4\n"
        server.run(f'logaddress_add_http "{receiver.url}"')
        assert server.run("logaddress_list_http").startswith(receiver.url)
        reader = Reader(receiver, settings)
        reader.wait(lambda: reader.match_reader.match.outcome is not None)
        assert "EndMatch" in reader.effects
        played = reader.match_reader.match.maps[0]
        assert played.name == "de_mirage"
        assert played.ledger.is_complete
        assert played.ledger.discrepancies == []
        assert sum(line.kills for line in played.ledger.lines()) > 4
        assert server.run("nonsense 1") == "Unknown command 'nonsense'!\n"
        assert server.run("quit") == ""
        assert server.process.wait(TIMEOUT_S) == 0


def test_example_scripts_in_the_documentation_work() -> None:
    examples = Path(__file__).resolve().parents[3] / "docs" / "examples"
    with simulator("--speed", "100") as server:
        command = [sys.executable, str(examples / "rcon.py"), str(server.port)]
        done = subprocess.run(
            [*command, PASSWORD, "echo hello", "mp_maxrounds"], capture_output=True, text=True, check=True
        )
        assert done.stdout == "hello\nmp_maxrounds = 24\n"
        assert subprocess.run([*command, "wrong", "x"], capture_output=True, check=False).stderr == b"wrong password\n"
        with _free_port() as port:
            pass
        receiver = subprocess.Popen(
            [sys.executable, str(examples / "log_receiver.py"), str(port), "echo"], stdout=subprocess.PIPE, text=True
        )
        try:
            server.run("log on", f'logaddress_add_http "http://127.0.0.1:{port}/"', "echo hello")
            assert receiver.stdout is not None
            assert receiver.stdout.readline().endswith('command "echo hello"\n')
        finally:
            receiver.terminate()
            receiver.communicate()


@contextmanager
def _free_port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening.getsockname()[1]


def test_plugin_match_is_fetched_played_by_listed_players_and_reported() -> None:
    with (
        LogReceiver() as receiver,
        simulator("--speed", "200", "--seed", "5", "--scenario", "stranger", *LOCKSTEP) as server,
    ):
        file = match_commands.matchzy_match(
            WINGMAN,
            match_id=7,
            log_url=receiver.url.replace("/log", "/events"),
            log_header_name="X-Token",
            log_header_value="abc",
        )
        receiver.default = status(200, msgspec.json.encode(file))
        server.run(*match_commands.setup_commands(WINGMAN, map_name="de_nuke"))
        server.run(console_commands.log_address_command(receiver.url))
        url = receiver.url.replace("/log", "/match")
        server.run(console_commands.load_match_command(url, header_name="X-Key", header_value="k"))
        server.run(*match_commands.match_commands(WINGMAN))
        (fetch,) = [request for request in receiver.requests if request.method == "GET"]
        assert (fetch.target, fetch.header_map["X-Key"]) == ("/match", "k")
        reader = Reader(receiver, WINGMAN)
        reader.wait(lambda: "StartPlay" in reader.effects or reader.match_reader.match.first_live_at_ms is not None)
        server.run("css_start")
        reader.wait(lambda: reader.match_reader.match.outcome is not None)
        reader.wait(lambda: any(b'"series_end"' in request.body for request in receiver.requests))
        reports = [request for request in receiver.requests if request.target == "/events"]
        assert all(request.header_map["X-Token"] == "abc" for request in reports)
        assert b'"going_live"' in b"".join(request.body for request in reports)
        log = b"".join(request.body for request in receiver.requests if request.target == "/log")
        assert b"NETWORK_DISCONNECT_KICKED" in log
        players = {line.player_id for line in reader.match_reader.match.maps[0].ledger.lines()}
        assert players == {*TEAM1, *TEAM2}


def test_clock_waits_for_log_acknowledgement_in_lockstep() -> None:
    with LogReceiver() as receiver, simulator("--speed", "300") as server:
        server.run("log on", "mp_warmuptime 10", "sim_lockstep 1", f'logaddress_add_http "{receiver.url}"')
        receiver.wait_for(lambda: any(b"SFUI_Notice_" in request.body for request in receiver.requests))
        receiver.default = status(503)
        receiver.wait_for(lambda: len({request.body for request in receiver.requests[-3:]}) == 1)
        accepted = [request.body for request in receiver.requests if request.body != receiver.requests[-1].body]
        waiting, count = receiver.requests[-1].body, len(receiver.requests)
        receiver.wait_for(lambda: len(receiver.requests) > count + 1)
        assert {request.body for request in receiver.requests[count:]} == {waiting}
        receiver.default = status(200)
        receiver.wait_for(lambda: receiver.requests[-1].body not in (waiting, *accepted))
        server.process.kill()
