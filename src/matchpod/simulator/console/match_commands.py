"""How is play steered from the console? Warmup, restart, pause, backups, and people who are thrown out."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from matchpod.cs2.steam_id import to_id64
from matchpod.simulator.console.parts import Command, Parts, lines, nothing
from matchpod.simulator.console.statements import Statement
from matchpod.simulator.console.status import LOADING_ID
from matchpod.simulator.play.player import Player

LISTED_BACKUPS = 5
"""How many files `mp_backup_restore_list_files` names unless told otherwise."""


def _start_warmup(parts: Parts, _statement: Statement) -> str:
    parts.game.start_warmup()
    return ""


def _end_warmup(parts: Parts, _statement: Statement) -> str:
    parts.game.end_warmup()
    return ""


def _restart(parts: Parts, statement: Statement) -> str:
    # A variable that acts, and is 0 again once it has.
    if not statement.rest:
        return lines(parts.arena.variables.shown("mp_restartgame"))
    seconds = _whole(statement.value)
    if seconds > 0:
        parts.visitors.settle()
        parts.game.restart(seconds)
    return ""


def _pause(parts: Parts, _statement: Statement) -> str:
    parts.game.pause("mp_pause_match")
    return ""


def _unpause(parts: Parts, _statement: Statement) -> str:
    parts.game.unpause("mp_unpause_match")
    return ""


def _ct_timeout(parts: Parts, _statement: Statement) -> str:
    parts.game.pause("TimeOutCTs")
    return ""


def _t_timeout(parts: Parts, _statement: Statement) -> str:
    parts.game.pause("TimeOutTs")
    return ""


def _swap(parts: Parts, _statement: Statement) -> str:
    parts.game.swap_teams()
    return ""


def _list_backups(parts: Parts, statement: Statement) -> str:
    files = parts.game.backups()
    count = max(0, _whole(statement.args[0])) if statement.args else LISTED_BACKUPS
    prefix = parts.arena.variables.text("mp_backup_round_file")
    shown = [f" {file}" for file in files[:count]]
    return lines(f"Listing backup files with prefix: {prefix}", *shown, f"{len(files)} backup files total.")


def _load_backup(parts: Parts, statement: Statement) -> str:
    if not statement.value:
        return lines("Usage:  mp_backup_restore_load_file <file>")
    return "" if parts.game.restore(statement.value) else lines(f"Failed to load file: {statement.value}")


def _last_backup(parts: Parts, _statement: Statement) -> str:
    return lines(f"mp_backup_round_file_last = {parts.game.last_backup}")


def _kick_by_id(parts: Parts, statement: Statement) -> str:
    if not statement.args:
        return lines("Usage:  kickid < userid | uniqueid > { message }")
    wanted, *message = statement.args
    return _throw_out(parts, _by_id(parts, wanted), wanted, " ".join(message))


def _kick_by_name(parts: Parts, statement: Statement) -> str:
    wanted = statement.value
    if not wanted:
        return lines("Usage:  kick < name >")
    names = [player for player in parts.arena.players if player.person.name.lower() == wanted.lower()]
    return _throw_out(parts, names[0] if names else None, wanted, "")


def _kick_bots(parts: Parts, _statement: Statement) -> str:
    for player in tuple(parts.arena.players):
        if player.person.is_bot:
            parts.door.kick(player, "")
    return ""


def _by_id(parts: Parts, wanted: str) -> Player | None:
    if wanted.isascii() and wanted.isdigit() and len(wanted) <= 5:
        number = int(wanted)
        # `status` shows people who are still loading by another number than the log does: both are his.
        return parts.door.find(number if number < LOADING_ID else number - LOADING_ID)
    id64 = to_id64(wanted)
    return next((player for player in parts.arena.players if id64 and player.person.player_id == id64), None)


def _throw_out(parts: Parts, player: Player | None, wanted: str, message: str) -> str:
    if player is None:
        return lines(f'Can\'t kick "{wanted}", name not found')
    parts.door.kick(player, message)
    return ""


def _whole(text: str) -> int:
    try:
        return int(float(text))
    except (ValueError, OverflowError):
        return 0


MATCH_COMMANDS: Mapping[str, Command] = MappingProxyType(
    {
        # No bots play here: the command is taken without a word and changes nothing.
        "bot_add": Command(nothing),
        "bot_add_ct": Command(nothing),
        "bot_add_t": Command(nothing),
        "bot_kick": Command(_kick_bots),
        "kick": Command(_kick_by_name, configures=False),
        "kickid": Command(_kick_by_id, configures=False),
        "mp_backup_restore_list_files": Command(_list_backups, configures=False),
        "mp_backup_restore_load_file": Command(_load_backup),
        "mp_backup_round_file_last": Command(_last_backup, configures=False),
        "mp_pause_match": Command(_pause),
        "mp_restartgame": Command(_restart, configures=False),
        "mp_swapteams": Command(_swap),
        "mp_unpause_match": Command(_unpause),
        "mp_warmup_end": Command(_end_warmup),
        "mp_warmup_start": Command(_start_warmup),
        "timeout_ct_start": Command(_ct_timeout),
        "timeout_terrorist_start": Command(_t_timeout),
    }
)
"""By name."""
