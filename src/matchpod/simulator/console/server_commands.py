"""What does a server say of itself, and how does it end? Status, version, chat from the console, config files, quit."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from matchpod.cs2.log_lines.world_lines import ConsoleChat, LogFileClosed, ServerMessage
from matchpod.simulator.console.parts import Command, Parts, lines, nothing
from matchpod.simulator.console.statements import Statement
from matchpod.simulator.console.status import status_json_text, status_text, version_text


def _status(parts: Parts, _statement: Statement) -> str:
    return status_text(parts.arena)


def _status_json(parts: Parts, _statement: Statement) -> str:
    return status_json_text(parts.arena)


def _version(_parts: Parts, _statement: Statement) -> str:
    return version_text()


def _say(parts: Parts, statement: Statement) -> str:
    if statement.value:
        parts.arena.log.write(ConsoleChat(statement.value))
    return ""


def _echo(_parts: Parts, statement: Statement) -> str:
    return lines(" ".join(statement.args))


def _exec(_parts: Parts, statement: Statement) -> str:
    # The files of the modes run by themselves at a map load; there are no others.
    if not statement.args:
        return lines("exec <filename>: execute a script file")
    return lines(f"exec: couldn't exec {statement.args[0]}")


def _quit(parts: Parts, _statement: Statement) -> str:
    parts.arena.log.write(ServerMessage("quit"))
    if parts.arena.variables.is_on("sv_logfile"):
        parts.arena.log.write(LogFileClosed())
    parts.outside.exit(is_crash=False)
    return ""


SERVER_COMMANDS: Mapping[str, Command] = MappingProxyType(
    {
        "echo": Command(_echo, configures=False),
        "exec": Command(_exec),
        "execifexists": Command(nothing),
        "exit": Command(_quit, configures=False),
        "quit": Command(_quit, configures=False),
        "say": Command(_say, configures=False),
        "status": Command(_status, configures=False),
        "status_json": Command(_status_json, configures=False),
        # The account of a server shows nowhere.
        "sv_setsteamaccount": Command(nothing),
        "tv_record": Command(nothing, configures=False),
        "tv_stoprecord": Command(nothing, configures=False),
        "version": Command(_version, configures=False),
    }
)
"""By name."""
