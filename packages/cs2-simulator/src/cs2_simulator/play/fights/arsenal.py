"""Define all weapons and items with their prices, damage and names in the log.

`killed`, `purchased` and the cause of a money change name the actual weapon. `picked up` and `attacked` name the base
model: a player who buys an mp5sd picks up an "mp7".
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from cs2_protocol.game import Side
from cs2_protocol.weapons import base_name, is_knife

MAX_ARMOR = 100
KNIFE_REWARD = 1500


class ItemKind(StrEnum):
    PISTOL = "pistol"
    SMG = "smg"
    SHOTGUN = "shotgun"
    RIFLE = "rifle"
    SNIPER = "sniper"
    MACHINE_GUN = "machine gun"
    TASER = "taser"
    KNIFE = "knife"
    THROWN = "thrown"


@dataclass(frozen=True, slots=True)
class Weapon:
    """A weapon. `pierce` is the share of damage that passes armor, `falloff` the share that remains at 500 units."""

    name: str
    kind: ItemKind
    price: int
    side: Side | None
    """The side that can buy the weapon; None for both sides."""
    damage: float
    pierce: float
    falloff: float
    cycle_ms: int
    reward: int
    logged: str
    """Name of the weapon in `attacked` lines."""


@dataclass(frozen=True, slots=True)
class Item:
    """An item of the buy menu, with its names in `money change`, `purchased` and `picked up` lines."""

    price: int
    cause: str
    bought: str
    picked: str
    is_worn: bool = False
    """True for armor and defuse kit. Their `picked up` line precedes the money change; that of a weapon follows it."""


_CT, _T, _BOTH = Side.CT, Side.T, None

_GUNS: dict[ItemKind, tuple[tuple[str, int, Side | None, float, float, float, int, int], ...]] = {
    ItemKind.PISTOL: (
        ("glock", 200, _T, 30, 0.47, 0.85, 150, 300),
        ("hkp2000", 200, _CT, 35, 0.505, 0.91, 170, 300),
        ("usp_silencer", 200, _CT, 35, 0.505, 0.91, 170, 300),
        ("p250", 300, _BOTH, 38, 0.64, 0.9, 150, 300),
        ("elite", 300, _BOTH, 38, 0.575, 0.79, 120, 300),
        ("fiveseven", 500, _CT, 32, 0.91, 0.81, 150, 300),
        ("tec9", 500, _T, 33, 0.906, 0.79, 120, 300),
        ("cz75a", 500, _BOTH, 31, 0.776, 0.85, 100, 100),
        ("deagle", 700, _BOTH, 53, 0.932, 0.85, 225, 300),
        ("revolver", 600, _BOTH, 86, 0.932, 0.94, 500, 300),
    ),
    ItemKind.SMG: (
        ("mac10", 1050, _T, 29, 0.575, 0.8, 75, 600),
        ("mp9", 1250, _CT, 26, 0.6, 0.87, 70, 600),
        ("mp7", 1500, _BOTH, 29, 0.625, 0.85, 80, 600),
        ("mp5sd", 1500, _BOTH, 27, 0.625, 0.85, 80, 600),
        ("ump45", 1200, _BOTH, 35, 0.65, 0.75, 90, 600),
        ("bizon", 1300, _BOTH, 27, 0.575, 0.8, 80, 600),
        ("p90", 2350, _BOTH, 26, 0.69, 0.86, 70, 300),
    ),
    ItemKind.SHOTGUN: (
        ("nova", 1050, _BOTH, 26, 0.5, 0.7, 880, 900),
        ("xm1014", 2000, _BOTH, 20, 0.8, 0.7, 350, 900),
        ("mag7", 1300, _CT, 30, 0.75, 0.45, 850, 900),
    ),
    ItemKind.RIFLE: (
        ("galilar", 1800, _T, 30, 0.775, 0.98, 90, 300),
        ("famas", 1950, _CT, 30, 0.7, 0.96, 90, 300),
        ("ak47", 2700, _T, 36, 0.775, 0.98, 100, 300),
        ("m4a1", 2900, _CT, 33, 0.7, 0.97, 90, 300),
        ("m4a1_silencer", 2900, _CT, 38, 0.7, 0.94, 100, 300),
        ("sg556", 3000, _T, 30, 1.0, 0.98, 90, 300),
        ("aug", 3300, _CT, 28, 0.9, 0.98, 90, 300),
    ),
    ItemKind.SNIPER: (
        ("ssg08", 1700, _BOTH, 88, 0.85, 0.98, 1250, 300),
        ("awp", 4750, _BOTH, 115, 0.975, 0.99, 1455, 100),
        ("g3sg1", 5000, _T, 80, 0.825, 0.98, 250, 300),
        ("scar20", 5000, _CT, 80, 0.825, 0.98, 250, 300),
    ),
    ItemKind.MACHINE_GUN: (
        ("negev", 1700, _BOTH, 35, 0.71, 0.97, 75, 300),
        ("m249", 5200, _BOTH, 32, 0.8, 0.97, 80, 300),
    ),
    # In a real log, a kill with the taser pays 100.
    ItemKind.TASER: (("taser", 200, _BOTH, 500, 1.0, 1.0, 300, 100),),
    ItemKind.THROWN: (
        ("hegrenade", 300, _BOTH, 98, 0.6, 1.0, 1000, 300),
        ("flashbang", 200, _BOTH, 1, 1.0, 1.0, 1000, 300),
        ("smokegrenade", 300, _BOTH, 1, 1.0, 1.0, 1000, 300),
        ("decoy", 50, _BOTH, 1, 1.0, 1.0, 1000, 300),
        ("molotov", 400, _T, 1, 1.0, 1.0, 1000, 300),
        ("incgrenade", 500, _CT, 1, 1.0, 1.0, 1000, 300),
    ),
}

WEAPONS = MappingProxyType(
    {
        name: Weapon(name, kind, price, side, damage, pierce, falloff, cycle_ms, reward, base_name(name))
        for kind, rows in _GUNS.items()
        for name, price, side, damage, pierce, falloff, cycle_ms, reward in rows
    }
)
"""Guns and grenades, by their name in `killed` lines."""

INFERNO = Weapon("inferno", ItemKind.THROWN, 0, None, 8, 1.0, 1.0, 203, 300, "inferno")
"""Fire on the ground, from a Molotov or an incendiary grenade."""

_PICKED = {"revolver": "deagle"}
"""Names in `picked up` lines that differ from those in `attacked` lines."""

ITEMS = MappingProxyType(
    {
        **{
            weapon.name: Item(
                weapon.price, f"purchase: weapon_{weapon.name}", weapon.name, _PICKED.get(weapon.name, weapon.logged)
            )
            for weapon in WEAPONS.values()
        },
        "vest": Item(650, "purchase: item_kevlar", "item_kevlar", "vest", is_worn=True),
        "vesthelm": Item(1000, "purchase: item_assaultsuit", "item_assaultsuit", "vesthelm", is_worn=True),
        "defuser": Item(400, "purchase: item_defuser", "item_defuser", "defuser", is_worn=True),
    }
)
"""The buy menu, by the item names used in this simulator."""

GRENADES = ("hegrenade", "flashbang", "smokegrenade", "molotov", "incgrenade", "decoy")
MAX_GRENADES = 4


def weapon_named(name: str) -> Weapon:
    """Return the weapon with this name in `killed` lines.

    For any knife model, return a knife with its name. For any other unknown name, return INFERNO.
    """
    weapon = WEAPONS.get(name)
    if weapon is not None:
        return weapon
    if is_knife(name):
        return Weapon(name, ItemKind.KNIFE, 0, None, 55, 0.85, 1.0, 500, KNIFE_REWARD, base_name(name))
    return INFERNO


def pick_up_name(name: str) -> str:
    """Return the name of a weapon or item in `picked up` lines."""
    item = ITEMS.get(name)
    return base_name(name) if item is None else item.picked
