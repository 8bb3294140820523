"""Read players from pasted text with SteamIDs or profile URLs. It may also contain names, as in spreadsheets."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import msgspec

from cs2_protocol.steam_id import to_id64
from matchpod.core.requests.text_rules import printable

FORMATS: Final = (
    "SteamID64 (7656119…), profile URL (https://steamcommunity.com/profiles/7656119…), [U:1:N] or STEAM_0:Y:Z"
)

_SEPARATORS: Final = re.compile(r"[\s,;|]+")
_QUOTES: Final = "\"'<>()"
_PROFILE: Final = re.compile(r"(?:https?://)?(?:www\.)?steamcommunity\.com/profiles/([^/?#]+)/?(?:[?#].*)?", re.I)
_NAMED_PROFILE: Final = re.compile(r"(?:https?://)?(?:www\.)?steamcommunity\.com/id/.+", re.I)
_LIKE_AN_ID: Final = re.compile(
    r"7656[0-9]{6,}|[0-9]{15,}|\[?U:[0-9]|STEAM_[0-9]|.*steamcommunity\.com/profiles/", re.I
)
"""Matches texts that are meant as a player id. If the id is invalid, this is a fault: the text is not ignored as a
name."""
_HEADINGS: Final = frozenset({
    "#", "id", "ids", "steam", "steamid", "steamids", "steamid64", "steam64", "steam_id", "name", "names", "nick",
    "nickname", "player", "players", "profile", "url", "team", "role", "captain",
})  # fmt: skip


class ListedPlayer(msgspec.Struct, frozen=True):
    """A player of a roster. `player` is the SteamID64, or the original text if it is not a valid id."""

    line: int
    text: str
    player: str

    @property
    def fault(self) -> str | None:
        """Why the text is not a valid player; None if it is valid."""
        if to_id64(self.player) is not None:
            return None
        shown = printable(self.text)
        if _NAMED_PROFILE.fullmatch(self.text):
            return (
                f"line {self.line}: “{shown}” does not contain the SteamID, and names of profiles cannot be looked up"
                " here. Use the number of the profile, 7656119…"
            )
        return f"line {self.line}: “{shown}” is not a SteamID. Expected: {FORMATS}."


def read_roster(text: str) -> list[ListedPlayer]:
    """Return the players in the text, in order.

    A line may list several players. Other parts of the line, such as names, are ignored. A line without players is a
    fault, unless the line is empty or the heading of a table.
    """
    players: list[ListedPlayer] = []
    is_first = True
    for number, raw in enumerate(text.split("\n"), 1):
        line = raw.strip().rstrip(",;").strip()
        if not line:
            continue
        found = list(_players_of(number, line))
        if found or not (is_first and _is_heading(line)):
            players += found or [ListedPlayer(number, line, line)]
        is_first = False
    return players


def _players_of(number: int, line: str) -> Iterator[ListedPlayer]:
    for cell in _SEPARATORS.split(line):
        text = cell.strip(_QUOTES)
        profile = _PROFILE.fullmatch(text)
        player = to_id64(profile[1] if profile else text)
        if player is not None or _LIKE_AN_ID.match(text):
            yield ListedPlayer(number, text, player or text)


def _is_heading(line: str) -> bool:
    cells = [cell.strip(_QUOTES).lower() for cell in _SEPARATORS.split(line) if cell]
    return len(cells) > 1 and _HEADINGS.issuperset(cells)
