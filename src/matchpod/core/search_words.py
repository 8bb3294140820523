"""Split texts into the words of the search index, and a search into the words to look up.

A match is indexed by the words of its external id, teams, labels, SteamIDs of players and cancel reason. A search finds
the matches that have, for each search word, a word that begins with it. A short number must match a whole word. Case
and accents are ignored.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from typing import Final

from cs2_protocol.steam_id import to_id64

MAX_SEARCH: Final = 300
"""Maximum number of characters in a search: more than an external id has."""
MAX_WORDS: Final = 8
"""Maximum number of words in a search. For each match that contains the rarest word, all other words are looked up."""
MAX_WORD: Final = 40
"""Maximum number of characters in a word: more than a UUID without dashes has. Further characters are ignored."""
MAX_WHOLE: Final = 3
"""Maximum number of digits of a number that only matches whole words: table 1 does not find table 12 or 100."""
MAX_OF_MATCH: Final = 100
"""Maximum number of words per match: enough for an external id, two teams, eight labels and the players of a large
deathmatch."""

_WORD: Final = re.compile(r"[^\W_]+")
_PROFILE: Final = re.compile(r"(?:https?://)?(?:www\.)?steamcommunity\.com/profiles/([^/?#\s]+)\S*", re.IGNORECASE)


def words_of(texts: Iterable[str]) -> list[str]:
    """Return the distinct words of these texts in order, with case and accents removed."""
    found: dict[str, None] = {}
    for text in texts:
        for word in _WORD.findall(_folded(text)):
            found.setdefault(word[:MAX_WORD])
    return list(found)


def search_words(text: str) -> tuple[str, ...]:
    """Return the longest words of a search, up to MAX_WORDS. A SteamID may have any form that a roster accepts."""
    texts = []
    for part in text.split():
        profile = _PROFILE.fullmatch(part)
        texts.append(to_id64(profile[1] if profile else part) or part)
    return tuple(sorted(words_of(texts), key=len, reverse=True)[:MAX_WORDS])


def is_whole(word: str) -> bool:
    """True if a search word must match a whole word instead of the beginning of a word."""
    return word.isdigit() and len(word) <= MAX_WHOLE


def _folded(text: str) -> str:
    """Return the text without case, and without accents and other marks on letters."""
    if text.isascii():
        return text.casefold()
    folded = unicodedata.normalize("NFKD", text).casefold()
    return "".join(character for character in folded if unicodedata.category(character) != "Mn")
