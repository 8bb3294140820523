"""Test harness of the plugin: a server with a fake game that the test controls."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping

from cs2_protocol.game import Side
from cs2_protocol.log_lines.reader import Line
from cs2_protocol.matchzy import Report, read_report
from cs2_protocol.steam_id import from_account
from cs2_simulator.agenda import Agenda
from cs2_simulator.console.console import Console
from cs2_simulator.console.parts import ServerParts
from cs2_simulator.log_stream import LogStream
from cs2_simulator.outside import FetchResult, Upload
from cs2_simulator.play.arena import Arena
from cs2_simulator.play.door import Door
from cs2_simulator.play.flow.game import Game, GamePhase
from cs2_simulator.play.people.visitors import Visitors
from cs2_simulator.play.player import Participant, Player
from cs2_simulator.play.watcher import RoundEnd
from cs2_simulator.plugin.match_plugin import MatchPlugin
from cs2_simulator.plugin.series import PluginStage
from cs2_simulator.variables import Variables
from simulator_tests.null_outside import NullOutside, no_headers

EVENTS_URL = "http://service.example/events/1"
MATCH_URL = "http://service.example/match/1"
START_MS = 1_700_000_000_000


def id64(account: int) -> str:
    return from_account(account)


def match(team_size: int = 1, maps: tuple[str, ...] = ("de_dust2",), **changes: object) -> dict[str, object]:
    """A match file. Accounts 1, 2, … play for team1, accounts 101, 102, … for team2."""
    fields: dict[str, object] = {
        "matchid": 27,
        "num_maps": len(maps),
        "maplist": list(maps),
        "map_sides": ["team1_ct"] * len(maps),
        "players_per_team": team_size,
        "team1": {"name": "Team Blue", "players": {id64(number): "" for number in range(1, team_size + 1)}},
        "team2": {"name": "Team Red", "players": {id64(number): "" for number in range(101, team_size + 101)}},
        "cvars": {
            "mp_maxrounds": "6",
            "matchzy_remote_log_url": EVENTS_URL,
            "matchzy_remote_log_header_key": "X-Token",
            "matchzy_remote_log_header_value": "secret",
        },
    }
    return {name: value for name, value in (fields | changes).items() if value is not None}


class NullLog:
    def write(self, line: Line) -> None:
        """Do nothing."""

    def begin_map(self) -> None:
        """Do nothing."""


class FakeOutside(NullOutside):
    """A host that serves one match file and records posted events."""

    def __init__(self) -> None:
        self.match = FetchResult(200, json.dumps(match()).encode())
        self.requests: list[tuple[str, dict[str, str]]] = []
        self.posts: list[tuple[str, dict[str, str], bytes]] = []
        self.bodies: list[dict[str, object]] = []
        self.events: list[object] = []
        self.uploads: list[tuple[str, dict[str, str], Upload]] = []

    def fetch(self, url: str, headers: Mapping[str, str], done: Callable[[FetchResult], None]) -> None:
        self.requests.append((url, dict(headers)))
        done(self.match)

    def send_report(self, url: str, headers: Mapping[str, str], body: bytes) -> None:
        self.posts.append((url, dict(headers), body))
        self.bodies.append(json.loads(body))
        self.events.append(self.bodies[-1].get("event"))

    def upload(self, url: str, headers: Mapping[str, str], upload: Upload) -> None:
        self.uploads.append((url, dict(headers), upload))

    @property
    def reports(self) -> list[Report]:
        return [read_report(body) for _, _, body in self.posts]


class FakeGame(Game):
    phase = GamePhase.WARMUP
    team1_side = Side.CT
    score = (0, 0)
    is_paused = False
    is_halftime = False
    is_timeout_running = False

    def __init__(self) -> None:
        self.first_side = Side.CT
        self.is_knife_next = False
        self.restored_files: list[str] = []

    def start_knife_round(self) -> None:
        self.is_knife_next = True

    def end_now(self) -> None:
        self.phase = GamePhase.WARMUP

    def end_timeouts(self) -> None:
        self.is_timeout_running = False

    def restore(self, file: str) -> bool:
        self.restored_files.append(file)
        return True


class FakeConsole(Console):
    """A console that sets variables, runs the plugin's commands and records everything it executes."""

    def __init__(self, harness: PluginHarness) -> None:
        self._harness = harness
        self._handlers: dict[str, Callable[[list[str]], str]] = {}
        self.executed: list[str] = []

    def register(self, name: str, handler: Callable[[list[str]], str]) -> None:
        self._handlers[name] = handler

    def unknown_command(self, name: str) -> str:
        return f"Unknown command '{name}'!\n"

    def execute(self, text: str, source: str) -> str:
        commands = re.split(r"[;\n]", text)
        return "".join(self._run_command(command.strip()) for command in commands if command.strip())

    def _run_command(self, command: str) -> str:
        self.executed.append(command)
        name, _, rest = command.partition(" ")
        value = rest.strip('"')
        if name in self._handlers:
            return self._handlers[name]([word.strip('"') for word in rest.split()])
        if self._harness.variables.is_known(name):
            self._harness.variables.set(name, value)
        elif name in ("changelevel", "host_workshop_map"):
            self._harness.load_map(value)
        elif name == "mp_warmup_end":
            self._harness.leave_warmup()
        elif name == "mp_warmup_start":
            self._harness.enter_warmup()
        elif name == "mp_swapteams":
            self._harness.swap_teams()
        elif name == "mp_backup_restore_load_file":
            self._harness.game.restore(value)
        return ""


