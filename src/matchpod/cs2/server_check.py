"""Define the checks of a game server: the console commands, the findings from their answers, and advice for operators.

`CONSOLE_CHECKS` lists the checks over the console, which change nothing on the server. Other functions report whether
the console could be opened, how fast it answers, and whether a log post arrived.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum, auto
from statistics import median
from typing import Final

import msgspec

from cs2_protocol import console_answers as answers
from cs2_protocol import console_commands, server_facts
from cs2_protocol.log_clock import parse_stamp
from cs2_protocol.server_facts import Plugin, SteamLogin
from matchpod.core.servers.check_report import MAX_TEXT, UPDATE, CheckFinding, CheckItem, CheckVerdict

OLDEST_BUILD: Final = 10603
"""Oldest build without a fault: the newest whose logs were tested. An older server has missed updates for months."""

TESTED_PLUGIN: Final = (0, 8, 15)
"""The version of MatchZy that Matchpod was developed against."""

SLOW_MS: Final = 250
"""Threshold in ms of the round trip for a warning. Starting a match takes a few dozen consecutive commands."""

TOO_SLOW_MS: Final = 2_000
"""Threshold in ms of the round trip for a fault. Commands of a match would time out as soon as the server is busy."""

ZONE_MS: Final = 15 * 60_000
"""Smallest difference in ms between time zones. A clock that is wrong by a multiple of this looks like another zone."""

MAX_ZONE_MS: Final = 14 * 60 * 60_000
"""Maximum offset in ms of a time zone from UTC."""

SKEW_MS: Final = 10_000
"""Threshold in ms of the clock error for a warning. The post itself may be a second old; real servers were off by up to
18 s."""


class Opening(Enum):
    """The result of the attempt to open a console."""

    ACCEPTED = auto()
    REFUSED = auto()
    NO_ANSWER = auto()
    """No connection within the time limit."""
    SILENT = auto()
    """Connected, but no answer to the password."""
    CLOSED = auto()
    """Connected, but the connection was closed before the server answered."""
    UNKNOWN_HOST = auto()
    UNREACHABLE = auto()
    WRONG_PASSWORD = auto()
    NO_CONSOLE = auto()
    """The program that listens at this address does not speak RCON."""


class ConsoleCheck(msgspec.Struct, frozen=True):
    """A check over the console: the commands to send, and the function that reads their answers."""

    item: CheckItem
    commands: tuple[str, ...]
    read: Callable[[Sequence[str]], CheckFinding]


def opening_findings(opening: Opening, address: str, *, is_game_up: bool | None, error: str = "") -> list[CheckFinding]:
    """Return the findings about opening a console. `is_game_up`: the game itself answers at this address over UDP."""
    if opening is Opening.ACCEPTED:
        return [
            _ok(CheckItem.RCON, f"The console at {address} answers."),
            _ok(CheckItem.USERCON, "RCON is open."),
            _ok(CheckItem.PASSWORD, "The password is accepted."),
        ]
    if opening is Opening.WRONG_PASSWORD:
        return [
            _ok(CheckItem.RCON, f"The console at {address} answers."),
            _ok(CheckItem.USERCON, "RCON is open."),
            _fault(CheckItem.PASSWORD, "The server rejects the RCON password.", _PASSWORD_ADVICE),
        ]
    if opening is Opening.REFUSED and is_game_up:
        return [
            _fault(
                CheckItem.RCON, f"The game answers at {address}, but its console refuses connections.", _SEE_USERCON
            ),
            _fault(CheckItem.USERCON, "RCON is not open.", _USERCON_ADVICE),
        ]
    text, advice = _OPENINGS[opening]
    found = f"{text.format(address=address)}{' The game itself answers there.' if is_game_up else ''}"
    said = f" ({error[:MAX_TEXT]})" if error and opening in (Opening.UNREACHABLE, Opening.NO_CONSOLE) else ""
    return [_fault(CheckItem.RCON, found + said, _UDP_ONLY if is_game_up and advice is _FIREWALL else advice)]


def lost_console_finding(error: str) -> CheckFinding:
    """Return the finding for a console that stopped answering during the check."""
    return _fault(CheckItem.ROUND_TRIP, f"The console stopped answering: {error}.", _RESTART)


def round_trip_finding(times_ms: Sequence[float]) -> CheckFinding:
    """Return the finding for the response times of the console."""
    typical = median(times_ms)
    text = f"{typical:.0f} ms" if typical >= 10 else f"{typical:.1f} ms"
    if typical >= TOO_SLOW_MS:
        return _fault(CheckItem.ROUND_TRIP, f"The console takes {text} to answer.", _SLOW_ADVICE)
    if typical >= SLOW_MS:
        return _warning(CheckItem.ROUND_TRIP, f"The console takes {text} to answer.", _SLOW_ADVICE)
    return _ok(CheckItem.ROUND_TRIP, f"The console answers within {text}.")


def log_address_finding(url: str, listeners: str) -> CheckFinding:
    """Return a finding that says whether the server's list of log addresses contains ours."""
    shown = url.rpartition("/")[0] + "/…"  # the token is a secret
    if url in answers.parse_log_listeners(listeners):
        return _ok(CheckItem.LOG_ADDRESS, f"The server accepts {shown}.")
    return _fault(
        CheckItem.LOG_ADDRESS,
        f"The server does not keep the log address {shown}.",
        "Type `logaddress_add_http` and `logaddress_list_http` in its console: a plugin or the panel of the host may "
        "remove or block log addresses.",
    )


