"""Whom does an anti-cheat plugin suspect? Three kinds of JSON posts and one kind of log line, never raising.

Detections are leads for people. Names are hostile: fields that stand before the name are read from the front, fields
behind it from the back, so a name that imitates them can hide its bearer from us at most, never accuse another.
"""

from __future__ import annotations

import re

import msgspec

from matchpod.core.model import PlayerId

MAX_REPORT_BYTES = 1024 * 1024
"""A batch of observations comes every 30 s with the telemetry of every player, about 5 KB each."""

MAX_DETECTIONS = 256
"""More at once are a plugin gone wrong; the rest is not read."""

MAX_TEXT_CHARS = 500
"""The longest reason a plugin writes has about 150 characters."""

UNKNOWN_WEAPON = "unknown"

_DETECTION_SOURCE = "detection_module"

_TBAC_CONTENT = re.compile(
    r".*?```\s*Detection: (?P<kind>[^\n]*)\nWeapon: (?P<weapon>[^\n]*)\nInfo: (?P<reason>[^\n]*)\n\n"
    r"Name: (?P<name>.*)\nSteamID: (?P<id>[^\n]*)\nTime: [^\n]*```\s*",
    re.DOTALL,
)
_SCHWARPER_CONTENT = re.compile(
    r"```\s*Server IP: [^\n]*\nPlayer: (?P<name>.*)\nSteamID: (?P<id>[^\n]*)\nCheat Type: (?P<kind>[^\n]*)"
    r"(?:\nDetails: (?P<reason>[^\n]*))?\n```\s*",
    re.DOTALL,
)

# Before the tag: nothing, the time and level of the console, or those of a log file.
_TBAC_PREFIX = r"(?:\d\d:\d\d:\d\d \[\w+\] \(plugin:[^()\[\]]*\) |\d{4}-\d\d-\d\d [0-9:.+ -]+ \[\w+\] plugin:[^\[\]]* )?"
_TBAC_LINES = (
    re.compile(_TBAC_PREFIX + r"\[TBAC\] Suspicious observation -> (?P<name>.+) \| (?P<kind>\w+) \| (?P<reason>.*)"),
    re.compile(
        _TBAC_PREFIX + r"\[TBAC\] (?P<name>.+) (?:is suspected of|was kicked for|was banned for) using "
        r"(?P<kind>\w+) \((?P<reason>.*)\)"
    ),
    re.compile(
        _TBAC_PREFIX + r"\[TBAC\] (?P<name>.+): Suspicious (?P<kind>\w+) -> "
        r"(?P<reason>[^|]*?) \| weapon: (?P<weapon>\w+)"
    ),
)


class PluginDetection(msgspec.Struct, frozen=True, kw_only=True):
    """A plugin's suspicion. `player_id` is None when it knew only a name; `kind` is the plugin's own word."""

    player_id: PlayerId | None
    name: str
    kind: str
    reason: str
    weapon: str = UNKNOWN_WEAPON
    round_number: int | None = None


_Fields = dict[str, object]


def read_detections(body: bytes) -> list[PluginDetection]:
    """The detections of a post in any of the known forms; what names no player or no kind is left out."""
    if len(body) > MAX_REPORT_BYTES:
        return []
    try:
        decoded = msgspec.json.decode(body)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return []
    if isinstance(decoded, list):
        return _all(_own, decoded)
    if not isinstance(decoded, dict):
        return []
    if isinstance(decoded.get("Observations"), list):
        return _all(_observed, decoded["Observations"])
    if "content" in decoded:
        return _all(_webhook, [decoded])
    return _all(_own, [decoded])
