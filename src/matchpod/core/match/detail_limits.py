"""Bound what is kept of one map by the settings of its match, so that memory does not depend on what a server logs.

Beyond these limits kills are no longer items of the timeline, and the map is incomplete; far beyond, the match fails.
"""

from __future__ import annotations

from math import ceil
from typing import Final

from matchpod.core.match.timers import Timers
from matchpod.core.model import GameSettings
from matchpod.core.stats.ledger import MIN_KILLS

KILLS_PER_MINUTE: Final = 5
"""Kills and deaths per player: each costs a life. Players of a deathmatch, who come back at once, average about two."""

SLOTS: Final = 64
"""Most players of a server, and of a match that anyone may join."""

MIN_ITEMS: Final = 100_000
"""Timeline items that every map may have: chat and coming players are items too."""


def max_kills(settings: GameSettings) -> int:
    """Return how many kills and deaths of a map are kept: as many as all players could make in all of its time."""
    players = len(settings.roster) or SLOTS
    minutes = settings.deathmatch_minutes or Timers().max_duration_s / 60
    return max(MIN_KILLS, ceil(players * minutes * KILLS_PER_MINUTE))


def max_items(settings: GameSettings) -> int:
    """Return how many timeline items a map may have: all kills that are kept, and a quarter more."""
    return max(MIN_ITEMS, max_kills(settings) * 5 // 4)
