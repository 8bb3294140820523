"""Whom does an anti-cheat plugin suspect? Three kinds of JSON posts and one kind of log line, never raising.

Detections are leads for people. Names are hostile: in free text the longest possible name is taken, so a name that
imitates the text around it can hide its bearer from us at most, and never accuses another player.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec

from matchpod.core.model import PlayerId
from matchpod.cs2.steam_id import to_id64

MAX_REPORT_BYTES = 1024 * 1024
"""A batch of observations comes every 30 s with the telemetry of every player, a few KB each."""

MAX_DETECTIONS = 256
"""More at once are a plugin gone wrong; the rest is not read."""

MAX_FREE_TEXT_CHARS = 4000
"""A webhook message has 2000 characters at most, a log line fewer."""

MAX_TEXT_CHARS = 500
"""The longest reason a plugin writes has about 150 characters."""

MAX_ROUND = 1000
"""Longer than any overtime; a larger number counts something else."""

UNKNOWN_WEAPON = "unknown"
"""What CheatSuspected calls a weapon nobody named."""

# The other sources of a batch are statistics: one of them lists the victims of flashbangs.
_DETECTION_SOURCE = "detection_module"

# TB Anti-Cheat: the name stands before the id.
_TBAC_MESSAGE = re.compile(
    r"(?:\*\*[^\n]*\n)?```\s*Detection: (?P<kind>[^\n]*)\nWeapon: (?P<weapon>[^\n]*)\nInfo: (?P<reason>[^\n]*)\n\n"
    r"Name: (?P<name>.*)\nSteamID: (?P<id>[^\n]*)\nTime: [^\n]*```\s*",
    re.DOTALL,
)
# schwarper's AntiCheat: the details are left out when there are none.
_ANTICHEAT_MESSAGE = re.compile(
    r"```\s*Server IP: [^\n]*\nPlayer: (?P<name>.*)\nSteamID: (?P<id>[^\n]*)\nCheat Type: (?P<kind>[^\n]*)"
    r"(?:\nDetails: (?P<reason>[^\n]*))?\n```\s*",
    re.DOTALL,
)

# Before the tag: nothing, or the time, level and plugin of the console or of a log file.
_LINE_PREFIX = r"(?:\d\d:\d\d:\d\d \[\w+\] \(plugin:[^()\[\]]*\) |\d{4}-\d\d-\d\d [\d:.+ -]+ \[\w+\] plugin:[^\[\]]* )?"
_LINES = (
    # First, for a player may be called `Suspicious observation -> someone | Aimbot | x`.
    re.compile(
        _LINE_PREFIX + r"\[TBAC\] (?P<name>.+) (?:is suspected of|was kicked for|was banned for) using "
        r"(?P<kind>\w+) \((?P<reason>.*)\)"
    ),
    re.compile(_LINE_PREFIX + r"\[TBAC\] Suspicious observation -> (?P<name>.+) \| (?P<kind>\w+) \| (?P<reason>.*)"),
)

_Fields = dict[str, object]


class PluginDetection(msgspec.Struct, frozen=True, kw_only=True):
    """A plugin's suspicion, in its own words; `player_id` is None when it knew only a name.

    `round_number` is the plugin's count since the map was loaded, warm-up and knife rounds included.
    """

    player_id: PlayerId | None
    name: str
    kind: str
    reason: str
    weapon: str = UNKNOWN_WEAPON
    round_number: int | None = None


def read_detections(body: bytes) -> list[PluginDetection]:
    """The detections of a post in any known form; what names no player or no kind is left out."""
    if len(body) > MAX_REPORT_BYTES:
        return []
    try:
        decoded = msgspec.json.decode(body)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return []
    if isinstance(decoded, list):
        return _read_each(decoded, _read_own)
    if not isinstance(decoded, dict):
        return []
    observations = decoded.get("Observations")
    if isinstance(observations, list):
        return _read_each(observations, _read_observation)
    return _read_each([decoded], _read_webhook if "content" in decoded else _read_own)


def read_log_line(line: str) -> PluginDetection | None:
    """The detection in a line of the plugin's own log; only a name is known, to be looked up among the players.

    Never give it chat: anybody can write such a line there. A first suspicion, which the plugin itself does not yet
    count as a detection, is None.
    """
    for pattern in _LINES:
        found = pattern.fullmatch(line.rstrip("\r\n")) if len(line) <= MAX_FREE_TEXT_CHARS else None
        if found:
            return _detection(None, name=found["name"], kind=found["kind"], reason=found["reason"])
    return None


def _read_each(entries: list[object], read: Callable[[_Fields], PluginDetection | None]) -> list[PluginDetection]:
    found = (read(entry) for entry in entries if isinstance(entry, dict))
    return [detection for detection in found if detection is not None][:MAX_DETECTIONS]


def _read_own(entry: _Fields) -> PluginDetection | None:
    """`{"steamId", "type", "reason", "weapon"}`, and if known `name` and `roundNumber`."""
    return _named(
        entry.get("steamId"),
        name=_text(entry, "name"),
        kind=_text(entry, "type"),
        reason=_text(entry, "reason"),
        weapon=_text(entry, "weapon"),
        round_number=_round(entry, "roundNumber"),
    )


def _read_observation(entry: _Fields) -> PluginDetection | None:
    if entry.get("Source") != _DETECTION_SOURCE or entry.get("IsBot") is True:
        return None
    return _named(
        entry.get("SteamID"),
        name=_text(entry, "PlayerName"),
        kind=_text(entry, "Kind"),
        reason=_text(entry, "Summary"),
        weapon=_text(entry, "Weapon"),
        round_number=_round(entry, "RoundNumber"),
    )


def _read_webhook(entry: _Fields) -> PluginDetection | None:
    """A message for a chat channel; plugins on Windows write CRLF."""
    content = entry.get("content")
    if not isinstance(content, str) or len(content) > MAX_FREE_TEXT_CHARS:
        return None
    text = content.replace("\r\n", "\n")
    found = _TBAC_MESSAGE.fullmatch(text) or _ANTICHEAT_MESSAGE.fullmatch(text)
    if found is None:
        return None
    given = found.groupdict("")
    reason = given["reason"].strip()
    if reason.startswith("(") and reason.endswith(")"):
        reason = reason[1:-1]
    return _named(
        given["id"].strip(), name=given["name"], kind=given["kind"], reason=reason, weapon=given.get("weapon", "")
    )


def _named(
    steam_id: object, *, name: str, kind: str, reason: str, weapon: str, round_number: int | None = None
) -> PluginDetection | None:
    """A detection of a player with an id; None when the id names nobody."""
    player_id = to_id64(str(steam_id)) if isinstance(steam_id, str | int) else None
    if player_id is None:
        return None
    return _detection(player_id, name=name, kind=kind, reason=reason, weapon=weapon, round_number=round_number)


def _detection(
    player_id: PlayerId | None, *, name: str, kind: str, reason: str, weapon: str = "", round_number: int | None = None
) -> PluginDetection | None:
    kind = kind.strip()[:MAX_TEXT_CHARS]
    if not kind:
        return None
    return PluginDetection(
        player_id=player_id,
        name=name[:MAX_TEXT_CHARS],
        kind=kind,
        reason=reason.strip()[:MAX_TEXT_CHARS] or kind,
        # The game's log names weapons without the prefix of their class.
        weapon=weapon.strip().removeprefix("weapon_")[:MAX_TEXT_CHARS] or UNKNOWN_WEAPON,
        round_number=round_number,
    )


def _text(entry: _Fields, key: str) -> str:
    given = entry.get(key)
    return given if isinstance(given, str) else ""


def _round(entry: _Fields, key: str) -> int | None:
    given = entry.get(key)
    return given if type(given) is int and 1 <= given <= MAX_ROUND else None
