"""Execute console commands from RCON and from the command line.

A name is looked up first among the commands of the game, then among the commands of the plugin, then among the
variables. The name of a variable prints its value; the name followed by a value sets the variable. Names are
case-insensitive. RCON commands are logged in full, including secrets. The output is that of the game, in which most
commands print nothing on success.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from cs2_protocol.log_lines.world_lines import CvarChanged, RconCommand
from cs2_simulator.console.log_commands import LOG_COMMANDS
from cs2_simulator.console.match_commands import MATCH_COMMANDS
from cs2_simulator.console.parts import Command, ServerParts, lines
from cs2_simulator.console.server_commands import SERVER_COMMANDS
from cs2_simulator.console.statements import ConsoleStatement, statements
from cs2_simulator.play.flow.map_load import LISTED

CommandHandler = Callable[[list[str]], str]
"""Function of a plugin command. It receives the arguments and returns the output."""

PROTECTED = "***PROTECTED***"
"""Text that a server prints or logs in place of a password."""

_OVERFLOW = "CCommand::Tokenize: Encountered command which overflows the tokenizer buffer.. Skipping!"
_COMMANDS: Mapping[str, Command] = MappingProxyType({**SERVER_COMMANDS, **LOG_COMMANDS, **MATCH_COMMANDS})
_SECRETS = frozenset({"rcon_password", "sv_password", "tv_password", "tv_password1", "tv_relaypassword"})


class Console:
    def __init__(self, parts: ServerParts) -> None:
        self._parts = parts
        self._registered: dict[str, CommandHandler] = {}

    def register(self, name: str, handler: CommandHandler) -> None:
        """Register a plugin command. The game's own commands cannot be replaced."""
        self._registered[name.lower()] = handler

    def unknown_command(self, name: str) -> str:
        return lines(f"Unknown command '{name}'!")

    def execute(self, text: str, source: str) -> str:
        """Run all commands in a text. `source` is the address of an RCON client, or empty for the server itself."""
        echo = RconCommand(source, text)
        has_listeners = bool(self._parts.stream.listeners)
        if source and has_listeners:
            self._parts.arena.log.write(echo)
        answer = "".join([self._run(statement) for statement in statements(text)])
        if source and not has_listeners:
            # As on a real server: the first line that a new listener receives is the command that added it.
            self._parts.arena.log.write(echo)
        return answer

    def _run(self, statement: ConsoleStatement) -> str:
        if statement.is_too_long:
            return lines(_OVERFLOW)
        name = statement.name.lower()
        command = _COMMANDS.get(name)
        if command is not None:
            answer = command.run(self._parts, statement)
            if command.configures:
                self._parts.visitors.restart_countdown()
            return answer
        handler = self._registered.get(name)
        if handler is not None:
            return handler(statement.args)
        if self._parts.arena.variables.is_known(name):
            return self._print(name) if not statement.rest else self._set(name, statement.value)
        return self.unknown_command(statement.name)

    def _print(self, name: str) -> str:
        text = self._parts.arena.variables.describe(name)
        return lines(f"rcon_password = {PROTECTED}" if name == "rcon_password" else text)

    def _set(self, name: str, value: str) -> str:
        variables = self._parts.arena.variables
        before = variables.text(name)
        fault = variables.set(name, value)
        if fault is not None:
            return lines(fault)
        if variables.text(name) != before:
            self._on_change(name)
        self._parts.visitors.restart_countdown()
        return ""

    def _on_change(self, name: str) -> None:
        parts = self._parts
        value = parts.arena.variables.text(name)
        if name in LISTED:
            # A server logs a change only if the variable is in the list that it logs at a map load.
            parts.arena.log.write(CvarChanged(name, PROTECTED if name in _SECRETS else value))
        if name == "rcon_password":
            parts.outside.drop_rcon_connections()
        elif name == "sim_speed":
            parts.outside.set_speed(float(value))
        elif name == "sv_log_http_record_before_any_listeners":
            parts.stream.records_early = parts.arena.variables.is_on(name)
