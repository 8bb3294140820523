"""Build the console commands, and the plugin's match file, with which a server plays a match.

Every inserted value passes through `quoted` or `bare`, which raise ValueError unless the value is a single argument.
Each command is sent separately. `match_commands` are idempotent, even during play. The caller's console variables come
before ours, so that ours take precedence. The server's answers are parsed in `console_answers`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from cs2_protocol.console_commands import (
    LOG_ON,
    MAX_PLUGIN_MATCH_ID,
    MODE_CVARS,
    REMOVE_LOG_LISTENERS,
    bare,
    command,
    quoted,
    report_address,
    set_command,
)
from cs2_protocol.game import PlayerId, Team
from matchpod.core.model import GameSettings, MapsWon, MatchType, Overtime, StartSides, TeamRoster
from matchpod.core.requests.text_rules import map_fault, team_name_fault
from matchpod.cs2.plugin_names import plugin_name, shown_name

WARMUP_S = 9999
"""Length of warmup in seconds, longer than any time to join. With its timer paused, warmup does not end by itself."""

MATCH_END_DELAY_S = 120
"""Time in seconds that the server waits after a map, so that we can load the next map and get the whole log."""

MAX_ROUND_MINUTES = 60
"""The game's maximum for `mp_roundtime` in minutes. The game silently reduces larger values."""

SHOTS_ADDRESS = "matchpod_shots_url"
"""Console variable for the URL to which a plugin reports its counts of shots."""

_WORKSHOP = "workshop/"

_GAME_MODES = {
    MatchType.CASUAL: (0, 0),
    MatchType.COMPETITIVE: (0, 1),
    MatchType.WINGMAN: (0, 2),
    MatchType.RETAKES: (0, 5),
    MatchType.DEATHMATCH: (1, 2),
    MatchType.CUSTOM: (3, 0),
}
"""`game_type` and `game_mode` of each match type, from the game's gamemodes.txt."""

_PLAYERS_PER_TEAM = {MatchType.COMPETITIVE: 5, MatchType.WINGMAN: 2}

_REPORTING_CVARS = {
    "mp_logdetail": "3",
    "mp_logdetail_items": "1",
    "mp_logmoney": "1",
    "sv_log_roundstats": "1",
    # A hibernating server sends no log and would be considered lost.
    "sv_hibernate_when_empty": "0",
}
"""Variables with values that make the log complete. A server.cfg runs at each map load and may change them."""

BROADCAST = "tv_enable"
"""Console variable that enables GOTV. It takes effect at the next map load."""

TV_CVARS = (BROADCAST, "tv_delay")
"""The GOTV variables that are set for recorded matches."""

TV_PORT = "tv_port"

_FIXED_TEAMS = {"mp_limitteams": "0", "mp_autoteambalance": "0"}


def uses_plugin_match(settings: GameSettings) -> bool:
    """True if MatchZy runs the match: competitive or wingman with at least one listed player.

    A match that is loaded into MatchZy kicks all players whom it does not list. If players are listed, even for
    one team only, this is intended: the list is documented as a whitelist. Without listed players everyone would be
    kicked, so such a match runs without the plugin.
    """
    return settings.uses_plugin


def game_mode_of(match_type: MatchType) -> tuple[int, int]:
    return _GAME_MODES[match_type]


def holds_warmup(settings: GameSettings) -> bool:
    """True if warmup lasts until the service, the players or an operator start play.

    With `auto_start`, the service starts play when all listed players are there. Without it, the players start play
    with the match plugin, or an operator starts it by hand. False if the game starts play itself.
    """
    return bool(settings.roster) or not settings.auto_start


def setup_commands(settings: GameSettings, *, map_name: str) -> tuple[str, ...]:
    """Return the first commands for a new server. The last of them loads the map, which takes 5 to 20 s."""
    mode = zip(MODE_CVARS, game_mode_of(settings.match_type), strict=True)
    return (
        LOG_ON,
        *_set_all(_REPORTING_CVARS),
        *_set_all(_tv_cvars(settings)),
        _password_command(settings),
        command("bot_kick"),
        set_command("bot_quota", "0"),
        *(command(name, bare(value)) for name, value in mode),
        load_map_command(map_name),
    )


def load_map_command(map_name: str) -> str:
    """Return the command that changes to a stock map or a workshop map."""
    if map_fault(map_name):
        raise ValueError("not a valid map name")
    if map_name.startswith(_WORKSHOP):
        return command("host_workshop_map", bare(map_name.removeprefix(_WORKSHOP)))
    return command("changelevel", bare(map_name))


def match_commands(settings: GameSettings, *, map_number: int = 1) -> tuple[str, ...]:
    """Return the commands to send after every map load, because the mode's config files overwrite their variables.

    With a plugin match, send them after the match is loaded, because its warmup config also overwrites some of them.
    The commands that hold warmup come first. Until they are executed, the game may start by itself, with the default
    length and rules of its mode.
    """
    own, hold = _service_cvars(settings), _warmup_hold_cvars(settings)
    custom = {name: value for name, value in _custom_cvars(settings).items() if name not in own}
    rest = {name: value for name, value in own.items() if name not in hold}
    commands = [*_set_all({**hold, **custom, **rest}), _password_command(settings)]
    if own.get("bot_quota") == "0":
        commands.append(command("bot_kick"))
    return (*commands, *team_name_commands(settings, map_number=map_number))