class LogPost(msgspec.Struct, frozen=True, kw_only=True):
    """The first log post of a server: its time of arrival, its sender, and its timestamp on the server's clock."""

    after_ms: int
    received_ms: int
    source: str
    stamp: str | None
    was_woken: bool = False
    """True if the server was hibernating, and was kept awake for a moment so that it sent the post."""


def log_post_finding(post: LogPost, base_url: str) -> CheckFinding:
    woken = " It hibernates while it is empty, and was woken for it." if post.was_woken else ""
    text = f"A post from {post.source} arrived at {base_url} after {post.after_ms / 1000:.1f} s.{woken}"
    return _ok(CheckItem.LOG_POST, text)


def missing_post_finding(
    base_url: str, *, waited_s: float, is_pending: bool | None, is_base_local: bool, is_server_local: bool
) -> CheckFinding:
    """Return the finding for a missing post. `is_pending`: the server reports an HTTP request in progress."""
    text = f"No log post arrived at {base_url} within {waited_s:.0f} s."
    if is_base_local and not is_server_local:
        return _fault(CheckItem.LOG_POST, text, _LOCAL_URL_ADVICE)
    if is_pending:
        way = "The server is still waiting for an answer: its packets are lost on the way, as in a firewall."
        return _fault(CheckItem.LOG_POST, f"{text} {way}", _LOG_ADVICE)
    return _fault(CheckItem.LOG_POST, text, _LOG_ADVICE)


def clock_finding(post: LogPost | None, *, is_real_time: bool = True) -> CheckFinding:
    """Compare the timestamp of a log post, in local time without a zone, with the time of the post's arrival."""
    if not is_real_time:
        return _ok(CheckItem.CLOCK, "Not compared: the games of this region are faster than real time.")
    local_ms = None if post is None or post.stamp is None else parse_stamp(post.stamp)
    if post is None or local_ms is None:
        return _unknown(CheckItem.CLOCK, "The time of a server is read from a log post, and none was usable.")
    ahead_ms = local_ms - post.received_ms
    zone_ms = round(ahead_ms / ZONE_MS) * ZONE_MS
    skew_ms = ahead_ms - zone_ms
    if abs(zone_ms) > MAX_ZONE_MS:
        return _fault(CheckItem.CLOCK, f"Its clock is {_span(ahead_ms)}.", _CLOCK_ADVICE)
    zone = f"{'+' if zone_ms >= 0 else '-'}{abs(zone_ms) // 3_600_000:02}:{abs(zone_ms) // 60_000 % 60:02}"
    if abs(skew_ms) > SKEW_MS:
        return _warning(CheckItem.CLOCK, f"Its clock is {_span(skew_ms)} (zone {zone}).", _CLOCK_ADVICE)
    return _ok(CheckItem.CLOCK, f"Its clock is right to within {SKEW_MS // 1000} s (zone {zone}).")