class PluginHarness:
    def __init__(self, scenario: str = "full_match") -> None:
        self.variables = Variables()
        self.variables.set("sim_scenario", scenario)
        # Players do not come on their own: the test adds them.
        self.variables.set("sim_roster_delay", "86400")
        self.variables.set("game_mode", "1")
        self.agenda = Agenda(START_MS)
        self.arena = Arena(self.agenda, NullLog(), self.variables)
        self.arena.map_name = "de_dust2"
        self.door = Door(self.arena)
        self.game = FakeGame()
        self.visitors = Visitors(self.arena, self.door, self.game)
        self.outside = FakeOutside()
        self.console = FakeConsole(self)
        stream = LogStream(self.agenda, describe=no_headers)
        self.parts = ServerParts(self.arena, self.game, self.door, self.visitors, self.outside, stream)
        self.plugin = MatchPlugin(self.parts, self.console)
        self.course = self.plugin.course

    def stage(self) -> PluginStage:
        return self.course.stage

    def last_report(self) -> Report:
        return self.outside.reports[-1]

    def rcon(self, command: str) -> str:
        return self.console.execute(command, "198.51.100.1:5000")

    def load(self, fields: dict[str, object] | None = None) -> None:
        if fields is not None:
            self.outside.match = FetchResult(200, json.dumps(fields).encode())
        self.rcon(f'matchzy_loadmatch_url "{MATCH_URL}"')
        self.wait(2)

    def wait(self, seconds: float) -> None:
        self.agenda.run_until(self.agenda.now_ms + int(seconds * 1000) + 20)

    def enter(self, account: int, name: str = "", team: str = "CT") -> Player | None:
        """Connect a player and join a team. Return None if the player was kicked."""
        player = self.door.connect(Participant(name or f"player {account}", account))
        assert player is not None
        self.door.enter(player)
        self.door.join(player, team)
        return player if player in self.arena.players else None

    def enter_all(self, team_size: int = 1) -> list[Player]:
        accounts = [*range(1, team_size + 1), *range(101, team_size + 101)]
        players = [self.enter(account) for account in accounts]
        return [player for player in players if player is not None]

    def load_map(self, name: str) -> None:
        for watcher in tuple(self.arena.watchers):
            watcher.map_closing()
        for player in tuple(self.arena.players):
            self.door.leave(player, "NETWORK_DISCONNECT_LOOPDEACTIVATE")
        self.arena.map_name = name
        self.arena.map_number += 1
        self.enter_warmup()
        for watcher in tuple(self.arena.watchers):
            watcher.map_loaded(name)

    def enter_warmup(self) -> None:
        self.game.phase, self.game.score = GamePhase.WARMUP, (0, 0)
        self.game.first_side = self.game.team1_side = Side.CT

    def swap_teams(self) -> None:
        self.game.first_side = self.game.team1_side = self.game.team1_side.other
        for player in self.arena.playing:
            player.team = Side(player.team).other.value

    def leave_warmup(self) -> None:
        self.game.phase = GamePhase.KNIFE if self.game.is_knife_next else GamePhase.LIVE
        self.game.is_knife_next = False
        self.game.score, self.game.team1_side = (0, 0), self.game.first_side
        if self.game.phase is GamePhase.LIVE:
            self.arena.book.open(is_free_for_all=False, has_respawns=False)
            self._begin_freeze(1)

    def play_round(self, side: Side | None, notice: str = "CTs_Win") -> None:
        """Play a live round that is won by this side; None for a draw."""
        is_first = side is self.game.team1_side
        one, two = self.game.score
        if side is not None:
            self.game.score = (one + is_first, two + (not is_first))
        self._end_round(one + two + 1, RoundEnd(side, notice))
        self._begin_freeze(one + two + 2)

    def play_knife_round(self, side: Side | None) -> None:
        self._end_round(0, RoundEnd(side, "CTs_Win"))
        self.enter_warmup()

    def end_map(self) -> None:
        self.game.phase = GamePhase.OVER
        for watcher in tuple(self.arena.watchers):
            watcher.map_ended()

    def play_map(self, first: int, second: int) -> None:
        """Play a whole map in which the game's first and second team win this many rounds."""
        begins = self.game.team1_side
        for side, rounds in ((begins, first), (begins.other, second)):
            for _ in range(rounds):
                self.play_round(side)
        self.end_map()

    def _begin_freeze(self, number: int) -> None:
        for watcher in tuple(self.arena.watchers):
            watcher.freeze_began(number)

    def _end_round(self, number: int, end: RoundEnd) -> None:
        for watcher in tuple(self.arena.watchers):
            watcher.round_ended(number, end)
