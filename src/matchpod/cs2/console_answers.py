"""Parse the answers to console commands.

CS2 captures everything it prints while a command runs, so an answer may contain unrelated lines before, between and
after its own. Each parser uses the lines it recognizes and skips the rest. Nothing here raises; None means that the
text is not such an answer. Names are untrusted: a line is parsed up to the name, and the rest of it is the name.
Lines end at "\\n" only, as names may contain other characters that Python treats as line ends.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from enum import StrEnum
from itertools import islice
from typing import TypeGuard

import msgspec

from matchpod.core.model import Side
from matchpod.cs2.steam_id import account_of

MAX_OBJECT_STARTS = 16
"""Maximum number of lines tried as the start of a JSON object. Real answers have one."""

_JsonObject = dict[str, object]


class StatusPlayer(msgspec.Struct, frozen=True, kw_only=True):
    """One row of `status`. It has no Steam id: join with the log by user id."""

    user_id: int
    connected_s: int | None
    ping: int
    loss: int
    state: str
    address: str | None
    name: str
    is_bot: bool


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to `status`; missing values are None."""

    hostname: str | None = None
    version: str | None = None
    build: int | None = None
    map: str | None = None
    humans: int | None = None
    bots: int | None = None
    is_hibernating: bool | None = None
    players: tuple[StatusPlayer, ...] = ()


class StatusJsonClient(msgspec.Struct, frozen=True, kw_only=True):
    """One client of `status_json`. It has no user id and no team."""

    steam_id64: str
    name: str
    is_bot: bool


class StatusJson(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to `status_json`, without empty slots."""

    map: str | None
    is_hibernating: bool | None
    clients: tuple[StatusJsonClient, ...]
    build_version: int | None
    source_revision: str | None

    @property
    def humans(self) -> tuple[StatusJsonClient, ...]:
        """The clients that are individual players."""
        return tuple(
            client for client in self.clients if not client.is_bot and account_of(client.steam_id64) is not None
        )


class LogListener(msgspec.Struct, frozen=True, kw_only=True):
    """An address that the server sends its log to."""

    uri: str
    has_pending_request: bool
    acknowledged_tick: int | None = None


class Get5State(StrEnum):
    """The state of the match plugin."""

    NONE = "none"
    PRE_VETO = "pre_veto"
    VETO = "veto"
    WARMUP = "warmup"
    KNIFE = "knife"
    WAITING_FOR_KNIFE_DECISION = "waiting_for_knife_decision"
    GOING_LIVE = "going_live"
    LIVE = "live"
    PENDING_RESTORE = "pending_restore"
    POST_GAME = "post_game"
    UNKNOWN = "unknown"


class Get5Team(msgspec.Struct, frozen=True, kw_only=True):
    """A team as the match plugin reports it."""

    name: str
    series_score: int
    map_score: int
    side: Side | None
    is_ready: bool


class Get5Status(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to `get5_status`; only the state is always present."""

    state: Get5State
    is_paused: bool
    match_id: str | None
    map_number: int | None
    round_number: int | None
    team1: Get5Team | None
    team2: Get5Team | None


class CvarValue(msgspec.Struct, frozen=True):
    """The value of a console variable, as the server prints it."""

    name: str
    value: str

    def equals(self, expected: str) -> bool:
        """True if the printed value is equivalent to the expected one: `1` is printed as `true`."""
        ours, theirs = _as_number(expected), _as_number(self.value)
        if ours is None or theirs is None:
            return self.value == expected.strip()
        return math.isclose(ours, theirs, rel_tol=_FLOAT32_TOLERANCE)


# A name may contain quotes, so the address must not: a bot called `a 'b` has no address column.
_ROW_BEFORE_NAME = re.compile(
    r"\s*(?P<user_id>[0-9]{1,10})\s+(?P<time>\S+)\s+(?P<ping>[0-9]{1,10})\s+(?P<loss>[0-9]{1,10})"
    r"\s+(?P<state>\S+)\s+[0-9]{1,10}\s*(?:(?P<address>[^\s']+)\s+)?'"
)
_HEADER_LINE = re.compile(r"(hostname|version|players)\s*: (.*)")
_VERSION = re.compile(r"([0-9.]{1,40})/[0-9]{1,10} ([0-9]{1,10})\b")
_COUNTS = re.compile(r"([0-9]{1,6}) humans?, ([0-9]{1,6}) bots?")
_MAP_LINE = re.compile(r"loaded spawngroup\(\s*1\)\s*: SV:\s*\[1: ([^\s|]+)")
_PLAYERS_BEGIN = re.compile(r"-+players-+\s*")
_PLAYERS_END = "#end"
_CLOCK = re.compile(r"(?:([0-9]{1,4}):)?([0-9]{1,4}):([0-9]{2})")
_NO_CHANNEL = "[NoChan]"
_NO_ADDRESS = "unknown"

# At the start of a line only: text written by players always follows a prefix.
_OBJECT_START = re.compile(r"^\{", re.MULTILINE)
_REST_OF_LINE = re.compile(r"[ \t\r]*(?:\n|\Z)")
_INT64 = range(-(2**63), 2**63)

_LISTENER_LINE = re.compile(r"\s*\"?(https?://[^\s\"]+)(.*)", re.IGNORECASE)
_ACKNOWLEDGED = re.compile(r"\s*last acknowledged tick:?\s+([0-9]{1,10})\b")

_CVAR_LINE = re.compile(r"\s*\"?([a-z_][a-z0-9_.]*)\"?\s*=\s*(.*)", re.IGNORECASE)
_NUMBER = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)")
_FLOAT32_TOLERANCE = 1e-6
_UNKNOWN_COMMAND = re.compile(r"^[ \t]*Unknown command:? ['\"]?([^\s'\"!]+)", re.MULTILINE | re.IGNORECASE)

