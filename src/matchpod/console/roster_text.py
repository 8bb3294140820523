"""Read players from pasted text: one SteamID or profile URL per line."""

from __future__ import annotations

import re
from typing import Final

import msgspec

from cs2_protocol.steam_id import to_id64
from matchpod.core.requests.text_rules import printable

FORMATS: Final = (
    "SteamID64 (7656119…), profile URL (https://steamcommunity.com/profiles/7656119…), [U:1:N] or STEAM_0:Y:Z"
)

_PROFILE: Final = re.compile(r"(?:https?://)?(?:www\.)?steamcommunity\.com/profiles/([^/?#]+)/?(?:[?#].*)?", re.I)
_NAMED_PROFILE: Final = re.compile(r"(?:https?://)?(?:www\.)?steamcommunity\.com/id/.+", re.I)


class ListedPlayer(msgspec.Struct, frozen=True):
    """One line of a roster. `player` is the SteamID64, or the line itself if it cannot be read."""

    line: int
    text: str
    player: str

    @property
    def fault(self) -> str | None:
        """Why the line cannot be read; None if it can."""
        if to_id64(self.player) is not None:
            return None
        shown = printable(self.text)
        if _NAMED_PROFILE.fullmatch(self.text):
            return f"line {self.line}: “{shown}” does not contain the SteamID. Use the number of the profile."
        return f"line {self.line}: “{shown}” is not a SteamID. Expected: {FORMATS}."


def read_roster(text: str) -> list[ListedPlayer]:
    """Return the lines of a roster; empty lines are skipped, and commas at the end of a line ignored."""
    lines = ((number, line.strip().rstrip(",;").strip()) for number, line in enumerate(text.split("\n"), 1))
    return [ListedPlayer(number, line, _player_of(line)) for number, line in lines if line]


def _player_of(line: str) -> str:
    profile = _PROFILE.fullmatch(line)
    return to_id64(profile[1] if profile else line) or line
