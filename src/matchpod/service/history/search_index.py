"""Index matches for search: a job stores the words of a match after its creation, and again after its end.

The job runs in the background, so that creating and ending matches does not wait for it. It also indexes matches of
earlier versions, which had no index.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from matchpod.core.search_words import MAX_OF_MATCH, words_of
from matchpod.core.stored.stored_settings import read_settings
from matchpod.core.views.marks import read_marks
from matchpod.ports import Database, Statement
from matchpod.storage import match_words
from matchpod.storage.match_words import NamedPlayer, UnindexedMatch

PER_TURN: Final = 20
"""Maximum number of matches per transaction. It is small, so that other writers hardly wait."""

_log = logging.getLogger(__name__)


async def index_some(db: Database) -> int:
    """Index the newest matches that need it, at most PER_TURN. Return the number of indexed matches."""
    found = await match_words.unindexed(db, limit=PER_TURN)
    if not found:
        return 0
    players = await match_words.players_of(db, [match.id for match in found])
    statements: list[Statement] = []
    for match in found:
        await asyncio.sleep(0)  # decoding settings takes time; let waiting log posts be handled first
        statements += _words(match, players.get(match.id, []))
    await db.write(statements)
    return len(found)


def _words(match: UnindexedMatch, players: list[NamedPlayer]) -> list[Statement]:
    names = dict.fromkeys((word, player.steam_id) for player in players for word in words_of([player.name]))
    words = match_words_of(match, players)[:MAX_OF_MATCH]
    return [*match_words.insert(match, words), *match_words.insert_names(match.org_id, names)]


def match_words_of(match: UnindexedMatch, players: list[NamedPlayer]) -> list[str]:
    """Return the words of a match, beginning with those that people search for most often."""
    settings, labels = read_settings(match.settings), read_marks(match.marks).labels
    texts = [match.external_match_id or ""]
    texts += [team.name or "" for team in (settings.team1, settings.team2) if team is not None]
    texts += [] if match.reason is None else [match.reason.value]
    texts += [text for label in labels.items() for text in label] if labels else []
    coaches = [coach for team in (settings.team1, settings.team2) if team is not None for coach in team.coaches]
    people = [*settings.roster, *(player.steam_id for player in players), *settings.spectators, *coaches]
    return words_of([*texts, *people])
