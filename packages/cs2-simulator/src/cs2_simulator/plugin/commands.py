"""MatchZy's console commands and their output over RCON.

A handler receives the arguments without the command name. Loading a match prints an error only if a match is already
loaded or the URL is invalid; `css_ready` and `css_forceready` need a player and do nothing over RCON. Texts are
MatchZy's own, most of them with chat color codes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from cs2_simulator.plugin import chat_commands, settings, status
from cs2_simulator.plugin.match_course import MatchCourse
from cs2_simulator.plugin.series import TEAMS, PluginStage

MAX_READY_REQUIRED = 32

_Handler = Callable[[list[str]], str]

_NO_MATCH = "No match is setup!"
_NOT_ADDED = "They may already be on a team or you provided an invalid Steam ID."
_NOT_FOUND = "not found in any team or the Steam ID was invalid."
_FILE_MISSING = "[LoadMatch] Provided file does not exist! Usage: matchzy_loadmatch <filename>"
_GREEN, _RED, _PLAIN = "\x04", "\x07", "\x01"
_PREFIX = f"[{_GREEN}MatchZy{_PLAIN}]"
_STARTED = "Start command cannot be used if match is already started! If you want to unpause, please use .unpause"


def all_commands(course: MatchCourse) -> dict[str, _Handler]:
    """Return the handlers by command name."""
    by_names: dict[str, _Handler] = {
        "matchzy_loadmatch_url get5_loadmatch_url": partial(_load_from, course),
        "matchzy_loadmatch": lambda _: _reply(_FILE_MISSING),
        "css_start css_force css_forcestart": lambda _: _start(course),
        "css_endmatch get5_endmatch css_forceend css_restart css_rr": lambda _: _reset(course),
        # For players only, or without effect on the log.
        "css_ready css_unready css_notready css_forceready css_settings css_help css_asay": lambda _: "",
        "css_forcepause css_fp sm_pause": lambda _: _force_pause(course),
        "css_forceunpause css_fup sm_unpause": lambda _: _force_unpause(course),
        "css_restore": partial(_restore, course),
        "matchzy_listbackups": partial(_list_backups, course),
        "matchzy_loadbackup": partial(_load_backup, course),
        "css_map": partial(_change_map, course),
        "css_skipveto css_sv": lambda _: _skip_veto(course),
        "css_whitelist css_wl": lambda _: _toggle_whitelist(course),
        "css_readyrequired": partial(_require_ready, course),
        "matchzy_addplayer get5_addplayer": partial(_add_player, course),
        "matchzy_removeplayer get5_removeplayer": partial(_remove_player, course),
        "get5_status": lambda _: status.status_text(course),
        "get5_web_available": lambda _: status.web_text(course),
        "matchzy_remote_log_url get5_remote_log_url": partial(_set_log_url, course),
        "matchzy_remote_log_header_key get5_remote_log_header_key": partial(_set_log_header_name, course),
        "matchzy_remote_log_header_value get5_remote_log_header_value": partial(_set_log_header_value, course),
    }
    handlers = {name: handler for names, handler in by_names.items() for name in names.split()}
    return handlers | {name: partial(_get_or_set, course, name) for name in settings.DEFAULTS}


def _load_from(course: MatchCourse, arguments: list[str]) -> str:
    url, name, value = [*arguments, "", "", ""][:3]
    had_match = course.series is not None
    # A header name without a value is ignored.
    course.load_from(url, {name: value} if len(arguments) > 2 and name else {})
    if had_match or not url.startswith(("http://", "https://")):
        return _reply(f"[LoadMatchDataCommand] {course.last_fault}")
    return ""


def _start(course: MatchCourse) -> str:
    if course.stage.is_started:
        return _reply(_STARTED)
    course.start()
    return ""


def _reset(course: MatchCourse) -> str:
    course.reset()
    return ""


def _force_pause(course: MatchCourse) -> str:
    if not course.stage.is_started:
        return ""
    if course.paused_by:
        return _reply("Match is already paused!")
    if course.stage is PluginStage.POST_GAME:
        return _reply("You cannot use this command after the game has ended.")
    course.pause(chat_commands.ADMIN)
    return f"[MatchZy] {_GREEN}Admin{_PLAIN} has paused the match!\n"


def _force_unpause(course: MatchCourse) -> str:
    if not (course.stage.is_started and course.paused_by):
        return ""
    course.unpause()
    return "[MatchZy] Admin has unpaused the match, resuming the match!\n"


def _restore(course: MatchCourse, arguments: list[str]) -> str:
    if course.stage is not PluginStage.LIVE or course.series is None:
        return ""
    if not arguments:
        return _reply("Usage: !restore <round>")
    if not _is_count(arguments[0]):
        return _reply(
            "Invalid value for restore command. Please specify a valid non-negative number. Usage: !restore <round>"
        )
    return _restore_file(course, f"{course.series.backup_prefix}_round{int(arguments[0]):02d}.txt")


def _load_backup(course: MatchCourse, arguments: list[str]) -> str:
    file = "".join(arguments[:1])
    if course.stage is not PluginStage.LIVE:
        return _reply(_backup_missing(file))
    # The plugin's backup file has the same name as the game's except for the extension.
    return _restore_file(course, f"{file.removesuffix('.json')}.txt" if file.endswith(".json") else file)


def _restore_file(course: MatchCourse, file: str) -> str:
    if not course.game.restore(file):
        return _reply(_backup_missing(file))
    if course.settings.is_on("matchzy_pause_after_restore"):
        course.pause(chat_commands.ROUND_RESTORE)
        chat_commands.schedule_unpause(course)
    return ""


def _backup_missing(file: str) -> str:
    return f"Backup file {file} does not exist, please make sure you are restoring a valid backup."


def _list_backups(course: MatchCourse, arguments: list[str]) -> str:
    if not arguments:
        return _reply("Usage: matchzy_listbackups <matchid>")
    prefix = f"matchzy_{arguments[0]}_"
    files = [file for file in course.game.backups() if file.startswith(prefix)]
    return "".join(_reply(file) for file in files) or _reply(f"No backups found for match {arguments[0]}")


def _change_map(course: MatchCourse, arguments: list[str]) -> str:
    if not arguments:
        return ""
    if course.stage.is_started:
        return _reply("Map cannot be changed once the match is started!")
    name = arguments[0]
    course.change_map(name if "_" in name or name.isdecimal() else f"de_{name}")
    return ""


def _skip_veto(course: MatchCourse) -> str:
    if course.stage.is_started:
        return _reply("Skip veto command cannot be used if match has already started!")
    course.skip_veto()
    return _reply("Veto phase has been cancelled!")


def _toggle_whitelist(course: MatchCourse) -> str:
    course.is_whitelist_on = not course.is_whitelist_on
    state = f"{_GREEN}Enabled" if course.is_whitelist_on else f"{_RED}Disabled"
    return _reply(f"Whitelist is now {state}{_PLAIN}!")


def _require_ready(course: MatchCourse, arguments: list[str]) -> str:
    name = "matchzy_minimum_ready_required"
    if not arguments:
        return _reply(
            f"Current Ready Required: {course.settings.text(name)}. "
            "Usage: !readyrequired <number_of_ready_players_required>"
        )
    if not _is_count(arguments[0]) or int(arguments[0]) > MAX_READY_REQUIRED:
        return _reply(
            "Invalid value for readyrequired. Please specify a valid non-negative number. "
            "Usage: !readyrequired <number_of_ready_players_required>"
        )
    course.settings.set(name, arguments[0])
    course.check_ready()
    return _reply(f"Minimum ready players required to start the match are now set to: {arguments[0]}")


def _add_player(course: MatchCourse, arguments: list[str]) -> str:
    player_id, team, nick = [*arguments, "", "", ""][:3]
    if course.series is None:
        return f"{_NO_MATCH}\n"
    if len(arguments) < 2:
        return 'Usage: matchzy_addplayertoteam <steam64> <team> "<name>"\n'
    if team not in TEAMS:
        return "Unknown team: must be one of team1, team2, spec\n"
    if not course.series.add(player_id, team, nick):
        return f"Failed to add player {nick} to {team}. {_NOT_ADDED}\n"
    course.visitors.expect(*course.series.expected_players())
    return f"Player {nick} added to {team} successfully!\n"


def _remove_player(course: MatchCourse, arguments: list[str]) -> str:
    player_id = "".join(arguments[:1])
    if course.series is None:
        return f"{_NO_MATCH}\n"
    if not _is_count(player_id):
        # MatchZy continues with 0, the result of the failed conversion.
        return f"Invalid Steam64\nPlayer 0 {_NOT_FOUND}\n"
    if not course.series.remove(player_id):
        return f"Player {player_id} {_NOT_FOUND}\n"
    course.visitors.expect(*course.series.expected_players())
    for player in tuple(course.arena.players):
        if player.person.player_id == player_id:
            course.door.kick(player, "")
    return f"Successfully removed player {player_id}\n"


def _set_log_url(course: MatchCourse, arguments: list[str]) -> str:
    url = "".join(arguments[:1])
    if url.startswith(("http://", "https://")):
        course.report_sender.url = url
    return ""


def _set_log_header_name(course: MatchCourse, arguments: list[str]) -> str:
    course.report_sender.header_name = "".join(arguments[:1]).strip() or course.report_sender.header_name
    return ""


def _set_log_header_value(course: MatchCourse, arguments: list[str]) -> str:
    course.report_sender.header_value = "".join(arguments[:1]).strip() or course.report_sender.header_value
    return ""


def _get_or_set(course: MatchCourse, name: str, arguments: list[str]) -> str:
    if not arguments:
        return f"{name} = {course.settings.text(name)}\n"
    course.settings.set(name, " ".join(arguments))
    return ""


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdecimal()


def _reply(text: str) -> str:
    return f"{_PREFIX} {text}\n"
