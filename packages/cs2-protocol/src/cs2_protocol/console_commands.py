"""Build console commands with safely quoted arguments. The commands here do not depend on the settings of a match.

Every argument is built with `quoted` or `bare`, which raise ValueError if a value could become more than one argument.
The answers to commands are parsed in `console_answers`.
"""

from __future__ import annotations

import re

from cs2_protocol.rcon import MAX_COMMAND_BYTES
from cs2_protocol.text import unprintable_in

MAX_PLUGIN_MATCH_ID = 2**31 - 1
"""Highest match id that MatchZy accepts. It parses 32 bits, and rejects a match file with a higher id."""

STATUS = "status"
"""Ask for the players, with user ids but without Steam ids; see `parse_status`."""

STATUS_JSON = "status_json"
"""Ask for the map and the players, with Steam ids but without user ids; see `parse_status_json`."""

LOG_ON = "log on"
"""Switch the log on. The log is off in a new server process; until it is on, nothing is sent to the log addresses."""

LOG_LISTENERS = "logaddress_list_http"
"""Ask for the URLs to which the server posts its log; see `parse_log_listeners`."""

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

    The console has no escape characters: any quote ends the argument, and a line end ends the command even inside
    quotes. A semicolon is harmless inside quotes, but is rejected as a second line of defense.
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
    """Build a command from arguments that `quoted` or `bare` returned."""
    if not _WORD.fullmatch(word):
        raise ValueError("not the name of a console command or variable")
    text = " ".join((word, *arguments))
    if len(text.encode()) > MAX_COMMAND_BYTES:
        raise ValueError(f"a console command may have at most {MAX_COMMAND_BYTES} bytes")
    return text


def kick_command(user_id: int, reason: str) -> str:
    """Return the command that kicks a player and shows them the reason."""
    if user_id < 0:
        raise ValueError("a user id must not be negative")
    return command("kickid", bare(user_id), quoted(reason))


def log_address_command(url: str) -> str:
    """Return the command that adds a log address.

    The URL is quoted, because the console treats an unquoted `//` as the start of a comment.
    """
    return command("logaddress_add_http", quoted(_http_url(url)))


def remove_log_address_command(url: str) -> str:
    """Return the command that removes a log address. Older game builds do not know this command and ignore it."""
    return command("logaddress_del_http", quoted(_http_url(url)))


def load_match_command(url: str, *, header_name: str, header_value: str) -> str:
    """Return the command that makes MatchZy fetch a match file; the game is blocked until the response arrives."""
    return command("matchzy_loadmatch_url", quoted(_http_url(url)), quoted(header_name), quoted(header_value))


def report_address_commands(url: str, *, header_name: str, header_value: str) -> tuple[str, ...]:
    """Return the commands that change the URL for MatchZy's events. The match file sets the initial URL."""
    address = report_address(url, header_name, header_value)
    return tuple(command(name, quoted(value)) for name, value in address.items())


def end_match_command() -> str:
    """Return the command that ends MatchZy's match. MatchZy rejects a new match while one is loaded."""
    return command("css_endmatch")


def report_address(url: str, header_name: str, header_value: str) -> dict[str, str]:
    """Return the console variables that set the URL and the header for MatchZy's events, with their values."""
    return {
        "matchzy_remote_log_url": _http_url(url),
        "matchzy_remote_log_header_key": header_name,
        "matchzy_remote_log_header_value": header_value,
    }


def demo_upload_commands(url: str, *, header_name: str, header_value: str) -> tuple[str, ...]:
    """Return the commands that make MatchZy record a demo of each map, and upload it to `url` after the map.

    The configured file name contains no team names: MatchZy sends the file name in a header, which must be ASCII.
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

    The command overwrites the token in the upload header, which the plugin would otherwise keep after the match.
    Uploads without the token are rejected by the receiver.
    """
    return command("matchzy_demo_upload_header_value", quoted("none"))


def _http_url(url: str) -> str:
    # If a URL has no scheme, the server prints an error to its console in every tick.
    if not url.startswith(("http://", "https://")):
        raise ValueError("a log or match address must be an http or https URL")
    return url
