"""When do sides change, and when is a map over? The rules of halves, overtime and early wins, as pure functions.

The game counts rounds, not wins: a drawn round is a round played. Overtime is played in sets; teams go into a set on
the sides they stand on and change in its middle.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from matchpod.simulator.scenarios import Scenario
from matchpod.simulator.variables import Variables


class Next(StrEnum):
    """What follows a round."""

    ROUND = "round"
    """The next one, as it is."""
    HALF = "half"
    """Sides change, and everybody begins with fresh money."""
    OVERTIME = "overtime"
    """Another set of overtime on the same sides, with fresh money."""
    OVER = "over"


@dataclass(frozen=True, slots=True)
class Rules:
    """How long a map is played. No `max_rounds` at all means that it has no end."""

    max_rounds: int
    has_halves: bool = True
    can_clinch: bool = True
    overtime_rounds: int = 0
    """Rounds of each set of overtime; 0 where there is none."""

    def overtime_of(self, rounds_played: int) -> int:
        """Which set of overtime the last of these rounds belongs to; 0 in regulation."""
        extra = rounds_played - self.max_rounds
        return -(-extra // self.overtime_rounds) if extra > 0 and self.overtime_rounds else 0


def rules_of(variables: Variables, scenario: Scenario) -> Rules:
    """The rules as the variables say them now. The story of a tie has no overtime."""
    has_overtime = variables.is_on("mp_overtime_enable") and scenario is not Scenario.TIE
    return Rules(
        max_rounds=variables.whole("mp_maxrounds"),
        has_halves=variables.is_on("mp_halftime"),
        can_clinch=variables.is_on("mp_match_can_clinch"),
        overtime_rounds=variables.whole("mp_overtime_maxrounds") if has_overtime else 0,
    )


def follows(rules: Rules, rounds_played: int, score: tuple[int, int]) -> Next:
    """What comes after the round just played; the score is by team and counts it."""
    if rules.max_rounds <= 0:
        return Next.ROUND
    overtime = rules.overtime_of(rounds_played)
    if rules.can_clinch and max(score) >= _wins_to_clinch(rules, overtime):
        return Next.OVER
    first, length = 0, rules.max_rounds
    if overtime:
        first, length = rules.max_rounds + (overtime - 1) * rules.overtime_rounds, rules.overtime_rounds
    if rounds_played >= first + length:
        is_level = score[0] == score[1]
        return Next.OVERTIME if is_level and rules.overtime_rounds else Next.OVER
    if rules.has_halves and rounds_played - first == length // 2:
        return Next.HALF
    return Next.ROUND


def _wins_to_clinch(rules: Rules, overtime: int) -> int:
    """More than half of regulation, and half of every set of overtime begun."""
    return rules.max_rounds // 2 + 1 + overtime * (rules.overtime_rounds // 2)
