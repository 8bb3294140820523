"""How will the round end? The kind of end and how many are left standing, chosen before anything of it happens.

Who wins is given. Shares are those of everyday matches: most rounds end by elimination, a plant decides every third.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from random import Random

from matchpod.core.model import Side

MIN_DEFUSE_TIMER_MS = 20_000
"""With less time on the bomb nobody could be sure to defuse it after a fight."""


class RoundStyle(StrEnum):
    """What a round is about."""

    BOMB = "bomb"
    HOSTAGE = "hostage"
    KNIFE = "knife"
    RETAKE = "retake"


@dataclass(frozen=True, slots=True)
class RoundPlan:
    """The end to be reached: `notice` as in `SFUI_Notice_X`, and who is to be left alive of each side."""

    notice: str
    ct_left: int
    t_left: int
    plant_after: float | None = None
    """Which share of the falls comes before the bomb is planted; None is a round without a plant."""

    @property
    def has_plant(self) -> bool:
        """True when the bomb gets planted."""
        return self.plant_after is not None


_ELIMINATION = {Side.CT: "CTs_Win", Side.T: "Terrorists_Win"}


def plan_round(dice: Random, winner: Side, style: RoundStyle, *, cts: int, ts: int, bomb_timer_ms: int) -> RoundPlan:
    """Choose how the winner wins, against so many."""
    roll = dice.random()
    if style is RoundStyle.HOSTAGE:
        return _plan_hostage_round(dice, winner, roll, cts=cts, ts=ts)
    if style is RoundStyle.KNIFE:
        return _plan_elimination(dice, winner, cts=cts, ts=ts, has_plant=False)
    is_retake = style is RoundStyle.RETAKE
    if winner is Side.T:
        if roll < 0.35:
            return RoundPlan("Target_Bombed", _some_of(dice, cts, 0.68), _some_of(dice, ts, 0.5), dice.random())
        return _plan_elimination(dice, winner, cts=cts, ts=ts, has_plant=is_retake or roll < 0.55)
    if (is_retake or roll < 0.25) and bomb_timer_ms >= MIN_DEFUSE_TIMER_MS:
        t_left = 0 if dice.random() < 0.75 else _some_of(dice, ts, 0.8)
        return RoundPlan("Bomb_Defused", _some_of(dice, cts, 0.55), t_left, 0.2 + 0.5 * dice.random())
    if roll < 0.36:
        return RoundPlan("Target_Saved", _some_of(dice, cts, 0.4), _some_of(dice, ts, 0.65))
    return _plan_elimination(dice, winner, cts=cts, ts=ts, has_plant=False)


def _plan_hostage_round(dice: Random, winner: Side, roll: float, *, cts: int, ts: int) -> RoundPlan:
    if winner is Side.CT and roll < 0.3:
        return RoundPlan("All_Hostages_Rescued", _some_of(dice, cts, 0.4), _some_of(dice, ts, 0.6))
    if winner is Side.T and roll < 0.15:
        return RoundPlan("Hostages_Not_Rescued", _some_of(dice, cts, 0.6), _some_of(dice, ts, 0.35))
    return _plan_elimination(dice, winner, cts=cts, ts=ts, has_plant=False)


def _plan_elimination(dice: Random, winner: Side, *, cts: int, ts: int, has_plant: bool) -> RoundPlan:
    count = cts if winner is Side.CT else ts
    left = _some_of(dice, count, 0.66)
    ct_left, t_left = (left, 0) if winner is Side.CT else (0, left)
    plant_after = 0.2 + 0.6 * dice.random()
    return RoundPlan(_ELIMINATION[winner], ct_left, t_left, plant_after if has_plant else None)


def _some_of(dice: Random, count: int, dead_share: float) -> int:
    """How many of a side live on, at least one; on average about so large a share of them dies."""
    deaths = int(dice.betavariate(4 * dead_share, 4 * (1 - dead_share)) * count + 0.25)
    return max(1, count - deaths)