def build_of(status: str) -> int | None:
    """Return the build number in the answer to `status`."""
    found = server_facts.parse_build(status)
    return None if found is None else found.build


def _span(ahead_ms: int) -> str:
    """Format how far a clock is ahead or behind, in the largest unit that fits."""
    seconds = abs(ahead_ms) // 1000
    unit, length = next(
        (unit, length) for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)) if seconds >= length
    )
    return f"{seconds / length:.3g} {unit} {'ahead' if ahead_ms > 0 else 'behind'}"


# --- the questions -----------------------------------------------------------------------------------------------


def _read_build(found: Sequence[str]) -> CheckFinding:
    build = server_facts.parse_build(found[0])
    if build is None:
        return _unknown(CheckItem.BUILD, "The answer to `status` names no build.")
    text = f"{build.version}, build {build.build}"
    if build.build < OLDEST_BUILD:
        return _fault(CheckItem.BUILD, f"{text}: older than build {OLDEST_BUILD}.", UPDATE)
    return _ok(CheckItem.BUILD, f"{text}.")


def _read_gameinfo(found: Sequence[str]) -> CheckFinding:
    if server_facts.parse_meta_list(found[0]) is not None:
        return _ok(CheckItem.GAMEINFO, "Metamod is loaded, so `gameinfo.gi` has its line.")
    if server_facts.knows_command(found[0], "meta") is False:
        return _fault(CheckItem.GAMEINFO, "Metamod is not loaded.", _GAMEINFO_ADVICE)
    return _unknown(CheckItem.GAMEINFO, "The answer to `meta list` cannot be read.")


def _read_plugin(found: Sequence[str]) -> CheckFinding:
    meta, css = server_facts.parse_meta_list(found[0]), server_facts.parse_css_plugins(found[1])
    matchzy = next((plugin for plugin in css or () if plugin.name.lower() == "matchzy"), None)
    has_status = answers.parse_get5_status(found[2]) is not None
    if matchzy is not None and matchzy.is_loaded and has_status:
        return _read_matchzy(matchzy, _named(meta, "CounterStrikeSharp"))
    if has_status:
        return _ok(CheckItem.PLUGIN, "A match plugin answers `get5_status`; its version is not listed.")
    if matchzy is not None:
        text = f"MatchZy {matchzy.version} is installed, but does not run."
        return _fault(CheckItem.PLUGIN, text, f"{_LOOK_AT_LOG} {_NEEDED_FOR}")
    if css is not None:
        return _fault(CheckItem.PLUGIN, "CounterStrikeSharp is loaded, MatchZy is not.", _MATCHZY_ADVICE)
    if meta is None:
        text = "No plugin is loaded: the match plugin needs Metamod."
        return _fault(CheckItem.PLUGIN, text, f"Repair `gameinfo.gi` first. {_NEEDED_FOR}")
    failed = next((plugin for plugin in meta if not plugin.is_loaded), None)
    if failed is not None:
        text = "Metamod is loaded, but could not load its plugin, usually CounterStrikeSharp."
        return _fault(CheckItem.PLUGIN, text, _CSS_FAILED_ADVICE)
    return _fault(CheckItem.PLUGIN, "Metamod is loaded, CounterStrikeSharp is not.", _CSS_ADVICE)


def _read_matchzy(matchzy: Plugin, css: Plugin | None) -> CheckFinding:
    text = f"MatchZy {matchzy.version}" + (f", CounterStrikeSharp {css.version}" if css is not None else "")
    numbers = matchzy.version.split(".")
    version = tuple(map(int, numbers)) if all(part.isascii() and part.isdigit() for part in numbers) else None
    if version is not None and version < TESTED_PLUGIN:
        tested = ".".join(map(str, TESTED_PLUGIN))
        return _warning(CheckItem.PLUGIN, f"{text}.", f"Update MatchZy: Matchpod was developed against {tested}.")
    return _ok(CheckItem.PLUGIN, f"{text}.")


