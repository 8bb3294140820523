"""Classify the buy of a team in a round by the equipment that its players carry out of the buy zone."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

FULL_BUY = 4000
"""Minimum mean equipment value per player in a full buy: rifle, armor, grenades. Rating sites use 20,000 per team."""

FORCE_BUY = 2000
"""Minimum mean equipment value per player in a forced buy: 10,000 per team."""

PISTOL_MONEY = 1000
"""Maximum start money per player, and maximum mean equipment value, in a pistol round. In such a round, players have
800 in money and a pistol worth 200."""

START_VALUE = 200
"""Value of the pistol with which a player without other equipment begins."""

MOST_CARRIED = 8850
"""Maximum value of the equipment that a player can carry: M249, Desert Eagle, armor, kit, taser and one grenade of each
kind. The log lists one item per kind; the molotov and the incendiary grenade are of the same kind."""


class BuyType(StrEnum):
    """The buy type of a team in a round."""

    PISTOL = "pistol"
    """All players began with the start money of a half."""
    ECO = "eco"
    """Little or nothing was bought, to save money."""
    FORCE = "force"
    """More than an eco, but less than a full buy."""
    FULL = "full"
    """Rifles, armor and grenades."""


def buy_type(
    money: Sequence[int | None], equipment: Sequence[int | None], *, most_of_team: int | None = None
) -> BuyType | None:
    """Return the buy type of a team from its players' money and equipment; None if it is not certain.

    With unknown equipment values, the type is certain if all their possible values give the same type. `most_of_team`
    is the team's maximum equipment value, if known. It is ignored if the team carries more: some equipment was free.
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
