"""Read the settings of a match that any version has stored."""

from __future__ import annotations

from typing import Final

from matchpod.core.model import GameSettings, MatchType
from matchpod.core.stored.stored_json import StoredReader

UNKNOWN_MAP: Final = "unknown"

_SETTINGS: Final = StoredReader[GameSettings](GameSettings)


def read_settings(stored: bytes) -> GameSettings:
    """Return the settings. An unknown match type becomes `custom`, about which nothing is assumed."""
    return _SETTINGS.read(stored, match_type=MatchType.CUSTOM.value, maps=[UNKNOWN_MAP])
