"""Parse the answers to console commands.

An answer contains everything that CS2 prints while a command runs, so unrelated lines may precede, follow or interrupt
the expected ones. Each parser uses the lines it recognizes and skips all others. No parser raises an exception; most
return None if the text does not contain the expected answer. Player names are untrusted: a line is parsed up to the
name, and the rest of the line is the name. A compromised server may answer anything, so no parser reads more lines and
items than a real answer may have. Lines end at "\\n" only, as names may contain other characters that Python treats as
line ends.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from itertools import dropwhile, islice, takewhile
from typing import Final, TypeGuard

import msgspec

from cs2_protocol.steam_id import account_of

MAX_OBJECT_STARTS = 4
"""Maximum number of attempts to parse a JSON object, each at a line that starts with `{`. Real answers have one such
line."""

MAX_STATUS_LINES = 4096
"""Maximum number of lines read from the answer to `status`.

Real answers have some hundred lines about spawn groups, and one line per player.
"""

MAX_ROW_CHARS = 512
"""Maximum number of characters before the player's name in a line of `status`. Real lines have fewer than 100."""

MAX_LISTENER_LINES = 512
"""Maximum number of lines read from the list of log addresses. The list has two or three lines per address."""

MAX_CVAR_LINES = 64
"""Maximum number of lines read for the value of a console variable.

The answer is one line, unless the game prints other output in between.
"""

MAX_CLIENTS = 128
"""Maximum number of players and bots read. A server has at most 64 slots."""

MAX_LISTENERS = 64
"""Maximum number of log addresses read. A server has one or two."""

MAX_NAME_CHARS = 128
"""Maximum length of a player's name; the rest is cut off. Names have at most 128 bytes in the game."""

_JsonObject = dict[str, object]


class StatusPlayer(msgspec.Struct, frozen=True, kw_only=True):
    """One row of `status`. It has no Steam id; the log has both the user id and the Steam id of a player."""

    user_id: int
    name: str
    is_bot: bool


class StatusJsonClient(msgspec.Struct, frozen=True, kw_only=True):
    """One client of `status_json`. It has no user id and no team."""

    steam_id64: str
    name: str
    is_bot: bool


class StatusJson(msgspec.Struct, frozen=True, kw_only=True):
    """The map and the clients in the answer to `status_json`. Empty slots are omitted."""

    map: str | None
    clients: tuple[StatusJsonClient, ...]

    @property
    def humans(self) -> tuple[StatusJsonClient, ...]:
        """The clients that have a player's Steam id. Bots have none."""
        return tuple(
            client for client in self.clients if not client.is_bot and account_of(client.steam_id64) is not None
        )


_IN_PLAY: Final = frozenset(
    {"knife", "waiting_for_knife_decision", "going_live", "live", "pending_restore", "post_game"}
)
"""The states of the plugin from the start of play to the end of the map."""


class Get5Status(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to `get5_status`: the state of the match plugin, such as `none`, the loaded match and its map."""

    state: str
    match_id: str | None
    map_number: int
    """The number of the current map, counted from 0; 0 also if the answer does not contain it."""

    @property
    def has_match(self) -> bool:
        """True if the plugin has loaded a match."""
        return self.state != "none"

    @property
    def has_begun(self) -> bool:
        """True if play has begun, on this map or an earlier one; then the plugin has applied the match's variables."""
        return self.map_number > 0 or self.state in _IN_PLAY


class CvarValue(msgspec.Struct, frozen=True):
    """The value of a console variable, as the server prints it."""

    name: str
    value: str

    def equals(self, expected: str) -> bool:
        """True if the printed value is equivalent to the expected one: `true` equals `1`, and rounding is ignored."""
        ours, theirs = _as_number(expected), _as_number(self.value)
        if ours is None or theirs is None:
            return self.value == expected.strip()
        return math.isclose(ours, theirs, rel_tol=_FLOAT32_TOLERANCE)


# An address cannot contain a quote. If the pattern allowed one, a bot named `a 'b`, which has no address, would be
# parsed as the address `'a` and the name `b`.
_ROW_BEFORE_NAME = re.compile(
    r"\s*(?P<user_id>[0-9]{1,10})\s+(?P<time>\S+)\s+[0-9]{1,10}\s+[0-9]{1,10}"
    r"\s+\S+\s+[0-9]{1,10}\s*(?:(?P<address>[^\s']+)\s+)?'"
)
_SPAWN_COUNT = re.compile(r"spawn {1,8}: ([0-9]{1,10})\s*")
_PLAYERS_BEGIN = re.compile(r"-+players-+\s*")
_PLAYERS_END = "#end"
_NO_CHANNEL = "[NoChan]"
_NO_ADDRESS = "unknown"

# Match only at the start of a line: text written by players always follows a prefix.
_OBJECT_START = re.compile(r"^\{", re.MULTILINE)
_REST_OF_LINE = re.compile(r"[ \t\r]*(?:\n|\Z)")
_INT64 = range(-(2**63), 2**63)

_LISTENER_LINE = re.compile(r"\s*\"?(https?://[^\s\"]+)", re.IGNORECASE)

_CVAR_LINE = re.compile(r"\s*\"?([a-z_][a-z0-9_.]{0,127})\"?\s*=\s*(.*)", re.IGNORECASE)
_NUMBER = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)")
_FLOAT32_TOLERANCE = 1e-6
_UNKNOWN_COMMAND = re.compile(r"^[ \t]*Unknown command:? ['\"]?([^\s'\"!]+)", re.MULTILINE | re.IGNORECASE)


