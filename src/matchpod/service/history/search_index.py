"""Keep the words that matches are found by: a job stores those of new matches, and again when a match has ended.

It works after the fact, so that creating and ending matches waits for nothing, and stores the words of matches that
earlier versions have created in the same way.
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
"""Matches per transaction: few enough that other writers hardly wait."""

_log = logging.getLogger(__name__)


async def index_some(db: Database) -> int:
    """Store the words of the newest matches that lack them; return how many there were, at most PER_TURN."""
    found = await match_words.unindexed(db, limit=PER_TURN)
    if not found:
        return 0
    players = await match_words.players_of(db, [match.id for match in found])
    statements: list[Statement] = []
    for match in found:
        await asyncio.sleep(0)  # reading settings takes time: log posts go first
        statements += _words(match, players.get(match.id, []))
    await db.write(statements)
    return len(found)


def _words(match: UnindexedMatch, players: list[NamedPlayer]) -> list[Statement]:
    names = dict.fromkeys((word, one.steam_id) for one in players for word in words_of([one.name]))
    words = match_words_of(match, players)[:MAX_OF_MATCH]
    return [*match_words.insert(match, words), *match_words.insert_names(match.org_id, names)]


def match_words_of(match: UnindexedMatch, players: list[NamedPlayer]) -> list[str]:
    """Return the words of a match, those that people look for most often first."""
    settings, labels = read_settings(match.settings), read_marks(match.marks).labels
    texts = [match.external_match_id or ""]
    texts += [team.name or "" for team in (settings.team1, settings.team2) if team is not None]
    texts += [] if match.reason is None else [match.reason.value]
    texts += [text for label in labels.items() for text in label] if labels else []
    coaches = [coach for team in (settings.team1, settings.team2) if team is not None for coach in team.coaches]
    people = [*settings.roster, *(one.steam_id for one in players), *settings.spectators, *coaches]
    return words_of([*texts, *people])