def team_name_commands(settings: GameSettings, *, map_number: int) -> tuple[str, ...]:
    """Return the commands that set the team names on a map, so that players without a roster see their sides.

    The first name belongs to the team that begins as CT. There are no commands with the plugin, which sets the names.
    """
    if uses_plugin_match(settings):
        return ()
    names = [shown_name(settings, team) for team in Team]
    if settings.sides_on(map_number) is StartSides.TEAM1_T:
        names.reverse()
    return tuple(command(f"mp_teamname_{number}", quoted(name)) for number, name in enumerate(names, 1))


def warmup_commands(settings: GameSettings) -> tuple[str, ...]:
    """Return the command that starts warmup, for use before play only. Empty if the plugin or the game starts it."""
    if not holds_warmup(settings) or uses_plugin_match(settings):
        return ()
    return (command("mp_warmup_start"),)


def restart_commands(settings: GameSettings) -> tuple[str, ...]:
    """Return the commands that discard play during setup, and return to warmup or to the first round.

    Empty with the plugin, which does this itself when it loads its match.
    """
    if uses_plugin_match(settings):
        return ()
    return warmup_commands(settings) or (set_command("mp_restartgame", "1"),)


def start_commands(settings: GameSettings) -> tuple[str, ...]:
    """Return the commands that end warmup. Over RCON, the plugin accepts `css_start`, but ignores `css_forceready`."""
    if uses_plugin_match(settings):
        return (command("css_start"),)
    return (set_command("mp_warmup_pausetimer", "0"), command("mp_warmup_end"), set_command("mp_restartgame", "1"))


def reset_commands() -> tuple[str, ...]:
    """Return the commands that reset a server for another match, after all players were kicked."""
    # Log listeners are removed late, because all log lines before that belong to the match.
    return (command("sv_password", quoted("")), REMOVE_LOG_LISTENERS, command("bot_kick"))


def expected_cvars(settings: GameSettings) -> Mapping[str, str]:
    """Return our variables and values, which are read back after `match_commands` and compared by `CvarValue.equals`.

    The caller's variables are not checked, because the game silently clamps some values to its bounds.
    """
    return _service_cvars(settings)


def matchzy_match(
    settings: GameSettings, *, match_id: int, log_url: str, log_header_name: str, log_header_value: str
) -> dict[str, object]:
    """Return the match file that MatchZy fetches; raise ValueError if no player is listed, or a value is unsafe.

    Coaches are listed with the players of their team, as the plugin requires. When the plugin checks who is ready, it
    counts coaches on the server as players. There is no veto. An incomplete team cannot become ready, so play starts
    with `start_commands`, or when both teams are full and all players are ready. If the players start play themselves,
    a team is full once it has as many players as the smaller listed team.
    """
    if not uses_plugin_match(settings) or settings.team1 is None or settings.team2 is None:
        raise ValueError("a match without listed players must not be loaded into the plugin")
    if not 1 <= match_id <= MAX_PLUGIN_MATCH_ID:
        raise ValueError(f"the plugin's match id must be between 1 and {MAX_PLUGIN_MATCH_ID}")
    teams = (settings.team1, settings.team2)
    sizes = [len(team.players) for team in teams]
    players_per_team = (
        max(_PLAYERS_PER_TEAM[settings.match_type], *sizes) if settings.auto_start else max(1, min(sizes))
    )
    maps = [bare(name.removeprefix(_WORKSHOP)) for name in settings.maps]
    return {
        "matchid": match_id,
        "num_maps": len(maps),
        "maplist": maps,
        "map_sides": [(settings.sides_on(number) or StartSides.TEAM1_CT).value for number in range(1, len(maps) + 1)],
        "skip_veto": True,
        # The plugin does not know `mapsWon` and would end the series at a wrong score, so the service ends it.
        "clinch_series": settings.maps_won == MapsWon(),
        "wingman": settings.match_type is MatchType.WINGMAN,
        "players_per_team": players_per_team,
        "min_players_to_ready": players_per_team,
        "team1": _plugin_team(Team.TEAM1, settings.team1),
        "team2": _plugin_team(Team.TEAM2, settings.team2),
        # Some versions of the plugin fail if this object is missing.
        "spectators": {"players": _plugin_players(settings.spectators)},
        "cvars": _plugin_cvars(settings, (log_url, log_header_name, log_header_value)),
    }


def _plugin_team(team: Team, roster: TeamRoster) -> dict[str, object]:
    # The plugin executes `mp_teamname_1 <name>` without quotes, so a name needs a stricter check than that of `quoted`.
    if team_name_fault(roster.name):
        raise ValueError("the team name is not safe to pass to the plugin")
    people = {"players": _plugin_players(roster.players + roster.coaches)}
    if roster.coaches:
        # A field of get5 that the plugin ignores. Simulated servers read from it which people are coaches.
        people["coaches"] = _plugin_players(roster.coaches)
    return {"name": plugin_name(team, roster.name), **people}


