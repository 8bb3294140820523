"""What does a console command do, and what does the console answer? Every line of RCON and of the command line.

A word is looked up among the commands of the game, then those the plugin registered, then the variables: a variable
alone is asked, with a value it is set. Names are read without regard to case. What is asked through RCON is logged
first, in full, secrets and all. Answers are what the game would print, empty for most that succeeds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from matchpod.cs2.log_lines.world_lines import CvarChanged, RconCommand
from matchpod.simulator.console.log_commands import LOG_COMMANDS
from matchpod.simulator.console.map_commands import MAP_COMMANDS
from matchpod.simulator.console.match_commands import MATCH_COMMANDS
from matchpod.simulator.console.parts import Command, LogListeners, Parts, lines
from matchpod.simulator.console.server_commands import SERVER_COMMANDS
from matchpod.simulator.console.statements import Statement, statements
from matchpod.simulator.outside import Outside
from matchpod.simulator.play.arena import Arena
from matchpod.simulator.play.door import Door
from matchpod.simulator.play.flow.game import Game
from matchpod.simulator.play.flow.map_load import LISTED
from matchpod.simulator.play.people.visitors import Visitors

Handler = Callable[[list[str]], str]
"""A command of a plugin: takes the arguments, answers what the console prints."""

PROTECTED = "***PROTECTED***"
"""What stands for a password where a server prints it."""

_OVERFLOW = "CCommand::Tokenize: Encountered command which overflows the tokenizer buffer.. Skipping!"
_COMMANDS: Mapping[str, Command] = MappingProxyType(
    {**SERVER_COMMANDS, **LOG_COMMANDS, **MAP_COMMANDS, **MATCH_COMMANDS}
)
_SECRETS = frozenset({"rcon_password", "sv_password", "tv_password", "tv_password1", "tv_relaypassword"})


class Console:
    """The console of one server."""

    def __init__(
        self,
        arena: Arena,
        game: Game,
        door: Door,
        visitors: Visitors,
        *,
        outside: Outside,
        listeners: LogListeners,
    ) -> None:
        self._parts = Parts(arena, game, door, visitors, outside, listeners, lambda: False)
        self._registered: dict[str, Handler] = {}

    @property
    def has_plugin_match(self) -> Callable[[], bool]:
        """Whether the plugin has a match, and with it says who will come."""
        return self._parts.has_plugin_match

    @has_plugin_match.setter
    def has_plugin_match(self, has_plugin_match: Callable[[], bool]) -> None:
        self._parts.has_plugin_match = has_plugin_match

    def register(self, name: str, handler: Handler) -> None:
        """Let a plugin add a command; the game's own commands cannot be replaced."""
        self._registered[name.lower()] = handler

    def unknown(self, name: str) -> str:
        """The answer to a command that does not exist."""
        return lines(f"Unknown command '{name}'!")

    def execute(self, text: str, source: str) -> str:
        """Run all commands of a text; `source` is the address of an RCON client, empty for the server itself."""
        echo = RconCommand(source, text)
        is_heard = bool(self._parts.listeners.list())
        if source and is_heard:
            self._parts.arena.log.write(echo)
        answer = "".join([self._run(statement) for statement in statements(text)])
        if source and not is_heard:
            # The first line that a new listener of a real server got was the command that added him.
            self._parts.arena.log.write(echo)
        return answer

    def _run(self, statement: Statement) -> str:
        if statement.is_too_long:
            return lines(_OVERFLOW)
        name = statement.name.lower()
        command = _COMMANDS.get(name)
        if command is not None:
            answer = command.run(self._parts, statement)
            if command.configures:
                self._parts.visitors.settle()
            return answer
        handler = self._registered.get(name)
        if handler is not None:
            return handler(statement.args)
        if self._parts.arena.variables.knows(name):
            return self._ask(name) if not statement.rest else self._set(name, statement.value)
        return self.unknown(statement.name)

    def _ask(self, name: str) -> str:
        shown = self._parts.arena.variables.shown(name)
        return lines(f"rcon_password = {PROTECTED}" if name == "rcon_password" else shown)

    def _set(self, name: str, value: str) -> str:
        variables = self._parts.arena.variables
        before = variables.text(name)
        fault = variables.set(name, value)
        if fault is not None:
            return lines(fault)
        if variables.text(name) != before:
            self._changed(name)
        self._parts.visitors.settle()
        return ""

    def _changed(self, name: str) -> None:
        parts = self._parts
        value = parts.arena.variables.text(name)
        if name in LISTED:
            # The variables that a map load lists are those whose changes are logged.
            parts.arena.log.write(CvarChanged(name, PROTECTED if name in _SECRETS else value))
        if name == "rcon_password":
            parts.outside.drop_consoles()
        elif name == "sim_speed":
            parts.outside.set_speed(float(value))
        elif name == "sv_log_http_record_before_any_listeners":
            parts.listeners.records_early = parts.arena.variables.is_on(name)
