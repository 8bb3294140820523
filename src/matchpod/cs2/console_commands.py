"""Which console commands make a server play this match? Settings become ordered commands and the plugin's match file.

Every value that is inserted passes `quoted` or `bare`, which prove it to be one argument or raise ValueError. Each
command is sent alone. Sending `match_commands` again, even during play, changes nothing.
The caller's console variables come first, ours after them and on top. Nothing here reads what a server answers.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from matchpod.core.model import GameSettings, MatchType, TeamRoster
from matchpod.core.text_rules import map_fault, team_name_fault, unprintable_in
from matchpod.cs2.rcon import MAX_COMMAND_BYTES

MAX_PLUGIN_MATCH_ID = 2**31 - 1
"""MatchZy reads `matchid` with a 32-bit parser and refuses the whole match when it does not fit."""

WARMUP_S = 9999
"""Longer than any roster is waited for; the paused timer is what holds, this is for the moment it is not yet paused."""

MATCH_END_DELAY_S = 120
"""After a map the server keeps still this long, so that the next map is our choice and the tail of the log arrives."""

MAX_ROUND_MINUTES = 60
"""The game's own bound of `mp_roundtime`; it cuts a larger value silently."""

STATUS = "status"
"""Asks for the map and the people, with user ids and without Steam ids; see `parse_status`."""

STATUS_JSON = "status_json"
"""Asks for the map and the people, with Steam ids and without user ids; see `parse_status_json`."""

LOG_LISTENERS = "logaddress_list_http"
"""Asks where the log is sent; see `parse_log_listeners`."""

FORGET_LOGS = "logaddress_delall_http"
"""Send the log nowhere."""

PLUGIN_STATUS = "get5_status"
"""Asks the match plugin for its match; see `parse_get5_status`."""

MODE_CVARS = ("game_type", "game_mode")
"""What together says which mode a server plays; each is asked for by its name."""

_BARE = re.compile(r"[A-Za-z0-9_.-]{1,128}")
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")
_WORKSHOP = "workshop/"

_GAME_MODES = {
    MatchType.CASUAL: (0, 0),
    MatchType.COMPETITIVE: (0, 1),
    MatchType.WINGMAN: (0, 2),
    MatchType.RETAKES: (0, 5),
    MatchType.DEATHMATCH: (1, 2),
    MatchType.CUSTOM: (3, 0),
}
"""`game_type` and `game_mode`, from the game's gamemodes.txt."""

_PLAYERS_PER_TEAM = {MatchType.COMPETITIVE: 5, MatchType.WINGMAN: 2}

_OBSERVED = {
    "mp_logdetail": "3",
    "mp_logdetail_items": "1",
    "mp_logmoney": "1",
    "sv_log_roundstats": "1",
    # An empty server that sleeps sends no log, and we would take it for lost.
    "sv_hibernate_when_empty": "0",
}
"""Without these we do not see the match. A server.cfg runs at each map load and may change them."""

_TEAMS_STAY_AS_THEY_ARE = {"mp_limitteams": "0", "mp_autoteambalance": "0"}


def quoted(value: str) -> str:
    """The value as one quoted argument; ValueError when it could end the quotes or the command.

    The console knows no escapes: a quote ends the argument whatever stands before it, a line end ends the command
    even inside quotes. A semicolon is harmless inside quotes and refused all the same, as a second wall.
    """
    if '"' in value or ";" in value or unprintable_in(value) is not None:
        raise ValueError("a quoted console argument may not contain quotes, semicolons or unprintable characters")
    return f'"{value}"'


def bare(value: str | int) -> str:
    """The value as one argument without quotes; ValueError unless it is a plain word or number."""
    text = str(value)
    if not _BARE.fullmatch(text):
        raise ValueError("a bare console argument may only contain letters, digits, dot, dash and underscore")
    return text


def uses_plugin_match(settings: GameSettings) -> bool:
    """True when MatchZy runs the match: competitive or wingman with at least one listed player.

    A loaded MatchZy match kicks everyone it does not list. With a roster that is the whitelist we promise, also when
    only one team lists players; with nobody listed it would empty the server, so such a match runs without the plugin.
    """
    return settings.match_type.has_series and bool(settings.roster)


