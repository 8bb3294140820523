"""A simulated server with players and a game; only the network is missing, and tests advance the clock."""

from __future__ import annotations

from cs2_protocol.game import Side
from cs2_protocol.log_lines.reader import Line
from cs2_protocol.log_lines.world_lines import StatsField, StatsMark, StatsPlayer, WorldLine
from cs2_simulator.agenda import Agenda
from cs2_simulator.play.arena import Arena
from cs2_simulator.play.door import BY_USER, Door
from cs2_simulator.play.flow.game import Game, GamePhase
from cs2_simulator.play.player import Participant, Player
from cs2_simulator.play.watcher import RoundEnd, Watcher
from cs2_simulator.variables import Variables

START_MS = 1_768_848_936_000

SETTINGS = {
    "game_type": "0",
    "game_mode": "1",
    "mp_teamname_1": "Reds",
    "mp_teamname_2": "Blues",
    "mp_logdetail": "3",
    "mp_logdetail_items": "1",
    "mp_logmoney": "1",
}
"""Settings that a map load does not reset."""


class RecordingLog:
    """Records lines with their time; a new map starts a new log, and the previous one is kept in `before`."""

    def __init__(self, agenda: Agenda) -> None:
        self._agenda = agenda
        self.lines: list[tuple[int, Line]] = []
        self.before: list[tuple[int, Line]] = []

    def write(self, line: Line) -> None:
        self.lines.append((self._agenda.now_ms, line))

    def begin_map(self) -> None:
        self.before, self.lines = self.lines, []


class RecordingWatcher(Watcher):
    def __init__(self) -> None:
        self.events: list[str] = []

    def map_loaded(self, map_name: str) -> None:
        self.events.append(f"loaded {map_name}")

    def map_closing(self) -> None:
        self.events.append("closing")

    def player_left(self, player: Player, reason: str) -> None:
        self.events.append(f"left {reason}")

    def warmup_began(self) -> None:
        self.events.append("warmup")

    def went_live(self) -> None:
        self.events.append("live")

    def freeze_began(self, round_number: int) -> None:
        self.events.append(f"freeze {round_number}")

    def round_started(self, round_number: int) -> None:
        self.events.append(f"round {round_number}")

    def round_ended(self, round_number: int, end: RoundEnd) -> None:
        self.events.append(f"end {round_number}")

    def restored(self, rounds_played: int) -> None:
        self.events.append(f"restored {rounds_played}")

    def map_ended(self) -> None:
        self.events.append("over")


class PlayedServer:
    def __init__(self, settings: dict[str, str] | None = None, *, map_name: str = "de_nuke") -> None:
        self.agenda = Agenda(START_MS)
        self.log = RecordingLog(self.agenda)
        self.variables = Variables()
        self.arena = Arena(self.agenda, self.log, self.variables)
        self.door = Door(self.arena)
        self.game = Game(self.arena)
        self.watcher = RecordingWatcher()
        self.arena.watchers.append(self.watcher)
        self.set(SETTINGS | (settings or {}))
        self.game.load_map(map_name)
        self.wait(6)
        self.mark = 0

    def is_in(self, phase: GamePhase) -> bool:
        return self.game.phase is phase

    def is_team1_on(self, side: Side) -> bool:
        return self.game.team1_side is side

    def set(self, settings: dict[str, str]) -> None:
        for name, value in settings.items():
            assert self.variables.set(name, value) is None, name

    def wait(self, seconds: float) -> None:
        self.agenda.run_until(self.agenda.now_ms + round(seconds * 1000))

    def join(self, account: int, team: str) -> Player:
        player = self.door.connect(Participant(f"p{account}", account))
        assert player is not None
        self.door.enter(player)
        self.door.join(player, team)
        return player

    def fill(self, count: int = 2) -> None:
        """Add players on both sides; the accounts of team 1 begin at 101, of team 2 at 201."""
        for number in range(1, count + 1):
            self.join(100 + number, Side.CT)
            self.join(200 + number, Side.T)

    def disconnect_all(self) -> None:
        for player in tuple(self.arena.players):
            self.door.leave(player, BY_USER)

    def go_live(self, settings: dict[str, str] | None = None, *, count: int = 2) -> None:
        """Add players and end warmup, which begins the freeze time of round 1."""
        self.fill(count)
        self.set({"mp_freezetime": "5", "mp_maxrounds": "4", **(settings or {})})
        self.mark_log()
        self.game.end_warmup()

    def run_until(self, event: str, limit: int = 200_000) -> None:
        """Advance time until the watcher has recorded this event once more."""
        before = self.watcher.events.count(event)
        for _ in range(limit):
            if self.watcher.events.count(event) > before:
                return
            assert self.agenda.run_next(), f"no plans left, and no event {event!r}"
        raise AssertionError(f"no event {event!r}")

    def mark_log(self) -> None:
        """Set the mark to the end of the log: the methods below ignore all lines before it."""
        self.mark = len(self.log.lines)

    def log_texts(self) -> list[str]:
        return [line.text() for _, line in self.log.lines[self.mark :]]

    def world_texts(self) -> list[str]:
        """Return the lines since the mark that are not about players, with `(block)` for a statistics block."""
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
        lines = (line for _, line in self.log.lines[self.mark :])
        return [line.value for line in lines if isinstance(line, StatsField) and line.name == name]
