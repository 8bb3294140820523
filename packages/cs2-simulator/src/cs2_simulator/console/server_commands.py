"""General console commands: status, version, chat, config files, maps and game modes, quit."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

from cs2_protocol.log_lines.world_lines import ConsoleChat, LogFileClosed, ServerMessage
from cs2_simulator.console.parts import Command, ServerParts, lines, no_op
from cs2_simulator.console.statements import ConsoleStatement
from cs2_simulator.console.status import VERSION_TEXT, status_json_text, status_text
from cs2_simulator.mode_configs import ALIASES

_MODE_OPTION = "gamemode="
_MAP = re.compile(r"(?:workshop/[0-9]{1,20}/)?(?:de|cs|ar|gd|dm|aim|awp|fy)_[a-z0-9_]{1,60}")
"""Map names that the server accepts. It reports all other names as unknown."""

_WORKSHOP_ID = re.compile(r"[0-9]{4,20}")


def _say(parts: ServerParts, statement: ConsoleStatement) -> str:
    if statement.value and parts.arena.variables.is_on("sim_console_chat"):
        parts.arena.log.write(ConsoleChat(statement.value))
    return ""


def _exec(_parts: ServerParts, statement: ConsoleStatement) -> str:
    # Every file is reported as missing: only the files of the game modes exist, and they run at a map load.
    if not statement.args:
        return lines("exec <filename>: execute a script file")
    return lines(f"exec: couldn't exec {statement.args[0]}")


def _quit(parts: ServerParts, _statement: ConsoleStatement) -> str:
    parts.arena.log.write(ServerMessage("quit"))
    if parts.arena.variables.is_on("sv_logfile"):
        parts.arena.log.write(LogFileClosed())
    parts.outside.exit(is_crash=False)
    return ""


def _change_level(parts: ServerParts, statement: ConsoleStatement) -> str:
    if not statement.args:
        return lines(f"{statement.name} <map> : changes server to the specified map")
    name = statement.args[0].lower()
    if not _MAP.fullmatch(name):
        # The error text of the previous engine, since that of CS2 is not known. No map is loaded.
        return lines(
            f"CModelLoader::Map_IsValid:  No such map 'maps/{name}.vpk'", f"{statement.name} failed: {name} not found"
        )
    for option in statement.args[1:]:
        if option.lower().startswith(_MODE_OPTION):
            fault = _set_mode(parts, option[len(_MODE_OPTION) :])
            if fault:
                return fault
    return _load(parts, name)


def _load_workshop(parts: ServerParts, statement: ConsoleStatement) -> str:
    if len(statement.args) != 1 or not _WORKSHOP_ID.fullmatch(statement.args[0]):
        return lines(f"Usage:  {statement.name} <workshop id>")
    return _load(parts, statement.args[0])


def _load(parts: ServerParts, name: str) -> str:
    # Restart the countdown, like each command that configures the server. The end of the map load restarts it again.
    parts.visitors.restart_countdown()
    parts.game.change_map(name)
    return ""


def _alias(parts: ServerParts, statement: ConsoleStatement) -> str:
    if not statement.args:
        return lines("Usage:  game_alias <name>")
    return _set_mode(parts, statement.args[0]) or ""


def _set_mode(parts: ServerParts, alias: str) -> str | None:
    pair = ALIASES.get(alias.lower())
    if pair is None:
        return lines(f"Unknown game mode '{alias}'. Known modes: {', '.join(ALIASES)}")
    parts.arena.variables.set("game_type", str(pair[0]))
    parts.arena.variables.set("game_mode", str(pair[1]))
    return None


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
        # Logging in with a server account has no visible effect.
        "sv_setsteamaccount": Command(no_op),
        "tv_record": Command(no_op, configures=False),
        "tv_stoprecord": Command(no_op, configures=False),
        "version": Command(lambda _parts, _: VERSION_TEXT, configures=False),
        "changelevel": Command(_change_level, configures=False),
        "ds_workshop_changelevel": Command(_change_level, configures=False),
        "ds_workshop_listmaps": Command(no_op, configures=False),
        "game_alias": Command(_alias),
        "host_workshop_collection": Command(no_op),
        "host_workshop_map": Command(_load_workshop, configures=False),
        "map": Command(_change_level, configures=False),
    }
)
"""Commands by name."""
