"""A server with a real arena, door and visitors, a recording log, and a fake game that records calls."""

from __future__ import annotations

from random import Random

from cs2_protocol.game import Side
from cs2_protocol.log_lines.player_lines import Connected, Disconnected, SwitchedTeam
from cs2_protocol.log_lines.reader import Line
from cs2_simulator.agenda import Agenda
from cs2_simulator.play.arena import Arena
from cs2_simulator.play.door import Door
from cs2_simulator.play.flow.game import Game
from cs2_simulator.play.people.visitors import Visitors
from cs2_simulator.play.player import Participant, Player
from cs2_simulator.play.watcher import RoundEnd, Watcher
from cs2_simulator.scenarios import Scenario
from cs2_simulator.variables import Variables

START_MS = 1_768_848_936_000

TEAM1 = [(1001, "one"), (1002, ""), (1003, ""), (1004, "four"), (1005, "")]
TEAM2 = [(2001, ""), (2002, "two"), (2003, ""), (2004, ""), (2005, "")]


class RecordingLog:
    """Records the lines of the current map with their time since START_MS."""

    def __init__(self, agenda: Agenda) -> None:
        self._agenda = agenda
        self.lines: list[tuple[int, Line]] = []

    def write(self, line: Line) -> None:
        self.lines.append((self._agenda.now_ms - START_MS, line))

    def begin_map(self) -> None:
        self.lines.clear()

    @property
    def texts(self) -> list[str]:
        return [line.text() for _, line in self.lines]


class FakeGame(Game):
    team1_side = Side.CT
    is_paused = False

    def __init__(self) -> None:
        self.files: list[str] = []
        self.calls: list[str] = []
        self.is_restore_rejected = False

    def pause(self, by: str) -> None:
        self.is_paused = True
        self.calls.append(f"pause {by}")

    def unpause(self, by: str) -> None:
        self.is_paused = False
        self.calls.append(f"unpause {by}")

    def backups(self) -> list[str]:
        return self.files

    def restore(self, file: str) -> bool:
        self.calls.append(f"restore {file}")
        return not self.is_restore_rejected


class RecordingWatcher(Watcher):
    """Records the events of players; can kick players when they connect or enter."""

    def __init__(self, door: Door) -> None:
        self._door = door
        self.events: list[str] = []
        self.kicked_on_connect: list[int] = []
        self.kicked_on_enter: list[int] = []

    def player_connected(self, player: Player) -> None:
        self.events.append(f"connected {player.user_id}")
        if player.person.account in self.kicked_on_connect:
            self._door.kick(player)

    def player_entered(self, player: Player) -> None:
        self.events.append(f"entered {player.user_id}")
        if player.person.account in self.kicked_on_enter:
            self._door.kick(player)

    def player_joined(self, player: Player) -> None:
        self.events.append(f"joined {player.user_id} {player.team}")

    def player_left(self, player: Player, reason: str) -> None:
        self.events.append(f"left {player.user_id} {reason}")

    def player_chatted(self, player: Player, text: str) -> None:
        self.events.append(f"chat {player.user_id} {text}")


class VisitedServer:
    def __init__(
        self, scenario: Scenario = Scenario.FULL_MATCH, *, mode: tuple[int, int] = (0, 1), seed: int = 7
    ) -> None:
        self.agenda = Agenda(START_MS)
        self.log = RecordingLog(self.agenda)
        self.variables = Variables()
        self.arena = Arena(self.agenda, self.log, self.variables)
        self.door = Door(self.arena)
        self.game = FakeGame()
        self.watcher = RecordingWatcher(self.door)
        self.arena.watchers.append(self.watcher)
        self.visitors = Visitors(self.arena, self.door, self.game)
        self.set(sim_scenario=scenario.value, sim_seed=str(seed), game_type=str(mode[0]), game_mode=str(mode[1]))
        self.variables.load_mode()
        self.arena.map_name = "de_inferno"

    def set(self, **values: str) -> None:
        for name, value in values.items():
            assert self.variables.set(name, value) is None

    def wait(self, seconds: float) -> None:
        self.agenda.run_until(self.agenda.now_ms + int(seconds * 1000))

    def fill(self) -> None:
        self.visitors.expect(TEAM1, TEAM2)
        self.wait(75)

    def change_map(self, map_name: str = "de_nuke") -> None:
        for player in tuple(self.arena.players):
            self.door.leave(player, "NETWORK_DISCONNECT_LOOPDEACTIVATE")
        self.arena.absent.clear()
        self.arena.is_busy = True
        for watcher in tuple(self.arena.watchers):
            watcher.map_closing()
        self.wait(6)
        self.arena.map_name = map_name
        self.arena.map_number += 1
        self.arena.is_busy = False
        for watcher in tuple(self.arena.watchers):
            watcher.map_loaded(map_name)

    def go_live(self) -> None:
        self.visitors.went_live()

    def play_round(self, number: int, *, seconds: float = 60) -> None:
        self.game.files.insert(0, f"backup_round{number - 1:02d}.txt")
        self.visitors.freeze_began(number)
        self.wait(15)
        self.visitors.round_started(number)
        for player in self.arena.playing:
            player.is_alive = True
        self.wait(seconds)
        self.visitors.round_ended(number, RoundEnd(Side.CT, "CTs_Win"))
        self.wait(5)

    @property
    def accounts(self) -> list[int]:
        return [player.person.account for player in self.arena.players]

    def connections(self) -> list[tuple[int, str]]:
        return [(at, line.player.player_id) for at, line in self.log.lines if isinstance(line, Connected)]

    def departures(self) -> list[tuple[int, str]]:
        return [(at, line.reason) for at, line in self.log.lines if isinstance(line, Disconnected)]

    def joins(self) -> list[str]:
        return [line.new for _, line in self.log.lines if isinstance(line, SwitchedTeam)]


def participant(account: int = 77, name: str = "alice") -> Participant:
    return Participant(name, account, address="203.0.113.9:27005")


def rng(seed: int = 1) -> Random:
    return Random(seed)
