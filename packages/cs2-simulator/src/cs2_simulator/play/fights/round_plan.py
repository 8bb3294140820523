"""Plan how a round ends and how many players survive, before the round is played.

The caller chooses the winner. The kinds of round end are as frequent as in ordinary matches: most rounds end by
elimination, a third by the bomb.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from random import Random

from cs2_protocol.game import Side

MIN_DEFUSE_TIMER_MS = 20_000
"""Minimum bomb timer in milliseconds for which a defuse is planned. With a shorter timer, a defuse might not finish in
time."""


class RoundStyle(StrEnum):
    """The kind of a round, named after its objective."""

    BOMB = "bomb"
    HOSTAGE = "hostage"
    KNIFE = "knife"
    RETAKE = "retake"


@dataclass(frozen=True, slots=True)
class RoundPlan:
    """The planned end of a round.

    `notice` is the X of `SFUI_Notice_X`; `ct_left` and `t_left` are the numbers of survivors per side.
    """

    notice: str
    ct_left: int
    t_left: int
    plant_after: float | None = None
    """Share of the planned deaths that precede the plant; None for a round without a plant."""


_ELIMINATION = {Side.CT: "CTs_Win", Side.T: "Terrorists_Win"}


def plan_round(rng: Random, winner: Side, style: RoundStyle, *, cts: int, ts: int, bomb_timer_ms: int) -> RoundPlan:
    """Choose how the winning side wins. `cts` and `ts` are the numbers of players."""
    roll = rng.random()
    if style is RoundStyle.HOSTAGE:
        return _plan_hostage_round(rng, winner, roll, cts=cts, ts=ts)
    if style is RoundStyle.KNIFE:
        return _plan_elimination(rng, winner, cts=cts, ts=ts, has_plant=False)
    is_retake = style is RoundStyle.RETAKE
    if winner is Side.T:
        if roll < 0.35:
            return RoundPlan("Target_Bombed", _survivors(rng, cts, 0.68), _survivors(rng, ts, 0.5), rng.random())
        return _plan_elimination(rng, winner, cts=cts, ts=ts, has_plant=is_retake or roll < 0.55)
    if (is_retake or roll < 0.25) and bomb_timer_ms >= MIN_DEFUSE_TIMER_MS:
        t_left = 0 if rng.random() < 0.75 else _survivors(rng, ts, 0.8)
        return RoundPlan("Bomb_Defused", _survivors(rng, cts, 0.55), t_left, 0.2 + 0.5 * rng.random())
    if roll < 0.36:
        return RoundPlan("Target_Saved", _survivors(rng, cts, 0.4), _survivors(rng, ts, 0.65))
    return _plan_elimination(rng, winner, cts=cts, ts=ts, has_plant=False)


def _plan_hostage_round(rng: Random, winner: Side, roll: float, *, cts: int, ts: int) -> RoundPlan:
    if winner is Side.CT and roll < 0.3:
        return RoundPlan("All_Hostages_Rescued", _survivors(rng, cts, 0.4), _survivors(rng, ts, 0.6))
    if winner is Side.T and roll < 0.15:
        return RoundPlan("Hostages_Not_Rescued", _survivors(rng, cts, 0.6), _survivors(rng, ts, 0.35))
    return _plan_elimination(rng, winner, cts=cts, ts=ts, has_plant=False)


def _plan_elimination(rng: Random, winner: Side, *, cts: int, ts: int, has_plant: bool) -> RoundPlan:
    count = cts if winner is Side.CT else ts
    left = _survivors(rng, count, 0.66)
    ct_left, t_left = (left, 0) if winner is Side.CT else (0, left)
    plant_after = 0.2 + 0.6 * rng.random()
    return RoundPlan(_ELIMINATION[winner], ct_left, t_left, plant_after if has_plant else None)


def _survivors(rng: Random, count: int, dead_share: float) -> int:
    """Return the number of survivors of a side, at least one.

    On average, a share of `dead_share` of its players dies.
    """
    deaths = int(rng.betavariate(4 * dead_share, 4 * (1 - dead_share)) * count + 0.25)
    return max(1, count - deaths)
