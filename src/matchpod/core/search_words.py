"""The words that matches are found by, and those of a search.

A match has the words of its external id, its teams, its labels, the SteamIDs of its players and why it was canceled. A
search finds the matches that have, for each of its words, one that begins with it; a short number is a whole word. Case
and accents do not count.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from typing import Final

from cs2_protocol.steam_id import to_id64

MAX_SEARCH: Final = 300
"""Characters of a search: more than an external id has."""
MAX_WORDS: Final = 8
"""Words of a search: each is looked up for every match that the rarest one finds."""
MAX_WORD: Final = 40
"""Characters of a word that count: more than a UUID without dashes has."""
MAX_WHOLE: Final = 3
"""Digits of a number that is a whole word: table 1 is neither table 12 nor of 2026."""
MAX_OF_MATCH: Final = 100
"""Words of a match: of an external id, two teams, eight labels, and the players of a large deathmatch."""

_WORD: Final = re.compile(r"[^\W_]+")
_PROFILE: Final = re.compile(r"(?:https?://)?(?:www\.)?steamcommunity\.com/profiles/([^/?#\s]+)\S*", re.IGNORECASE)


def words_of(texts: Iterable[str]) -> list[str]:
    """Return the words of some texts as they are compared, each once, in their order."""
    found: dict[str, None] = {}
    for text in texts:
        for word in _WORD.findall(_folded(text)):
            found.setdefault(word[:MAX_WORD])
    return list(found)


def search_words(text: str) -> tuple[str, ...]:
    """Return the words of a search that count, the longest; a player may be given in any form that a roster accepts."""
    texts = []
    for part in text.split():
        profile = _PROFILE.fullmatch(part)
        texts.append(to_id64(profile[1] if profile else part) or part)
    return tuple(sorted(words_of(texts), key=len, reverse=True)[:MAX_WORDS])


def is_whole(word: str) -> bool:
    """True if a word of a search stands for itself only, and not for all that begin with it."""
    return word.isdigit() and len(word) <= MAX_WHOLE


def _folded(text: str) -> str:
    """Return the text in the form that is compared: without case, and without marks on letters."""
    plain = text if text.isascii() else unicodedata.normalize("NFKD", text)
    folded = plain.casefold()
    return folded if text.isascii() else "".join(one for one in folded if unicodedata.category(one) != "Mn")