def game_mode_of(match_type: MatchType) -> tuple[int, int]:
    """`game_type` and `game_mode` of a kind of match."""
    return _GAME_MODES[match_type]


def holds_warmup(settings: GameSettings) -> bool:
    """True when warmup lasts until we start play: a roster is waited for. Without one the game starts by itself."""
    return bool(settings.roster)


def setup_commands(settings: GameSettings, *, map_name: str) -> tuple[str, ...]:
    """What a fresh server is told first; the last command loads the map and keeps the server busy for 5 to 20 s."""
    mode = zip(MODE_CVARS, game_mode_of(settings.match_type), strict=True)
    return (
        _command("log", "on"),
        *_set_all(_OBSERVED),
        _password_command(settings),
        _command("bot_kick"),
        _set("bot_quota", "0"),
        *(_command(name, bare(value)) for name, value in mode),
        load_map_command(map_name),
    )


def load_map_command(map_name: str) -> str:
    """Change to a map of the game or of the workshop."""
    if map_fault(map_name):
        raise ValueError("not the name of a map")
    if map_name.startswith(_WORKSHOP):
        return _command("host_workshop_map", bare(map_name.removeprefix(_WORKSHOP)))
    return _command("changelevel", bare(map_name))


def match_commands(settings: GameSettings) -> tuple[str, ...]:
    """What every map load must be followed by: the mode's own files have just overwritten these variables.

    With a plugin match, send them after the match is loaded: its warmup file overwrites some of them too. Warmup is
    held first: until then the game may begin by itself, with the length and the rules of its mode.
    """
    own, hold = _own_cvars(settings), _hold_cvars(settings)
    custom = {name: value for name, value in _custom_cvars(settings).items() if name not in own}
    rest = {name: value for name, value in own.items() if name not in hold}
    commands = [*_set_all({**hold, **custom, **rest}), _password_command(settings)]
    if own.get("bot_quota") == "0":
        commands.append(_command("bot_kick"))
    if not uses_plugin_match(settings):
        # The plugin names the teams itself; without it the first name is the side that begins as CT.
        commands.append(_command("mp_teamname_1", quoted(_name_of(settings.team1))))
        commands.append(_command("mp_teamname_2", quoted(_name_of(settings.team2))))
    return tuple(commands)


def warmup_commands(settings: GameSettings) -> tuple[str, ...]:
    """Go (back) to warmup: once after a map load and before play, never during it. Empty where nothing is held."""
    if not holds_warmup(settings) or uses_plugin_match(settings):
        return ()
    return (_command("mp_warmup_start"),)


def begin_anew_commands(settings: GameSettings) -> tuple[str, ...]:
    """Leave behind what was played while the server was set up: back to warmup, or from the first round on.

    The plugin does so itself when it loads its match.
    """
    if uses_plugin_match(settings):
        return ()
    return warmup_commands(settings) or (_set("mp_restartgame", "1"),)


def start_commands(settings: GameSettings) -> tuple[str, ...]:
    """Leave warmup now. The plugin's `css_forceready` does nothing over RCON, `css_start` does."""
    if uses_plugin_match(settings):
        return (_command("css_start"),)
    return (_set("mp_warmup_pausetimer", "0"), _command("mp_warmup_end"), _set("mp_restartgame", "1"))


def kick_command(user_id: int, reason: str) -> str:
    """Remove a player; he reads the reason."""
    if user_id < 0:
        raise ValueError("a user id is not negative")
    return _command("kickid", bare(user_id), quoted(reason))


def say_command(text: str) -> str:
    """Write to the chat of everyone on the server."""
    return _command("say", quoted(text))


def log_address_command(url: str) -> str:
    """Send the log to an HTTP address. Without quotes the console would read `//` as a comment."""
    return _command("logaddress_add_http", quoted(_http_url(url)))


def forget_log_address_command(url: str) -> str:
    """Send the log to this address no more; older builds do not know the command and change nothing."""
    return _command("logaddress_del_http", quoted(_http_url(url)))