def _login_finding(status: str, lan_answer: str, *, is_public: bool) -> CheckFinding:
    login, lan = server_facts.parse_login(status), answers.parse_cvar(lan_answer, "sv_lan")
    is_lan = lan is not None and lan.equals("1")
    if is_lan and is_public:
        text = "`sv_lan` is 1, so only its own network can join, and its address is on the internet."
        return _fault(CheckItem.LOGIN_TOKEN, text, f"Set sv_lan to 0. {_TOKEN_ADVICE}")
    if login is SteamLogin.TOKEN:
        return _ok(CheckItem.LOGIN_TOKEN, "The server is logged in with a token of its own.")
    if is_lan:
        return _ok(CheckItem.LOGIN_TOKEN, "None is needed: `sv_lan` is 1, so only its own network can join.")
    if login is SteamLogin.ANONYMOUS:
        text = "The server is logged in without a token (GSLT): players from the internet cannot join."
        return _fault(CheckItem.LOGIN_TOKEN, text, _TOKEN_ADVICE)
    if login is SteamLogin.NONE:
        return _fault(CheckItem.LOGIN_TOKEN, "The server is not logged in to Steam.", _LOGIN_ADVICE)
    return _unknown(CheckItem.LOGIN_TOKEN, "The answer to `status` does not say how the server is logged in.")


def _read_idle(found: Sequence[str]) -> CheckFinding:
    people = sum(not player.is_bot for player in answers.parse_status(found[0]))
    plugin = answers.parse_get5_status(found[1])
    if people:
        whom = "One player is" if people == 1 else f"{people} players are"
        return _warning(CheckItem.IDLE, f"{whom} on the server, without a match of Matchpod.", _IDLE_ADVICE)
    if plugin is not None and plugin.has_match:
        return _warning(CheckItem.IDLE, "The match plugin has a match that is not one of Matchpod.", _IDLE_ADVICE)
    return _ok(CheckItem.IDLE, "No player is on the server.")


CONSOLE_CHECKS: Final = (
    ConsoleCheck(CheckItem.BUILD, (console_commands.STATUS,), _read_build),
    ConsoleCheck(CheckItem.GAMEINFO, (server_facts.META_LIST,), _read_gameinfo),
    ConsoleCheck(
        CheckItem.PLUGIN,
        (server_facts.META_LIST, server_facts.CSS_PLUGINS, console_commands.PLUGIN_STATUS),
        _read_plugin,
    ),
    ConsoleCheck(CheckItem.IDLE, (console_commands.STATUS, console_commands.PLUGIN_STATUS), _read_idle),
)
"""The checks over the console, except that of the login token. A command that several checks need is sent once."""

_LAN: Final = "sv_lan"
QUESTIONS: Final = (*dict.fromkeys(command for check in CONSOLE_CHECKS for command in check.commands), _LAN)
"""The distinct commands of all checks in CONSOLE_CHECKS, and the query of `sv_lan`."""


def console_findings(found: Mapping[str, str], *, is_public: bool) -> list[CheckFinding]:
    """Return the findings from the answers to `QUESTIONS`, by command. `is_public`: players join over the internet."""
    findings = [check.read([found[command] for command in check.commands]) for check in CONSOLE_CHECKS]
    return [*findings, _login_finding(found[console_commands.STATUS], found[_LAN], is_public=is_public)]


def _named(plugins: Sequence[Plugin] | None, name: str) -> Plugin | None:
    return next((plugin for plugin in plugins or () if plugin.name.lower() == name.lower()), None)


def _ok(item: CheckItem, text: str) -> CheckFinding:
    return CheckFinding(item=item, verdict=CheckVerdict.OK, text=text)


def _warning(item: CheckItem, text: str, advice: str) -> CheckFinding:
    return CheckFinding(item=item, verdict=CheckVerdict.WARNING, text=text, advice=advice)


def _fault(item: CheckItem, text: str, advice: str) -> CheckFinding:
    return CheckFinding(item=item, verdict=CheckVerdict.FAULT, text=text, advice=advice)


def _unknown(item: CheckItem, text: str) -> CheckFinding:
    return CheckFinding(item=item, verdict=CheckVerdict.UNKNOWN, text=text)


# --- what to do --------------------------------------------------------------------------------------------------

