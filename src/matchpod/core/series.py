"""Who leads a series, is it decided, and what is played next? Pure functions over the winners of its finished maps.

A tied map counts for nobody. A series ends when a team has the wins it needs, or when all its maps are played.
"""

from __future__ import annotations

from collections.abc import Sequence

from matchpod.core.model import SeriesFormat, Winner


def maps_won(winners: Sequence[Winner]) -> tuple[int, int]:
    """Maps won by team1 and by team2."""
    return sum(w is Winner.TEAM1 for w in winners), sum(w is Winner.TEAM2 for w in winners)


def is_decided(series_format: SeriesFormat, winners: Sequence[Winner]) -> bool:
    """True when no further map is played."""
    return len(winners) >= series_format.length or max(maps_won(winners)) >= series_format.wins_needed


def winner(series_format: SeriesFormat, winners: Sequence[Winner]) -> Winner | None:
    """The team with more maps, or a tie; None while the series is undecided."""
    if not is_decided(series_format, winners):
        return None
    return Winner.of(*maps_won(winners))