def _plugin_players(players: tuple[PlayerId, ...]) -> dict[str, str]:
    # The plugin rejects an array of players. An empty name keeps the player's own name.
    return {bare(player_id): "" for player_id in players}


def _plugin_cvars(settings: GameSettings, log_address: tuple[str, str, str]) -> dict[str, str]:
    # The plugin executes these settings at load and again when play starts, so they must not hold warmup.
    # They include the URL for the plugin's events, because loading a match resets an earlier URL.
    url, header_name, header_value = log_address
    own = _service_cvars(settings)
    cvars = {
        **{name: value for name, value in _custom_cvars(settings).items() if name not in own},
        **_REPORTING_CVARS,
        **_default_cvars(settings),
        **_play_cvars(settings),
        **report_address(url, header_name, header_value),
    }
    for name, value in cvars.items():
        set_command(name, value)
    return cvars


def _service_cvars(settings: GameSettings) -> dict[str, str]:
    own = {**_warmup_hold_cvars(settings), **_REPORTING_CVARS, **_default_cvars(settings), **_play_cvars(settings)}
    own |= _tv_cvars(settings)
    if not uses_plugin_match(settings):
        # Restart on the same map instead of following the map cycle. In its matches, the plugin changes the map itself.
        own |= {"mp_match_end_restart": "1", "mp_match_restart_delay": str(MATCH_END_DELAY_S)}
        own |= {"mp_endmatch_votenextmap": "0"}
    return own


def _tv_cvars(settings: GameSettings) -> dict[str, str]:
    """Return the variables of a recorded match. They must be set before its map is loaded, when GOTV starts."""
    return dict(zip(TV_CVARS, ("1", str(settings.tv_delay_s)), strict=True)) if settings.record_demo else {}


def _warmup_hold_cvars(settings: GameSettings) -> dict[str, str]:
    """Return the variables that hold warmup until play is started. The length comes first: it restarts the timer."""
    if not holds_warmup(settings):
        return {}
    return {"mp_warmuptime": str(WARMUP_S), "mp_warmuptime_all_players_connected": "0", "mp_warmup_pausetimer": "1"}


def _default_cvars(settings: GameSettings) -> dict[str, str]:
    """Return our default variables, except variables that the caller has set."""
    preferred = {"bot_quota": "0", "mp_autokick": "0"}
    if settings.team1 is None:
        preferred |= _FIXED_TEAMS
    custom = _custom_cvars(settings)
    return {name: value for name, value in preferred.items() if name not in custom}


def _play_cvars(settings: GameSettings) -> dict[str, str]:
    cvars: dict[str, str] = {}
    if settings.team1 is not None:
        # If the game balanced the sides, it would move players between the caller's teams.
        cvars |= _FIXED_TEAMS
    if settings.max_rounds is not None:
        cvars["mp_maxrounds"] = str(settings.max_rounds)
    if settings.overtime is not None:
        cvars |= overtime_cvars(settings.overtime)
    if settings.freeze_time is not None:
        cvars["mp_freezetime"] = str(settings.freeze_time)
    if settings.match_type is MatchType.DEATHMATCH:
        cvars |= _deathmatch_cvars(settings)
    return cvars


def overtime_cvars(overtime: Overtime) -> dict[str, str]:
    """Return the variables for the requested overtime rules."""
    cvars = {"mp_overtime_enable": "1" if overtime.enabled else "0"}
    if overtime.max_rounds is not None:
        cvars["mp_overtime_maxrounds"] = str(overtime.max_rounds)
    if overtime.start_money is not None:
        cvars["mp_overtime_startmoney"] = str(overtime.start_money)
    return cvars


def _deathmatch_cvars(settings: GameSettings) -> dict[str, str]:
    everyone = settings.is_free_for_all
    cvars = {"mp_teammates_are_enemies": "1" if everyone else "0", "mp_dm_teammode": "0" if everyone else "1"}
    minutes = settings.deathmatch_minutes
    if minutes is not None:
        cvars["mp_timelimit"] = f"{minutes:.6g}"
        # A deathmatch has a single round, which must not end before the time limit.
        # `mp_roundtime` applies to all maps if the other two variables are 0.
        cvars["mp_roundtime"] = str(min(MAX_ROUND_MINUTES, math.ceil(minutes)))
        cvars["mp_roundtime_defuse"] = cvars["mp_roundtime_hostage"] = "0"
        cvars["mp_ignore_round_win_conditions"] = "1" if minutes > MAX_ROUND_MINUTES else "0"
    return cvars


def _custom_cvars(settings: GameSettings) -> dict[str, str]:
    return {setting.name: setting.value for setting in settings.custom_cvars}


def _password_command(settings: GameSettings) -> str:
    # An empty value clears the password of an earlier match on a reused server.
    return command("sv_password", quoted(settings.server_password or ""))


def _set_all(cvars: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(set_command(name, value) for name, value in cvars.items())
