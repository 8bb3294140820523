"""Limit the details stored per map by the settings of the match, so that the server's log cannot exhaust the memory.

Kills above the limit are not added to the timeline, and the map is marked as incomplete. Far above the limit, the match
fails.
"""

from __future__ import annotations

from math import ceil
from typing import Final

from matchpod.core.match.timers import Timers
from matchpod.core.model import GameSettings
from matchpod.core.stats.ledger import MIN_KILLS

KILLS_PER_MINUTE: Final = 5
"""Upper bound for the kills and deaths of one player per minute. In deathmatch, where players respawn, the average is
two."""

SLOTS: Final = 64
"""Maximum number of players on a server. A match without a roster is assumed to have as many players."""

MIN_ITEMS: Final = 100_000
"""Minimum value of the limit for timeline items per map. Chat messages and joining players are items too."""


def max_kills(settings: GameSettings) -> int:
    """Return the maximum number of kills and deaths stored per map: as many as are possible in the longest match."""
    players = len(settings.roster) or SLOTS
    minutes = settings.deathmatch_minutes or Timers().max_duration_s / 60
    return max(MIN_KILLS, ceil(players * minutes * KILLS_PER_MINUTE))


def max_items(settings: GameSettings) -> int:
    """Return the maximum number of timeline items per map: the maximum number of kills and deaths, plus a quarter."""
    return max(MIN_ITEMS, max_kills(settings) * 5 // 4)
