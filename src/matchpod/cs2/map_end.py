"""How a map ends: the reports of its end, and the scores that end it."""

from __future__ import annotations

import msgspec

from cs2_protocol.game import Team
from matchpod.core.model import GameSettings, MatchType

_DEFAULT_ROUNDS = {MatchType.COMPETITIVE: 24, MatchType.WINGMAN: 16, MatchType.CASUAL: 15, MatchType.RETAKES: 8}
"""From the game's own config files of the modes."""

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


class EndRules(msgspec.Struct, frozen=True, kw_only=True):
    """Which scores end a map. `max_rounds` is without overtime; None if rounds do not end it."""

    max_rounds: int | None = None
    can_clinch: bool = True
    has_overtime: bool = True

    @staticmethod
    def of(settings: GameSettings) -> EndRules:
        """Return the rules of a match: as requested, else those of its mode."""
        if settings.match_type is MatchType.DEATHMATCH:
            return EndRules()
        cvars = {setting.name.lower(): setting.value for setting in settings.custom_cvars}
        rounds = cvars.get("mp_maxrounds", "")
        default = int(rounds) if rounds.isdecimal() else _DEFAULT_ROUNDS.get(settings.match_type)
        return EndRules(
            max_rounds=settings.max_rounds or default or None,
            can_clinch=cvars.get("mp_match_can_clinch", "1") not in ("0", "false"),
            # Without it, a map with a series may be a tie; that is known only from its `Game Over`.
            has_overtime=settings.match_type.has_series or cvars.get("mp_overtime_enable", "0") not in ("0", "false"),
        )

    def is_end(self, score: tuple[int, int]) -> bool:
        """True if a map ends with this score: it is won, in regulation or overtime, or all rounds are played."""
        if self.max_rounds is None:
            return False
        over = sum(score) - self.max_rounds
        if over >= 0 and not self.has_overtime:
            return True
        overtimes = -(-max(over, 0) // _OVERTIME_ROUNDS)
        needed = self.max_rounds // 2 + overtimes * _OVERTIME_ROUNDS // 2 + 1
        return max(score) == needed and (self.can_clinch or over >= 0)
