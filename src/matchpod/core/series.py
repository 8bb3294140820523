"""Who leads a series, is it decided, and what is played next? Pure functions over the winners of its finished maps.

A tied map counts for nobody. A series ends when a team has the wins it needs, or when all its maps are played. Of a map
whose end was lost on the way, the winner may follow from the final score of the series.
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


def wins_left(series_format: SeriesFormat, score: tuple[int, int], winners: Sequence[Winner]) -> tuple[int, int] | None:
    """The wins of a final score that are on none of the maps with a known winner; None where the two contradict."""
    won1, won2 = maps_won(winners)
    left = score[0] - won1, score[1] - won2
    return left if min(left) >= 0 and sum(left) <= series_format.length - len(winners) else None


def common_winner(left: tuple[int, int], count: int) -> Winner | None:
    """Who won each of so many maps that share these wins; None where they may have gone different ways."""
    shares = {Winner.TEAM1: left[0], Winner.TEAM2: left[1], Winner.TIE: count - sum(left)}
    return next((team for team, share in shares.items() if share == count > 0), None) if sum(left) <= count else None
