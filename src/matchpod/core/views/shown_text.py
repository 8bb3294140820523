"""Format players and texts for callers, in timelines and rounds. Names are untrusted, and some players have no id."""

from __future__ import annotations

import re
from typing import Final

from cs2_protocol.game import PlayerId, Team, is_human
from matchpod.core.match.match import Match
from matchpod.core.views.timeline_items import Person

MAX_TEXT_CHARS: Final = 256
"""Maximum number of characters in names, chat and server texts: twice as many as the game lets players type."""

_BOT: Final = "BOT:"
_UNSAFE: Final = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
"""Control characters, line separators and lone surrogates."""
_REPLACEMENT: Final = "\N{REPLACEMENT CHARACTER}"

_ANONYMOUS: Final = Person(steam_id=None, name="", team=None)
"""The form of an unlisted player who has not been kicked yet, and of a player whom the log does not identify."""


def person_of(match: Match, player_id: PlayerId, name: str, team: Team | None) -> Person:
    """Return a player as shown to callers. A bot has no id; an unlisted or unidentified player is anonymous."""
    if is_human(player_id):
        if match.presence.is_unlisted(player_id):
            return _ANONYMOUS
        return Person(steam_id=player_id, name=sanitize(name), team=team)
    if player_id.startswith(_BOT):
        return Person(steam_id=None, name=sanitize(player_id.removeprefix(_BOT)), team=team)
    return _ANONYMOUS


def sanitize(text: str) -> str:
    """Shorten an untrusted text to MAX_TEXT_CHARS, and replace its unsafe characters."""
    cut = text[:MAX_TEXT_CHARS]
    return cut if cut.isprintable() else _UNSAFE.sub(_REPLACEMENT, cut)
