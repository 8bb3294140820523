"""Parse log lines that are not about a player, with a table of patterns by the first word of the line.

Lines that begin with a quote but name no player (console variables, the statistics block, console chat) are parsed by
`read_quoted`, after parsing them as a player's line has failed.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from cs2_protocol.game import Side
from cs2_protocol.log_lines import world_lines as lines
from cs2_protocol.log_lines.player_token import player_token

_Form = tuple[re.Pattern[str], Callable[[re.Match[str]], lines.WorldLine | None]]

STATS_BEGIN = "JSON_BEGIN{"
STATS_NAME = '"name": "round_stats",'
STATS_PLAYERS = '"players" : {'
STATS_END = "}}JSON_END"

_RCON_COMMAND = '": command "'
_CONSOLE_CHAT = re.compile(r'"Console<0>(?:<Console><Console>)?" say "(.*)"')
_CVAR = re.compile(r'"(\w+)" = "(.*)"', re.ASCII | re.DOTALL)
_STATS_PLAYER = re.compile(r'"player_(\d{1,3})" : "([-\d., ]*+)"', re.ASCII)
# The host name is not escaped (`"Server "#1""` is a real line), and some captures lack the closing quote.
_STATS_FIELD = re.compile(r'"(round_number|score_t|score_ct|map|server|fields)" : "(.*?)(?:",?)?', re.DOTALL)


def read_world(text: str) -> lines.WorldLine | None:
    """Parse a line that is not about a player; None if it matches no known line."""
    end = text.find(" ")
    word = text if end < 0 else text[:end]
    if word == "rcon":  # checked first: one in six lines of a real log is an RCON line
        return _read_rcon(text)
    for pattern, make in _FORMS.get(word, ()):
        found = pattern.fullmatch(text)
        if found is not None:
            return make(found)
    return None


def read_quoted(text: str) -> lines.WorldLine | None:
    """Parse a line that begins with a quote but names no player; None if it matches no known line."""
    if text.startswith('"player_') and (found := _STATS_PLAYER.fullmatch(text)) is not None:
        return lines.StatsPlayer(int(found[1]), found[2])
    if text.startswith(STATS_NAME[:-2]) and text in (STATS_NAME, STATS_NAME[:-2]):
        return lines.StatsMark(STATS_NAME)
    if text == STATS_PLAYERS:
        return lines.StatsMark(STATS_PLAYERS)
    found = _STATS_FIELD.fullmatch(text)
    if found is not None:
        return lines.StatsField(found[1], found[2])
    found = _CONSOLE_CHAT.fullmatch(text)
    if found is not None:
        return lines.ConsoleChat(found[1])
    found = _CVAR.fullmatch(text)
    return found and lines.CvarListed(found[1], found[2])


def _read_rcon(text: str) -> lines.WorldLine | None:
    end = text.find('"', 11)
    is_whole = text.startswith('rcon from "') and text.startswith(_RCON_COMMAND, end) and text.endswith('"')
    at = end + len(_RCON_COMMAND)
    return lines.RconCommand(text[11:end], text[at:-1]) if is_whole and end > 0 and len(text) > at else None


def _game_over(found: re.Match[str]) -> lines.WorldLine | None:
    # Split in code: a pattern that matches both the map group and the map name could take quadratic time.
    map_group, _, map_name = found[2].rpartition(" ")
    if len(map_name.split()) != 1:
        return None
    return lines.GameOver(found[1], map_group, map_name, int(found[3]), int(found[4]), int(found[5]))


def _vote(found: re.Match[str]) -> lines.WorldLine:
    step, issue, slot, name, user_id, steam_id, team, area, option = found.groups()
    return lines.Vote(step, issue, int(slot), player_token(name, int(user_id), steam_id, team), area, option)


def _form(pattern: str, make: Callable[[re.Match[str]], lines.WorldLine | None]) -> _Form:
    return re.compile(pattern, re.ASCII | re.DOTALL), make


_SCORES = r'\(CT "(\d{1,6})"\) \(T "(\d{1,6})"\)'
_NUMBERS = r"(-?[\d.]+ -?[\d.]+ -?[\d.]+)"

_FORMS: dict[str, tuple[_Form, ...]] = {
    "World": (
        _form(
            rf'World triggered "SFUI_Notice_(\w+)" {_SCORES}',
            lambda f: lines.RoundEndNotice(None, f[1], int(f[2]), int(f[3])),
        ),
        _form(r'World triggered "([\w()]+)"(?: on "([^"]*)")?', lambda f: lines.WorldTriggered(f[1], f[2])),
    ),
    "Team": (
        _form(
            rf'Team "(CT|TERRORIST)" triggered "SFUI_Notice_(\w+)" {_SCORES}',
            lambda f: lines.RoundEndNotice(Side(f[1]), f[2], int(f[3]), int(f[4])),
        ),
        _form(
            r'Team "(CT|TERRORIST)" scored "(\d{1,6})" with "(\d{1,6})" players',
            lambda f: lines.TeamScored(Side(f[1]), int(f[2]), int(f[3])),
        ),
        _form(r'Team playing "(CT|TERRORIST)": (.*)', lambda f: lines.TeamPlaying(Side(f[1]), f[2], is_status=False)),
    ),
    "MatchStatus:": (
        _form(
            r'MatchStatus: Score: (\d{1,6}):(\d{1,6}) on map "([^"]*)" RoundsPlayed: (-?\d{1,6})',
            lambda f: lines.MatchScore(int(f[1]), int(f[2]), f[3], int(f[4])),
        ),
        _form(
            r'MatchStatus: Team playing "(CT|TERRORIST)": (.*)',
            lambda f: lines.TeamPlaying(Side(f[1]), f[2], is_status=True),
        ),
        _form(
            r'MatchStatus: Team "(CT|TERRORIST)" is unset\.',
            lambda f: lines.TeamPlaying(Side(f[1]), None, is_status=True),
        ),
    ),
    "Match": (
        _form(r"Match pause is (enabled|disabled) - (\w+)", lambda f: lines.PauseChanged(f[1] == "enabled", f[2])),
        _form(r"Match unpaused", lambda _: lines.MatchUnpaused()),
    ),
    "Vote": (
        _form(
            r'Vote ([a-z]+) "([^"]*)" from #(\d{1,3}) "(.*)<(\d{1,10})><([^<>]*)><(CT|TERRORIST|Unassigned|Spectator|)>'
            r'<([^<>"]*)>"(?: (option\d{1,2}))?',
            _vote,
        ),
        _form(r'Vote failed "([^"]*)"( ?)', lambda f: lines.VoteFailed(f[1], bool(f[2]))),
    ),
    "Starting": (_form(r"Starting Freeze period", lambda _: lines.FreezeStarted()),),
    "Molotov": (
        _form(
            rf"Molotov projectile spawned at {_NUMBERS}, velocity {_NUMBERS}",
            lambda f: lines.MolotovSpawned(f[1], f[2]),
        ),
    ),
    "server_cvar:": (_form(r'server_cvar: "(\w+)" "(.*)"', lambda f: lines.CvarChanged(f[1], f[2])),),
    "server": (_form(r"server cvars (start|end)", lambda f: lines.CvarsListed(f[1] == "start")),),
    "server_message:": (_form(r'server_message: "(.*)"', lambda f: lines.ServerMessage(f[1])),),
    "Loading": (_form(r'Loading map "([^"]*)"', lambda f: lines.LoadingMap(f[1])),),
    "Started:": (_form(r'Started:  "([^"]*)"', lambda f: lines.MapStarted(f[1])),),
    "Started": (_form(r'Started map "([^"]*)" \(CRC "([^"]*)"\)', lambda f: lines.MapStarted(f[1], f[2])),),
    "Log": (
        _form(
            r'Log file started \(file "([^"]*)"\) \(game "([^"]*)"\) \(version "([^"]*)"\)',
            lambda f: lines.LogFileStarted(f[1], f[2], f[3]),
        ),
        _form(r"Log file closed", lambda _: lines.LogFileClosed()),
    ),
    "Game": (_form(r"Game Over: (\S+) (.*) score (\d{1,6}):(\d{1,6}) after (\d{1,6}) min", _game_over),),
    "ACCOLADE,": (
        _form(
            r"ACCOLADE, FINAL: \{(\w+)\},\t(.*)<(\d{1,10})>,\tVALUE: ([-\d.]+),\tPOS: (\d{1,6}),\tSCORE: ([-\d.]+)",
            lambda f: lines.Accolade(f[1], f[2], int(f[3]), f[4], int(f[5]), f[6]),
        ),
    ),
    STATS_BEGIN: (_form(re.escape(STATS_BEGIN), lambda _: lines.StatsMark(STATS_BEGIN)),),
    STATS_END: (_form(re.escape(STATS_END), lambda _: lines.StatsMark(STATS_END)),),
}