def load_match_command(url: str, *, header_name: str, header_value: str) -> str:
    """Let MatchZy fetch its match from us; it fetches on the game thread, so the answer must be quick."""
    return _command("matchzy_loadmatch_url", quoted(_http_url(url)), quoted(header_name), quoted(header_value))


def report_address_commands(url: str, *, header_name: str, header_value: str) -> tuple[str, ...]:
    """Let MatchZy report elsewhere from now on; its match file said where before."""
    address = _report_address(url, header_name, header_value)
    return tuple(_command(name, quoted(value)) for name, value in address.items())


def set_command(name: str, value: str) -> str:
    """Give a console variable a value; ValueError when it cannot stand in quotes."""
    return _set(name, value)


def end_match_command() -> str:
    """Make MatchZy forget its match; it refuses to load a second one."""
    return _command("css_endmatch")


def leave_commands() -> tuple[str, ...]:
    """What a server that goes on after its match is told when everybody was sent away."""
    # Log listeners last but one: what happens until here is still part of the match's log.
    return (_command("sv_password", quoted("")), FORGET_LOGS, _command("bot_kick"))


def expected_cvars(settings: GameSettings) -> Mapping[str, str]:
    """Our own settings, to be read back (`CvarValue.means`) after `match_commands` as the proof that they hold.

    The caller's variables are no proof: the game cuts some values to its bounds without a word.
    """
    return _own_cvars(settings)


def matchzy_match(
    settings: GameSettings, *, match_id: int, log_url: str, log_header_name: str, log_header_value: str
) -> dict[str, object]:
    """The match file that MatchZy fetches; ValueError when `uses_plugin_match` is false.

    Sides are fixed (team1 begins as CT), there is no knife round and no veto. Nobody can ready up a team that is not
    complete: play starts by `start_commands` only, or by a full and ready server.
    """
    if not uses_plugin_match(settings) or settings.team1 is None or settings.team2 is None:
        raise ValueError("a match without listed players is not loaded into the plugin")
    if not 1 <= match_id <= MAX_PLUGIN_MATCH_ID:
        raise ValueError(f"the plugin's match id must be between 1 and {MAX_PLUGIN_MATCH_ID}")
    teams = (settings.team1, settings.team2)
    players_per_team = max(_PLAYERS_PER_TEAM[settings.match_type], *(len(team.players) for team in teams))
    maps = [bare(name.removeprefix(_WORKSHOP)) for name in settings.maps]
    return {
        "matchid": match_id,
        "num_maps": len(maps),
        "maplist": maps,
        "map_sides": ["team1_ct"] * len(maps),
        "skip_veto": True,
        "clinch_series": True,
        "wingman": settings.match_type is MatchType.WINGMAN,
        "players_per_team": players_per_team,
        "min_players_to_ready": players_per_team,
        "team1": _plugin_team(settings.team1),
        "team2": _plugin_team(settings.team2),
        # Left out, some versions of the plugin fail on the missing object.
        "spectators": {"players": {}},
        "cvars": _plugin_cvars(settings, (log_url, log_header_name, log_header_value)),
    }


def _plugin_team(team: TeamRoster) -> dict[str, object]:
    # The plugin executes `mp_teamname_1 <name>` without quotes, so a name needs a stricter proof than `quoted` gives.
    if team_name_fault(team.name):
        raise ValueError("a team name that the plugin cannot be trusted with")
    # An array of players is refused; an empty name leaves the player his own.
    return {"name": team.name, "players": {bare(player_id): "" for player_id in team.players}}


def _plugin_cvars(settings: GameSettings, log_address: tuple[str, str, str]) -> dict[str, str]:
    # The plugin executes these as `name "value"` at load and again when play begins, when warmup must not be held.
    # Its own address for events is part of the match file because loading a match forgets one set before.
    url, header_name, header_value = log_address
    own = _own_cvars(settings)
    cvars = {
        **{name: value for name, value in _custom_cvars(settings).items() if name not in own},
        **_OBSERVED,
        **_yielding_cvars(settings),
        **_play_cvars(settings),
        **_report_address(url, header_name, header_value),
    }
    for name, value in cvars.items():
        _set(name, value)
    return cvars


