"""Console commands that control the match: warmup, restart, pause, backups, kick."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from cs2_protocol.steam_id import to_id64
from cs2_simulator.console.parts import Command, ServerParts, lines, no_op
from cs2_simulator.console.statements import ConsoleStatement
from cs2_simulator.console.status import LOADING_ID_OFFSET
from cs2_simulator.play.flow.game import Game
from cs2_simulator.play.player import Player

LISTED_BACKUPS = 5
"""Number of files that `mp_backup_restore_list_files` lists if no number is given."""


def _game_command(control: Callable[[Game], None]) -> Command:

    def run(parts: ServerParts, _statement: ConsoleStatement) -> str:
        control(parts.game)
        return ""

    return Command(run)


def _restart(parts: ServerParts, statement: ConsoleStatement) -> str:
    # In the game, `mp_restartgame` is a variable: setting it triggers a restart, after which its value is 0 again.
    if not statement.rest:
        return lines(parts.arena.variables.describe("mp_restartgame"))
    seconds = _whole(statement.value)
    if seconds > 0:
        parts.visitors.restart_countdown()
        parts.game.restart(seconds)
    return ""


def _list_backups(parts: ServerParts, statement: ConsoleStatement) -> str:
    files = parts.game.backups()
    count = max(0, _whole(statement.args[0])) if statement.args else LISTED_BACKUPS
    prefix = parts.arena.variables.text("mp_backup_round_file")
    shown = [f" {file}" for file in files[:count]]
    return lines(f"Listing backup files with prefix: {prefix}", *shown, f"{len(files)} backup files total.")


def _load_backup(parts: ServerParts, statement: ConsoleStatement) -> str:
    if not statement.value:
        return lines("Usage:  mp_backup_restore_load_file <file>")
    return "" if parts.game.restore(statement.value) else lines(f"Failed to load file: {statement.value}")


def _last_backup(parts: ServerParts, _statement: ConsoleStatement) -> str:
    return lines(f"mp_backup_round_file_last = {parts.game.last_backup}")


def _kick_by_id(parts: ServerParts, statement: ConsoleStatement) -> str:
    if not statement.args:
        return lines("Usage:  kickid < userid | uniqueid > { message }")
    # The text after the user id is only shown to the player. CS2 does not log it.
    return _kick(parts, _by_id(parts, statement.args[0]), statement.args[0])


def _kick_by_name(parts: ServerParts, statement: ConsoleStatement) -> str:
    wanted = statement.value
    if not wanted:
        return lines("Usage:  kick < name >")
    found = [player for player in parts.arena.players if player.person.name.lower() == wanted.lower()]
    return _kick(parts, found[0] if found else None, wanted)


def _kick_bots(parts: ServerParts, _statement: ConsoleStatement) -> str:
    for player in tuple(parts.arena.players):
        if player.person.is_bot:
            parts.door.kick(player)
    return ""


def _let_say(parts: ServerParts, statement: ConsoleStatement) -> str:
    player = _by_id(parts, statement.args[0]) if len(statement.args) > 1 else None
    if player is None:
        return lines("Usage:  sim_say < userid | uniqueid > < message >, of a player who is connected")
    parts.door.say(player, " ".join(statement.args[1:]))
    return ""


def _by_id(parts: ServerParts, wanted: str) -> Player | None:
    if wanted.isascii() and wanted.isdigit() and len(wanted) <= 5:
        number = int(wanted)
        # While a player loads the map, `status` shows another user id than the log. Both ids are accepted here.
        return parts.door.find(number if number < LOADING_ID_OFFSET else number - LOADING_ID_OFFSET)
    id64 = to_id64(wanted)
    return next((player for player in parts.arena.players if id64 and player.person.player_id == id64), None)


def _kick(parts: ServerParts, player: Player | None, wanted: str) -> str:
    if player is None:
        return lines(f'Can\'t kick "{wanted}", name not found')
    parts.door.kick(player)
    return ""


def _whole(text: str) -> int:
    try:
        return int(float(text))
    except (ValueError, OverflowError):
        return 0


MATCH_COMMANDS: Mapping[str, Command] = MappingProxyType(
    {
        # Only `bot_quota` adds bots: these commands are accepted silently and do nothing.
        "bot_add": Command(no_op),
        "bot_add_ct": Command(no_op),
        "bot_add_t": Command(no_op),
        "bot_kick": Command(_kick_bots),
        "kick": Command(_kick_by_name, configures=False),
        "kickid": Command(_kick_by_id, configures=False),
        "mp_backup_restore_list_files": Command(_list_backups, configures=False),
        "mp_backup_restore_load_file": Command(_load_backup),
        "mp_backup_round_file_last": Command(_last_backup, configures=False),
        "mp_pause_match": _game_command(lambda game: game.pause("mp_pause_match")),
        "mp_restartgame": Command(_restart, configures=False),
        "mp_swapteams": _game_command(lambda game: game.swap_teams()),
        "mp_unpause_match": _game_command(lambda game: game.unpause("mp_unpause_match")),
        "mp_warmup_end": _game_command(lambda game: game.end_warmup()),
        "mp_warmup_start": _game_command(lambda game: game.start_warmup()),
        "sim_say": Command(_let_say, configures=False),
        "timeout_ct_start": _game_command(lambda game: game.pause("TimeOutCTs")),
        "timeout_terrorist_start": _game_command(lambda game: game.pause("TimeOutTs")),
    }
)
"""Commands by name."""