_FIREWALL: Final = "Check the address, whether the server runs, and the firewalls on the way: RCON is TCP."
_UDP_ONLY: Final = "Open the same port for TCP in the firewalls on the way, for the machine of the service only."
_SEE_USERCON: Final = "See -usercon."
_USERCON_ADVICE: Final = (
    "Start the server with -usercon, and with -ip 0.0.0.0 if its machine has several addresses. If its console is at "
    "another port, that port must be in the address."
)
_PASSWORD_ADVICE: Final = (
    "Make rcon_password in the settings that of the server, where it must not be empty. Do that before the next "
    "check: "
    "after some wrong passwords a server bans the sender, usually until it is restarted."
)
_RESTART: Final = "Try again in a minute, as it may be loading a map. If that does not help, restart the server."
_SLOW_ADVICE: Final = (
    "Look at the load of its machine, and how far it is from the service. Starting a match takes dozens of commands, "
    "and a command without an answer after 5 s has failed."
)
_LOG_ADVICE: Final = (
    "The server must reach this URL: check its DNS and outgoing firewall, the firewall and proxy before the service, "
    "and that the URL is answered without a redirect."
)
_LOCAL_URL_ADVICE: Final = (
    "Only the machine of the service can reach this URL. Set MATCHPOD_PUBLIC_URL or MATCHPOD_LOG_URL to one that the "
    "server can reach."
)
_CLOCK_ADVICE: Final = (
    "Set the clock of its machine, best with NTP. Matches are timed by the clock of the service, but a wrong date "
    "makes TLS connections fail, and demos and logs get wrong times."
)
_GAMEINFO_ADVICE: Final = (
    "Add the line `Game csgo/addons/metamod` to `game/csgo/gameinfo.gi` again, below `Game_LowViolence`, and restart "
    "the server: every update of the game replaces that file. If the line is there, install Metamod again."
)
_NEEDED_FOR: Final = "Competitive and wingman matches with a roster fail without MatchZy; all others work."
_LOOK_AT_LOG: Final = "Look into `addons/counterstrikesharp/logs` for the reason."
_MATCHZY_ADVICE: Final = f"Unpack MatchZy into `game/csgo`, and restart the server. {_NEEDED_FOR}"
_CSS_ADVICE: Final = (
    f"Unpack CounterStrikeSharp, the package with runtime, into `game/csgo`, and restart the server. {_NEEDED_FOR}"
)
_CSS_FAILED_ADVICE: Final = (
    "Install the newest CounterStrikeSharp, the package with runtime: after an update of the game an older one often "
    f"does not load. It also needs libicu on the machine. {_NEEDED_FOR}"
)
_TOKEN_ADVICE: Final = (
    "Make a token for app 730 at steamcommunity.com/dev/managegameservers, start the server with +sv_setsteamaccount, "
    "and use no token twice."
)
_LOGIN_ADVICE: Final = (
    "Check whether its machine reaches Steam, and whether its token is valid: a token that was not used for a long "
    "time expires, and one that another server uses is rejected."
)
_IDLE_ADVICE: Final = "Use the server for nothing else: a match kicks everybody who is on it, and ends other matches."

_OPENINGS: Final[Mapping[Opening, tuple[str, str]]] = {
    Opening.REFUSED: (
        "Nothing accepts connections at {address}.",
        "Start the server, or correct its address. If it runs, it needs -usercon and perhaps -ip 0.0.0.0; or it has "
        "banned the service for wrong passwords until it is restarted.",
    ),
    Opening.NO_ANSWER: ("No connection to {address} within the time limit.", _FIREWALL),
    Opening.SILENT: ("{address} accepts connections, but no console answers.", _RESTART),
    Opening.CLOSED: (
        "{address} closes the connection before it answers the password.",
        "It may have banned the service for wrong passwords: restart it. Or another program listens at this port.",
    ),
    Opening.UNKNOWN_HOST: (
        "The host name in {address} cannot be resolved.",
        "Correct the name in the settings, or the DNS of the machine of the service.",
    ),
    Opening.UNREACHABLE: ("There is no way to {address}.", _FIREWALL),
    Opening.NO_CONSOLE: (
        "What listens at {address} is not the console of a game server.",
        "Another program uses this port, or a plugin floods the console: look at what listens there.",
    ),
}