# get5 prints `t`, MatchZy `terrorist`.
_SIDES = {"ct": Side.CT, "t": Side.T, "terrorist": Side.T}
_GET5_STATES = {state.value: state for state in Get5State}


def parse_status(text: str) -> Status | None:
    """Parse the answer to `status`."""
    headers: dict[str, str] = {}
    map_name: str | None = None
    rows: list[StatusPlayer] = []
    has_table = False
    lines = _lines(text)  # one iterator for both loops, so that the second continues after the headers
    for line in lines:
        if _PLAYERS_BEGIN.fullmatch(line):
            has_table = True
            break
        if header := _HEADER_LINE.match(line):
            headers.setdefault(header[1], header[2].strip())
        elif found := _MAP_LINE.match(line):
            map_name = map_name or found[1]
    for line in lines:
        if line.startswith(_PLAYERS_END):
            break
        if row := _status_row(line):
            rows.append(row)
    if not headers and map_name is None and not has_table:
        return None
    return _status(headers, map_name, tuple(rows))


def parse_status_json(text: str) -> StatusJson | None:
    """Parse the answer to `status_json`."""
    root = _find_object(text, "server")
    server = root["server"] if root else None
    if root is None or not isinstance(server, dict):
        return None
    clients = server.get("clients")
    return StatusJson(
        map=_text(server, "map"),
        is_hibernating=_flag(server, "hibernating"),
        clients=tuple(_json_clients(clients if isinstance(clients, list) else [])),
        build_version=_number(root, "build_version"),
        source_revision=_text(root, "build_source_revision"),
    )


def parse_log_listeners(text: str) -> tuple[LogListener, ...]:
    """Parse the answer to `logaddress_list_http`: each listener, followed by a line with its acknowledged tick."""
    listeners: list[LogListener] = []
    for line in _lines(text):
        if found := _LISTENER_LINE.match(line):
            listeners.append(LogListener(uri=found[1], has_pending_request="has pending request" in found[2]))
        elif listeners and (tick := _ACKNOWLEDGED.match(line)):
            listeners[-1] = msgspec.structs.replace(listeners[-1], acknowledged_tick=int(tick[1]))
    return tuple(listeners)


def parse_get5_status(text: str) -> Get5Status | None:
    """Parse the answer to `get5_status`; None without a match plugin."""
    root = _find_object(text, "gamestate")
    if root is None:
        return None
    match_id = root.get("matchid")
    return Get5Status(
        state=_GET5_STATES.get(_text(root, "gamestate") or "", Get5State.UNKNOWN),
        is_paused=_flag(root, "paused") or False,
        # get5 prints a string, MatchZy a number.
        match_id=str(match_id) if _is_int64(match_id) else _text(root, "matchid"),
        map_number=_number(root, "map_number"),
        round_number=_number(root, "round_number"),
        team1=_get5_team(root.get("team1")),
        team2=_get5_team(root.get("team2")),
    )


