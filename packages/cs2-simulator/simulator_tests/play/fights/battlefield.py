"""Builders for the tests of fights, money and rounds: an arena with players, but without a game."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import TypeVar

from cs2_protocol.game import Side
from cs2_protocol.log_lines.reader import Line
from cs2_simulator.agenda import Agenda, Script
from cs2_simulator.play.arena import Arena
from cs2_simulator.play.fights.economy import Economy
from cs2_simulator.play.fights.round_play import RoundStyle
from cs2_simulator.play.player import Participant, Player
from cs2_simulator.play.watcher import RoundEnd
from cs2_simulator.variables import Variables

START_MS = 1_768_848_936_000

LOGGED = {"mp_logdetail": "3", "mp_logmoney": "1", "mp_logdetail_items": "1"}

_Result = TypeVar("_Result")
_Kind = TypeVar("_Kind", bound=Line)


class RecordingLog:
    def __init__(self) -> None:
        self.lines: list[Line] = []

    def write(self, line: Line) -> None:
        self.lines.append(line)

    def begin_map(self) -> None:
        self.lines.clear()

    @property
    def texts(self) -> list[str]:
        return [line.text() for line in self.lines]

    def lines_of(self, kind: type[_Kind]) -> list[_Kind]:
        return [line for line in self.lines if isinstance(line, kind)]


class FixedRng(Random):
    """A random generator that returns the given values in order, and then the last one forever."""

    def __init__(self, *values: float) -> None:
        super().__init__(0)
        self._values = list(values)

    def random(self) -> float:
        return self._values.pop(0) if len(self._values) > 1 else self._values[0]


class Battlefield:
    """Two teams on a map; CTs have the lower user ids."""

    def __init__(self, *, cts: int = 5, ts: int = 5, seed: str = "1", settings: dict[str, str] | None = None) -> None:
        self.log = RecordingLog()
        self.agenda = Agenda(START_MS)
        self.variables = Variables()
        self.variables.set("game_mode", "1")
        self.variables.load_mode()
        for name, value in {**LOGGED, "sim_seed": seed, **(settings or {})}.items():
            assert self.variables.set(name, value) is None, name
        self.arena = Arena(self.agenda, self.log, self.variables)
        self.arena.map_name = "de_inferno"
        self.economy = Economy()
        for number in range(cts + ts):
            self.add(number, Side.CT if number < cts else Side.T)
        self.economy.start_half(self.arena)
        self.log.lines.clear()

    def add(self, number: int, team: str, person: Participant | None = None) -> Player:
        person = person or Participant(f"player {number}", 1000 + 7 * number, skill=0.8 + 0.05 * (number % 7))
        player = Player(person, number, team=team, is_in_game=True, position="10 20 30")
        self.arena.players.append(player)
        return player

    def spawn_all(self) -> Battlefield:
        for player in self.arena.playing:
            self.economy.spawn(self.arena, player)
        self.log.lines.clear()
        return self

    def go_live(self, *, is_free_for_all: bool = False, has_respawns: bool = False) -> None:
        arena = self.arena
        arena.book.open(is_free_for_all=is_free_for_all, has_respawns=has_respawns)
        arena.book.round_started(1, arena.players_on(Side.CT), arena.players_on(Side.T))

    def leave(self, player: Player) -> None:
        player.is_alive = False
        self.arena.players.remove(player)

    def run(self, script: Script[_Result]) -> _Result:
        results: list[_Result] = []

        def run_and_store() -> Script[None]:
            results.append((yield from script))

        self.agenda.start(run_and_store())
        while not results:
            assert self.agenda.run_next(), "no plans left"
        return results[0]

    @property
    def cts(self) -> Sequence[Player]:
        return self.arena.players_on(Side.CT)

    @property
    def ts(self) -> Sequence[Player]:
        return self.arena.players_on(Side.T)


def begin_round(field: Battlefield, rng: Random, style: RoundStyle = RoundStyle.BOMB) -> None:
    for player in field.arena.playing:
        player.money = max(player.money, 3000)
        field.economy.spawn(field.arena, player)
    if style in (RoundStyle.BOMB, RoundStyle.HOSTAGE):
        field.run(field.economy.buy(field.arena, rng, 15_000))
    if style is RoundStyle.BOMB:
        field.economy.assign_bomb(field.arena, rng)
    field.go_live()
    field.log.lines.clear()


def without_result(script: Script[RoundEnd]) -> Script[None]:
    yield from script