def parse_status(text: str) -> tuple[StatusPlayer, ...]:
    """Return the players in the answer to `status`."""
    lines = dropwhile(_is_header, _lines(text, MAX_STATUS_LINES))
    rows = map(_status_row, takewhile(lambda line: not line.startswith(_PLAYERS_END), lines))
    return tuple(islice((row for row in rows if row is not None), MAX_CLIENTS))


def parse_spawn_count(text: str) -> int | None:
    """Return the spawn count in the answer to `status`, from a line such as `spawn : 3`.

    The count is assumed to change with each map load. Recorded answers contain 1 and 3, but there are no two answers
    from before and after the same load.
    """
    found = map(_SPAWN_COUNT.fullmatch, takewhile(_is_header, _lines(text, MAX_STATUS_LINES)))
    return next((int(line[1]) for line in found if line is not None), None)


def parse_status_json(text: str) -> StatusJson | None:
    """Parse the answer to `status_json`."""
    root = _find_object(text, "server")
    server = root["server"] if root else None
    if not isinstance(server, dict):
        return None
    clients = server.get("clients")
    return StatusJson(
        map=_text(server, "map"),
        clients=tuple(islice(_json_clients(clients if isinstance(clients, list) else []), MAX_CLIENTS)),
    )


def parse_log_listeners(text: str) -> tuple[str, ...]:
    """Return the addresses in the answer to `logaddress_list_http`. Each address is at the start of a line."""
    found = map(_LISTENER_LINE.match, _lines(text, MAX_LISTENER_LINES))
    return tuple(islice((listener[1] for listener in found if listener is not None), MAX_LISTENERS))


def parse_get5_status(text: str) -> Get5Status | None:
    """Parse the answer to `get5_status`; None if the server has no match plugin."""
    root = _find_object(text, "gamestate")
    if root is None:
        return None
    match_id, map_number = root.get("matchid"), root.get("map_number")
    return Get5Status(
        state=_text(root, "gamestate") or "unknown",
        # get5 prints the match id as a string, MatchZy as a number.
        match_id=str(match_id) if _is_int64(match_id) else _text(root, "matchid"),
        map_number=map_number if _is_int64(map_number) else 0,
    )


def parse_cvar(text: str, name: str) -> CvarValue | None:
    """Return the printed value of a variable: `mp_maxrounds = 24` in CS2, `"mp_maxrounds" = "24" (…)` before CS2."""
    for line in _lines(text, MAX_CVAR_LINES):
        found = _CVAR_LINE.match(line)
        if found and found[1].lower() == name.lower():
            value = found[2].strip()
            return CvarValue(name, value[1:].partition('"')[0] if value.startswith('"') else value)
    return None


def unknown_commands(text: str) -> tuple[str, ...]:
    """Return the commands that the server reported as unknown."""
    return tuple(_UNKNOWN_COMMAND.findall(text))


def _lines(text: str, limit: int) -> Iterator[str]:
    return (line.removesuffix("\r") for line in text.split("\n", limit)[:limit])


def _is_header(line: str) -> bool:
    return not _PLAYERS_BEGIN.fullmatch(line)


def _status_row(line: str) -> StatusPlayer | None:
    before = _ROW_BEFORE_NAME.match(line, 0, MAX_ROW_CHARS)
    name = line[before.end() :].rstrip() if before else ""
    if before is None or not name.endswith("'"):
        return None
    if before["time"] == _NO_CHANNEL or before["address"] == _NO_ADDRESS:
        return None
    return StatusPlayer(
        user_id=int(before["user_id"]),
        name=name[:-1][:MAX_NAME_CHARS],
        is_bot=before["time"] == "BOT",
    )


def _find_object(text: str, key: str) -> _JsonObject | None:
    """Return the first JSON object that has `key`, begins at the start of a line and ends at the end of a line."""
    # Not strict: otherwise a control character in a player's name would make the whole answer invalid.
    decoder, at = json.JSONDecoder(strict=False), 0
    for _ in range(MAX_OBJECT_STARTS):
        start = _OBJECT_START.search(text, at)
        if start is None:
            break
        found: _JsonObject
        try:
            found, at = decoder.raw_decode(text, start.start())
        except json.JSONDecodeError as exc:
            at = max(exc.pos, start.end())  # continue where parsing failed, so that the total cost stays linear
            continue
        except (ValueError, RecursionError):  # a number with thousands of digits, or thousands of nested lists
            break
        if key in found and _REST_OF_LINE.match(text, at):
            return found
    return None


def _json_clients(entries: list[object]) -> Iterator[StatusJsonClient]:
    for entry in entries:
        if not isinstance(entry, dict):
            continue
        steam_id64, name = _text(entry, "steamid64") or "0", _text(entry, "name") or ""
        if steam_id64 != "0" or name:
            yield StatusJsonClient(steam_id64=steam_id64, name=name[:MAX_NAME_CHARS], is_bot=entry.get("bot") is True)


def _text(entry: _JsonObject, key: str) -> str | None:
    value = entry.get(key)
    if not isinstance(value, str):
        return None
    # JSON can contain lone surrogates, which cannot be encoded later.
    return value.encode("utf-8", errors="replace").decode("utf-8")


def _is_int64(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value in _INT64


def _as_number(value: str) -> float | None:
    word = value.strip().lower()
    word = {"true": "1", "false": "0"}.get(word, word)
    return float(word) if _NUMBER.fullmatch(word) else None
