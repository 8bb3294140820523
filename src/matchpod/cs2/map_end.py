"""Define how the end of a map is recognized: the reports about it, and the scores that end a map."""

from __future__ import annotations

import msgspec

from cs2_protocol.game import Team
from matchpod.core.model import GameSettings, MatchType
from matchpod.cs2.match_commands import overtime_cvars

_DEFAULT_ROUNDS = {MatchType.COMPETITIVE: 24, MatchType.WINGMAN: 16, MatchType.CASUAL: 15, MatchType.RETAKES: 8}
"""Maximum number of rounds per map for each mode, from the game's own config files."""

_LIMITS = ("mp_timelimit", "mp_winlimit", "mp_fraglimit")
"""Console variables that may end a map before all of its rounds are played."""

_OVERTIME_ROUNDS = 6
_WINGMAN_OVERTIME_ROUNDS = 4
"""Number of rounds per overtime in wingman, and `_OVERTIME_ROUNDS` otherwise, from the plugin's own config files."""


class EndReport(msgspec.Struct, frozen=True, kw_only=True):
    """A report of a map's end. `Game Over` has the score by side; the plugin reports it by team, or only the winner."""

    at_ms: int
    by_side: tuple[int, int] | None = None
    by_team: tuple[int, int] | None = None
    winner: Team | None = None

    def score_of_winner(self, last: tuple[int, int]) -> tuple[int, int] | None:
        """Return the last score in the log if it agrees with the reported winner; otherwise None."""
        team1, team2 = last
        return last if team1 != team2 and self.winner is (Team.TEAM1 if team1 > team2 else Team.TEAM2) else None


class EndRules(msgspec.Struct, frozen=True, kw_only=True):
    """The rules for the end of a map. `max_rounds` excludes overtime; None if the rounds are not limited."""

    max_rounds: int | None = None
    overtime_rounds: int = _OVERTIME_ROUNDS
    can_clinch: bool = True
    has_overtime: bool = True
    can_tie: bool = False
    """True if the server may play without overtime, so that a tie after all rounds may end the map."""
    may_end_anytime: bool = False
    """True if other limits may end the map, such as a time limit that the caller set."""

    @staticmethod
    def of(settings: GameSettings) -> EndRules:
        """Return the rules of a match: the requested rules, or else the rules of its mode."""
        if settings.match_type is MatchType.DEATHMATCH:
            return EndRules()
        cvars = {setting.name.lower(): setting.value for setting in settings.custom_cvars}
        if settings.overtime is not None:
            cvars |= overtime_cvars(settings.overtime)
        rounds = cvars.get("mp_maxrounds", "")
        default = int(rounds) if rounds.isdecimal() else _DEFAULT_ROUNDS.get(settings.match_type)
        overtime = cvars.get("mp_overtime_maxrounds", "")
        is_wingman, has_series = settings.match_type is MatchType.WINGMAN, settings.match_type.has_series
        # The plugin enables overtime.
        is_on = cvars.get("mp_overtime_enable", "1" if settings.uses_plugin else "0") not in ("0", "false")
        return EndRules(
            max_rounds=settings.max_rounds or default or None,
            overtime_rounds=(int(overtime) if overtime.isdecimal() else 0)
            or (_WINGMAN_OVERTIME_ROUNDS if is_wingman else _OVERTIME_ROUNDS),
            can_clinch=cvars.get("mp_match_can_clinch", "1") not in ("0", "false"),
            # Without overtime, a map of a series may end in a tie. Only its `Game Over` line shows that.
            has_overtime=has_series or is_on,
            can_tie=has_series and not is_on,
            may_end_anytime=any(cvars.get(name, "0") not in ("", "0") for name in _LIMITS),
        )

    def ends_after(self, score: tuple[int, int]) -> list[tuple[int, int]]:
        """Of the two scores that can follow this one, return those that end the map, or may end it as a tie."""
        first, second = score
        following = ((first + 1, second), (first, second + 1))
        return [after for after in following if self.is_end(after) or self._is_tie(after)]

    def may_end(self, score: tuple[int, int]) -> bool:
        """True if the round that follows this score may end the map. In overtime, every round may."""
        rounds = sum(score)
        if self.max_rounds is None or self.may_end_anytime or rounds >= self.max_rounds:
            return True
        # Below half of the rounds, no score is near an end.
        return max(score) >= self.max_rounds // 2 and bool(self.ends_after(score))

    def is_break_after(self, score: tuple[int, int]) -> bool:
        """True if the teams change sides, or an overtime begins, after the round with this score."""
        if self.max_rounds is None:
            return False
        over = sum(score) - self.max_rounds
        half = self.max_rounds // 2 if over < 0 else self.overtime_rounds // 2
        return half > 0 and (sum(score) == half if over < 0 else over % half == 0)

    def _is_tie(self, score: tuple[int, int]) -> bool:
        over = sum(score) - (self.max_rounds or 0)
        return self.can_tie and score[0] == score[1] and over >= 0 and over % self.overtime_rounds == 0

    def is_end(self, score: tuple[int, int]) -> bool:
        """True if a map ends with this score: it is won, in regulation or overtime, or all rounds have been played."""
        if self.max_rounds is None:
            return False
        over = sum(score) - self.max_rounds
        if over >= 0 and not self.has_overtime:
            return True
        overtimes = -(-max(over, 0) // self.overtime_rounds)
        needed = self.max_rounds // 2 + overtimes * self.overtime_rounds // 2 + 1
        return max(score) == needed and (self.can_clinch or over >= 0)
