"""General console commands: status, version, chat, config files, quit."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from cs2_protocol.log_lines.world_lines import ConsoleChat, LogFileClosed, ServerMessage
from cs2_simulator.console.parts import Command, ServerParts, lines, no_op
from cs2_simulator.console.statements import ConsoleStatement
from cs2_simulator.console.status import VERSION_TEXT, status_json_text, status_text


def _say(parts: ServerParts, statement: ConsoleStatement) -> str:
    if statement.value:
        parts.arena.log.write(ConsoleChat(statement.value))
    return ""


def _exec(_parts: ServerParts, statement: ConsoleStatement) -> str:
    # The only config files are those of the modes, which run automatically at a map load.
    if not statement.args:
        return lines("exec <filename>: execute a script file")
    return lines(f"exec: couldn't exec {statement.args[0]}")


def _quit(parts: ServerParts, _statement: ConsoleStatement) -> str:
    parts.arena.log.write(ServerMessage("quit"))
    if parts.arena.variables.is_on("sv_logfile"):
        parts.arena.log.write(LogFileClosed())
    parts.outside.exit(is_crash=False)
    return ""


SERVER_COMMANDS: Mapping[str, Command] = MappingProxyType(
    {
        "echo": Command(lambda _, statement: lines(" ".join(statement.args)), configures=False),
        "exec": Command(_exec),
        "execifexists": Command(no_op),
        "exit": Command(_quit, configures=False),
        "quit": Command(_quit, configures=False),
        "say": Command(_say, configures=False),
        "status": Command(lambda parts, _: status_text(parts.arena), configures=False),
        "status_json": Command(lambda parts, _: status_json_text(parts.arena), configures=False),
        # The server account has no visible effect.
        "sv_setsteamaccount": Command(no_op),
        "tv_record": Command(no_op, configures=False),
        "tv_stoprecord": Command(no_op, configures=False),
        "version": Command(lambda _parts, _: VERSION_TEXT, configures=False),
    }
)
"""Commands by name."""