def parse_cvar(text: str, name: str) -> CvarValue | None:
    """Parse the answer to a variable's name: `mp_maxrounds = 24`, or `"mp_maxrounds" = "24" (…)` before CS2."""
    for line in _lines(text):
        found = _CVAR_LINE.match(line)
        if found and found[1].lower() == name.lower():
            value = found[2].strip()
            return CvarValue(name, value[1:].partition('"')[0] if value.startswith('"') else value)
    return None


def unknown_commands(text: str) -> tuple[str, ...]:
    """Return the commands that the server reported as unknown."""
    return tuple(_UNKNOWN_COMMAND.findall(text))


def _lines(text: str) -> Iterator[str]:
    return (line.removesuffix("\r") for line in text.split("\n"))


def _status(headers: dict[str, str], map_name: str | None, players: tuple[StatusPlayer, ...]) -> Status:
    version = _VERSION.match(headers.get("version", ""))
    population = headers.get("players", "")
    counts = _COUNTS.match(population)
    is_hibernating = None
    if "hibernating)" in population:
        is_hibernating = "(not hibernating)" not in population
    return Status(
        hostname=headers.get("hostname"),
        version=version[1] if version else None,
        build=int(version[2]) if version else None,
        map=map_name,
        humans=int(counts[1]) if counts else None,
        bots=int(counts[2]) if counts else None,
        is_hibernating=is_hibernating,
        players=players,
    )


def _status_row(line: str) -> StatusPlayer | None:
    before = _ROW_BEFORE_NAME.match(line)
    name = line[before.end() :].rstrip() if before else ""
    if before is None or not name.endswith("'"):
        return None
    if before["time"] == _NO_CHANNEL or before["address"] == _NO_ADDRESS:
        return None
    return StatusPlayer(
        user_id=int(before["user_id"]),
        connected_s=_seconds(before["time"]),
        ping=int(before["ping"]),
        loss=int(before["loss"]),
        state=before["state"],
        address=before["address"],
        name=name[:-1],
        is_bot=before["time"] == "BOT",
    )


def _seconds(clock: str) -> int | None:
    found = _CLOCK.fullmatch(clock)
    return int(found[1] or 0) * 3600 + int(found[2]) * 60 + int(found[3]) if found else None


def _find_object(text: str, key: str) -> _JsonObject | None:
    """Return the first JSON object that contains the key and shares no line with other text."""
    # Not strict: a control character in a name must not make the whole answer invalid.
    decoder = json.JSONDecoder(strict=False)
    for start in islice(_OBJECT_START.finditer(text), MAX_OBJECT_STARTS):
        found: _JsonObject
        try:
            found, end = decoder.raw_decode(text, start.start())
        except (ValueError, RecursionError):
            continue
        if key in found and _REST_OF_LINE.match(text, end):
            return found
    return None


def _json_clients(entries: list[object]) -> Iterator[StatusJsonClient]:
    for entry in entries:
        if not isinstance(entry, dict):
            continue
        steam_id64, name = _text(entry, "steamid64") or "0", _text(entry, "name") or ""
        if steam_id64 != "0" or name:
            yield StatusJsonClient(steam_id64=steam_id64, name=name, is_bot=_flag(entry, "bot") or False)


def _get5_team(entry: object) -> Get5Team | None:
    if not isinstance(entry, dict):
        return None
    return Get5Team(
        name=_text(entry, "name") or "",
        series_score=_number(entry, "series_score") or 0,
        map_score=_number(entry, "current_map_score") or 0,
        side=_SIDES.get((_text(entry, "side") or "").lower()),
        is_ready=_flag(entry, "ready") or False,
    )


def _text(entry: _JsonObject, key: str) -> str | None:
    value = entry.get(key)
    if not isinstance(value, str):
        return None
    # JSON can contain lone surrogates, which cannot be encoded later.
    return value.encode("utf-8", errors="replace").decode("utf-8")


def _number(entry: _JsonObject, key: str) -> int | None:
    value = entry.get(key)
    return value if _is_int64(value) else None


def _is_int64(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value in _INT64


def _flag(entry: _JsonObject, key: str) -> bool | None:
    value = entry.get(key)
    return value if isinstance(value, bool) else None


def _as_number(value: str) -> float | None:
    word = value.strip().lower()
    word = {"true": "1", "false": "0"}.get(word, word)
    return float(word) if _NUMBER.fullmatch(word) else None
