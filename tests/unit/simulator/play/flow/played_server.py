"""A server with people and a game: everything real but the network and the clock, which moves as a test wants it."""

from __future__ import annotations

from matchpod.core.model import Side
from matchpod.cs2.log_lines.reader import Line
from matchpod.cs2.log_lines.world_lines import StatsField, StatsMark, StatsPlayer, WorldLine
from matchpod.simulator.agenda import Agenda
from matchpod.simulator.play.arena import Arena
from matchpod.simulator.play.door import BY_USER, Door
from matchpod.simulator.play.flow.game import Game, Phase
from matchpod.simulator.play.player import Person, Player
from matchpod.simulator.play.watcher import RoundEnd, Watcher
from matchpod.simulator.variables import Variables

START_MS = 1_768_848_936_000

SHORT = {
    "game_type": "0",
    "game_mode": "1",
    "mp_teamname_1": "Reds",
    "mp_teamname_2": "Blues",
    "mp_logdetail": "3",
    "mp_logdetail_items": "1",
    "mp_logmoney": "1",
}
"""What no map load resets."""


class KeptLog:
    """Keeps lines with their time; a new map begins a new log, the old one stays to be looked at."""

    def __init__(self, agenda: Agenda) -> None:
        self._agenda = agenda
        self.lines: list[tuple[int, Line]] = []
        self.before: list[tuple[int, Line]] = []

    def write(self, line: Line) -> None:
        self.lines.append((self._agenda.now_ms, line))

    def begin_map(self) -> None:
        self.before, self.lines = self.lines, []


class Notes(Watcher):
    """Writes down what it is told."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def map_loaded(self, map_name: str) -> None:
        self.notes.append(f"loaded {map_name}")

    def map_closing(self) -> None:
        self.notes.append("closing")

    def player_left(self, player: Player, reason: str) -> None:
        self.notes.append(f"left {reason}")

    def warmup_began(self) -> None:
        self.notes.append("warmup")

    def went_live(self) -> None:
        self.notes.append("live")

    def freeze_began(self, round_number: int) -> None:
        self.notes.append(f"freeze {round_number}")

    def round_started(self, round_number: int) -> None:
        self.notes.append(f"round {round_number}")

    def round_ended(self, round_number: int, end: RoundEnd) -> None:
        self.notes.append(f"end {round_number}")

    def restored(self, rounds_played: int) -> None:
        self.notes.append(f"restored {rounds_played}")

    def map_ended(self) -> None:
        self.notes.append("over")


class PlayedServer:
    """A server on which a map is loaded."""

    def __init__(self, settings: dict[str, str] | None = None, *, map_name: str = "de_nuke") -> None:
        self.agenda = Agenda(START_MS)
        self.log = KeptLog(self.agenda)
        self.variables = Variables()
        self.arena = Arena(self.agenda, self.log, self.variables)
        self.door = Door(self.arena)
        self.game = Game(self.arena)
        self.watcher = Notes()
        self.arena.watchers.append(self.watcher)
        self.set(SHORT | (settings or {}))
        self.game.load_map(map_name)
        self.wait(6)
        self.mark = 0

    def is_in(self, phase: Phase) -> bool:
        return self.game.phase is phase

    def is_team1_on(self, side: Side) -> bool:
        return self.game.team1_side is side

    def set(self, settings: dict[str, str]) -> None:
        for name, value in settings.items():
            assert self.variables.set(name, value) is None, name

    def wait(self, seconds: float) -> None:
        self.agenda.run_until(self.agenda.now_ms + round(seconds * 1000))

    def come(self, account: int, team: str) -> Player:
        """Somebody comes in and takes a team at once."""
        player = self.door.connect(Person(f"p{account}", account))
        assert player is not None
        self.door.enter(player)
        self.door.join(player, team)
        return player

    def fill(self, count: int = 2) -> None:
        """People on both sides; accounts of the first team begin at 101, of the second at 201."""
        for number in range(1, count + 1):
            self.come(100 + number, Side.CT)
            self.come(200 + number, Side.T)

    def empty(self) -> None:
        for player in tuple(self.arena.players):
            self.door.leave(player, BY_USER)

    def go_live(self, settings: dict[str, str] | None = None, *, count: int = 2) -> None:
        """People come and warmup is ended; the freeze time of round 1 has begun."""
        self.fill(count)
        self.set({"mp_freezetime": "5", "mp_maxrounds": "4", **(settings or {})})
        self.start_listening()
        self.game.end_warmup()

    def until(self, note: str, limit: int = 200_000) -> None:
        """Let time pass until the watcher has noted this once more."""
        seen = self.watcher.notes.count(note)
        for _ in range(limit):
            if self.watcher.notes.count(note) > seen:
                return
            assert self.agenda.run_next(), f"nothing more happens, and no {note}"
        raise AssertionError(f"{note} never came")

    def start_listening(self) -> None:
        """Forget the lines so far."""
        self.mark = len(self.log.lines)

    def heard(self) -> list[str]:
        """Every line since then."""
        return [line.text() for _, line in self.log.lines[self.mark :]]

    def world(self) -> list[str]:
        """The server's own lines since then, a block of statistics as one word."""
        texts: list[str] = []
        for _, line in self.log.lines[self.mark :]:
            if isinstance(line, StatsField | StatsPlayer):
                continue
            if isinstance(line, StatsMark):
                if line.mark.startswith("JSON_BEGIN"):
                    texts.append("(block)")
            elif isinstance(line, WorldLine):
                texts.append(line.text())
        return texts

    def block_values(self, name: str) -> list[str]:
        """The values of a field of every block since then."""
        lines = (line for _, line in self.log.lines[self.mark :])
        return [line.value for line in lines if isinstance(line, StatsField) and line.name == name]
