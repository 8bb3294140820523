"""Decide what follows a round: the rules of halves, overtime and early wins, as pure functions.

The game counts rounds, not wins, so a drawn round counts as played. Overtime consists of sets. Teams start a set on
their current sides, and change sides after half of its rounds.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from cs2_simulator.scenarios import Scenario
from cs2_simulator.variables import Variables


class NextStep(StrEnum):
    """The next step after a round."""

    ROUND = "round"
    """Play the next round of the same half."""
    HALF = "half"
    """Start the next half: sides change, and money is reset."""
    OVERTIME = "overtime"
    """Start the next set of overtime, on the same sides, with money reset."""
    OVER = "over"


@dataclass(frozen=True, slots=True)
class Rules:
    """The number of rounds of a map. If `max_rounds` is 0, it is not limited."""

    max_rounds: int
    has_halves: bool = True
    can_clinch: bool = True
    overtime_rounds: int = 0
    """Number of rounds per set of overtime; 0 for no overtime."""

    def overtime_of(self, rounds_played: int) -> int:
        """Return the number of the overtime set to which the last of the played rounds belongs; 0 in regulation."""
        extra = rounds_played - self.max_rounds
        return -(-extra // self.overtime_rounds) if extra > 0 and self.overtime_rounds else 0


def rules_of(variables: Variables, scenario: Scenario) -> Rules:
    """Return the rules from the console variables.

    The overtime scenario always has overtime, the tie scenario never.
    """
    is_enabled = variables.is_on("mp_overtime_enable") or scenario is Scenario.OVERTIME
    has_overtime = is_enabled and scenario is not Scenario.TIE
    return Rules(
        max_rounds=variables.whole("mp_maxrounds"),
        has_halves=variables.is_on("mp_halftime"),
        can_clinch=variables.is_on("mp_match_can_clinch"),
        overtime_rounds=variables.whole("mp_overtime_maxrounds") if has_overtime else 0,
    )


def next_step(rules: Rules, rounds_played: int, score: tuple[int, int]) -> NextStep:
    """Return what follows the last round. `score` is by team and includes that round."""
    if rules.max_rounds <= 0:
        return NextStep.ROUND
    overtime = rules.overtime_of(rounds_played)
    if rules.can_clinch and max(score) >= _wins_to_clinch(rules, overtime):
        return NextStep.OVER
    first, length = 0, rules.max_rounds
    if overtime:
        first, length = rules.max_rounds + (overtime - 1) * rules.overtime_rounds, rules.overtime_rounds
    if rounds_played >= first + length:
        is_level = score[0] == score[1]
        return NextStep.OVERTIME if is_level and rules.overtime_rounds else NextStep.OVER
    if rules.has_halves and rounds_played - first == length // 2:
        return NextStep.HALF
    return NextStep.ROUND


def _wins_to_clinch(rules: Rules, overtime: int) -> int:
    """Return how many wins end a map early: more than half of regulation, plus half of each started overtime set."""
    return rules.max_rounds // 2 + 1 + overtime * (rules.overtime_rounds // 2)
