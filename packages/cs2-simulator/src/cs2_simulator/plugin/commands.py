"""Implement MatchZy's console commands with their output over RCON.

A handler receives the arguments without the command name. The commands that load a match print an error only if a match
is already loaded or the URL is invalid. `css_ready` and `css_forceready` do nothing over RCON, because only players can
use them. The texts are those of MatchZy, mostly with color codes for the chat.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from cs2_protocol.game import Team
from cs2_protocol.steam_id import account_of
from cs2_simulator.console.parts import lines
from cs2_simulator.plugin import chat_commands, settings
from cs2_simulator.plugin.match_course import MatchCourse
from cs2_simulator.plugin.player_lists import LIST_NAMES, TEAM1, TEAM2
from cs2_simulator.plugin.reports import Payload, to_json
from cs2_simulator.plugin.series import PluginStage, Series

GET5_VERSION = "0.15.0"
"""The get5 version that MatchZy reports."""

NO_ROUND = -1
MAX_READY_REQUIRED = 32

_Handler = Callable[[list[str]], str]

_GREEN, _PLAIN = "\x04", "\x01"
_PREFIX = f"[{_GREEN}MatchZy{_PLAIN}]"
_COLORED = "\x01\x0b\x01"
"""Prefix of those translated texts of MatchZy that contain color codes."""
_STARTED = "Start command cannot be used if match is already started! If you want to unpause, please use .unpause"


def all_commands(course: MatchCourse) -> dict[str, _Handler]:
    by_names: dict[str, _Handler] = {
        "matchzy_loadmatch_url get5_loadmatch_url": partial(_load_from, course),
        "css_start css_force css_forcestart": lambda _: _start(course),
        "css_endmatch get5_endmatch css_forceend css_restart css_rr": lambda _: _reset(course),
        # Commands that only players can use, or that have no effect on the log.
        "css_ready css_unready css_notready css_forceready css_settings css_help css_asay": lambda _: "",
        # Commands that need the side of their caller. The console has no side.
        "css_unpause css_tac": lambda _: "",
        "css_pause css_tech": lambda _: _pause_refusal(course),
        "css_forcepause css_fp sm_pause": lambda _: _force_pause(course),
        "css_forceunpause css_fup sm_unpause": lambda _: _force_unpause(course),
        "css_restore": partial(_restore, course),
        "matchzy_loadbackup": partial(_load_backup, course),
        "css_readyrequired matchzy_minimum_ready_required": partial(_require_ready, course),
        "matchzy_addplayer get5_addplayer": partial(_add_player, course),
        "matchzy_removeplayer get5_removeplayer": partial(_remove_player, course),
        "get5_status": lambda _: _status(course),
        "matchzy_remote_log_url get5_remote_log_url": partial(_set_log_url, course),
        "matchzy_remote_log_header_key get5_remote_log_header_key": partial(_set_log_header_name, course),
        "matchzy_remote_log_header_value get5_remote_log_header_value": partial(_set_log_header_value, course),
    }
    handlers = {name: handler for names, handler in by_names.items() for name in names.split()}
    return {name: partial(_get_or_set, course, name) for name in settings.DEFAULTS} | handlers


def _load_from(course: MatchCourse, arguments: list[str]) -> str:
    url, name, value = [*arguments, "", "", ""][:3]
    had_match = course.series is not None
    # A header name is ignored if no header value follows.
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
    refusal = _pause_refusal(course)
    if refusal:
        return refusal
    course.pause(chat_commands.ADMIN)
    return f"[MatchZy] {_COLORED}{_GREEN}Admin{_PLAIN} has paused the match!\n"


def _pause_refusal(course: MatchCourse) -> str:
    if course.is_live and course.paused_by:
        return _reply("Match is already paused!")
    fault = chat_commands.untimely(course)
    return "" if fault is None else _reply(fault)


def _force_unpause(course: MatchCourse) -> str:
    if not (course.stage.is_started and course.paused_by):
        return ""
    course.unpause()
    return "[MatchZy] Admin has unpaused the match, resuming the match!\n"


def _restore(course: MatchCourse, arguments: list[str]) -> str:
    if not arguments:
        return _reply("Usage: !restore <round>")
    if not course.is_live or course.series is None:
        return ""
    if not (arguments[0].isascii() and arguments[0].isdecimal()):
        return _reply(
            "Invalid value for restore command. Please specify a valid non-negative number. Usage: !restore <round>"
        )
    return _restore_file(course, course.series, course.series.backup_file(int(arguments[0])))


def _load_backup(course: MatchCourse, arguments: list[str]) -> str:
    file = "".join(arguments[:1])
    if not course.is_live or course.series is None:
        return _reply(_backup_missing(file))
    return _restore_file(course, course.series, file)


def _restore_file(course: MatchCourse, series: Series, file: str) -> str:
    if course.game.is_halftime:
        return _reply("You cannot load a backup during halftime.")
    fault = chat_commands.untimely(course)
    if fault is not None:
        return _reply(fault)
    if not series.has_backup(file):
        return _reply(_backup_missing(file))
    course.restore(series, file)
    if course.settings.is_on("matchzy_pause_after_restore"):
        course.pause(chat_commands.ROUND_RESTORE)
        chat_commands.schedule_unpause(course)
    return ""


def _backup_missing(file: str) -> str:
    return f"Backup file {file} does not exist, please make sure you are restoring a valid backup."


def _require_ready(course: MatchCourse, arguments: list[str]) -> str:
    name, usage = "matchzy_minimum_ready_required", "Usage: !readyrequired <number_of_ready_players_required>"
    if not arguments:
        return _reply(f"Current Ready Required: {course.settings.text(name)}. {usage}")
    number = arguments[0]
    if not (number.isascii() and number.isdecimal() and int(number) <= MAX_READY_REQUIRED):
        return _reply(f"Invalid value for readyrequired. Please specify a valid non-negative number. {usage}")
    course.settings.set(name, str(int(number)))
    course.check_ready()
    return _reply(f"Minimum ready players required to start the match are now set to: {int(number)}")


def _add_player(course: MatchCourse, arguments: list[str]) -> str:
    if course.series is None:
        return lines("No match is setup!")
    if course.game.is_halftime:
        return lines("Cannot add players during halftime. Please wait until the next round starts.")
    if len(arguments) < 2:
        return lines('Usage: matchzy_addplayer <steam64> <team> "<name>"')
    player_id, team, name = [*arguments, ""][:3]
    if team not in LIST_NAMES:
        return lines(f"Unknown team: must be one of {', '.join(LIST_NAMES)}")
    if not course.series.lists.add(team, player_id, name):
        reason = "They may already be on a team or you provided an invalid Steam ID."
        return lines(f"Failed to add player {name} to {team}. {reason}")
    account = account_of(player_id)
    if account is not None:
        course.visitors.expect_one(account, name, {TEAM1: 1, TEAM2: 2}.get(team))
    return lines(f"Player {name} added to {team} successfully!")


def _remove_player(course: MatchCourse, arguments: list[str]) -> str:
    if course.series is None:
        return lines("No match is setup!")
    if course.game.is_halftime:
        return lines("Cannot remove players during halftime. Please wait until the next round starts.")
    player_id = "".join(arguments[:1])
    faults = []
    if not (player_id.isascii() and player_id.isdecimal()):
        faults, player_id = ["Invalid Steam64"], "0"
    course.series.lists.remove(player_id)
    account = account_of(player_id)
    if account is not None:
        course.visitors.expect_no_more(account)
    for player in tuple(course.arena.players):
        if player.is_in_game and player.person.player_id == player_id:
            course.door.kick(player)
    return lines(*faults, f"Successfully removed player {player_id}")


def _status(course: MatchCourse) -> str:
    stage, series, score = course.shown_stage, course.series, course.score
    status: Payload = {
        "plugin_version": GET5_VERSION,
        "gamestate": stage.name.lower(),
        "paused": bool(course.paused_by),
        "loaded_config_file": None,
        "matchid": None,
        "map_number": None,
        "round_number": sum(score) if stage is PluginStage.LIVE else NO_ROUND,
        "round_time": None,
        "team1": None,
        "team2": None,
        "maps": None,
    }
    if series is not None:
        status |= {
            "loaded_config_file": series.url,
            "matchid": series.match_id,
            "map_number": series.map_number,
            "team1": _team_status(course, series, Team.TEAM1, score[0]),
            "team2": _team_status(course, series, Team.TEAM2, score[1]),
            "maps": list(series.maps) if stage >= PluginStage.LIVE else None,
        }
    return to_json(status) + "\n"


def _team_status(course: MatchCourse, series: Series, team: Team, score: int) -> Payload:
    is_team1 = team is Team.TEAM1
    return {
        "name": (series.match.team1 if is_team1 else series.match.team2).name,
        "series_score": series.wins[0 if is_team1 else 1],
        "current_map_score": score,
        # MatchZy does not count clients, and `ready` of a team says whether all players of the server are ready.
        "connected_clients": -1,
        "ready": course.ready.is_everyone_ready,
        # The side is the game's name in lower case, `ct` or `terrorist`; get5 prints `t` instead.
        "side": series.side_of(team, course.game.team1_side).value.lower(),
    }


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


def _reply(text: str) -> str:
    return f"{_PREFIX} {text}\n"
