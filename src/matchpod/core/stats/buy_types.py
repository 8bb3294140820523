"""Classify how a team bought in a round, by what its players carry out of the buy zone."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

FULL_BUY = 4000
"""Mean value per player of a full buy: a rifle with armour and some grenades. Rating sites use 20,000 per team."""

FORCE_BUY = 2000
"""Mean value per player of a forced buy: 10,000 per team."""

PISTOL_MONEY = 1000
"""Most money and mean value in a pistol round: the start money of 800, and a pistol of 200."""


class BuyType(StrEnum):
    """How a team bought."""

    PISTOL = "pistol"
    """All players began with the start money of a half."""
    ECO = "eco"
    """Little or nothing, to save money."""
    FORCE = "force"
    """Less than a full buy."""
    FULL = "full"
    """Rifles, armour and grenades."""


def buy_type(money: Sequence[int | None], equipment: Sequence[int | None]) -> BuyType | None:
    """Return the buy type of a team from the numbers of its players; None if there are none, or one is unknown."""
    starts = [one for one in money if one is not None]
    values = [one for one in equipment if one is not None]
    if not values or len(values) < len(equipment) or len(starts) < len(money):
        return None
    mean = sum(values) / len(values)
    if max(starts) <= PISTOL_MONEY >= mean:
        return BuyType.PISTOL
    if mean >= FULL_BUY:
        return BuyType.FULL
    return BuyType.FORCE if mean >= FORCE_BUY else BuyType.ECO
