"""A console on the bench: real variables, players and log lines; game, visitors and world only note what is asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from matchpod.cs2.log_lines.reader import Line
from matchpod.simulator.agenda import Agenda
from matchpod.simulator.console.console import Console
from matchpod.simulator.outside import Fetched
from matchpod.simulator.play.arena import Arena
from matchpod.simulator.play.door import Door
from matchpod.simulator.play.flow.game import Game
from matchpod.simulator.play.people.visitors import Visitors
from matchpod.simulator.play.player import Person, Player
from matchpod.simulator.variables import Variables

START_MS = 1_768_849_000_000


class WrittenLog:
    """Keeps the lines."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def write(self, line: Line) -> None:
        """Keep a line."""
        self.lines.append(line.text())

    def begin_map(self) -> None:
        """Forget nothing."""


class NotedGame(Game):
    """A game that only notes what it is told."""

    def __init__(self, arena: Arena, notes: list[str]) -> None:
        super().__init__(arena)
        self._notes = notes
        self.files: list[str] = []

    def load_map(self, map_name: str) -> None:
        self._notes.append(f"load {map_name}")

    def start_warmup(self) -> None:
        self._notes.append("start warmup")

    def end_warmup(self) -> None:
        self._notes.append("end warmup")

    def restart(self, seconds: int) -> None:
        self._notes.append(f"restart {seconds}")

    def swap_teams(self) -> None:
        self._notes.append("swap")

    def pause(self, by: str) -> None:
        self._notes.append(f"pause {by}")

    def unpause(self, by: str) -> None:
        self._notes.append(f"unpause {by}")

    def backups(self) -> list[str]:
        return self.files

    @property
    def last_backup(self) -> str:
        return self.files[0] if self.files else ""

    def restore(self, file: str) -> bool:
        self._notes.append(f"restore {file}")
        return file in self.files


class NotedVisitors(Visitors):
    """Visitors who only note that they are thought of."""

    def __init__(self, arena: Arena, door: Door, game: Game, notes: list[str]) -> None:
        super().__init__(arena, door, game)
        self._notes = notes

    def settle(self) -> None:
        self._notes.append("settle")

    def expect_anybody(self) -> None:
        self._notes.append("expect anybody")


class NotedOutside:
    """A world that only notes what it is asked for."""

    def __init__(self, notes: list[str]) -> None:
        self._notes = notes

    def fetch(self, url: str, headers: Mapping[str, str], done: Callable[[Fetched], None]) -> None:
        raise AssertionError("the console fetches nothing")

    def send_report(self, url: str, headers: Mapping[str, str], body: bytes) -> None:
        raise AssertionError("the console reports nothing")

    def exit(self, *, is_crash: bool) -> None:
        self._notes.append(f"exit {'badly' if is_crash else 'well'}")

    def hang(self) -> None:
        raise AssertionError("the console does not hang")

    def set_speed(self, speed: float) -> None:
        self._notes.append(f"speed {speed:g}")

    def drop_consoles(self) -> None:
        self._notes.append("drop consoles")


@dataclass(frozen=True)
class KeptListener:
    """An address that gets the log."""

    url: str
    delay_ms: int
    has_pending_request: bool = False
    acknowledged_tick: int = 0


@dataclass
class KeptListeners:
    """Keeps addresses and sends nothing."""

    kept: list[KeptListener] = field(default_factory=list)
    is_on: bool = False
    records_early: bool = False

    def add(self, url: str, delay_ms: int = 0) -> None:
        self.kept.append(KeptListener(url, delay_ms))

    def remove(self, url: str) -> bool:
        before = len(self.kept)
        self.kept = [listener for listener in self.kept if listener.url != url]
        return len(self.kept) < before

    def remove_all(self) -> None:
        self.kept.clear()

    def list(self) -> list[KeptListener]:
        return self.kept


class Bench:
    """A console and everything around it."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.log = WrittenLog()
        self.variables = Variables()
        self.agenda = Agenda(START_MS)
        self.arena = Arena(self.agenda, self.log, self.variables)
        self.arena.map_name = "de_inferno"
        self.arena.map_number = 1
        self.door = Door(self.arena)
        self.game = NotedGame(self.arena, self.notes)
        self.visitors = NotedVisitors(self.arena, self.door, self.game, self.notes)
        self.listeners = KeptListeners()
        self.console = Console(
            self.arena,
            self.game,
            self.door,
            self.visitors,
            outside=NotedOutside(self.notes),
            listeners=self.listeners,
        )

    def say(self, text: str) -> str:
        """Run a text as the server itself."""
        return self.console.execute(text, "")

    def seat(self, person: Person, user_id: int, *, is_in_game: bool = True) -> Player:
        """Put somebody on a number, without a line."""
        player = Player(person, user_id, "CT", is_in_game, connected_at_ms=self.agenda.now_ms)
        self.arena.players.append(player)
        return player
