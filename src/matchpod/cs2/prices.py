"""Compute the value of the equipment that a player carries out of the buy zone, with the game's prices."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from cs2_protocol.weapons import is_knife

_WEAPON: Final = "weapon_"
_ARMOR: Final = re.compile(r"kevlar\(\d+\)")
_ARMOR_PRICE: Final = 650
_MAX_ARMOR: Final = 100

PRICES: Final = {
    "glock": 200,
    "hkp2000": 200,
    "usp_silencer": 200,
    "p250": 300,
    "elite": 300,
    "fiveseven": 500,
    "tec9": 500,
    "cz75a": 500,
    "deagle": 700,
    "revolver": 600,
    "mac10": 1050,
    "mp9": 1250,
    "mp7": 1500,
    "mp5sd": 1500,
    "ump45": 1200,
    "bizon": 1300,
    "p90": 2350,
    "nova": 1050,
    "xm1014": 2000,
    "mag7": 1300,
    "sawedoff": 1100,
    "negev": 1700,
    "m249": 5200,
    "galilar": 1800,
    "famas": 1950,
    "ak47": 2700,
    "m4a1": 2900,
    "m4a1_silencer": 2900,
    "sg556": 3000,
    "aug": 3300,
    "ssg08": 1700,
    "awp": 4750,
    "g3sg1": 5000,
    "scar20": 5000,
    "taser": 200,
    "hegrenade": 300,
    "flashbang": 200,
    "smokegrenade": 300,
    "decoy": 50,
    "molotov": 400,
    "incgrenade": 500,
}
"""Prices of weapons, by weapon name as in the log. They agree with all purchases in a real match."""

_ITEMS: Final = {
    **{f"{_WEAPON}{name}": price for name, price in PRICES.items()},
    "helmet": 350,
    "defuser": 400,
    f"kevlar({_MAX_ARMOR})": _ARMOR_PRICE,
    "C4": 0,
    f"{_WEAPON}c4": 0,
    f"{_WEAPON}knife": 0,
    f"{_WEAPON}knife_t": 0,
}


def equipment_value(items: Sequence[str]) -> int | None:
    """Return the value of the items in a `left buyzone` line; None if there are no items, or an unknown item.

    Damaged armor counts with its full price. The line lists two flashbangs only once, so the second is not counted.
    """
    total = 0
    for item in items:
        price = _ITEMS[item] if item in _ITEMS else _other_price(item)
        if price is None:
            return None
        total += price
    return total if items else None


def _other_price(item: str) -> int | None:
    """Return the price of an item that is not in the table: that of damaged armor, or 0 for a knife with a skin."""
    if item.startswith(_WEAPON) and is_knife(item[len(_WEAPON) :]):
        return 0
    return _ARMOR_PRICE if _ARMOR.fullmatch(item) else None
