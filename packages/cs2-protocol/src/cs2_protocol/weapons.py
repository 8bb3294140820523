"""Classify weapons by their name in the server log.

`killed` lines name the actual weapon, `attacked` lines only its base model: `base_name` makes the two comparable.
"""

from __future__ import annotations

# With these sets, the counts of a real match equal the game's own columns for pistol and sniper kills.
PISTOLS = frozenset(
    {"glock", "hkp2000", "usp_silencer", "p250", "elite", "fiveseven", "tec9", "cz75a", "deagle", "revolver"}
)
SNIPERS = frozenset({"awp", "ssg08", "scar20", "g3sg1"})

# `inferno` is any fire on the ground; `molotov` and `incgrenade` are direct hits by the thrown grenade.
UTILITY = frozenset({"hegrenade", "inferno", "molotov", "incgrenade", "flashbang", "smokegrenade", "decoy"})

# Every knife model has its own name, so a list would never be complete.
_KNIFE_PREFIXES = ("knife", "bayonet")

# Pairs found in real logs. All other weapons have the same name in `attacked` and `killed` lines.
_BASE_NAMES = {"m4a1_silencer": "m4a1", "mp5sd": "mp7", "usp_silencer": "hkp2000"}


def is_knife(weapon: str) -> bool:
    """True for a knife of any model."""
    return weapon.startswith(_KNIFE_PREFIXES)


def base_name(weapon: str) -> str:
    """Return the name that `attacked` lines have for this weapon."""
    if is_knife(weapon):
        return "knife"
    return _BASE_NAMES.get(weapon, weapon)
