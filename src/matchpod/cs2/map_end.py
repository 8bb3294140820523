"""How a map ends: the reports of its end, and the scores that win it."""

from __future__ import annotations

import msgspec

from matchpod.core.model import GameSettings, MatchType, Team

_DEFAULT_ROUNDS = {MatchType.COMPETITIVE: 24, MatchType.WINGMAN: 16}
_OVERTIME_ROUNDS = 6


class EndReport(msgspec.Struct, frozen=True, kw_only=True):
    """A report of a map's end: `Game Over` has the score by side, the plugin by team or only the winner."""

    at_ms: int
    by_side: tuple[int, int] | None = None
    by_team: tuple[int, int] | None = None
    winner: Team | None = None

    def score_of_winner(self, last: tuple[int, int]) -> tuple[int, int] | None:
        """Return the last score of the log if it agrees with the winner; a score is never invented."""
        one, two = last
        return last if one != two and self.winner is (Team.TEAM1 if one > two else Team.TEAM2) else None


def regulation_rounds(settings: GameSettings) -> int | None:
    """Return the rounds of a map without overtime; None if the mode has no winning score."""
    default = _DEFAULT_ROUNDS.get(settings.match_type)
    return default and (settings.max_rounds or default)


def is_won(score: tuple[int, int], max_rounds: int | None) -> bool:
    """True if this score wins a map with these regulation rounds, or an overtime of it."""
    if max_rounds is None:
        return False
    overtimes = -(-max(sum(score) - max_rounds, 0) // _OVERTIME_ROUNDS)
    return max(score) == max_rounds // 2 + overtimes * _OVERTIME_ROUNDS // 2 + 1
