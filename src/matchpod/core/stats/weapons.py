"""What kind of weapon is it? Names are the server log's words and are shown as they are.

`killed` lines name the real weapon, `attacked` lines only its base model: `base_name` makes the two comparable.
"""

from __future__ import annotations

# With these two sets the counts of a real match equal the game's own pistol and sniper columns.
PISTOLS = frozenset(
    {"glock", "hkp2000", "usp_silencer", "p250", "elite", "fiveseven", "tec9", "cz75a", "deagle", "revolver"}
)
SNIPERS = frozenset({"awp", "ssg08", "scar20", "g3sg1"})

# `inferno` is any fire on the ground; `molotov` and `incgrenade` are the bottle itself hitting somebody.
UTILITY = frozenset({"hegrenade", "inferno", "molotov", "incgrenade", "flashbang", "smokegrenade", "decoy"})

# Every knife skin has a name of its own, so a list would never be complete.
_KNIFE_PREFIXES = ("knife", "bayonet")

# Lethal pairs seen in real logs; every other weapon has the same name in both lines.
_BASE_NAMES = {"m4a1_silencer": "m4a1", "mp5sd": "mp7", "usp_silencer": "hkp2000"}


def is_knife(weapon: str) -> bool:
    """True for a knife of any skin."""
    return weapon.startswith(_KNIFE_PREFIXES)


def base_name(weapon: str) -> str:
    """The name that an `attacked` line prints for this weapon."""
    if is_knife(weapon):
        return "knife"
    return _BASE_NAMES.get(weapon, weapon)