def _report_address(url: str, header_name: str, header_value: str) -> dict[str, str]:
    return {
        "matchzy_remote_log_url": _http_url(url),
        "matchzy_remote_log_header_key": header_name,
        "matchzy_remote_log_header_value": header_value,
    }


def _own_cvars(settings: GameSettings) -> dict[str, str]:
    own = {**_hold_cvars(settings), **_OBSERVED, **_yielding_cvars(settings), **_play_cvars(settings)}
    if not uses_plugin_match(settings):
        # Restart on the same map instead of following the map cycle. The plugin has its own plan for map changes.
        own |= {"mp_match_end_restart": "1", "mp_match_restart_delay": str(MATCH_END_DELAY_S)}
        own |= {"mp_endmatch_votenextmap": "0"}
    return own


def _hold_cvars(settings: GameSettings) -> dict[str, str]:
    """What keeps the game in warmup until play is started. The length before the pause: changing it begins anew."""
    if not holds_warmup(settings):
        return {}
    return {
        "mp_warmuptime": str(WARMUP_S),
        "mp_warmuptime_all_players_connected": "0",
        "mp_warmup_pausetimer": "1",
    }


def _yielding_cvars(settings: GameSettings) -> dict[str, str]:
    """Our preferences: left out where the caller has set the variable himself."""
    preferred = {"bot_quota": "0", "mp_autokick": "0"}
    if settings.team1 is None:
        preferred |= _TEAMS_STAY_AS_THEY_ARE
    custom = _custom_cvars(settings)
    return {name: value for name, value in preferred.items() if name not in custom}


def _play_cvars(settings: GameSettings) -> dict[str, str]:
    cvars: dict[str, str] = {}
    if settings.team1 is not None:
        # A game that moves players between sides would move them between the caller's teams.
        cvars |= _TEAMS_STAY_AS_THEY_ARE
    if settings.max_rounds is not None:
        cvars["mp_maxrounds"] = str(settings.max_rounds)
    if settings.freeze_time is not None:
        cvars["mp_freezetime"] = str(settings.freeze_time)
    if settings.match_type is MatchType.DEATHMATCH:
        cvars |= _deathmatch_cvars(settings)
    return cvars


def _deathmatch_cvars(settings: GameSettings) -> dict[str, str]:
    everyone = settings.is_free_for_all
    cvars = {"mp_teammates_are_enemies": "1" if everyone else "0", "mp_dm_teammode": "0" if everyone else "1"}
    minutes = settings.deathmatch_minutes
    if minutes is not None:
        cvars["mp_timelimit"] = f"{minutes:.6g}"
        # One endless round: it must not end before the time limit does. 0 means mp_roundtime holds on every map.
        cvars["mp_roundtime"] = str(min(MAX_ROUND_MINUTES, math.ceil(minutes)))
        cvars["mp_roundtime_defuse"] = cvars["mp_roundtime_hostage"] = "0"
        cvars["mp_ignore_round_win_conditions"] = "1" if minutes > MAX_ROUND_MINUTES else "0"
    return cvars


def _custom_cvars(settings: GameSettings) -> dict[str, str]:
    return {setting.name: setting.value for setting in settings.custom_cvars}


def _password_command(settings: GameSettings) -> str:
    # Empty clears what an earlier match left on a server that is used again.
    return _command("sv_password", quoted(settings.server_password or ""))


def _name_of(team: TeamRoster | None) -> str:
    return team.name if team is not None else ""


def _set_all(cvars: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(_set(name, value) for name, value in cvars.items())


def _set(name: str, value: str) -> str:
    return _command(name, value if _BARE.fullmatch(value) else quoted(value))


def _command(word: str, *arguments: str) -> str:
    """One command of arguments that have passed `quoted` or `bare`."""
    if not _WORD.fullmatch(word):
        raise ValueError("not the name of a console command or variable")
    command = " ".join((word, *arguments))
    if len(command.encode()) > MAX_COMMAND_BYTES:
        raise ValueError(f"a console command may be at most {MAX_COMMAND_BYTES} bytes")
    return command


def _http_url(url: str) -> str:
    # Without a scheme the server complains in its console for ever, once a tick.
    if not url.startswith(("http://", "https://")):
        raise ValueError("a log or match address must be an http or https URL")
    return url
