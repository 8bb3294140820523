"""A complete simulated server without sockets: the test sends commands, advances the clock and reads the log."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from cs2_simulator.agenda import TICKS_PER_S
from cs2_simulator.log_stream import LogRequest
from cs2_simulator.machine import Machine
from cs2_simulator.options import ServerOptions
from cs2_simulator.outside import FetchResult
from cs2_simulator.play.player import Player
from cs2_simulator.scenarios import Scenario
from simulator_tests.null_outside import NullOutside

START_MS = 1_768_849_200_000
SOURCE = "127.0.0.1:50000"


class PlayedMachine(NullOutside):
    """A server that has booted and posts its log, and the host of it."""

    def __init__(self, scenario: Scenario = Scenario.FULL_MATCH, *commands: str, seed: int = 1, mode: int = 1) -> None:
        """`mode` is the `game_mode`: 1 competitive, 2 wingman. `commands` are executed after the boot."""
        self.match_file: dict[str, object] = {}
        self.events: list[dict[str, object]] = []
        self.requests: list[LogRequest] = []
        self.ends: list[str] = []
        """How the server ended: `exit`, `crash`, `hang`."""
        options = ServerOptions(
            scenario=scenario,
            seed=str(seed),
            rcon_password="secret",
            map="de_inferno",
            game_mode=mode,
            commands=commands,
        )
        self.machine = Machine(options, self, start_ms=START_MS, instance_token="7be6ded70c65df71")
        self.machine.boot()
        self.rcon("log on", 'logaddress_add_http "http://127.0.0.1:9/log"')

    def fetch(self, url: str, headers: Mapping[str, str], done: Callable[[FetchResult], None]) -> None:
        done(FetchResult(200, json.dumps(self.match_file).encode()))

    def send_report(self, url: str, headers: Mapping[str, str], body: bytes) -> None:
        self.events.append(json.loads(body))

    def exit(self, *, is_crash: bool) -> None:
        self.ends.append("crash" if is_crash else "exit")

    def hang(self) -> None:
        self.ends.append("hang")

    def rcon(self, *commands: str) -> str:
        return "".join(self.machine.execute(command, SOURCE) for command in commands)

    def load(self, match_file: dict[str, object]) -> None:
        """Let the plugin load a match, including the load of its first map."""
        self.match_file = match_file
        self.rcon('matchzy_loadmatch_url "http://127.0.0.1:9/match"')
        self.wait(10)

    def wait(self, seconds: float) -> None:
        self.run_until(lambda: False, within_s=seconds)

    def run_until(self, is_reached: Callable[[], object], *, within_s: float = 8 * 3600) -> bool:
        """Run until a condition is met. Return False if the time is up or the server ends before that."""
        agenda = self.machine.agenda
        until_ms = agenda.now_ms + round(within_s * 1000)
        past_ms = until_ms + 1000 // TICKS_PER_S  # a tick later: `until_ms` may be between two ticks
        while not is_reached():
            if self.ends or agenda.now_ms >= until_ms:
                return False
            due_ms = agenda.next_due_ms()
            agenda.run_until(past_ms if due_ms is None else min(past_ms, due_ms + 1))
            self._receive_posts()
        return True

    @property
    def lines(self) -> list[str]:
        log = b"".join(request.body for request in self.requests).decode()
        return [line.partition(" - ")[2].partition(" - ")[2] for line in log.split("\n") if line]

    def player(self, account: int) -> Player | None:
        return next((player for player in self.machine.arena.players if player.person.account == account), None)

    def _receive_posts(self) -> None:
        stream = self.machine.stream
        for listener in tuple(stream.idle_listeners):
            request = stream.next_request(listener)
            if request is not None:
                stream.handle_response(listener, 200)
                self.requests.append(request)
