"""Classify how a team bought in a round, by what its players carry out of the buy zone."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

FULL_BUY = 4000
"""Mean value per player of a full buy: a rifle with armor and some grenades. Rating sites use 20,000 per team."""

FORCE_BUY = 2000
"""Mean value per player of a forced buy: 10,000 per team."""

PISTOL_MONEY = 1000
"""Most money and mean value in a pistol round: the start money of 800, and a pistol of 200."""

START_VALUE = 200
"""Value of the pistol with which players begin who have kept nothing."""

MOST_CARRIED = 8850
"""Most value that a player can carry: M249, Desert Eagle, armor, kit, taser and one grenade of each kind. Only one of
a kind is listed, and the molotov and the incendiary grenade are of one kind."""


class BuyType(StrEnum):
    """How a team bought."""

    PISTOL = "pistol"
    """All players began with the start money of a half."""
    ECO = "eco"
    """Little or nothing, to save money."""
    FORCE = "force"
    """Less than a full buy."""
    FULL = "full"
    """Rifles, armor and grenades."""


def buy_type(
    money: Sequence[int | None], equipment: Sequence[int | None], *, most_of_team: int | None = None
) -> BuyType | None:
    """Return the buy type of a team from its players' money and equipment; None if it is not certain.

    Values of equipment may be unknown if all that are possible give the same type. `most_of_team` is the most value
    that the team can carry, if that is known; if it carries more, something was free.
    """
    starts = [amount for amount in money if amount is not None]
    values = [amount for amount in equipment if amount is not None]
    if not values or len(starts) < len(money):
        return None
    least = sum(values)
    most = least + MOST_CARRIED * (len(equipment) - len(values))
    if most_of_team is not None and most_of_team >= least:
        most = min(most, most_of_team)
    found = _type_of(least / len(equipment), max(starts))
    return found if _type_of(most / len(equipment), max(starts)) is found else None


def _type_of(mean: float, most_money: int) -> BuyType:
    if most_money <= PISTOL_MONEY >= mean:
        return BuyType.PISTOL
    if mean >= FULL_BUY:
        return BuyType.FULL
    return BuyType.FORCE if mean >= FORCE_BUY else BuyType.ECO
