"""Hold the state that all parts of a simulated game share: time, log, settings, players, statistics and randomness.

Each purpose has its own random stream. So the events of a round depend on the seed, the map and the round, but not on
the length of the warmup before the match.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from random import Random
from typing import Protocol

from cs2_protocol.game import Side
from cs2_protocol.log_lines.player_lines import LeftBuyzone
from cs2_protocol.log_lines.reader import Line
from cs2_simulator.agenda import TICKS_PER_S, Agenda
from cs2_simulator.play.counts.book import Book
from cs2_simulator.play.player import Player
from cs2_simulator.play.watcher import Watcher
from cs2_simulator.scenarios import Scenario
from cs2_simulator.setup_faults import SetupFault
from cs2_simulator.variables import Variables

_SCENARIOS = {scenario.value: scenario for scenario in Scenario}


class LogWriter(Protocol):
    """Receives the log lines of the game."""

    def write(self, line: Line) -> None:
        """Log a line at the current tick."""

    def begin_map(self) -> None:
        """Start the log of a new map: discard the log of the previous map, and restart byte offsets at 0."""


class Arena:
    def __init__(self, agenda: Agenda, log: LogWriter, variables: Variables) -> None:
        self.agenda = agenda
        self.log = log
        self.variables = variables
        self.book = Book()
        self.players: list[Player] = []
        self.absent: list[Player] = []
        """Players who left a side on this map: the game keeps their place, statistics and money until the next map."""
        self.buy_zone_exits: list[Player] = []
        """Players whose last `left buyzone` line is logged at the end of the tick."""
        self.is_map_over = False
        """True from `Game Over` to the next warmup or match."""
        self.watchers: list[Watcher] = []
        self.map_name = ""
        self.map_number = 0
        """Number of map loads so far."""
        self.is_busy = False
        """True while a map loads; the console does not answer then."""
        self.required_team: Callable[[Player], str | None] = lambda _player: None
        """The team that the plugin assigns to a player; None if the player may choose."""
        self.setup_fault: SetupFault | None = None
        self._zero_tick = 0

    @property
    def clock_ms(self) -> int:
        """Milliseconds since the start of the current round.

        Fights and objectives use only this clock. On the agenda's clock, the length of a time span would depend on the
        tick in which it begins, and so on when a command was sent: a tick is not a whole number of milliseconds.
        """
        return (self.agenda.tick - self._zero_tick) * 1000 // TICKS_PER_S

    def plan_last_line(self, player: Player) -> None:
        """Log an empty `left buyzone` at the end of this tick, for a player who left or died in their buy zone.

        If the round ends because the player left, the line follows the lines of the round end.
        """
        if player not in self.buy_zone_exits:
            self.buy_zone_exits.append(player)
            self.agenda.call_in(0, self.write_last_lines)

    def write_last_lines(self) -> None:
        """Log the planned `left buyzone` lines.

        They are omitted after the end of the map. In a real log, ten players who left then have no such line.
        """
        exits, self.buy_zone_exits = self.buy_zone_exits, []
        for player in exits:
            if player not in self.players:
                player.forget_id()  # a real server does not know the Steam id from then on
                if player.person.is_bot and player in self.absent:
                    self.absent.remove(player)
            if not self.is_map_over and self.variables.is_on("mp_logdetail_items"):
                self.log.write(LeftBuyzone(player.token, ()))

    def restart_clock(self) -> None:
        self._zero_tick = self.agenda.tick

    @property
    def seed(self) -> str:
        return self.variables.text("sim_seed")

    @property
    def scenario(self) -> Scenario:
        return _SCENARIOS[self.variables.text("sim_scenario")]

    def notify(self, event: Callable[[Watcher], None], *, about: Player | None = None) -> None:
        """Call an event handler of all watchers. Stop early if a watcher removes the player whom the event is about."""
        for watcher in tuple(self.watchers):
            if about is None or about in self.players:
                event(watcher)

    def rng(self, *purpose: object) -> Random:
        """Return the random stream for a purpose; it depends on the seed and the purpose only."""
        return Random("/".join((self.seed, *map(str, purpose))))

    def players_on(self, side: Side) -> list[Player]:
        """Return the players on a side, dead or alive, ordered by user id."""
        return [player for player in self.everyone_on(side) if not player.is_coach]

    def everyone_on(self, side: Side) -> list[Player]:
        """Return the players and coaches on a side."""
        return [player for player in self.players if player.is_in_game and player.team == side]

    def kept_on(self, side: Side) -> list[Player]:
        """Return the players and coaches on a side, connected or absent, ordered by user id.

        All of them get the team's money.
        """
        absent = [player for player in self.absent if player.team == side]
        present = self.everyone_on(side)
        return sorted((*present, *absent), key=attrgetter("user_id")) if absent else present

    def alive_on(self, side: Side) -> list[Player]:
        return [player for player in self.players if player.is_alive and player.team == side and not player.is_coach]

    @property
    def playing(self) -> list[Player]:
        """All players and coaches who are on a side, dead or alive."""
        return [player for player in self.players if player.is_playing]
