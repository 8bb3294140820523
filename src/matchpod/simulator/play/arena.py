"""Where does all this happen? What the parts of a simulated game share: time, log, settings, players, counts, chance.

Chance is cut into streams by purpose, so that what happens in a round depends on the seed, the map and the round, and
never on how long somebody warmed up before it.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Protocol

from matchpod.core.model import Side
from matchpod.cs2.log_lines.reader import Line
from matchpod.simulator.agenda import TICKS_PER_S, Agenda
from matchpod.simulator.play.counts.book import Book
from matchpod.simulator.play.player import Player
from matchpod.simulator.play.watcher import Watcher
from matchpod.simulator.scenarios import Scenario
from matchpod.simulator.variables import Variables

_SCENARIOS = {scenario.value: scenario for scenario in Scenario}


class LogWriter(Protocol):
    """Takes lines as they happen."""

    def write(self, line: Line) -> None:
        """Log a line at the present tick."""

    def begin_map(self) -> None:
        """A map load begins: what was not sent of the map before is lost, bytes count from 0 again."""


class Arena:
    """The shared state of one server's game."""

    def __init__(self, agenda: Agenda, log: LogWriter, variables: Variables) -> None:
        self.agenda = agenda
        self.log = log
        self.variables = variables
        self.book = Book()
        self.players: list[Player] = []
        self.watchers: list[Watcher] = []
        self.map_name = ""
        self.map_number = 0
        """Map loads of this server so far."""
        self.is_busy = False
        """A map is being loaded: the console is silent."""
        self.team_of: Callable[[Player], str | None] = lambda _player: None
        """The plugin's word on which team a player must take; None leaves him the choice."""
        self._zero_tick = 0

    @property
    def clock_ms(self) -> int:
        """The time of the round being played, from its start.

        Play goes by this clock alone: a tick has no whole number of milliseconds, so that the length of the same span
        of the agenda's time depends on the tick in which it begins, which is when somebody sent a command.
        """
        return (self.agenda.tick - self._zero_tick) * 1000 // TICKS_PER_S

    def restart_clock(self) -> None:
        """A round starts now."""
        self._zero_tick = self.agenda.tick

    @property
    def seed(self) -> str:
        """What chance is made of."""
        return self.variables.text("sim_seed")

    @property
    def scenario(self) -> Scenario:
        """The story being told."""
        return _SCENARIOS[self.variables.text("sim_scenario")]

    def dice(self, *purpose: object) -> Random:
        """A stream of chance for one purpose: the same seed and purpose give the same stream."""
        return Random("/".join((self.seed, *map(str, purpose))))

    def on(self, side: Side) -> list[Player]:
        """Who stands on a side, dead or alive, in the order of their numbers."""
        return [player for player in self.players if player.is_in_game and player.team == side]

    def alive(self, side: Side) -> list[Player]:
        """Who is left on a side."""
        return [player for player in self.players if player.is_alive and player.team == side]

    @property
    def playing(self) -> list[Player]:
        """Everyone on either side."""
        return [player for player in self.players if player.is_playing]
