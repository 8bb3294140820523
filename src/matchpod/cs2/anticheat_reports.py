"""Parse detections of anti-cheat plugins from three kinds of JSON posts, without raising.

Detections are hints for human review. Names are untrusted. In free text, the longest possible name is read as the
player's name. A player whose name imitates the surrounding text can thus hide their own detection, but not accuse
another player.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec

from cs2_protocol.game import PlayerId
from cs2_protocol.raw_fields import RawFields, read_fields, read_items
from cs2_protocol.steam_id import to_id64

MAX_ENTRIES = 5_000
"""Maximum number of entries read per post. A batch has a few entries per player."""

MAX_REPORT_BYTES = 1024 * 1024
"""Maximum size in bytes of a post that is parsed. A batch is sent every 30 s, with a few KB of telemetry per player."""

MAX_DETECTIONS = 256
"""Maximum number of detections read per post. More indicate a faulty plugin."""

MAX_FREE_TEXT_CHARS = 4000
"""Maximum number of characters in a message that is parsed. A webhook message has at most 2,000 characters."""

MAX_TEXT_CHARS = 500
"""Maximum length of stored texts; longer texts are cut. The longest reason that a plugin writes has about 150
characters."""

UNKNOWN_WEAPON = "unknown"
"""The weapon of a detection for which the plugin did not send a weapon."""

# A batch also contains entries of other sources, such as statistics of players blinded by flashbangs.
_DETECTION_SOURCE = "detection_module"

# Messages of TB Anti-Cheat have the name before the id.
_TBAC_MESSAGE = re.compile(
    r"(?:\*\*[^\n]*\n)?```\s*Detection: (?P<kind>[^\n]*)\nWeapon: (?P<weapon>[^\n]*)\nInfo: (?P<reason>[^\n]*)\n\n"
    r"Name: (?P<name>.*)\nSteamID: (?P<id>[^\n]*)\nTime: [^\n]*```\s*",
    re.DOTALL,
)
# Messages of schwarper's AntiCheat may lack the details line.
_ANTICHEAT_MESSAGE = re.compile(
    r"```\s*Server IP: [^\n]*\nPlayer: (?P<name>.*)\nSteamID: (?P<id>[^\n]*)\nCheat Type: (?P<kind>[^\n]*)"
    r"(?:\nDetails: (?P<reason>[^\n]*))?\n```\s*",
    re.DOTALL,
)


class PluginDetection(msgspec.Struct, frozen=True, kw_only=True):
    """A detection as the plugin reported it."""

    player_id: PlayerId
    name: str
    kind: str
    reason: str
    weapon: str = UNKNOWN_WEAPON


def read_detections(body: bytes) -> list[PluginDetection]:
    """Return the detections of a post in any known format, at most MAX_DETECTIONS; invalid entries are skipped."""
    if len(body) > MAX_REPORT_BYTES:
        return []
    try:
        decoded = read_fields(body)
    except ValueError:
        return []
    if decoded is None:
        return _read_each(read_items(body, MAX_ENTRIES) or [], _read_own)
    observations = decoded.items("Observations", MAX_ENTRIES)
    if observations is not None:
        return _read_each(observations, _read_observation)
    return _read_each([decoded], _read_webhook if "content" in decoded else _read_own)


def _read_each(entries: list[RawFields], read: Callable[[RawFields], PluginDetection | None]) -> list[PluginDetection]:
    found = (read(entry) for entry in entries)
    return [detection for detection in found if detection is not None][:MAX_DETECTIONS]


def _read_own(entry: RawFields) -> PluginDetection | None:
    """Parse our own format: `{"steamId", "type", "reason", "weapon"}` and optionally `name`."""
    return _detection(
        entry.text_or_integer("steamId"),
        name=_text(entry, "name"),
        kind=_text(entry, "type"),
        reason=_text(entry, "reason"),
        weapon=_text(entry, "weapon"),
    )


def _read_observation(entry: RawFields) -> PluginDetection | None:
    if entry.text("Source") != _DETECTION_SOURCE or entry.is_true("IsBot"):
        return None
    return _detection(
        entry.text_or_integer("SteamID"),
        name=_text(entry, "PlayerName"),
        kind=_text(entry, "Kind"),
        reason=_text(entry, "Summary"),
        weapon=_text(entry, "Weapon"),
    )


def _read_webhook(entry: RawFields) -> PluginDetection | None:
    """Parse a webhook message, which the plugin wrote for a chat channel. Plugins on Windows write CRLF."""
    content = entry.text("content")
    if content is None or len(content) > MAX_FREE_TEXT_CHARS:
        return None
    text = content.replace("\r\n", "\n")
    found = _TBAC_MESSAGE.fullmatch(text) or _ANTICHEAT_MESSAGE.fullmatch(text)
    if found is None:
        return None
    groups = found.groupdict("")
    reason = groups["reason"].strip()
    if reason.startswith("(") and reason.endswith(")"):
        reason = reason[1:-1]
    return _detection(
        groups["id"].strip(), name=groups["name"], kind=groups["kind"], reason=reason, weapon=groups.get("weapon", "")
    )


def _detection(steam_id: str | None, *, name: str, kind: str, reason: str, weapon: str) -> PluginDetection | None:
    """Return a detection; None if the id is not a player's or the kind is empty."""
    player_id = to_id64(steam_id or "")
    kind = kind.strip()[:MAX_TEXT_CHARS]
    if player_id is None or not kind:
        return None
    return PluginDetection(
        player_id=player_id,
        name=name[:MAX_TEXT_CHARS],
        kind=kind,
        reason=reason.strip()[:MAX_TEXT_CHARS] or kind,
        # The game's log has the names of weapons without this prefix.
        weapon=weapon.strip().removeprefix("weapon_")[:MAX_TEXT_CHARS] or UNKNOWN_WEAPON,
    )


def _text(entry: RawFields, key: str) -> str:
    return entry.text(key) or ""
