"""Limit the details kept per map by the settings of its match, so that memory does not depend on what a server logs.

Beyond these limits, kills are not added to the timeline and the map is incomplete. Far beyond them, the match fails.
"""

from __future__ import annotations

from math import ceil
from typing import Final

from matchpod.core.match.timers import Timers
from matchpod.core.model import GameSettings
from matchpod.core.stats.ledger import MIN_KILLS

KILLS_PER_MINUTE: Final = 5
"""Maximum rate of kills and deaths per player; each costs a life. In deathmatch, with respawns, the average is two."""

SLOTS: Final = 64
"""Maximum number of players on a server, and in a match without a roster."""

MIN_ITEMS: Final = 100_000
"""Lower bound for the limit of timeline items per map. Chat messages and joining players are items too."""


def max_kills(settings: GameSettings) -> int:
    """Return the maximum number of kills and deaths kept per map: what its players can reach in the longest match."""
    players = len(settings.roster) or SLOTS
    minutes = settings.deathmatch_minutes or Timers().max_duration_s / 60
    return max(MIN_KILLS, ceil(players * minutes * KILLS_PER_MINUTE))


def max_items(settings: GameSettings) -> int:
    """Return the maximum number of timeline items per map: the maximum number of kills, and a quarter more."""
    return max(MIN_ITEMS, max_kills(settings) * 5 // 4)
