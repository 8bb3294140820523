"""Connect the simulated plugin MatchZy to the server: game events, chat and console commands.

If the plugin is not installed, the console does not know its commands. This is checked for every command, because the
scenario can change while the server runs. `match_course` controls the match.
"""

from __future__ import annotations

from collections.abc import Callable

from cs2_protocol.game import Side
from cs2_simulator.console.console import Console
from cs2_simulator.console.parts import ServerParts
from cs2_simulator.play.player import Player
from cs2_simulator.play.watcher import RoundEnd, Watcher
from cs2_simulator.plugin import chat_commands
from cs2_simulator.plugin.commands import all_commands
from cs2_simulator.plugin.match_course import MatchCourse
from cs2_simulator.plugin.plugin_lists import has_matchzy, register_lists
from cs2_simulator.plugin.series import PluginStage


class MatchPlugin(Watcher):
    def __init__(self, parts: ServerParts, console: Console) -> None:
        self._arena = parts.arena
        self._console = console
        self.course = MatchCourse(parts, console)
        for name, handler in all_commands(self.course).items():
            console.register(name, self._if_installed(name, handler))
        register_lists(parts.arena, console)
        parts.has_plugin_match = lambda: self.has_match
        parts.arena.required_team = self.course.required_team
        parts.arena.watchers.append(self)

    @property
    def is_installed(self) -> bool:
        """False in the scenario `plugin_missing`, and with some setup faults."""
        return has_matchzy(self._arena)

    @property
    def has_match(self) -> bool:
        return self.course.series is not None

    def map_closing(self) -> None:
        self.course.demos.map_closing()

    def map_loaded(self, map_name: str) -> None:
        self.course.demos.map_loaded()
        self.course.schedule_warmup()

    def player_entered(self, player: Player) -> None:
        """Admit or kick a player who has finished loading the map."""
        if not player.person.is_bot and self.is_installed:
            self.course.admit(player)

    def player_left(self, player: Player, reason: str) -> None:
        self.course.ready.remove(player)

    def player_chatted(self, player: Player, text: str) -> None:
        """Handle a chat message that begins with `.` or `!` as a command."""
        if self.has_match and text[:1] in (".", "!"):
            chat_commands.handle(self.course, player, text[1:].strip().lower())

    def freeze_began(self, round_number: int) -> None:
        """Prepare the coaches for the round, and write a backup if the match is live."""
        if self.course.stage.is_started:
            self.course.coaches.freeze_began()
        if self.course.series is not None and self.course.stage is PluginStage.LIVE:
            self.course.series.write_backup(round_number - 1)

    def round_started(self, round_number: int) -> None:
        """Move out coaches who are still alive, and update the hostname, which may contain the score."""
        if self.course.stage.is_started:
            self.course.coaches.round_started()
            self.course.update_hostname()

    def round_ended(self, round_number: int, end: RoundEnd) -> None:
        """Report a live round. After a knife round, let its winners choose a side."""
        course, series = self.course, self.course.series
        if series is None:
            return
        if round_number > 0 and course.stage is PluginStage.LIVE:
            course.report_round(series, end)
        elif round_number == 0 and course.stage is PluginStage.KNIFE:
            rng = self._arena.rng("knife", series.map_number)
            course.end_knife(end.side or rng.choice((Side.CT, Side.T)))
            chat_commands.schedule_side_choice(course, rng)

    def map_ended(self) -> None:
        """Count the map, and continue with the next map or the end of the series."""
        series = self.course.series
        if series is not None and self.course.stage is PluginStage.LIVE:
            self.course.end_map(series)

    def _if_installed(self, name: str, handler: Callable[[list[str]], str]) -> Callable[[list[str]], str]:
        return lambda arguments: handler(arguments) if self.is_installed else self._console.unknown_command(name)
