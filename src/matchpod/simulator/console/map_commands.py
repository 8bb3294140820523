"""Which map and mode is played next? `changelevel`, `map`, the workshop, and the names of modes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

from matchpod.simulator.console.parts import Command, Parts, lines, nothing
from matchpod.simulator.console.statements import Statement
from matchpod.simulator.mode_configs import ALIASES

_MODE_OPTION = "gamemode="
_MAP = re.compile(r"(?:workshop/[0-9]{1,20}/)?(?:de|cs|ar|gd|dm|aim|awp|fy)_[a-z0-9_]{1,60}")
"""Names a server is taken to have; all others are unknown to it."""

_WORKSHOP_ID = re.compile(r"[0-9]{4,20}")


def _change_level(parts: Parts, statement: Statement) -> str:
    if not statement.args:
        return lines(f"{statement.name} <map> : changes server to the specified map")
    name = statement.args[0].lower()
    if not _MAP.fullmatch(name):
        # The words of the engine before; those of CS2 are not known. Nothing is loaded.
        return lines(
            f"CModelLoader::Map_IsValid:  No such map 'maps/{name}.vpk'", f"{statement.name} failed: {name} not found"
        )
    for option in statement.args[1:]:
        if option.lower().startswith(_MODE_OPTION):
            fault = _take_mode(parts, option[len(_MODE_OPTION) :])
            if fault:
                return fault
    return _load(parts, name)


def _load_workshop(parts: Parts, statement: Statement) -> str:
    if len(statement.args) != 1 or not _WORKSHOP_ID.fullmatch(statement.args[0]):
        return lines(f"Usage:  {statement.name} <workshop id>")
    return _load(parts, statement.args[0])


def _load(parts: Parts, name: str) -> str:
    # Told before the load begins: it stops the clock of this console.
    parts.visitors.settle()
    parts.game.load_map(name)
    return ""


def _alias(parts: Parts, statement: Statement) -> str:
    if not statement.args:
        return lines("Usage:  game_alias <name>")
    return _take_mode(parts, statement.args[0]) or ""


def _take_mode(parts: Parts, alias: str) -> str | None:
    pair = ALIASES.get(alias.lower())
    if pair is None:
        return lines(f"Unknown game mode '{alias}', known are: {', '.join(ALIASES)}")
    parts.arena.variables.set("game_type", str(pair[0]))
    parts.arena.variables.set("game_mode", str(pair[1]))
    return None


MAP_COMMANDS: Mapping[str, Command] = MappingProxyType(
    {
        "changelevel": Command(_change_level, configures=False),
        "ds_workshop_changelevel": Command(_change_level, configures=False),
        "ds_workshop_listmaps": Command(nothing, configures=False),
        "game_alias": Command(_alias),
        "host_workshop_collection": Command(nothing),
        "host_workshop_map": Command(_load_workshop, configures=False),
        "map": Command(_change_level, configures=False),
    }
)
"""By name."""
