"""What does the match plugin hear? MatchZy as a part of the server: it watches the game, reads the chat, has commands.

Where it is not installed its commands are unknown to the console; it is asked with every command, as a story can be
changed while the server runs. What it does with a match is in `match_course`.
"""

from __future__ import annotations

from collections.abc import Callable

from matchpod.core.model import Side
from matchpod.simulator.outside import Outside
from matchpod.simulator.play.arena import Arena
from matchpod.simulator.play.door import Door
from matchpod.simulator.play.people.visitors import Visitors
from matchpod.simulator.play.player import Player
from matchpod.simulator.play.watcher import RoundEnd, Watcher
from matchpod.simulator.plugin import chat_commands
from matchpod.simulator.plugin.commands import all_commands
from matchpod.simulator.plugin.match_course import MatchCourse
from matchpod.simulator.plugin.status import Stage
from matchpod.simulator.plugin.surroundings import CommandLine, MatchGame
from matchpod.simulator.scenarios import Scenario


class MatchPlugin(Watcher):
    """MatchZy on one server."""

    def __init__(
        self, arena: Arena, game: MatchGame, door: Door, visitors: Visitors, *, console: CommandLine, outside: Outside
    ) -> None:
        self._arena = arena
        self._console = console
        self.course = MatchCourse(arena, game, door, visitors, console=console, outside=outside)
        for name, handler in all_commands(self.course).items():
            console.register(name, self._if_installed(name, handler))
        console.has_plugin_match = lambda: self.has_match
        arena.team_of = self.course.place_of
        arena.watchers.append(self)

    @property
    def is_installed(self) -> bool:
        """False in the story of the missing plugin."""
        return self._arena.scenario is not Scenario.PLUGIN_MISSING

    @property
    def has_match(self) -> bool:
        """True while a match is loaded."""
        return self.course.series is not None

    @property
    def last_fault(self) -> str:
        """Why the last thing asked for was not done; a real server prints it on its own console only."""
        return self.course.last_fault

    def map_loaded(self, map_name: str) -> None:
        """Warmup is held anew on every map."""
        self.course.hold_warmup()

    def player_entered(self, player: Player) -> None:
        """People are let in or not when they have loaded."""
        if not player.person.is_bot and self.is_installed:
            self.course.admit(player)

    def player_left(self, player: Player, reason: str) -> None:
        """His word goes with him."""
        self.course.ready.forget(player)

    def player_said(self, player: Player, text: str) -> None:
        """Commands are chat that begins with a dot or an exclamation mark."""
        if self.has_match and text[:1] in (".", "!"):
            chat_commands.answer(self.course, player, text[1:].strip().lower())

    def round_started(self, round_number: int) -> None:
        """The name of the server may tell the score."""
        if self.course.stage.is_started:
            self.course.name_server()

    def round_ended(self, round_number: int, end: RoundEnd) -> None:
        """Rounds that count are reported; the knife round is followed by a choice."""
        course, series = self.course, self.course.series
        if series is None:
            return
        if round_number > 0 and course.stage is Stage.LIVE:
            course.report_round(series, end)
        elif round_number == 0 and course.stage is Stage.KNIFE:
            dice = self._arena.dice("knife", series.match_id, series.map_number)
            course.end_knife(end.side or dice.choice((Side.CT, Side.T)))
            chat_commands.let_choose(course, dice)

    def map_ended(self) -> None:
        """The map counts, and the next one or the end follows."""
        series = self.course.series
        if series is not None and self.course.stage is Stage.LIVE:
            self.course.end_map(series)

    def _if_installed(self, name: str, handler: Callable[[list[str]], str]) -> Callable[[list[str]], str]:
        return lambda arguments: handler(arguments) if self.is_installed else self._console.unknown(name)
