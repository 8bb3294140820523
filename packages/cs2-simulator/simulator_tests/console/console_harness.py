"""Test harness of the console: variables, players and log lines are real; game, visitors and host record calls."""

from __future__ import annotations

from cs2_protocol.log_lines.reader import Line
from cs2_simulator.agenda import Agenda
from cs2_simulator.console.console import Console
from cs2_simulator.console.parts import ServerParts
from cs2_simulator.log_stream import LogStream
from cs2_simulator.play.arena import Arena
from cs2_simulator.play.door import Door
from cs2_simulator.play.flow.game import Game
from cs2_simulator.play.people.visitors import Visitors
from cs2_simulator.play.player import Participant, Player
from cs2_simulator.variables import Variables
from simulator_tests.null_outside import NullOutside, no_headers

START_MS = 1_768_849_000_000


class RecordingLog:
    def __init__(self) -> None:
        self.lines: list[str] = []

    def write(self, line: Line) -> None:
        self.lines.append(line.text())

    def begin_map(self) -> None:
        """Do nothing: lines of earlier maps are kept."""


class RecordingGame(Game):
    """A game that records calls; its backups are `files`."""

    def __init__(self, arena: Arena, calls: list[str]) -> None:
        super().__init__(arena)
        self._calls = calls
        self.files: list[str] = []

    def change_map(self, map_name: str) -> None:
        self._calls.append(f"load {map_name}")

    def start_warmup(self) -> None:
        self._calls.append("start warmup")

    def end_warmup(self) -> None:
        self._calls.append("end warmup")

    def restart(self, seconds: int) -> None:
        self._calls.append(f"restart {seconds}")

    def swap_teams(self) -> None:
        self._calls.append("swap")

    def pause(self, by: str) -> None:
        self._calls.append(f"pause {by}")

    def unpause(self, by: str) -> None:
        self._calls.append(f"unpause {by}")

    def backups(self) -> list[str]:
        return self.files

    @property
    def last_backup(self) -> str:
        return self.files[0] if self.files else ""

    def restore(self, file: str) -> bool:
        self._calls.append(f"restore {file}")
        return file in self.files


class RecordingVisitors(Visitors):
    def __init__(self, arena: Arena, door: Door, game: Game, calls: list[str]) -> None:
        super().__init__(arena, door, game)
        self._calls = calls

    def restart_countdown(self) -> None:
        self._calls.append("restart countdown")

    def expect_anyone(self) -> None:
        self._calls.append("expect anyone")


class RecordingOutside(NullOutside):
    def __init__(self, calls: list[str]) -> None:
        self._calls = calls

    def exit(self, *, is_crash: bool) -> None:
        self._calls.append("crash" if is_crash else "exit")

    def set_speed(self, speed: float) -> None:
        self._calls.append(f"speed {speed:g}")

    def drop_rcon_connections(self) -> None:
        self._calls.append("drop connections")


class ConsoleHarness:
    def __init__(self) -> None:
        self.calls: list[str] = []
        self.log = RecordingLog()
        self.variables = Variables()
        self.agenda = Agenda(START_MS)
        self.arena = Arena(self.agenda, self.log, self.variables)
        self.arena.map_name = "de_inferno"
        self.arena.map_number = 1
        self.door = Door(self.arena)
        self.game = RecordingGame(self.arena, self.calls)
        self.visitors = RecordingVisitors(self.arena, self.door, self.game, self.calls)
        self.stream = LogStream(self.agenda, describe=no_headers)
        outside = RecordingOutside(self.calls)
        self.parts = ServerParts(self.arena, self.game, self.door, self.visitors, outside, self.stream)
        self.console = Console(self.parts)

    def execute(self, text: str) -> str:
        """Execute commands as the server itself, not over RCON; return their output."""
        return self.console.execute(text, "")

    def add_player(self, person: Participant, user_id: int, *, is_in_game: bool = True) -> Player:
        """Add a CT player with this user id, without log lines."""
        player = Player(person, user_id, "CT", is_in_game, connected_at_ms=self.agenda.now_ms)
        self.arena.players.append(player)
        return player
