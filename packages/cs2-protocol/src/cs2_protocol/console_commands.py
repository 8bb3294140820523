"""Build console commands with safely quoted arguments. The commands here do not depend on the settings of a match.

Every inserted value passes `quoted` or `bare`, which ensure that it is a single argument or raise ValueError. Answers
are parsed in `console_answers`.
"""

from __future__ import annotations

import re

from cs2_protocol.rcon import MAX_COMMAND_BYTES
from cs2_protocol.text import unprintable_in

MAX_PLUGIN_MATCH_ID = 2**31 - 1
"""Highest match id for MatchZy, which parses 32 bits and rejects a match file with a larger one."""

STATUS = "status"
"""Ask for the players, with user ids but without Steam ids; see `parse_status`."""

STATUS_JSON = "status_json"
"""Ask for the map and the players, with Steam ids but without user ids; see `parse_status_json`."""

LOG_ON = "log on"
"""Switch the log on. The log is off in a new process, which then sends nothing to any address."""

LOG_LISTENERS = "logaddress_list_http"
"""Ask for the addresses that receive the log; see `parse_log_listeners`."""

REMOVE_LOG_LISTENERS = "logaddress_delall_http"
"""Stop sending the log to any address."""

PLUGIN_STATUS = "get5_status"
"""Ask the match plugin for its state; see `parse_get5_status`."""

MODE_CVARS = ("game_type", "game_mode")
"""The two variables that together select the game mode."""

_BARE = re.compile(r"[A-Za-z0-9_.-]{1,128}")
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")


def quoted(value: str) -> str:
    """Return the value as one quoted argument; raise ValueError if it could end the quotes or the command.

    The console has no escapes: any quote ends the argument, and a line end ends the command even inside quotes. A
    semicolon is harmless inside quotes, but rejected as a second line of defense.
    """
    if '"' in value or ";" in value or unprintable_in(value) is not None:
        raise ValueError("a quoted console argument may not contain quotes, semicolons or unprintable characters")
    return f'"{value}"'


def bare(value: str | int) -> str:
    """Return the value as one unquoted argument; raise ValueError unless it is a plain word or number."""
    text = str(value)
    if not _BARE.fullmatch(text):
        raise ValueError("a bare console argument may only contain letters, digits, dot, dash and underscore")
    return text


def set_command(name: str, value: str) -> str:
    """Return the command that sets a console variable; raise ValueError if the value cannot be quoted."""
    return command(name, value if _BARE.fullmatch(value) else quoted(value))


def command(word: str, *arguments: str) -> str:
    """Build a command from arguments that have passed `quoted` or `bare`."""
    if not _WORD.fullmatch(word):
        raise ValueError("not the name of a console command or variable")
    text = " ".join((word, *arguments))
    if len(text.encode()) > MAX_COMMAND_BYTES:
        raise ValueError(f"a console command may be at most {MAX_COMMAND_BYTES} bytes")
    return text


def kick_command(user_id: int, reason: str) -> str:
    """Return the command that kicks a player and shows them the reason."""
    if user_id < 0:
        raise ValueError("a user id must not be negative")
    return command("kickid", bare(user_id), quoted(reason))


def log_address_command(url: str) -> str:
    """Return the command that adds a log address. Without quotes the console would read `//` as a comment."""
    return command("logaddress_add_http", quoted(_http_url(url)))


def remove_log_address_command(url: str) -> str:
    """Return the command that removes a log address. Older builds ignore it as unknown."""
    return command("logaddress_del_http", quoted(_http_url(url)))


def load_match_command(url: str, *, header_name: str, header_value: str) -> str:
    """Return the command that makes MatchZy fetch its match file; the game blocks until the response."""
    return command("matchzy_loadmatch_url", quoted(_http_url(url)), quoted(header_name), quoted(header_value))


def report_address_commands(url: str, *, header_name: str, header_value: str) -> tuple[str, ...]:
    """Return the commands that change the address for MatchZy's events, initially set by its match file."""
    address = report_address(url, header_name, header_value)
    return tuple(command(name, quoted(value)) for name, value in address.items())


def end_match_command() -> str:
    """Return the command that ends MatchZy's match. While a match is loaded, MatchZy rejects another."""
    return command("css_endmatch")


def report_address(url: str, header_name: str, header_value: str) -> dict[str, str]:
    """Return the variables with the address for MatchZy's events."""
    return {
        "matchzy_remote_log_url": _http_url(url),
        "matchzy_remote_log_header_key": header_name,
        "matchzy_remote_log_header_value": header_value,
    }


def demo_upload_commands(url: str, *, header_name: str, header_value: str) -> tuple[str, ...]:
    """Return the commands that make MatchZy record a demo of each map, and POST it to this address after the map.

    The file name contains no team names, because the plugin sends it in a header, which must be ASCII.
    """
    settings = {
        "matchzy_demo_path": "MatchZy/",
        "matchzy_demo_name_format": "{TIME}_{MATCH_ID}_{MAP}",
        "matchzy_demo_recording_enabled": "true",
        "matchzy_demo_upload_header_key": header_name,
        "matchzy_demo_upload_header_value": header_value,
        "matchzy_demo_upload_url": _http_url(url),
    }
    return tuple(command(name, quoted(value)) for name, value in settings.items())


def end_demo_uploads_command() -> str:
    """Return the command that ends demo uploads.

    It overwrites the token in the upload header, because the plugin keeps the header after the match. Later uploads are
    rejected.
    """
    return command("matchzy_demo_upload_header_value", quoted("none"))


def _http_url(url: str) -> str:
    # Without a scheme the server prints an error to its console in every tick.
    if not url.startswith(("http://", "https://")):
        raise ValueError("a log or match address must be an http or https URL")
    return url
