"""Compute the score of a series and whether it is decided, from the winners of its finished maps.

A tied map counts for neither team. A series ends when a team has the wins it needs, or when all maps are played. Maps
that a team was given before the series count as won, and are not played. If the log lines about the end of a map were
lost, its winner can sometimes be inferred from the final score of the series.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from matchpod.core.model import GameSettings, MapsWon, SeriesFormat, Winner


class SeriesRules(msgspec.Struct, frozen=True):
    """The format of a series, and the number of maps that each team was given as won before it."""

    format: SeriesFormat
    given: MapsWon = MapsWon()

    @staticmethod
    def of(settings: GameSettings) -> SeriesRules:
        """Return the rules of the series of a match."""
        return SeriesRules(settings.series_format, settings.maps_won)

    @property
    def map_count(self) -> int:
        """The maximum number of maps to play."""
        return self.format.length_after(self.given)

    def score(self, winners: Sequence[Winner]) -> tuple[int, int]:
        """Return the score of the series after maps with these winners."""
        return self.given.plus(*maps_won(winners))

    def is_decided(self, winners: Sequence[Winner]) -> bool:
        """True if no further map has to be played."""
        return len(winners) >= self.map_count or max(self.score(winners)) >= self.format.wins_needed

    def unassigned_wins(self, score: tuple[int, int], winners: Sequence[Winner]) -> tuple[int, int] | None:
        """Return each team's wins in a final score beyond these map winners; None if the winners contradict it."""
        won1, won2 = self.score(winners)
        wins = score[0] - won1, score[1] - won2
        return wins if min(wins) >= 0 and sum(wins) <= self.map_count - len(winners) else None


def maps_won(winners: Sequence[Winner]) -> tuple[int, int]:
    """Return the number of maps won by team1 and by team2."""
    return sum(w is Winner.TEAM1 for w in winners), sum(w is Winner.TEAM2 for w in winners)


def common_winner(wins: tuple[int, int], count: int) -> Winner | None:
    """Return the winner that all of `count` maps must have to explain these wins; None if their winners may differ."""
    shares = {Winner.TEAM1: wins[0], Winner.TEAM2: wins[1], Winner.TIE: count - sum(wins)}
    return next((team for team, share in shares.items() if share == count > 0), None) if sum(wins) <= count else None
