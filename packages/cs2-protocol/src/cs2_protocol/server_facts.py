"""Parse a server's answers about itself: its build, its Steam login, its plugins and the state of its log.

The formats of Metamod and CounterStrikeSharp are known from outputs in their issue trackers, and from the source code
of CounterStrikeSharp. As in `console_answers`, unrelated lines are skipped and no parser raises an exception; None
means that the text does not contain the expected answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import TypeVar

import msgspec

from cs2_protocol.console_answers import MAX_LISTENER_LINES, MAX_STATUS_LINES, unknown_commands

META_LIST = "meta list"
"""Command that lists the plugins of Metamod. A server without Metamod does not know it."""

CSS_PLUGINS = "css_plugins list"
"""Command that lists the plugins of CounterStrikeSharp. A server without CounterStrikeSharp does not know it."""

LOG_STATE = "log"
"""Command that prints whether the log is on."""

MAX_PLUGIN_LINES = 512
"""Maximum number of lines read from a list of plugins. A server has a few dozen plugins with two or three lines
each."""

MAX_TEXT_CHARS = 64
"""Maximum number of characters kept of a name or version."""


class SteamLogin(StrEnum):
    """How a server has logged in to Steam."""

    TOKEN = "token"
    """The server has a game server login token, and so an account of its own."""
    ANONYMOUS = "anonymous"
    NONE = "none"


class ServerBuild(msgspec.Struct, frozen=True, kw_only=True):
    """The version of the game, such as 1.41.2.8, and the number of the build, which grows with every update."""

    version: str
    build: int


class Plugin(msgspec.Struct, frozen=True, kw_only=True):
    """A plugin, as Metamod or CounterStrikeSharp lists it."""

    name: str
    version: str
    is_loaded: bool


_VERSION_LINE = re.compile(r"version\s{1,8}:\s(\d{1,5}(?:\.\d{1,5}){1,4})/\d{1,9}\s(\d{1,9})\b")
_STEAM_ID_LINE = re.compile(r"steamid\s{1,8}:\s\[([A-Za-z]):[0-9:]{1,40}\]")
_PLAYERS_LINE = re.compile(r"players\s{1,8}:.{1,80}\((not )?hibernating\)")
_LOGINS = {"G": SteamLogin.TOKEN, "A": SteamLogin.ANONYMOUS, "I": SteamLogin.NONE}

_META_HEAD = re.compile(r"\s{0,8}(?:Listing \d{1,4} plugins?:|No plugins loaded\.?)\s{0,8}")
# For a plugin that failed to load, the state is printed in the position of the name.
_META_PLUGIN = re.compile(r"\s{0,8}\[\d{1,4}\]\s(?:<(?P<state>[A-Z]{1,16})>\s?)?(?P<rest>.{0,300})")
_NAME_AND_VERSION = re.compile(r"(?P<name>.{1,200}?)\s\((?P<version>[^()]{1,100})\)")

_CSS_HEAD = re.compile(r"\s{0,8}List of all plugins currently loaded by CounterStrikeSharp\b")
_CSS_PLUGIN = re.compile(
    r"\s{0,8}\[#\d{1,6}:(?P<state>[A-Z]{1,16})\]:\s\"(?P<name>[^\"]{1,200})\"\s\((?P<version>[^()]{1,100})\)"
)
_LOADED = "LOADED"

_T = TypeVar("_T")


def parse_build(status: str) -> ServerBuild | None:
    """Return the version and build number of the game from the answer to `status`."""
    found = _first(status, _VERSION_LINE)
    return None if found is None else ServerBuild(version=found[1], build=int(found[2]))


def parse_login(status: str) -> SteamLogin | None:
    """Return how the server has logged in to Steam, from its id in the answer to `status` (`[G:…]`: with a token)."""
    found = _first(status, _STEAM_ID_LINE)
    return None if found is None else _LOGINS.get(found[1].upper())


def parse_hibernation(status: str) -> bool | None:
    """True if the answer to `status` says that the server hibernates; None if it does not say."""
    found = _first(status, _PLAYERS_LINE)
    return None if found is None else found[1] is None


def parse_meta_list(text: str) -> tuple[Plugin, ...] | None:
    """Return the plugins of Metamod in the answer to `meta list`; None if the server has no Metamod."""
    return _listed(text, _META_HEAD, _meta_plugin)


def parse_css_plugins(text: str) -> tuple[Plugin, ...] | None:
    """Return the plugins in the answer to `css_plugins list`; None if the server has no CounterStrikeSharp."""
    return _listed(text, _CSS_HEAD, _css_plugin)


def knows_command(text: str, name: str) -> bool | None:
    """Return False if the answer to a command says that the command is unknown; None if the answer is empty."""
    if any(unknown.lower() == name.lower() for unknown in unknown_commands(text)):
        return False
    return True if text.strip() else None


def parse_log_state(text: str) -> bool | None:
    """True if the answer to `log` says that the log is on; None if it does not say."""
    for line in _lines(text, MAX_LISTENER_LINES):
        state = line.strip().lower()
        if state.endswith("currently logging"):
            return not state.endswith("not currently logging")
    return None


def has_pending_request(listeners: str, url: str) -> bool | None:
    """True if the answer to `logaddress_list_http` says that a post to this URL is in flight; None if not listed."""
    for line in _lines(listeners, MAX_LISTENER_LINES):
        address, _, state = line.strip().partition(" - ")
        if address.strip('"') == url:
            return state.startswith("has ")
    return None


def _meta_plugin(line: str) -> Plugin | None:
    found = _META_PLUGIN.match(line)
    if found is None:
        return None
    named = _NAME_AND_VERSION.match(found["rest"])
    name, version = (named["name"], named["version"]) if named else (found["rest"].strip(), "")
    return _plugin(name, version, is_loaded=found["state"] is None)


def _css_plugin(line: str) -> Plugin | None:
    found = _CSS_PLUGIN.match(line)
    return None if found is None else _plugin(found["name"], found["version"], is_loaded=found["state"] == _LOADED)


def _plugin(name: str, version: str, *, is_loaded: bool) -> Plugin:
    return Plugin(name=name[:MAX_TEXT_CHARS], version=version[:MAX_TEXT_CHARS], is_loaded=is_loaded)


def _listed(text: str, head: re.Pattern[str], read: Callable[[str], _T | None]) -> tuple[_T, ...] | None:
    lines = _lines(text, MAX_PLUGIN_LINES)
    if not any(map(head.match, lines)):  # consumes the lines up to and including the head
        return None
    return tuple(item for item in map(read, lines) if item is not None)


def _first(text: str, pattern: re.Pattern[str]) -> re.Match[str] | None:
    found = map(pattern.match, _lines(text, MAX_STATUS_LINES))
    return next((line for line in found if line is not None), None)


def _lines(text: str, limit: int) -> Iterator[str]:
    return (line.removesuffix("\r") for line in text.split("\n", limit)[:limit])
